"""Records held back in the client until their time, unacknowledged, because the broker does not do it.

Pulsar delays on shared subscriptions only. Each record that is held was taken from the transport, so its permit is
given and later ones pass. The number and the bytes of records held are bounded: at the bound, receiving pauses.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable

import attrs

from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.transport.clock import LoopTimers, Timer

_log = logging.getLogger("jmsaio")

#: Records held at most, of one consumer.
HELD_RECORDS = 10_000
#: Records that are taken in one step of the loop.
SLICE = 1000
#: Bytes held at most; the batch that reaches it may go beyond.
HELD_BYTES = 64 * 1024 * 1024


@attrs.define(eq=False)
class _Entry:
    due: float
    number: int
    record: ReceivedRecord

    def __lt__(self, other: _Entry) -> bool:
        return (self.due, self.number) < (other.due, other.number)


@attrs.define(eq=False)
class DelayQueue:
    """The held records of one inbox, by time.

    Attributes:
        what: what they were received from, for the warning.
        wake: called when the first is due.
        timers: the clock that it goes by.
        most_records: bound of their number.
        most_bytes: bound of their bytes.
    """

    what: str
    wake: Callable[[], None]
    timers: LoopTimers = attrs.field(factory=LoopTimers)
    most_records: int = HELD_RECORDS
    most_bytes: int = HELD_BYTES
    _heap: list[_Entry] = attrs.field(factory=list, init=False)
    _places: dict[WireId, _Entry] = attrs.field(factory=dict, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _number: int = attrs.field(default=0, init=False)
    _warned: bool = attrs.field(default=False, init=False)
    _timer: Timer | None = attrs.field(default=None, init=False)

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, record: ReceivedRecord, due: float) -> None:
        """Hold a record until ``due`` (seconds since the epoch).

        One that is held already (the transport gave it again, as ``ackTimeoutMillis`` passed) takes its own place.
        """
        known = self._places.get(record.message_id)
        if known is not None:
            known.record = record
            return
        self._number += 1
        self._bytes += record.size
        entry = self._places[record.message_id] = _Entry(due, self._number, record)
        heapq.heappush(self._heap, entry)
        if self._heap[0] is entry:  # it is the first now
            self._arm()

    def room(self) -> int:
        """How many more may be held; at 0 receiving has to pause, of which the log is told once a time.

        A pause that follows a short relief is the same one: told again is only what comes after half was delivered.
        """
        count = len(self._heap)
        if count < self.most_records and self._bytes < self.most_bytes:
            if 2 * count < self.most_records and 2 * self._bytes < self.most_bytes:
                self._warned = False
            return self.most_records - count
        if not self._warned:
            self._warned = True
            _log.warning(
                "receiving from %s pauses: %d delayed messages of %d bytes are held back in the client, as many as it "
                "holds; what is behind them waits until some are due. The broker holds them on shared subscriptions "
                "(for simple topic consumers: jms.useExclusiveSubscriptionsForSimpleConsumers=false)",
                self.what, count, self._bytes,
            )  # fmt: skip
        return 0

    def due(self) -> list[ReceivedRecord]:
        """Take records whose time has come, in order of their times; if they are many, others in a moment."""
        heap, now = self._heap, self.timers.clock.now()
        due: list[ReceivedRecord] = []
        while heap and heap[0].due <= now and len(due) < SLICE:
            record = heapq.heappop(heap).record
            self._bytes -= record.size
            del self._places[record.message_id]
            due.append(record)
        if due or self._timer is None:
            self._arm()
        return due

    def clear(self) -> list[ReceivedRecord]:
        """Take all of them, in order of their times."""
        records = [entry.record for entry in sorted(self._heap)]
        self._heap.clear()
        self._places.clear()
        self._bytes = 0
        self._warned = False
        self._arm()
        return records

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            delay = max(0.0, self._heap[0].due - self.timers.clock.now())
            self._timer = self.timers.call_later(delay, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self.wake()
