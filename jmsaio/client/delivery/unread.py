"""``Unread``: the records of one inbox that can't be read, while the application may still acknowledge them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs

from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.transport.clock import LoopTimers, Timer

#: Unreadable records kept at most, of one consumer, and their bytes.
MOST_RECORDS = 100
MOST_BYTES = 16 * 1024 * 1024


@attrs.define(eq=False)
class Unread:
    """Records reported to the application as unreadable.

    Each is kept for the delay of a message that is given back, so that its error can acknowledge it, and is then
    given back. Beyond a bound the oldest is given back at once.

    Attributes:
        delay: seconds for which a record is kept.
        give_back: takes a record whose time is over, or for which there is no room.
        timers: timers on the transport's clock.
    """

    delay: Callable[[ReceivedRecord], float]
    give_back: Callable[[ReceivedRecord], None]
    timers: LoopTimers = attrs.field(factory=LoopTimers)
    _kept: dict[WireId, tuple[ReceivedRecord, Timer]] = attrs.field(factory=dict, init=False)

    def keep(self, record: ReceivedRecord) -> None:
        """Keep a record until it is taken or its time is over."""
        self.take(record)  # the transport may deliver it again after a reconnect
        timer = self.timers.call_later(self.delay(record), partial(self._time_over, record))
        self._kept[record.message_id] = record, timer
        size = sum(kept.size for kept, _ in self._kept.values())
        for oldest, _ in list(self._kept.values())[:-1]:
            if len(self._kept) <= MOST_RECORDS and size <= MOST_BYTES:
                break
            size -= oldest.size
            self._time_over(oldest)

    def take(self, record: ReceivedRecord) -> ReceivedRecord | None:
        """Remove a record, to settle it: its latest copy, or None if it is no longer kept."""
        record, timer = self._kept.pop(record.message_id, (record, None))
        if timer is None:
            return None
        timer.cancel()
        return record

    def take_all(self) -> list[ReceivedRecord]:
        """Remove all records, the oldest first."""
        records = [record for record, _ in self._kept.values()]
        for record in records:
            self.take(record)
        return records

    def _time_over(self, record: ReceivedRecord) -> None:
        kept = self.take(record)
        if kept is not None:
            self.give_back(kept)
