"""One consumer of a subscription, as the broker sees it: its receiver queue, and what it holds."""

from __future__ import annotations

import heapq
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from operator import attrgetter
from typing import Protocol

from jmsaio.config import ConsumerConfig
from jmsaio.transport.memory.broker.ports import Port, Services
from jmsaio.transport.memory.broker.record import StoredRecord

_number = attrgetter("number")


class Dispatcher(Protocol):
    """What a consumer asks of its subscription; see ``BrokerSubscription``."""

    counts: dict[int, int]

    @property
    def services(self) -> Services: ...

    def room(self, consumer: Consumer) -> None: ...

    def give_back(self, consumer: Consumer, number: int, due: float | None, counted: bool) -> None: ...

    def dispatch(self) -> None: ...


class Consumer:
    """One consumer of one subscription.

    Attributes:
        port: the receiver's end.
        config: consumerConfig.
        metadata: what the filter plugin reads.
        name: its name, for the order of failover consumers.
        number: grows with each consumer of the broker.
        queue: records sent to it that the application has not taken: its permits are what is free here.
        capacity: records in ``queue`` at most; 0 while a zero queue was not asked.
        held: every record that it has and did not settle, taken or not, by number.
        taken: with an ack timeout: when each record that was taken is to be redelivered.
        waiting: numbers of the records that it gave back and that wait for their time.
        parked: key-shared: numbers of records of its keys that wait for a permit, a heap.
        listed: it stands in the list of those with permits.
        stopped: nothing is sent to it; what it holds is still its own.
        dead_after: deliveries with a count above this go to the dead letters.
    """

    __slots__ = (
        "_dispatcher", "_ticking", "_watched", "capacity", "config", "dead_after", "held", "listed", "metadata", "name",
        "number", "parked", "port", "queue", "stopped", "taken", "waiting",
    )  # fmt: skip

    def __init__(
        self,
        dispatcher: Dispatcher,
        port: Port,
        config: ConsumerConfig,
        number: int,
        size: int,
        metadata: Mapping[str, str],
    ) -> None:
        self._dispatcher = dispatcher
        self.port = port
        self.config = config
        self.metadata = metadata
        self.name = config.consumer_name or f"{number:08d}"
        self.number = number
        self.queue: deque[StoredRecord] = deque()
        self.capacity = size
        self.held: dict[int, StoredRecord] = {}
        self.taken: dict[int, float] = {}
        self._watched: deque[tuple[float, int]] = deque()
        self._ticking = False
        self.waiting: set[int] = set()
        self.parked: list[int] = []
        self.listed = False
        self.stopped = False
        policy = config.dead_letter
        self.dead_after = sys.maxsize if policy is None else policy.max_redeliver_count

    @property
    def zero_queue(self) -> bool:
        """It has no prefetch: a record is sent only when it is asked for."""
        return self.config.receiver_queue_size == 0

    def take(self, limit: int) -> list[StoredRecord]:
        """The records for the application, up to ``limit``; their permits go back."""
        if self.zero_queue:
            return self._ask(limit)
        queue = self.queue
        records: list[StoredRecord] = []
        while queue and len(records) < limit:
            if not records and len(queue) <= limit:
                records = list(queue)
                queue.clear()
            else:
                records += [queue.popleft() for _ in range(min(limit - len(records), len(queue)))]
            self._dispatcher.room(self)  # may fill the queue again
        if records and self.config.ack_timeout is not None:
            self._watch(records, self.config.ack_timeout)
        return records

    def _ask(self, limit: int) -> list[StoredRecord]:
        """Without prefetch: one record, which is sent for this call, or for the one after the next wake."""
        if limit < 1:
            return []
        self.capacity = 1
        self._dispatcher.room(self)
        if not self.queue:
            return []
        self.capacity = 0
        records = [self.queue.popleft()]
        if self.config.ack_timeout is not None:
            self._watch(records, self.config.ack_timeout)
        return records

    def _watch(self, records: list[StoredRecord], timeout: float) -> None:
        """Note when these records are to be redelivered if they are not acknowledged."""
        services = self._dispatcher.services
        due = services.steady() + timeout
        while self._watched and self.taken.get(self._watched[0][1]) != self._watched[0][0]:
            self._watched.popleft()  # settled meanwhile
        for record in records:
            self.taken[record.number] = due
            self._watched.append((due, record.number))
        if not self._ticking:
            self._ticking = True
            services.timers.add(self._watched[0][0], self._overdue)

    def _overdue(self, argument: int, token: int) -> None:
        """The first of the records taken was not acknowledged in time, unless it was settled meanwhile."""
        dispatcher, watched = self._dispatcher, self._watched
        services = dispatcher.services
        backoff = self.config.ack_timeout_backoff
        now = services.steady()
        while watched and watched[0][0] <= now:
            due, number = watched.popleft()
            if self.taken.get(number) == due:
                count = dispatcher.counts.get(number, 0)
                again = None if backoff is None else now + backoff.delay(count)
                dispatcher.give_back(self, number, again, counted=True)
        self._ticking = bool(watched)
        if watched:
            services.timers.add(watched[0][0], self._overdue)
        dispatcher.dispatch()

    def queue_in_order(self, record: StoredRecord) -> None:
        """Queue a record before those with higher numbers."""
        queue, number = self.queue, record.number
        if queue and number < queue[-1].number:
            queue.insert(bisect_right(queue, number, key=_number), record)
        else:
            queue.append(record)

    def park(self, number: int) -> None:
        """Keep a record of one of its keys until it has a permit."""
        heapq.heappush(self.parked, number)
