"""Decodes a Pulsar record to a message: the body at once, headers and properties on first use."""

from __future__ import annotations

from typing import NoReturn

from jmsaio.codec import bodies, headers, properties
from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model.destinations import Destination
from jmsaio.model.messages.bytes_message import BytesMessage
from jmsaio.model.messages.headers import Headers
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.messages.properties import Property
from jmsaio.model.messages.stream_message import StreamMessage
from jmsaio.model.messages.text_message import TextMessage
from jmsaio.model.wire import DELIVERY_COUNT, MESSAGE_TYPE, ReceivedRecord

_KINDS: dict[str | None, type[Message]] = {
    "text": TextMessage,
    "bytes": BytesMessage,
    None: BytesMessage,
    "map": MapMessage,
    "stream": StreamMessage,
    "object": ObjectMessage,
}


class RecordSource:
    """A record as the source of a message's headers and properties. A plain slots class, one for each message."""

    __slots__ = ("destination", "namespace", "record")

    def __init__(self, record: ReceivedRecord, destination: Destination | None, namespace: str) -> None:
        self.record = record
        self.destination = destination
        self.namespace = namespace

    def headers(self) -> Headers:
        """The record's headers."""
        return headers.read(self.record, self.destination, self.namespace)

    def property(self, name: str) -> Property:
        """One application property, without making the others."""
        return properties.read_one(self.record, name)

    def properties(self) -> dict[str, Property]:
        """The record's application and JMSX properties."""
        return properties.read(self.record)


class RawSource(RecordSource):
    """A record that can't be read, as a source of what can: properties are texts, as they were received."""

    __slots__ = ()

    def headers(self) -> Headers:
        """The record's headers; without the sender's where the properties can't be read."""
        try:
            return super().headers()
        except MalformedMessageError:
            record = self.record
            return Headers(self.destination, 2, str(record.message_id), record.event_time)

    def property(self, name: str) -> Property:
        """One property."""
        return self.properties().get(name)

    def properties(self) -> dict[str, Property]:
        """Every property of the record, those that carry headers and types too, and JMSXDeliveryCount."""
        try:
            found: dict[str, Property] = dict(self.record.properties)
        except MalformedMessageError:
            found = {}
        found[DELIVERY_COUNT] = self.record.redelivery_count + 1
        return found


def decode_raw(record: ReceivedRecord, destination: Destination | None, default_namespace: str) -> BytesMessage:
    """The message of a record that ``decode`` refuses: its bytes, with its properties as texts. See ``decode``."""
    payload = record.payload
    message = BytesMessage._received(
        RawSource(record, destination, default_namespace), b"" if payload is None else payload
    )
    if record.redelivery_count:
        message._redelivery(record.redelivery_count + 1)
    return message


def decode(
    record: ReceivedRecord, destination: Destination | None, default_namespace: str = "public/default"
) -> Message:
    """The message of a record.

    The kind is what JMSPulsarMessageType says; without it (a producer that is not JMS) a BytesMessage, with an unknown
    word a plain Message. Pulsar's null value is None for text and object and an empty body for all others, and so is an
    empty payload of a map or an object, at which Java fails.

    Args:
        record: as received.
        destination: JMSDestination, the consumer's destination; None in a browser of unknown origin.
        default_namespace: ``tenant/namespace`` that is left out of the names of reply destinations.

    Raises:
        MalformedMessageError: the payload does not fit the type; carries the record. Nothing is acknowledged.
    """
    source = RecordSource(record, destination, default_namespace)
    kind = record.get(MESSAGE_TYPE)
    message: Message
    payload = record.payload
    if kind == "text":
        text = None
        if payload is not None:
            try:
                text = payload.decode()
            except UnicodeDecodeError as error:
                _refuse(record, "text", error)
        message = TextMessage._received(source, text)
    else:
        made = _KINDS.get(kind)
        if made is None:
            message = Message._received(source, None)
        elif made is BytesMessage:
            message = BytesMessage._received(source, b"" if payload is None else payload)
        else:
            try:
                body = bodies.decode_body(made.KIND, payload, record)
            except MessageFormatError as error:
                _refuse(record, made.KIND, error)
            message = made._received(source, body)
    count = record.redelivery_count
    if count:
        message._redelivery(count + 1)
    return message


def _refuse(record: ReceivedRecord, kind: str, error: Exception) -> NoReturn:
    raise MalformedMessageError(f"message {record.message_id} has no readable {kind} body: {error}", record) from error
