"""A subscription of one log: its unacknowledged records, and the consumers that hold them.

Each unacknowledged record is in exactly one place, which is its state in ``jmsaio.rules.record_life``:

* ``backlog``: UNKNOWN, not sent to a consumer, in order;
* ``Consumer.queue``: QUEUED; ``Consumer.held``: HELD; ``Consumer.aside``: ASIDE;
* ``returned``: RETURNED while it is delayed, also before its delivery time; otherwise BACK, sent before the backlog;
* ``in_transaction``: IN_TRANSACTION.

A record that is sent, handed out and acknowledged, in a transaction or not, takes these steps directly. All other
events are passed to the table. A consumer that leaves, or whose link is lost, is CLOSED: this is the broker's side.

All methods are called with the broker's lock held.
"""

from __future__ import annotations

import heapq
import logging
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Protocol

from jmsaio.config import ConsumerConfig
from jmsaio.errors import ConsumerBusyError
from jmsaio.model.arguments import shown
from jmsaio.model.topic_names import dead_letter_topic
from jmsaio.model.wire import WireId
from jmsaio.rules.record_life import Action, RecordEvent, RecordState, advance
from jmsaio.transport.base import StartPosition, SubscriptionType
from jmsaio.transport.memory.broker.consumer import Consumer, Port
from jmsaio.transport.memory.broker.entry_filter import RESCHEDULED, Verdict, judge
from jmsaio.transport.memory.broker.partition import Partition, Services, StoredRecord
from jmsaio.transport.memory.broker.policies import Policy, policy_for
from jmsaio.transport.memory.broker.returned import ReturnedRecords

_log = logging.getLogger(__name__)


class OpenTransaction(Protocol):
    """A transaction of the broker; see ``MemoryTransaction``."""

    def abort_now(self) -> None:
        """Roll back."""

    def withdraw(self, subscription: BrokerSubscription, number: int) -> None:
        """Cancel its acknowledgement of the record with that number."""


class BrokerSubscription:
    """A subscription of one log.

    Attributes:
        type: how its consumers share it; the first consumer to join after the last one left can change it.
        durable: whether it outlives its consumers.
        counts: redelivery counts above 0, by record number.
    """

    __slots__ = (
        "_ignored", "_policy", "backlog", "consumers", "counts", "durable", "in_transaction", "log", "name",
        "properties", "returned", "type",
    )  # fmt: skip

    def __init__(
        self, log: Partition, name: str, durable: bool, position: StartPosition, properties: Mapping[str, str]
    ) -> None:
        self.log = log
        self.name = name
        self.type = SubscriptionType.SHARED
        self.durable = durable
        self.properties = dict(properties)
        self.consumers: list[Consumer] = []
        self.counts: dict[int, int] = {}
        self.backlog: deque[StoredRecord] = deque(log.after(position))
        self.returned = ReturnedRecords(log.broker.timers, self.dispatch)
        self.in_transaction: dict[int, tuple[OpenTransaction, StoredRecord]] = {}
        self._ignored: set[tuple[RecordState, RecordEvent]] = set()
        self._policy: Policy = policy_for(self.type, log.partition)
        for record in self.backlog:
            record.references += 1
        log.listen(self)
        log.subscribed += 1
        if log.keeps_unread:
            for record in [record for record in log.records.values() if record.references <= 0]:
                log.drop(record)

    @property
    def services(self) -> Services:
        return self.log.broker

    def publish(self, record: StoredRecord, due: float | None) -> None:
        if due is not None:
            self.returned.delay(record, due, None)
            return
        solo = self._policy.solo
        if solo is not None and not self.returned.ready and not self.log.broker.filters:
            if len(solo.queue) >= solo.capacity:
                self.backlog.append(record)
                return
            if not self.backlog:
                solo.queue.append(record)
                if solo.port.armed:
                    solo.port.notify()
                return
        self.backlog.append(record)
        self.dispatch()

    def dispatch(self) -> None:
        """Deliver as many records as possible: returned ones first, by number, then the backlog."""
        returned, backlog, policy = self.returned, self.backlog, self._policy
        while returned.ready or backlog:
            record = returned.first() if returned.ready else None
            again = record is not None
            if record is None:
                if not backlog:
                    return
                record = backlog[0]
            consumer = policy.pick(record, again)
            if consumer is None:
                return
            if again:
                returned.pop_first()
            else:
                backlog.popleft()
            accepting = self._accepting(record, consumer) if self.log.broker.filters else consumer
            if accepting is not None:
                self._deliver(record, accepting)

    def _accepting(self, record: StoredRecord, consumer: Consumer) -> Consumer | None:
        """Return the consumer whose selector accepts ``record``: ``consumer``, or one of the others in turn.

        None if the record was removed, or is offered again later.
        """
        for turn in range(len(self.consumers)):
            chosen = consumer if turn == 0 else self._policy.pick(record)
            if chosen is None:
                break
            verdict = judge(record, chosen.metadata, self.properties)
            if verdict is Verdict.ACCEPT:
                return chosen
            self._policy.settled(record)
            if verdict is Verdict.REJECT:
                self.forget(record)
                return None
        self.returned.delay(record, self.services.steady() + RESCHEDULED, None)
        return None

    def _deliver(self, record: StoredRecord, consumer: Consumer) -> None:
        number = record.number
        ordered = self._policy.ordered
        if len(consumer.queue) >= consumer.capacity and not ordered:
            self.returned.records[number] = record
            consumer.park(number)
            return
        if self.counts.get(number, 0) > consumer.dead_after:
            self._policy.settled(record)
            self._store_letter(record, consumer)
            self.forget(record)
            return
        if ordered:
            consumer.queue_in_order(record)
        else:
            consumer.queue.append(record)
        if consumer.port.armed:
            consumer.port.notify()

    def dead_letter(self, consumer: Consumer, number: int, properties: Mapping[str, str]) -> None:
        """Move a record that a consumer holds to the dead letters, or acknowledge it without a dead-letter policy."""
        record = consumer.held.get(number)
        if record is not None and consumer.config.dead_letter is not None:
            self._store_letter(record, consumer, properties)
            self.pass_event(consumer, number, RecordEvent.DEAD_LETTERED)
        else:
            self.pass_event(consumer, number, RecordEvent.ACKNOWLEDGED)

    def _store_letter(
        self, record: StoredRecord, consumer: Consumer, properties: Mapping[str, str] | None = None
    ) -> None:
        policy = consumer.config.dead_letter
        assert policy is not None  # dead_after comes from it
        topic = policy.dead_letter_topic or dead_letter_topic(self.log.name, self.name)
        kept_by, failures = policy.initial_subscription_name, self.counts.get(record.number, 0)
        self.log.broker.dead_letter(record, topic, self.name, kept_by, properties, failures)

    def room(self, consumer: Consumer) -> None:
        if consumer.stopped:
            return
        parked = consumer.parked
        while parked and len(consumer.queue) < consumer.capacity:
            record = self.returned.records.pop(heapq.heappop(parked), None)
            if record is not None:  # not acknowledged meanwhile
                self._deliver(record, consumer)
        self._policy.room(consumer)
        backlog = self.backlog
        # No choice, and no counts to check: records of the backlog were never delivered.
        if self._policy.solo is consumer and not self.returned.ready and not self.log.broker.filters:
            queue = consumer.queue
            for _ in range(min(consumer.capacity - len(queue), len(backlog))):
                queue.append(backlog.popleft())
            if queue and consumer.port.armed:
                consumer.port.notify()
        elif backlog or self.returned.ready:
            self.dispatch()

    def acknowledge(self, consumer: Consumer, records: Iterable[StoredRecord]) -> None:
        remove = consumer.held.pop
        plain = not self._policy.follows and consumer.config.ack_timeout is None
        log = self.log
        freed = 0
        for handed in records:
            record = remove(handed.number, None)
            if record is None:
                self._pass_anywhere(handed.number, RecordEvent.ACKNOWLEDGED)
            elif plain and not self.counts and record.references == 1:
                if log.records.pop(record.number, None) is not None:  # this was the last reference
                    freed += record.size
            else:
                consumer.ack_deadlines.pop(record.number, None)
                self._policy.settled(record)
                self.forget(record)
        log.broker.used -= freed

    def forget(self, record: StoredRecord) -> None:
        """Finish with a record that was removed from its place."""
        if self.counts:
            self.counts.pop(record.number, None)
        self.log.release(record)

    def pass_event(self, consumer: Consumer, number: int, event: RecordEvent, due: float | None = None) -> None:
        """Pass an event of a record that ``consumer`` received; ``due``: end of the delay that the event starts."""
        record = self.log.records.get(number)
        state = RecordState.UNKNOWN if record is None else consumer.state(record)
        self._advance(event, state, record, consumer, due)

    def _pass_anywhere(self, number: int, event: RecordEvent) -> None:
        """Pass an event of a record, wherever it is."""
        record = self.log.records.get(number)
        state, holder = (RecordState.UNKNOWN, None) if record is None else self._place(record)
        self._advance(event, state, record, holder)
        if holder is not None:
            self.room(holder)

    def _place(self, record: StoredRecord) -> tuple[RecordState, Consumer | None]:
        if record.number in self.in_transaction:
            return RecordState.IN_TRANSACTION, None
        if record.number in self.returned.records:
            return self.returned.state(record.number), None
        places = ((consumer.state(record), consumer) for consumer in self.consumers)
        return next((place for place in places if place[0] is not RecordState.UNKNOWN), (RecordState.UNKNOWN, None))

    def _advance(
        self,
        event: RecordEvent,
        state: RecordState,
        record: StoredRecord | None,
        consumer: Consumer | None = None,
        due: float | None = None,
    ) -> None:
        """Carry out what the table says: count, and move the record. Dead letters are already stored."""
        step = advance(state, event)
        if step.action is Action.IGNORE and (state, event) not in self._ignored:
            self._ignored.add((state, event))
            text = "subscription %r of %s: a record is %s, and %s, which has no effect (logged once)"
            _log.debug(text, self.name, self.log.name, state.name.lower(), event.value)
        if record is None:
            return
        if step.counted:
            self.counts[record.number] = self.counts.get(record.number, 0) + 1
        if step.state is state:
            return
        self._remove(record, state, consumer)
        if step.state is RecordState.ASIDE and consumer is not None:
            consumer.aside[record.number] = record
            return
        if state not in (RecordState.RETURNED, RecordState.BACK):
            self._policy.settled(record)
        if step.state is RecordState.RETURNED and due is not None:
            self.returned.delay(record, due, consumer)
        elif step.state in (RecordState.RETURNED, RecordState.BACK):
            self.returned.put_back(record)
        else:
            self.forget(record)

    def _remove(self, record: StoredRecord, state: RecordState, consumer: Consumer | None) -> None:
        number = record.number
        if state is RecordState.IN_TRANSACTION:
            self.in_transaction.pop(number)[0].withdraw(self, number)
        elif consumer is None:
            self.returned.remove(number)
        elif state is RecordState.QUEUED:
            consumer.queue.remove(record)
        elif state is RecordState.ASIDE:
            del consumer.aside[number]
        else:
            del consumer.held[number]
            consumer.ack_deadlines.pop(number, None)

    def advance(self, number: int) -> None:
        while self.backlog and self.backlog[0].number <= number:
            self.forget(self.backlog.popleft())
        for pending in self.pending():
            if pending <= number:
                self._pass_anywhere(pending, RecordEvent.MOVED)

    def give_back(self, consumer: Consumer, number: int, due: float | None, counted: bool) -> None:
        """Return a consumer's record, to be redelivered from ``due`` on (None: at once, by ``dispatch``)."""
        self.pass_event(consumer, number, RecordEvent.RETURNED if counted else RecordEvent.RETURNED_UNSEEN, due)

    def end_transaction(self, number: int, event: RecordEvent) -> None:
        """Commit or abort the acknowledgement of a record; after an abort the next ``dispatch`` redelivers it."""
        self._advance(event, RecordState.IN_TRANSACTION, self.in_transaction[number][1])

    def join(
        self, port: Port, type_: SubscriptionType, config: ConsumerConfig, size: int, metadata: Mapping[str, str]
    ) -> Consumer:
        """Add a consumer; raise ConsumerBusyError if the subscription has one, and the two can't share it."""
        if self.consumers and (self.type is not type_ or type_ is SubscriptionType.EXCLUSIVE):
            raise ConsumerBusyError(
                f"subscription {shown(self.name)} of {self.log.name} has {len(self.consumers)} "
                f"{self.type.value} consumer(s): no {type_.value} consumer can join; close them first"
            )
        if not self.consumers:
            self.type = type_
            self._policy = policy_for(type_, self.log.partition)
        consumer = Consumer(self, port, config, self.log.broker.next_number(), size, metadata)
        self.consumers.append(consumer)
        replaced = self._policy.joined(consumer)
        if replaced is not None:
            self._give_back_queue(replaced)
        self.dispatch()
        return consumer

    def _give_back_queue(self, consumer: Consumer) -> None:
        """Return the unreceived records of a consumer, uncounted."""
        for record in list(consumer.queue):
            self._advance(RecordEvent.STOPPED, RecordState.QUEUED, record, consumer)

    def _stop_delivery(self, consumer: Consumer) -> None:
        """Stop delivery to a consumer, and make its unreceived and returned records available to others at once."""
        self._give_back_queue(consumer)
        self.returned.end_delays(consumer)
        for number in consumer.parked:
            record = self.returned.records.get(number)
            if record is not None:
                self.returned.put_back(record)
        consumer.parked.clear()
        if not consumer.stopped:
            consumer.stopped = True
            self._policy.left(consumer)

    def stop(self, consumer: Consumer) -> None:
        """Stop delivery to a consumer; it keeps received records until it settles them."""
        self._stop_delivery(consumer)
        self.dispatch()

    def resume(self, consumer: Consumer) -> None:
        if consumer in self.consumers and consumer.stopped:
            consumer.stopped = False
            replaced = self._policy.joined(consumer)
            if replaced is not None:
                self._give_back_queue(replaced)
            self.dispatch()

    def remove(self, consumer: Consumer, keep: bool = False) -> None:
        """Remove a consumer; its records are redelivered at once, counted if the application had received them.

        A subscription that is not durable is deleted with its last consumer, unless ``keep``.
        """
        if consumer not in self.consumers:
            return
        self._stop_delivery(consumer)
        for number in [*consumer.held, *consumer.aside]:
            self.pass_event(consumer, number, RecordEvent.CLOSED)
        self.consumers.remove(consumer)
        if self.consumers or self.durable or keep:
            self.dispatch()
        else:
            self.delete()

    def pending(self) -> list[int]:
        return sorted(record.number for record in self._records())

    @property
    def size(self) -> int:
        sent = sum(consumer.unsettled for consumer in self.consumers)
        return len(self.backlog) + len(self.returned.records) + len(self.in_transaction) + sent

    def _records(self) -> Iterable[StoredRecord]:
        yield from self.backlog
        yield from self.returned.records.values()
        for _, record in self.in_transaction.values():
            yield record
        for consumer in self.consumers:
            yield from consumer.queue
            yield from consumer.held.values()
            yield from consumer.aside.values()

    def seek(self, start: StartPosition | WireId | int) -> None:
        """Deliver everything from ``start`` on again; consumers lose the records they hold."""
        wanted = self.log.after(start)
        for record in wanted:
            record.references += 1
        self.clear()
        self.backlog.extend(wanted)
        self.dispatch()

    def clear(self) -> None:
        for record in list(self._records()):
            self.log.release(record)
        for number, (unit, _) in self.in_transaction.items():
            unit.withdraw(self, number)
        for place in (self.in_transaction, self.backlog, self.returned, self.counts):
            place.clear()
        consumers, self.consumers = self.consumers, []
        self._policy = policy_for(self.type, self.log.partition)
        for consumer in consumers:
            consumer.clear()
            self.consumers.append(consumer)
            if not consumer.stopped:
                self._policy.joined(consumer)

    def delete(self) -> None:
        self.clear()
        if self in self.log.listeners:
            self.log.silence(self)
            self.log.subscribed -= 1


def subscriptions_of(log: Partition) -> dict[str, BrokerSubscription]:
    return {listener.name: listener for listener in log.listeners if isinstance(listener, BrokerSubscription)}


def subscriptions_named(name: str, logs: Iterable[Partition]) -> list[BrokerSubscription]:
    return [found for log in logs if (found := subscriptions_of(log).get(name)) is not None]
