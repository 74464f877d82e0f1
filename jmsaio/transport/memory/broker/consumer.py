"""Receivers and readers in the broker: a consumer of a subscription, and a reader's position in a partition."""

from __future__ import annotations

import heapq
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from operator import attrgetter
from typing import Protocol

import attrs

from jmsaio.config import ConsumerConfig
from jmsaio.errors import JMSError
from jmsaio.model.wire import WireId
from jmsaio.rules.record_life import RecordEvent, RecordState
from jmsaio.transport.base import StartPosition
from jmsaio.transport.memory.broker.partition import Partition, RedeliveredRecord, Services, StoredRecord

_number = attrgetter("number")


class Port(Protocol):
    """The broker's connection to a receiver or reader, ``armed`` if it found nothing and is to be notified."""

    armed: bool

    def notify(self) -> None:
        """Disarm, and wake the application soon: records are available."""

    def reconnect(self) -> None:
        """Join the remaining subscriptions again after the connection was lost and restored."""

    def end(self, reason: JMSError | None) -> None:
        """Handle the deletion of the topic or subscription; the application receives ``reason``, if there is one."""


class Dispatcher(Protocol):
    """Methods of a subscription used by its consumers; see ``BrokerSubscription``."""

    counts: dict[int, int]

    @property
    def services(self) -> Services: ...

    def room(self, consumer: Consumer) -> None: ...

    def pass_event(self, consumer: Consumer, number: int, event: RecordEvent, due: float | None = None) -> None: ...

    def dispatch(self) -> None: ...


@attrs.define(eq=False)
class Consumer:
    """A consumer of one subscription, numbered in the order of joining; its name is its number if it has none.

    The free places of ``queue`` are its permits; ``capacity`` is 0 while nothing is requested from a zero queue.
    ``held`` has what the application received, ``waiting`` the numbers of what it returned with a delay, ``parked``
    (key-shared) a heap of those that wait for a permit. ``stopped``: it is sent nothing, and keeps what it holds.
    """

    _dispatcher: Dispatcher
    port: Port
    config: ConsumerConfig
    number: int
    capacity: int
    metadata: Mapping[str, str]
    name: str = attrs.field(init=False)
    queue: deque[StoredRecord] = attrs.field(factory=deque, init=False)
    held: dict[int, StoredRecord] = attrs.field(factory=dict, init=False)
    aside: dict[int, StoredRecord] = attrs.field(factory=dict, init=False)
    ack_deadlines: dict[int, float] = attrs.field(factory=dict, init=False)
    _watched: list[tuple[float, int]] = attrs.field(factory=list, init=False)  # a heap
    _ticking: bool = attrs.field(default=False, init=False)
    waiting: set[int] = attrs.field(factory=set, init=False)
    parked: list[int] = attrs.field(factory=list, init=False)
    stopped: bool = attrs.field(default=False, init=False)
    dead_after: int = attrs.field(default=sys.maxsize, init=False)

    def __attrs_post_init__(self) -> None:
        self.name = self.config.consumer_name or f"{self.number:08d}"
        if self.config.dead_letter is not None:
            self.dead_after = self.config.dead_letter.max_redeliver_count

    @property
    def unsettled(self) -> int:
        return len(self.queue) + len(self.held) + len(self.aside)

    def state(self, record: StoredRecord) -> RecordState:
        if record.number in self.held:
            return RecordState.HELD
        if record.number in self.aside:
            return RecordState.ASIDE
        return RecordState.QUEUED if record in self.queue else RecordState.UNKNOWN

    def clear(self) -> None:
        for place in (self.queue, self.held, self.aside, self.ack_deadlines, self.waiting, self.parked):
            place.clear()

    @property
    def zero_queue(self) -> bool:
        return self.config.receiver_queue_size == 0

    def receive(self, limit: int) -> list[StoredRecord]:
        if self.zero_queue:
            return self._ask(limit)
        queue = self.queue
        records: list[StoredRecord] = []
        while queue and len(records) < limit:
            if not records and len(queue) <= limit:
                records = self._deliver(list(queue))
                queue.clear()
            else:
                records += self._deliver([queue.popleft() for _ in range(min(limit - len(records), len(queue)))])
            self._dispatcher.room(self)  # might fill the queue again
        return records

    def _deliver(self, records: list[StoredRecord]) -> list[StoredRecord]:
        held, counts = self.held, self._dispatcher.counts
        for record in records:
            held[record.number] = record
        if self.config.ack_timeout is not None:
            self._watch(records, self.config.ack_timeout)
        if not counts:
            return records
        return [
            RedeliveredRecord(record, counts[record.number]) if record.number in counts else record
            for record in records
        ]

    def _ask(self, limit: int) -> list[StoredRecord]:
        """Return one record without prefetch: one sent for this call, or else for a call after the next wake."""
        if limit < 1:
            return []
        self.capacity = 1
        self._dispatcher.room(self)
        if not self.queue:
            return []
        self.capacity = 0
        return self._deliver([self.queue.popleft()])

    def _watch(self, records: list[StoredRecord], timeout: float) -> None:
        services = self._dispatcher.services
        due = services.steady() + timeout
        while self._watched and self.ack_deadlines.get(self._watched[0][1]) != self._watched[0][0]:
            heapq.heappop(self._watched)  # settled meanwhile
        for record in records:
            self.ack_deadlines[record.number] = due
            heapq.heappush(self._watched, (due, record.number))
        if not self._ticking:
            self._ticking = True
            services.timers.add(self._watched[0][0], self._overdue)

    def _overdue(self, argument: int, token: int) -> None:
        dispatcher, watched = self._dispatcher, self._watched
        services = dispatcher.services
        backoff = self.config.ack_timeout_backoff
        now = services.steady()
        while watched and watched[0][0] <= now:
            due, number = heapq.heappop(watched)
            if self.ack_deadlines.get(number) == due:
                count = dispatcher.counts.get(number, 0)
                again = None if backoff is None else now + backoff.delay(count)
                dispatcher.pass_event(self, number, RecordEvent.TIME_OVER, again)
        self._ticking = bool(watched)
        if watched:
            services.timers.add(watched[0][0], self._overdue)
        dispatcher.dispatch()

    def queue_in_order(self, record: StoredRecord) -> None:
        queue, number = self.queue, record.number
        if queue and number < queue[-1].number:
            queue.insert(bisect_right(queue, number, key=_number), record)
        else:
            queue.append(record)

    def park(self, number: int) -> None:
        heapq.heappush(self.parked, number)


class Tail:
    """A reader's position in a log: its unread records. Delayed records are delivered at once, as in Pulsar."""

    __slots__ = ("_since", "backlog", "log", "port")

    def __init__(self, log: Partition, port: Port, start: StartPosition | WireId | int, inclusive: bool) -> None:
        self.log = log
        self.port = port
        self.backlog: deque[StoredRecord] = deque(log.after(start, inclusive))
        for record in self.backlog:
            record.references += 1
        self._since = start if isinstance(start, int) and not self.backlog else 0
        log.listen(self)

    def publish(self, record: StoredRecord, due: float | None) -> None:
        if record.publish_time < self._since:
            self.log.release(record)
            return
        self._since = 0
        self.backlog.append(record)
        if self.port.armed:
            self.port.notify()

    def read(self, limit: int) -> list[StoredRecord]:
        records = [self.backlog.popleft() for _ in range(min(limit, len(self.backlog)))]
        for record in records:
            self.log.release(record)
        return records

    def close(self) -> None:
        self.log.silence(self)
        self.read(len(self.backlog))


def tails_of(log: Partition) -> list[Tail]:
    return [listener for listener in log.listeners if isinstance(listener, Tail)]
