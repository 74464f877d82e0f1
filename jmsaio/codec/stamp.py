"""The headers that one send sets, and how they are written to the sender's object."""

from __future__ import annotations

from typing import NamedTuple

from jmsaio.codec import headers
from jmsaio.model.destinations import Destination
from jmsaio.model.headers import Headers
from jmsaio.model.messages.message import Message
from jmsaio.model.wire import (
    CONNECTION_ID,
    DELIVERY_TIME,
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
        destination: destination of the send.
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
