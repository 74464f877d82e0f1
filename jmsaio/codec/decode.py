"""A Pulsar record to a JMS message (Starlight 2.3 and 2.5): the body at once, headers and properties when needed."""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from typing import Any, Final

from jmsaio.codec.javaser import read_map, read_object
from jmsaio.codec.names import OBJECT_JSON
from jmsaio.codec.stream import read_stream
from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model import wire
from jmsaio.model.bytes_message import BytesMessage
from jmsaio.model.destinations import Destination, Queue, Topic
from jmsaio.model.headers import Headers
from jmsaio.model.map_message import MapMessage
from jmsaio.model.message import Message, Property
from jmsaio.model.object_message import ObjectMessage
from jmsaio.model.stream_message import StreamMessage
from jmsaio.model.text import parse_wire
from jmsaio.model.text_message import TextMessage
from jmsaio.model.values import Value
from jmsaio.model.wire import ReceivedRecord

_MARKS: Final = (wire.TYPE_SUFFIX, wire.TYPE_SUFFIX_READ)
_HIDDEN: Final = wire.RESERVED | {wire.CONNECTION_ID, OBJECT_JSON}


def decode(record: ReceivedRecord, destination: Destination | None, namespace: str = "public/default") -> Message:
    """The message of a record.

    Args:
        record: what the transport gave.
        destination: what JMSDestination shows.
        namespace: namespace of short destination names.

    Raises:
        MalformedMessageError: a body that is not what the record says; carries the record.
    """
    kind = record.properties.get(wire.MESSAGE_TYPE, "bytes")
    reader = _READERS.get(kind)
    source = RecordSource(record, destination, namespace)
    if reader is None:
        return Message._received(source, None)
    made, read = reader
    try:
        body = read(record)
    except (MessageFormatError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise MalformedMessageError(f"the body of a {kind} message {record.message_id} can't be read: {error}", record) from error
    return made._received(source, body)


class RecordSource:
    """Headers and properties of a record, made when a message asks for them."""

    __slots__ = ("destination", "namespace", "record")

    def __init__(self, record: ReceivedRecord, destination: Destination | None, namespace: str) -> None:
        self.record = record
        self.destination = destination
        self.namespace = namespace

    def headers(self) -> Headers:
        """The headers; values that can't be read count as absent, as in Java."""
        record = self.record
        text = record.properties.get
        timestamp = record.event_time
        return Headers(
            self.destination,
            delivery_mode(text(wire.DELIVERY_MODE)),
            text(wire.MESSAGE_ID) or str(record.message_id),
            timestamp,
            number(text(wire.EXPIRATION), 0),
            number(text(wire.DELIVERY_TIME), timestamp),
            priority(text(wire.PRIORITY)),
            correlation_id(text(wire.CORRELATION_ID)),
            self._reply_to(text(wire.REPLY_TO), text(wire.REPLY_TO_TYPE)),
            text(wire.TYPE),
            False,
        )

    def _reply_to(self, name: str | None, kind: str | None) -> Destination | None:
        if not name:
            return None
        short = name.removeprefix(f"persistent://{self.namespace}/")
        shown = name if "/" in short else short
        return Topic(shown) if kind == "topic" else Queue(shown)

    def properties(self) -> dict[str, Property]:
        """User and JMSX properties with their types; a number that can't be read is left as text."""
        found: dict[str, Property] = {}
        raw = self.record.properties
        for name, text in raw.items():
            if name in _HIDDEN:
                continue
            mark = raw.get(name + wire.TYPE_SUFFIX)
            if mark is None:
                if name.endswith(_MARKS) and name[: -len(wire.TYPE_SUFFIX)] in raw:
                    continue
                mark = raw.get(name + wire.TYPE_SUFFIX_READ)
            if mark is None:
                found[name] = text
            elif mark == "int" and text.isascii() and text.isdigit() and len(text) < 10:
                found[name] = int(text)
            else:
                found[name] = _typed(text, mark)
        key = self.record.key
        if key:
            found[wire.GROUP_ID] = key
        elif found.get(wire.GROUP_ID) == "":
            del found[wire.GROUP_ID]
        if wire.GROUP_SEQ not in found and self.record.sequence_id is not None:
            found[wire.GROUP_SEQ] = self.record.sequence_id & 0x7FFFFFFF
        return found


def _typed(text: str, mark: str) -> Property:
    try:
        return parse_wire(text, mark)  # type: ignore[return-value]  # no mark gives bytes
    except MessageFormatError:
        return text  # reading it as a number then raises NumberFormatError, reading it as text shows it


def number(text: str | None, default: int) -> int:
    """A header number; ``default`` where it is absent or can't be read."""
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    return default


def delivery_mode(text: str | None) -> int:
    """JMSDeliveryMode, 2 where it is absent or can't be read."""
    return 1 if text == "1" else 2


def priority(text: str | None) -> int:
    """JMSPriority, 4 where it is absent or not 0 to 9."""
    return int(text) if text is not None and len(text) == 1 and text in "0123456789" else 4


def correlation_id(text: str | None) -> str | bytes | None:
    """JMSCorrelationID: Base64 of UTF-8 as text, of other bytes as bytes; what is not Base64 as it stands."""
    if text is None:
        return None
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _read_text(record: ReceivedRecord) -> str | None:
    payload = record.payload
    return None if payload is None else payload.decode("utf-8")


def _read_bytes(record: ReceivedRecord) -> bytes:
    return record.payload or b""


def _read_map(record: ReceivedRecord) -> dict[str, Value]:
    payload = record.payload
    return read_map(payload) if payload else {}


def _read_stream(record: ReceivedRecord) -> list[Value]:
    payload = record.payload
    return read_stream(payload) if payload else []


def _read_object(record: ReceivedRecord) -> Any:
    payload = record.payload
    if not payload:
        return None
    value = read_object(payload)
    if isinstance(value, str) and record.properties.get(OBJECT_JSON) == "json":
        return json.loads(value)
    return value


_READERS: Final[dict[str, tuple[type[Message], Any]]] = {
    "text": (TextMessage, _read_text),
    "bytes": (BytesMessage, _read_bytes),
    "map": (MapMessage, _read_map),
    "stream": (StreamMessage, _read_stream),
    "object": (ObjectMessage, _read_object),
}
