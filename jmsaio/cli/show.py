"""A message as a JSON object, and as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from jmsaio.cli.bodies import mark, plain
from jmsaio.cli.common.output import printable
from jmsaio.errors import MalformedMessageError
from jmsaio.model.headers import FIELDS, HeaderKind, as_word
from jmsaio.model.messages.kinds import KINDS
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.object_message import JavaObject
from jmsaio.model.wire import DELIVERY_COUNT

_TIMES = frozenset(header.field for header in FIELDS if header.kind is HeaderKind.TIME)


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
    for header in FIELDS:
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
    """Convert an unreadable message to text."""
    text = Text()
    text.append(printable(str(error)), style="red")
    for name, value in error.properties.items():
        text.append(f"\n  {printable(name)} = {printable(repr(value))}", style="cyan")
    text.append(f"\n{_shown(error.payload or b'')}")
    return text


def _body(message: Message) -> tuple[Any, Any]:
    """Return the body as JSON, and the types that JSON can't express."""
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
