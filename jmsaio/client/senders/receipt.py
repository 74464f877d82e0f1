"""The result of a send."""

from __future__ import annotations

from typing import NamedTuple

from jmsaio.model.destinations import Destination
from jmsaio.model.public import public
from jmsaio.model.wire import WireId


@public
class Receipt(NamedTuple):
    """The broker's confirmation of one message. A named tuple, because every message sent creates one.

    Attributes:
        jms_message_id: JMSMessageID of the message, or None if message ids are disabled and ``place`` is unknown.
        place: Pulsar's message id, or None if several messages were confirmed at once without their ids, as over
            pulsar-client (``Capabilities.message_ids``), or in a transaction. Its ``duplicate`` is true if the broker
            deduplicates and already had the message.
        destination: the message's destination.
        timestamp: JMSTimestamp in milliseconds since the epoch.
    """

    jms_message_id: str | None
    place: WireId | None
    destination: Destination
    timestamp: int
