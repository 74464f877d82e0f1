"""``Redelivery``: how often and how soon messages that the application returned to one inbox are redelivered.

``Unread``: its unreadable records, while the application can still acknowledge them.

The count reported to an application is the larger of the broker's count and this client's own, because Pulsar's count
is always 0 on exclusive and failover subscriptions.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial

import attrs

from jmsaio.config import ConsumerConfig
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.rules.fate import GiveBackDelays, asks_for_delay, give_back_delays
from jmsaio.transport.clock import LoopTimers, Timer

#: Maximum number of messages whose returns are counted; beyond it the oldest count is forgotten.
MOST_COUNTS = 100_000


class Next(enum.Enum):
    """Next step for a message that the application returned."""

    AT_ONCE = "at once"
    LATER = "later"
    DEAD_LETTER = "dead letter"


@attrs.define(eq=False)
class Redelivery:
    """The redeliveries of one inbox.

    Attributes:
        config: the subscription's options, with the configured delays.
        most_at_once: number of immediate redeliveries before a message is returned to the broker with a delay.
        broker_dead_letters: whether the broker counts for a dead-letter policy, so it has to redeliver.
        dead_after: number of redeliveries before a message becomes a dead letter, if the client has to count: on
            exclusive and failover subscriptions. None: the broker counts, or there is no policy.
        counting: whether records were redelivered inside this client and are unsettled, which the broker does not
            count.
    """

    config: ConsumerConfig
    most_at_once: int
    broker_dead_letters: bool = False
    dead_after: int | None = None
    counting: bool = attrs.field(default=False, init=False)
    _counts: OrderedDict[WireId, int] = attrs.field(factory=OrderedDict, init=False)  # returns by the application
    _delays: GiveBackDelays = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._delays = give_back_delays(self.config)

    def delivery_count(self, record: ReceivedRecord) -> int:
        """Return JMSXDeliveryCount of a delivery of ``record``: 1 for the first."""
        return max(self._counts.get(record.message_id, 0), record.redelivery_count) + 1

    def next(self, record: ReceivedRecord) -> Next:
        """Count one more return of ``record``, and return its next step."""
        times = max(self._counts.pop(record.message_id, 0), record.redelivery_count) + 1
        self._counts[record.message_id] = times
        if len(self._counts) > MOST_COUNTS:
            self._counts.popitem(last=False)
        self.counting = True
        if self.dead_after is not None and times > self.dead_after:
            return Next.DEAD_LETTER
        if self.broker_dead_letters or times > self.most_at_once:
            return Next.LATER
        return Next.AT_ONCE

    def delay(self, record: ReceivedRecord) -> float:
        """Return the seconds until ``record`` is redelivered; longer with each call for the same message."""
        return self._delays.next(record.message_id)

    def delays_after_close(self, records: Iterable[ReceivedRecord]) -> dict[float, list[ReceivedRecord]]:
        """Group a closed consumer's records by their delays, which are 0 unless one is configured."""
        delays: dict[float, list[ReceivedRecord]] = {}
        for record in records:
            delays.setdefault(self.delay(record) if asks_for_delay(self.config) else 0.0, []).append(record)
        return delays

    def forget(self, record: ReceivedRecord) -> None:
        """Forget ``record``, which is settled and will not be redelivered."""
        self._counts.pop(record.message_id, None)
        self.counting = bool(self._counts)
        self._delays.forget(record.message_id)


#: Maximum number and bytes of unreadable records kept per consumer.
MOST_RECORDS = 100
MOST_BYTES = 16 * 1024 * 1024


@attrs.define(eq=False)
class Unread:
    """Records reported to the application as unreadable.

    Each is kept for the redelivery delay of a message, so that its error can acknowledge it, and is then returned to
    the broker. If there are too many, the oldest is returned at once.

    Attributes:
        give_back: returns a record to the broker whose time has expired, or for which there is no room.
        timers: timers on the transport's clock.
    """

    redelivery: Redelivery
    give_back: Callable[[ReceivedRecord], None]
    timers: LoopTimers = attrs.field(factory=LoopTimers)
    _kept: dict[WireId, tuple[ReceivedRecord, Timer]] = attrs.field(factory=dict, init=False)

    def keep(self, record: ReceivedRecord) -> None:
        """Keep a record until it is taken or its time has expired."""
        self.take(record)  # the transport might redeliver it after a reconnect
        timer = self.timers.call_later(self.redelivery.delay(record), partial(self._time_over, record))
        self._kept[record.message_id] = record, timer
        size = sum(kept.size for kept, _ in self._kept.values())
        for oldest, _ in list(self._kept.values())[:-1]:
            if len(self._kept) <= MOST_RECORDS and size <= MOST_BYTES:
                break
            size -= oldest.size
            self._time_over(oldest)

    def take(self, record: ReceivedRecord) -> ReceivedRecord | None:
        """Remove a record, to settle it; return its latest copy, or None if it is no longer kept."""
        record, timer = self._kept.pop(record.message_id, (record, None))
        if timer is None:
            return None
        timer.cancel()
        return record

    def take_all(self) -> list[ReceivedRecord]:
        """Remove and return all records, the oldest first."""
        records = [record for record, _ in self._kept.values()]
        for record in records:
            self.take(record)
        return records

    def _time_over(self, record: ReceivedRecord) -> None:
        kept = self.take(record)
        if kept is not None:
            self.give_back(kept)
