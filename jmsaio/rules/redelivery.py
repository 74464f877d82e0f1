"""Counts deliveries, and decides what happens to a message that the application could not handle.

The count that an application sees is the larger of the broker's count and this client's own, because Pulsar's
count is always 0 on exclusive and failover subscriptions.
"""

from __future__ import annotations

import enum
from collections import OrderedDict

import attrs

from jmsaio.model.wire import WireId


class Again(enum.Enum):
    """How a message is redelivered."""

    AT_ONCE = "at once"
    GIVE_BACK = "give back"


@attrs.define
class DeliveryCounts:
    """How often the application gave back each message of this client.

    Bounded: beyond ``capacity`` messages the oldest count is forgotten.
    """

    capacity: int = 100_000
    _counts: OrderedDict[WireId, int] = attrs.field(factory=OrderedDict, init=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def returned(self, place: WireId, broker_count: int) -> int:
        """Count that the application gave the message back; returns its deliveries so far."""
        times = max(self._counts.pop(place, 0), broker_count) + 1
        self._counts[place] = times
        if len(self._counts) > self.capacity:
            self._counts.popitem(last=False)
        return times

    def delivery_count(self, place: WireId, broker_count: int) -> int:
        """JMSXDeliveryCount of the next delivery (1 for the first)."""
        return max(self._counts.get(place, 0), broker_count) + 1

    def forget(self, place: WireId) -> None:
        """The message is settled."""
        self._counts.pop(place, None)


def again(times: int, max_local: int, broker_dead_letters: bool) -> Again:
    """How to redeliver a message whose listener failed, or that was recovered.

    Args:
        times: its deliveries so far.
        max_local: redeliveries at once, before the message is given back to the broker with a delay.
        broker_dead_letters: a dead-letter policy counts at the broker, so the broker has to redeliver.
    """
    if broker_dead_letters or times > max_local:
        return Again.GIVE_BACK
    return Again.AT_ONCE
