"""Decodes a Pulsar record to a message: the body at once, headers and properties on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

import attrs

from jmsaio.codec import bodies, headers, properties
from jmsaio.codec.schemas.reading import SchemaReader
from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model.destinations import Destination
from jmsaio.model.headers import Headers
from jmsaio.model.messages.kinds import KINDS
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.messages.properties import Property
from jmsaio.model.messages.sequential import BytesMessage
from jmsaio.model.wire import DELIVERY_COUNT, MESSAGE_TYPE, ReceivedRecord

#: Class of the message by its declared kind; a producer that is not JMS declares none.
_CLASSES: Final[dict[str | None, type[Message]]] = {
    None: BytesMessage,
    **{kind.name: kind.message for kind in KINDS.values() if kind.body is not None},
}


@attrs.define(eq=False)
class RecordSource:
    """Reads headers and properties of the messages of one consumer from their records.

    ``namespace`` is left out of the names of reply destinations. ``schema_reader`` returns the reader of a record with
    a schema, or None if its payload stays bytes. With ``use_schema`` (``consumerConfig.useSchema``) every record that
    has a schema is decoded with it, otherwise only texts of producers that are not JMS.
    """

    destination: Destination | None
    namespace: str
    schema_reader: Callable[[ReceivedRecord, bool], SchemaReader | None] = lambda record, use_schema: None
    use_schema: bool = False

    def headers(self, record: ReceivedRecord) -> Headers:
        return headers.read(record, self.destination, self.namespace)

    def property(self, record: ReceivedRecord, name: str) -> Property:
        return properties.read_one(record, name)

    def properties(self, record: ReceivedRecord) -> dict[str, Property]:
        return properties.read(record)


class RawSource(RecordSource):
    """Reads the readable parts of records that ``decode_with`` refuses: properties are texts, as received."""

    __slots__ = ()

    def headers(self, record: ReceivedRecord) -> Headers:
        try:
            return super().headers(record)
        except MalformedMessageError:
            return Headers(self.destination, 2, str(record.message_id), record.event_time)

    def property(self, record: ReceivedRecord, name: str) -> Property:
        return self.properties(record).get(name)

    def properties(self, record: ReceivedRecord) -> dict[str, Property]:
        """Return all properties, including headers and types, and JMSXDeliveryCount."""
        try:
            found: dict[str, Property] = dict(record.properties)
        except MalformedMessageError:
            found = {}
        found[DELIVERY_COUNT] = record.redelivery_count + 1
        return found


def decode_raw(record: ReceivedRecord, destination: Destination | None, default_namespace: str) -> BytesMessage:
    """Create the message of a record that ``decode_with`` refuses, from its bytes, with its properties as texts."""
    payload = record.payload
    source = RawSource(destination, default_namespace)
    message = BytesMessage._received(source, record, b"" if payload is None else payload)
    if record.redelivery_count:
        message._redelivery(record.redelivery_count + 1)
    return message


def decode_with(record: ReceivedRecord, source: RecordSource) -> Message:
    """Decode a record to a message: only its text at once, everything else on first use.

    JMSPulsarMessageType decides its class; with an unknown kind it is a plain Message. Without a kind (a producer that
    is not JMS) it is a BytesMessage, or a TextMessage if its schema is STRING and it is UTF-8. With ``useSchema``, a
    record that has a schema is decoded with it, and ``SchemaReader.kind`` decides its class. An empty payload of a map
    or object, at which Java fails, is read as Pulsar's null value.

    Raises MalformedMessageError, which carries the record, for a payload that does not fit the type.
    """
    kind = record.get(MESSAGE_TYPE)
    payload = record.payload
    message: Message
    if kind != "text":
        message = _view_other(record, source, kind, payload)
    elif payload is None:
        message = TextMessage._received(source, record, None)
    else:
        try:
            message = TextMessage._received(source, record, payload.decode())
        except UnicodeDecodeError as error:
            _refuse(record, "text", error)
    count = record.redelivery_count
    if count:
        message._redelivery(count + 1)
    return message


def _view_other(record: ReceivedRecord, source: RecordSource, kind: str | None, payload: bytes | None) -> Message:
    made = _CLASSES.get(kind)
    empty = made is None and payload is None
    if (kind is None or (source.use_schema and not empty)) and record.schema_version is not None:
        message = _view_by_schema(record, source, kind, payload)
        if message is not None:
            return message
    if made is None:
        return Message._received(source, record, None)
    if made is BytesMessage:  # as ``decode_body``, without its look-up
        return BytesMessage._received(source, record, b"" if payload is None else payload)
    try:
        body = bodies.decode_body(made.KIND, payload, record)
    except MessageFormatError as error:
        _refuse(record, made.KIND, error)
    return made._received(source, record, body)


def _view_by_schema(
    record: ReceivedRecord, source: RecordSource, kind: str | None, payload: bytes | None
) -> Message | None:
    """Return the message of a record with a schema; None if it has to be decoded without the schema."""
    reader = source.schema_reader(record, source.use_schema)
    if reader is None or (payload is None and reader.schema_type not in ("STRING", "KEY_VALUE")):
        return None
    try:
        value = reader.read(payload, record.key)
    except MessageFormatError as error:
        if not source.use_schema:  # its producer did not follow the schema: only the bytes are certain
            return None
        _refuse(record, reader.schema_type, error)
    made = ObjectMessage if kind == "object" else reader.kind(value)
    return made._received(source, record, value)


def _refuse(record: ReceivedRecord, kind: str, error: Exception) -> NoReturn:
    raise MalformedMessageError(f"message {record.message_id} has no readable {kind} body: {error}", record) from error
