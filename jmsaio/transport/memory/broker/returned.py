"""Records of one subscription outside its backlog: delayed, returned and parked ones."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import attrs

from jmsaio.rules.record_life import RecordState
from jmsaio.transport.clock import Timers
from jmsaio.transport.memory.broker.consumer import Consumer
from jmsaio.transport.memory.broker.partition import StoredRecord


@attrs.define(eq=False)
class ReturnedRecords:
    """Records that one subscription has to deliver before its backlog, now or, until ``due`` is called, later.

    ``ready`` is a heap of numbers; those acknowledged meanwhile are no longer in ``records``.
    """

    _timers: Timers
    _due: Callable[[], None]
    _delayed: dict[int, tuple[int, Consumer | None]] = attrs.field(factory=dict, init=False)
    records: dict[int, StoredRecord] = attrs.field(factory=dict, init=False)
    ready: list[int] = attrs.field(factory=list, init=False)

    def put_back(self, record: StoredRecord) -> None:
        self.records[record.number] = record
        heapq.heappush(self.ready, record.number)

    def delay(self, record: StoredRecord, due: float, consumer: Consumer | None) -> None:
        """Delay a record until ``due``, in steady time; ``consumer`` returned it, None: it is new."""
        number = record.number
        self.records[number] = record
        self._delayed[number] = (self._timers.add(due, self._ring, number), consumer)
        if consumer is not None:
            consumer.waiting.add(number)

    def state(self, number: int) -> RecordState:
        return RecordState.RETURNED if number in self._delayed else RecordState.BACK

    def end_delays(self, consumer: Consumer) -> None:
        """Make records that a consumer returned with a delay ready now."""
        for number in consumer.waiting.copy():
            self._end_delay(number)
            heapq.heappush(self.ready, number)

    def first(self) -> StoredRecord | None:
        while self.ready:
            record = self.records.get(self.ready[0])
            if record is not None:
                return record
            heapq.heappop(self.ready)  # acknowledged meanwhile
        return None

    def pop_first(self) -> None:
        """Remove the record that `first` returned: it is delivered."""
        del self.records[heapq.heappop(self.ready)]

    def remove(self, number: int) -> StoredRecord | None:
        record = self.records.pop(number, None)
        if number in self._delayed:
            self._end_delay(number)
        return record

    def clear(self) -> None:
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
