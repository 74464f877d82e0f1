"""The keywords of a send, for type checkers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from jmsaio.model.durations import Duration
from jmsaio.model.messages.properties import Property
from jmsaio.model.modes import DeliveryMode


class SendOptions(TypedDict, total=False):
    """Options of one message; None, or a missing key, means the producer's setting.

    Attributes:
        properties: set on the message before it is sent.
        delivery_mode: DeliveryMode.
        priority: 0 to 9.
        time_to_live: seconds, 0 forever.
        delivery_delay: seconds.
    """

    properties: Mapping[str, Property] | None
    delivery_mode: DeliveryMode | None
    priority: int | None
    time_to_live: Duration | None
    delivery_delay: Duration | None
