"""Bodies and typed values from arguments and files, and whole messages from JSON lines."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
import attrs
import click

from jmsaio.codec.schemas.reading import json_text
from jmsaio.config.options import nearest
from jmsaio.errors import JMSError
from jmsaio.model.arguments import shown, with_article
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.headers import FIELDS as HEADER_FIELDS, OF_APPLICATION, HeaderKind, is_provided
from jmsaio.model.messages.kinds import KINDS
from jmsaio.model.messages.message import Message
from jmsaio.model.modes import DeliveryMode
from jmsaio.model.text import PARSERS
from jmsaio.model.values import Byte, Char, Float, Long, Short


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("write true or false")
    return text.lower() == "true"


#: Parsers of a property's text by type name.
TYPES: Mapping[str, Callable[[str], bool | int | float | str]] = {
    "string": str,
    "boolean": _boolean,
    **{kind: PARSERS[kind] for kind in ("byte", "short", "int", "long", "float", "double")},
}


def parse_property(text: str) -> tuple[str, bool | int | float | str]:
    """Parse ``name=value`` (a string) or ``name:type=value`` into name and value. Raises click.UsageError."""
    name, equals, value = text.partition("=")
    name, colon, kind = name.partition(":")
    if not equals or not name:
        raise click.UsageError(f"property {shown(text)} is not name=value or name:type=value")
    reader = TYPES.get(kind if colon else "string")
    if reader is None:
        raise click.UsageError(f"property {shown(text)}: type {shown(kind)} is not one of {', '.join(TYPES)}")
    try:
        return name, reader(value)
    except (ValueError, OverflowError, JMSError) as error:
        raise click.UsageError(f"property {shown(name)}: {shown(value)} is not a valid {kind}: {error}") from None


def typed(value: Any, kind: str | None) -> Any:
    """Convert a JSON value to the type named ``kind``; None keeps the type that JSON has. Raises ValueError."""
    if kind is None or value is None:
        return value
    if kind == "bytes":
        return base64.b64decode(value, validate=True)
    if kind == "char":
        return Char(value)
    reader = TYPES.get(kind)
    if reader is None:
        raise ValueError(f"type {shown(kind)} is not one of {', '.join(TYPES)}")
    return reader(str(value).lower() if isinstance(value, bool) else str(value))


def plain(value: Any) -> Any:
    """Convert a property's or body's value to JSON; NaN and infinities become Java's text for them.

    In a body decoded by a schema, nested bytes become Base64, and decimals, dates and times become text.
    """
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bytes | date | time | Decimal):
        return json_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


def mark(value: object) -> str | None:
    """Return the name of the value's type if JSON can't express it, else None."""
    for kind in (bytes, Byte, Short, Long, Float, Char, Decimal, datetime, date, time):
        if isinstance(value, kind):
            return kind.__name__.lower()
    return "double" if isinstance(value, float) and not math.isfinite(value) else None


#: The JSON of a body, by the class that its message holds.
_IN_JSON: dict[type, str] = {dict: "a JSON object", list: "a JSON array"}
#: Maximum bytes per read of lines.
_CHUNK = 64 * 1024
#: Fields of a line written by ``jmsaio receive --json``.
FIELDS = frozenset(("kind", "body", "body_types", "properties", "types", *(header.field for header in HEADER_FIELDS)))


@attrs.frozen
class BodySource:
    """The input of ``jmsaio send``: bodies as arguments, and opened files.

    Attributes:
        lines: whether each line of a file is a body, not the whole file.
        records: whether each line of a file is a message as written by ``jmsaio receive --json``.
    """

    arguments: tuple[str, ...]
    files: tuple[BinaryIO, ...]
    kind: str
    lines: bool = False
    records: bool = False

    async def messages(self) -> AsyncGenerator[Message, None]:
        """Yield the messages as the input arrives; waiting for an open pipe holds up nothing else.

        Raises click.UsageError; the error names a malformed line.
        """
        if self.kind == "header" and not (self.arguments or self.files or self.lines or self.records):
            yield Message()  # has no body to read
            return
        for text in self.arguments:
            yield make(self.kind, text.encode())
        for file in self._files():
            name = getattr(file, "name", "standard input")
            if not (self.lines or self.records):
                body = file.read()
                if not body:
                    _refuse_empty(file)
                yield make(self.kind, body)
                continue
            number = 0
            async for line in _lines(file):
                number += 1
                if self.records and not line.strip():
                    continue
                try:
                    yield from_record(line) if self.records else make(self.kind, line)
                except click.UsageError as error:
                    raise click.UsageError(f"{name}, line {number}: {error.message}") from None
            if not number:
                _refuse_empty(file)

    def _files(self) -> tuple[BinaryIO, ...]:
        if self.files or self.arguments:
            return self.files
        if sys.stdin.isatty():
            raise click.UsageError("nothing to send: give a body or --file PATH, or pipe something in")
        return (sys.stdin.buffer,)

    @property
    def single(self) -> bool:
        """Whether there is one message, also before the input is read."""
        return not (self.lines or self.records) and len(self.arguments) + len(self.files) <= 1


async def _lines(file: BinaryIO) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a file as they arrive, without their ends."""
    parts: list[bytes] = []
    while chunk := await _available(file):
        first, *others = chunk.split(b"\n")
        parts.append(first)
        for other in others:
            yield b"".join(parts).rstrip(b"\r")
            parts = [other]
    if last := b"".join(parts):
        yield last.rstrip(b"\r")


async def _available(file: BinaryIO) -> bytes:
    """Return the next data of a file, b"" at its end."""
    if not isinstance(file, io.BufferedReader):  # in memory
        return file.read(_CHUNK)
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or file.isatty():  # an event loop can't wait for other files
        if sys.platform == "win32":  # where it can only wait for sockets
            return await anyio.to_thread.run_sync(file.read1, _CHUNK, abandon_on_cancel=True)
        await anyio.wait_readable(file)
    return file.read1(_CHUNK)


def _refuse_empty(file: BinaryIO) -> None:
    """Raise UsageError for an empty pipe, which suggests a failed command; an empty file can be intended."""
    if file is sys.stdin.buffer:
        raise click.UsageError(
            "standard input is empty: did the command before the pipe fail? An empty body is an argument: ''"
        )


def make(kind: str, data: bytes) -> Message:
    """Create a message of ``kind`` from its body: bytes unchanged, text in UTF-8, map, stream and object in JSON."""
    body_class = KINDS[kind].body
    if body_class is bytes:
        return _created(kind, data)
    if body_class is None:
        if data:
            raise click.UsageError(
                f"{with_article(kind)} message has no body, so this one would be lost; leave out the body or --as"
            )
        return Message()
    try:
        text = data.decode("utf-8")
        value = text if body_class is str else json.loads(text)
    except UnicodeDecodeError:
        raise click.UsageError("the body is not UTF-8 text; send it with --as bytes") from None
    except ValueError as error:
        raise click.UsageError(f"the body of {with_article(kind)} message is JSON; {error}") from None
    try:
        if not isinstance(value, body_class):
            raise ValueError(f"the body must be {_IN_JSON[body_class]}")
        return _created(kind, value)
    except (JMSError, ValueError) as error:
        raise click.UsageError(f"not {with_article(kind)} message: {error}") from None


def _created(kind: str, body: Any) -> Message:
    message: Message = KINDS[kind].message(body)
    return message


def from_record(line: bytes) -> Message:
    """Create a message from a line of ``jmsaio receive --json``, without its id, times and destination."""
    try:
        record = json.loads(line)
        message = _from_kind(str(record.get("kind", "text")), record.get("body"), record.get("body_types") or {})
        for field in record.keys() - FIELDS:
            raise ValueError(f"unknown field {shown(field)}{nearest(field, FIELDS)}")
        types = record.get("types") or {}
        for name, value in (record.get("properties") or {}).items():
            if not is_provided(name):
                message.set_object_property(name, typed(value, types.get(name)))
        for header in OF_APPLICATION:
            value = record.get(header.field)
            if value is not None:
                value = _destination(value) if header.kind is HeaderKind.DESTINATION else value
                setattr(message, header.attribute, value)
        message.jms_priority = record.get("priority", message.jms_priority)
        mode = record.get("delivery_mode", DeliveryMode.PERSISTENT.name)
        if mode not in DeliveryMode.__members__:
            raise ValueError(f"delivery_mode {shown(mode)} is not one of {', '.join(DeliveryMode.__members__)}")
        message.jms_delivery_mode = DeliveryMode[mode]
    except (JMSError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise click.UsageError(f"not a message in JSON: {error}") from None
    return message


def _from_kind(kind: str, body: Any, types: Any) -> Message:
    if kind not in KINDS:
        raise ValueError(f"kind {shown(kind)} is not one of {', '.join(KINDS)}")
    body_class = KINDS[kind].body
    if body_class is None:
        if body is not None:
            raise ValueError(f"{with_article(kind)} message has no body")
        return Message()
    if body_class is bytes:
        body = base64.b64decode(body or "", validate=True)
    elif body_class is dict:
        body = {name: typed(value, types.get(name)) for name, value in body.items()}
    elif body_class is list:
        body = [typed(value, types.get(str(index))) for index, value in enumerate(body)]
    elif body_class is object:
        if types == "java":
            raise ValueError("a Java object can be received, not sent")
        body = typed(body, types or None)
    return _created(kind, body)


def _destination(text: object) -> Queue | Topic:
    kind, _, name = str(text).partition(":")
    if kind not in ("queue", "topic"):
        raise ValueError(f"reply_to {shown(text)} is not queue:NAME or topic:NAME")
    return Queue(name) if kind == "queue" else Topic(name)
