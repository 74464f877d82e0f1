"""Counts deliveries, and decides what happens to a message that the application could not handle.

The count reported to an application is the larger of the broker's count and this client's own, because Pulsar's count
is always 0 on exclusive and failover subscriptions.
"""

from __future__ import annotations

import enum
from collections import OrderedDict

import attrs

from jmsaio.model.wire import WireId


class Again(enum.Enum):
    """Kind of redelivery."""

    AT_ONCE = "at once"
    GIVE_BACK = "give back"


@attrs.define
class DeliveryCounts:
    """Number of times that the application returned each message of this client.

    Bounded: beyond ``capacity`` messages the oldest count is forgotten.
    """

    capacity: int = 100_000
    _counts: OrderedDict[WireId, int] = attrs.field(factory=OrderedDict, init=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def returned(self, message_id: WireId, broker_count: int) -> int:
        """Count one more return by the application; return the message's deliveries so far."""
        times = max(self._counts.pop(message_id, 0), broker_count) + 1
        self._counts[message_id] = times
        if len(self._counts) > self.capacity:
            self._counts.popitem(last=False)
        return times

    def delivery_count(self, message_id: WireId, broker_count: int) -> int:
        """Return JMSXDeliveryCount of the next delivery (1 for the first)."""
        return max(self._counts.get(message_id, 0), broker_count) + 1

    def forget(self, message_id: WireId) -> None:
        """Forget a settled message."""
        self._counts.pop(message_id, None)


def again(times: int, max_local: int, broker_dead_letters: bool) -> Again:
    """Return how to redeliver a message whose listener failed, or that was recovered.

    Args:
        times: its deliveries so far.
        max_local: number of immediate redeliveries before the message is returned to the broker with a delay.
        broker_dead_letters: whether the broker counts for a dead-letter policy, so it has to redeliver.
    """
    if broker_dead_letters or times > max_local:
        return Again.GIVE_BACK
    return Again.AT_ONCE
