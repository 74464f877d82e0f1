"""Encodes a message and the stamp of its send as a Pulsar record, and writes the stamp to the sender's object."""

from __future__ import annotations

from typing import NamedTuple

from jmsaio.codec import bodies, headers, properties
from jmsaio.codec.schemas.writing import SchemaWriter
from jmsaio.model.destinations import Destination
from jmsaio.model.headers import Headers
from jmsaio.model.messages.message import Message
from jmsaio.model.text import to_java
from jmsaio.model.wire import (
    CONNECTION_ID,
    DELIVERY_TIME,
    GROUP_ID,
    MESSAGE_ID,
    MESSAGE_TYPE,
    TRANSACTION,
    OutgoingRecord,
)


class Stamp(NamedTuple):
    """The headers that the provider sets (Jakarta Messaging 3.1, 3.4.11 How message header values are set).

    A named tuple, because every send creates one.

    Times are milliseconds since the epoch.

    Attributes:
        message_id: JMSMessageID, or None if message ids are disabled.
        connection_id: JMSConnectionID of the sending connection, for noLocal.
        timestamp: JMSTimestamp on the sender's message, 0 if disabled.
        event_time: JMSTimestamp for receivers, 0 if disabled.
        delivery_time: JMSDeliveryTime, send time plus delay.
        deliver_at: earliest delivery by the broker, None without delay.
        expiration: JMSExpiration, 0 for never.
        priority: JMSPriority, 0 to 9.
        delivery_mode: JMSDeliveryMode, 1 or 2.
        sticky_key: JMSTX of a transacted session with sticky partitions, or None.
        system_namespace: ``tenant/namespace`` of names without one, for JMSReplyTo.
    """

    message_id: str | None
    connection_id: str
    timestamp: int
    event_time: int
    delivery_time: int
    deliver_at: int | None = None
    expiration: int = 0
    priority: int = 4
    delivery_mode: int = 2
    sticky_key: int | None = None
    system_namespace: str = "public/default"


def stamped(kind: str, stamp: Stamp) -> dict[str, str]:
    """Return the record's properties that result from a stamp and the kind of its message.

    JMSMessageId is always written unless the stamp has none, and JMSDeliveryTime includes the delay: in both points
    Java's client deviates from the JMS rules, but can read them.
    """
    own_id, connection, _, _, delivery_time, _, expiration, priority, mode, sticky, _ = stamp
    wire = {MESSAGE_TYPE: kind, CONNECTION_ID: connection, DELIVERY_TIME: str(delivery_time)}
    if own_id is not None:
        wire[MESSAGE_ID] = own_id
    if priority != 4 or mode != 2 or expiration:
        headers.write_delivery(priority, mode, expiration, wire)
    if sticky is not None:
        wire[TRANSACTION] = str(sticky)
    return wire


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


def with_sticky_key(record: OutgoingRecord, sticky_key: int) -> OutgoingRecord:
    """Return the record for another transaction: its stamp's transaction ended while the send waited."""
    properties = {**record.properties, TRANSACTION: str(sticky_key)}
    return OutgoingRecord(
        record.payload, properties, record.key, record.event_time, record.deliver_at, record.priority, sticky_key
    )


def stamp_sent(message: Message, stamp: Stamp, destination: Destination) -> None:
    """Write the headers that a send sets to the sender's message; everything else is unchanged.

    Args:
        message: the object that was passed to send.
        stamp: the stamp with which its record was encoded.
    """
    own_id, _, timestamp, _, delivery_time, _, expiration, priority, mode, _, _ = stamp
    head = message._known_headers()
    if head is None:
        message._head = Headers(destination, mode, own_id, timestamp, expiration, delivery_time, priority)
        return
    head.destination = destination
    head.message_id = own_id
    head.timestamp = timestamp
    head.delivery_time = delivery_time
    head.expiration = expiration
    head.priority = priority
    head.delivery_mode = mode
    head.redelivered = False
