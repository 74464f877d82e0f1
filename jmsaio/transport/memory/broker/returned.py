"""Records of one subscription that wait outside of its backlog: delayed ones, those given back, and parked ones."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from jmsaio.transport.clock import Timers
from jmsaio.transport.memory.broker.consumer import Consumer
from jmsaio.transport.memory.broker.record import StoredRecord


class ReturnedRecords:
    """What one subscription has to deliver before its backlog, now or later.

    Args:
        timers: the broker's.
        due: called when the time of a delayed record has come; it is then ready.

    Attributes:
        records: all of them, by number.
        ready: a heap of the numbers that can be delivered; those acknowledged meanwhile are no longer in ``records``.
    """

    __slots__ = ("_delayed", "_due", "_timers", "ready", "records")

    def __init__(self, timers: Timers, due: Callable[[], None]) -> None:
        self._timers = timers
        self._due = due
        self._delayed: dict[int, tuple[int, Consumer | None]] = {}
        self.records: dict[int, StoredRecord] = {}
        self.ready: list[int] = []

    def put_back(self, record: StoredRecord) -> None:
        """A record can be delivered again."""
        self.records[record.number] = record
        heapq.heappush(self.ready, record.number)

    def delay(self, record: StoredRecord, due: float, consumer: Consumer | None) -> None:
        """Have a record wait until ``due``, in steady time; ``consumer`` gave it back, None: it is new."""
        number = record.number
        self.records[number] = record
        self._delayed[number] = (self._timers.add(due, self._ring, number), consumer)
        if consumer is not None:
            consumer.waiting.add(number)

    def hurry(self, consumer: Consumer) -> None:
        """What a consumer gave back with a delay is ready now."""
        for number in consumer.waiting.copy():
            self._end_delay(number)
            heapq.heappush(self.ready, number)

    def first(self) -> StoredRecord | None:
        """The record to be delivered next, if any is ready."""
        while self.ready:
            record = self.records.get(self.ready[0])
            if record is not None:
                return record
            heapq.heappop(self.ready)  # acknowledged meanwhile
        return None

    def take_first(self) -> None:
        """The record that `first` returned is delivered."""
        del self.records[heapq.heappop(self.ready)]

    def take(self, number: int) -> StoredRecord | None:
        """A record that waits no more: it is acknowledged. None: it does not wait here."""
        record = self.records.pop(number, None)
        if number in self._delayed:
            self._end_delay(number)
        return record

    def clear(self) -> None:
        """None waits any more."""
        for number in list(self._delayed):
            self._end_delay(number)
        self.records.clear()
        self.ready.clear()

    def _end_delay(self, number: int) -> None:
        token, consumer = self._delayed.pop(number)
        self._timers.cancel(token)
        if consumer is not None:
            consumer.waiting.discard(number)

    def _ring(self, number: int, token: int) -> None:
        self._end_delay(number)
        heapq.heappush(self.ready, number)
        self._due()
