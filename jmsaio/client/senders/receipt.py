"""What a send gives back."""

from __future__ import annotations

from typing import NamedTuple

from jmsaio.model.destinations import Destination
from jmsaio.model.wire import WireId


class Receipt(NamedTuple):
    """The broker's confirmation of one message. A named tuple, because one is made for every message sent.

    Attributes:
        jms_message_id: JMSMessageID of the message, or None when message ids are disabled and the place is unknown.
        place: Pulsar's id, or None where the answer for a group of messages does not tell.
        destination: where it was sent.
        timestamp: JMSTimestamp in milliseconds since the epoch.
    """

    jms_message_id: str | None
    place: WireId | None
    destination: Destination
    timestamp: int
