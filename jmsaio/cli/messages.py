"""Messages from arguments, files and JSON lines; and messages as JSON and as text."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
import attrs
import click
from rich.text import Text

from jmsaio.cli.common.output import printable
from jmsaio.codec.schemas.reading import json_text
from jmsaio.config.options import nearest
from jmsaio.errors import JMSError, MalformedMessageError
from jmsaio.model.arguments import shown, with_article
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.headers import FIELDS as HEADER_FIELDS, OF_APPLICATION, HeaderKind, as_word, is_provided
from jmsaio.model.messages.kinds import KINDS
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.object_message import JavaObject
from jmsaio.model.modes import DeliveryMode
from jmsaio.model.text import PARSERS
from jmsaio.model.values import Byte, Char, Float, Long, Short
from jmsaio.model.wire import DELIVERY_COUNT


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
_TIMES = frozenset(header.field for header in HEADER_FIELDS if header.kind is HeaderKind.TIME)


@attrs.frozen
class BodySource:
    """The input of ``jmsaio send``: bodies as arguments, and opened files.

    Each line of a file is a body with ``lines``, and a message of ``jmsaio receive --json`` with ``records``.
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


def to_json(message: Message) -> dict[str, Any]:
    """Convert a message to a JSON object that ``jmsaio send --json-lines`` can send again.

    Headers that are missing or have their default value are left out. Bytes are Base64. ``types`` and ``body_types``
    name the types that JSON can't express.
    """
    body, kinds = _body(message)
    record: dict[str, Any] = {"message_id": message.jms_message_id, "kind": message.KIND, "body": body}
    if kinds:
        record["body_types"] = kinds
    record["properties"], types = _values(message.properties)
    if types:
        record["types"] = types
    for header in HEADER_FIELDS:
        value = getattr(message, header.attribute)
        if value != header.default:
            record[header.field] = _header(value, header.kind)
    return record


def _header(value: Any, kind: HeaderKind) -> Any:
    if kind is HeaderKind.DESTINATION:
        return f"{'topic' if hasattr(value, 'topic_name') else 'queue'}:{value.name}"
    if kind is HeaderKind.MODE:
        return as_word(value)
    return value


def to_text(message: Message, *, headers: bool = False) -> Text:
    """Convert a message to text: id and time, typed properties, headers, body. Control characters are escaped."""
    text = Text()
    text.append(printable(message.jms_message_id or "(no id)"), style="bold")
    if message.jms_timestamp:
        text.append(f"  {clock_text(message.jms_timestamp)}", style="dim")
    if message.jms_redelivered:
        text.append(f"  delivery {dict(message.properties).get('JMSXDeliveryCount', '?')}", style="yellow")
    for name, value in message.properties.items():
        if name == DELIVERY_COUNT and not headers:  # the provider's: only when asked
            continue
        shown = repr(value) if isinstance(value, str) else plain(value)
        kind = mark(value)
        text.append(f"\n  {printable(name)} = {printable(str(shown))}", style="cyan")
        if kind is not None:
            text.append(f" ({kind})", style="dim")
    if headers:
        hidden = ("message_id", "kind", "body", "body_types", "properties", "types")
        for name, value in to_json(message).items():
            if name not in hidden:
                shown = clock_text(value) if name in _TIMES and value else printable(str(value))
                text.append(f"\n  {name}: {shown}", style="dim")
    text.append("\n")
    text.append(body_text(message))
    return text


def raw_to_json(error: MalformedMessageError) -> dict[str, Any]:
    """Convert an unreadable message to a JSON object: its properties as received, its bytes as Base64."""
    return {
        "message_id": str(getattr(error.record, "message_id", None)),
        "kind": "raw",
        "body": plain(error.payload),
        "properties": dict(error.properties),
        "error": str(error),
    }


def raw_to_text(error: MalformedMessageError) -> Text:
    text = Text()
    text.append(printable(str(error)), style="red")
    for name, value in error.properties.items():
        text.append(f"\n  {printable(name)} = {printable(repr(value))}", style="cyan")
    text.append(f"\n{_shown(error.payload or b'')}")
    return text


def _body(message: Message) -> tuple[Any, Any]:
    body, kind = message._body(), KINDS[message.KIND].body
    if isinstance(body, JavaObject):
        return {"class": body.class_name, "data": plain(body.data)}, "java"
    if kind is bytes:
        return plain(body), None
    if kind is dict:
        return _values(body)
    if kind is list:
        values, kinds = _values(dict(enumerate(body)))
        return list(values.values()), {str(index): kind for index, kind in kinds.items()}
    return plain(body), mark(body)


def _values(values: Mapping[Any, Any]) -> tuple[dict[Any, Any], dict[Any, str]]:
    kinds = {name: mark(value) for name, value in values.items()}
    return {name: plain(value) for name, value in values.items()}, {name: kind for name, kind in kinds.items() if kind}


def body_text(message: Message) -> str:
    """Return the body as indented lines; of bytes, the beginning."""
    kind = KINDS[message.KIND].body
    if kind is None:
        return "  (no body)"
    if kind is str:
        return "  (no text)" if message.text is None else _indented(message.text)
    if kind is bytes:
        return _shown(message._body())
    body, kinds = _body(message)
    note = f"  types {kinds}" if kinds else ""
    return f"  {message.KIND} {printable(json.dumps(body, ensure_ascii=False))}{note}"


def _shown(data: bytes) -> str:
    return f"  {len(data)} bytes: {data[:64].hex(' ')}" + (" ..." if len(data) > 64 else "")


def _indented(text: str) -> str:
    return "\n".join(f"  {printable(line)}" for line in text.split("\n"))


def clock_text(milliseconds: int) -> str:
    """Format a time as local time with its UTC offset; return the number if no calendar date represents it."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)
    return moment.isoformat(sep=" ", timespec="milliseconds")
