"""What a send decides about a message: the provider-set headers, before the message is encoded."""

from __future__ import annotations

from typing import NamedTuple

from jmsaio.model.destinations import Destination
from jmsaio.model.message import Message


class Stamp(NamedTuple):
    """Provider-set headers of one send. A named tuple, because one is made for every message sent.

    Attributes:
        message_id: JMSMessageID, None when ids are disabled.
        connection_id: JMSConnectionID of the sender.
        timestamp: JMSTimestamp in ms, 0 when disabled.
        event_time: Pulsar's event time in ms, 0 for none.
        delivery_time: JMSDeliveryTime in ms.
        deliver_at: earliest delivery in ms, None for at once.
        expiration: JMSExpiration in ms, 0 for never.
        priority: JMSPriority.
        delivery_mode: JMSDeliveryMode.
        sticky_key: JMSTX, None for none.
        system_namespace: namespace of short destination names.
    """

    message_id: str | None
    connection_id: str
    timestamp: int
    event_time: int
    delivery_time: int
    deliver_at: int | None
    expiration: int
    priority: int
    delivery_mode: int
    sticky_key: int | None
    system_namespace: str


def stamp_sent(message: Message, stamp: Stamp, destination: Destination) -> None:
    """Write the provider-set headers onto the sender's message: the only place that does (house rule 2)."""
    headers = message._headers()
    headers.destination = destination
    headers.delivery_mode = stamp.delivery_mode
    headers.message_id = stamp.message_id
    headers.timestamp = stamp.timestamp
    headers.expiration = stamp.expiration
    headers.delivery_time = stamp.delivery_time
    headers.priority = stamp.priority
    headers.redelivered = False
