"""Encodes a message and the stamp of its send as a Pulsar record."""

from __future__ import annotations

from jmsaio.codec import bodies, headers, properties
from jmsaio.codec.schemas.writing import SchemaWriter
from jmsaio.codec.stamp import Stamp, stamped
from jmsaio.model.messages.message import Message
from jmsaio.model.text import to_java
from jmsaio.model.wire import GROUP_ID, MESSAGE_TYPE, OutgoingRecord


def encode(message: Message, stamp: Stamp, schema: SchemaWriter | None = None) -> OutgoingRecord:
    """Create the record of a message. The message can be changed right afterwards.

    A property that is None is omitted, because Pulsar has no such value; receivers read None for a missing one.

    Args:
        message: any of our message classes, including received messages.
        stamp: the headers that the send sets.
        schema: encodes the body with the producer's schema. JMSPulsarMessageType is then omitted, unless it is a text:
            a JMS client that does not use schemas reads bytes.

    Raises:
        MessageFormatError: a text that is not Unicode (a lone surrogate), a string above 65535 bytes if the layout has
            no longer ones, a property name reserved by the wire format, a body that can't be written as JSON.
    """
    kind = message.KIND
    wire = stamped(kind, stamp)
    # Unpacked at once, which is cheaper than reading five attributes.
    _, _, _, event_time, _, deliver_at, _, priority, _, sticky, namespace = stamp
    head = message._head
    if head is not None or message._source is not None:
        headers.write(head or message._headers(), namespace, wire)
    key = None
    values = message._property_map()
    if values:
        properties.write(values, wire)
        if GROUP_ID in values:
            key = _key(values[GROUP_ID])
    body = message._body()
    if schema is not None:
        payload = None if body is None else schema.write(body)
        if not schema.jms:
            del wire[MESSAGE_TYPE]
    elif kind == "text":  # as ``encode_body``, without its look-up: most bodies are texts
        payload = None if body is None else bodies.encode_text(body)
    else:
        payload = bodies.encode_body(kind, body, wire)
    return OutgoingRecord(payload, wire, key, event_time, deliver_at, priority, sticky)


def _key(group: bool | int | float | str | None) -> str | None:
    """Return the partition key of a group; an empty group id means no group."""
    return None if group is None else to_java(group) or None
