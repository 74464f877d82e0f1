"""``Unread``: one inbox's unreadable records, while the application can still acknowledge them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs

from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.transport.clock import LoopTimers, Timer

#: Maximum number and bytes of unreadable records kept per consumer.
MOST_RECORDS = 100
MOST_BYTES = 16 * 1024 * 1024


@attrs.define(eq=False)
class Unread:
    """Records reported to the application as unreadable.

    Each is kept for the redelivery delay of a message, so that its error can acknowledge it, and is then returned to
    the broker. If there are too many, the oldest is returned at once.

    Attributes:
        delay: seconds for which a record is kept.
        give_back: returns a record to the broker whose time has expired, or for which there is no room.
        timers: timers on the transport's clock.
    """

    delay: Callable[[ReceivedRecord], float]
    give_back: Callable[[ReceivedRecord], None]
    timers: LoopTimers = attrs.field(factory=LoopTimers)
    _kept: dict[WireId, tuple[ReceivedRecord, Timer]] = attrs.field(factory=dict, init=False)

    def keep(self, record: ReceivedRecord) -> None:
        """Keep a record until it is taken or its time has expired."""
        self.take(record)  # the transport might redeliver it after a reconnect
        timer = self.timers.call_later(self.delay(record), partial(self._time_over, record))
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
