"""A subscription of one log: its unacknowledged records, and the consumers that hold them.

Each unacknowledged record is in exactly one of four places:

* ``backlog``: not delivered yet, in order;
* ``Consumer.held``: held by a consumer;
* ``returned``: returned, delayed or parked; delivered before the backlog once it is ready;
* ``in_transaction``: acknowledged in an open transaction.

All methods are called with the broker's lock held.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Protocol

from jmsaio.config import ConsumerConfig
from jmsaio.errors import ConsumerBusyError
from jmsaio.model.arguments import shown
from jmsaio.model.partitions import dead_letter_topic
from jmsaio.model.wire import WireId
from jmsaio.transport.base import StartPosition, SubscriptionType
from jmsaio.transport.memory.broker.consumer import Consumer, Port
from jmsaio.transport.memory.broker.entry_filter import RESCHEDULED, Verdict, judge
from jmsaio.transport.memory.broker.partition import Partition, RedeliveredRecord, Services, StoredRecord
from jmsaio.transport.memory.broker.policies import Policy, policy_for
from jmsaio.transport.memory.broker.returned import ReturnedRecords


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
        consumers: connected consumers.
        counts: redelivery counts above 0, by record number.
    """

    __slots__ = (
        "_policy", "backlog", "consumers", "counts", "durable", "in_transaction", "log", "name",
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
        """Services of the broker."""
        return self.log.broker

    def publish(self, record: StoredRecord, due: float | None) -> None:
        """Receive a new record, and deliver it at once if possible."""
        if due is not None:
            self.returned.delay(record, due, None)
            return
        solo = self._policy.solo
        if solo is not None and not self.returned.ready and not self.log.broker.filters:
            if len(solo.queue) >= solo.capacity:
                self.backlog.append(record)
                return
            if not self.backlog:
                solo.held[record.number] = record
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
                returned.take_first()
            else:
                backlog.popleft()
            accepting = self._accepting(record, consumer) if self.log.broker.filters else consumer
            if accepting is not None:
                self._deliver(record, accepting)

    def _accepting(self, record: StoredRecord, consumer: Consumer) -> Consumer | None:
        """Apply the filter plugin for ``consumer``, then for the others in turn.

        Returns:
            The consumer that receives the record; None if it was removed, or is offered again later.
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
        handed = record
        if self.counts:
            count = self.counts.get(number, 0)
            if count > consumer.dead_after:
                self._policy.settled(record)
                self._dead_letter(record, consumer)
                return
            if count:
                handed = RedeliveredRecord(record, count)
        consumer.held[number] = record
        if ordered:
            consumer.queue_in_order(handed)
        else:
            consumer.queue.append(handed)
        if consumer.port.armed:
            consumer.port.notify()

    def dead_letter(self, consumer: Consumer, number: int, properties: Mapping[str, str]) -> None:
        """Move a record that a consumer holds to the dead letters, or acknowledge it without a dead-letter policy."""
        consumer.taken.pop(number, None)
        record = consumer.held.pop(number, None)
        if record is None:
            return
        self._policy.settled(record)
        if consumer.config.dead_letter is None:
            self.forget(record)
        else:
            self._dead_letter(record, consumer, properties)

    def _dead_letter(
        self, record: StoredRecord, consumer: Consumer, properties: Mapping[str, str] | None = None
    ) -> None:
        """Move a record to the dead letters."""
        policy = consumer.config.dead_letter
        assert policy is not None  # dead_after comes from it
        broker = self.log.broker
        topic = policy.dead_letter_topic or dead_letter_topic(self.log.name, self.name)
        failures = self.counts.get(record.number, 0)
        broker.dead_letter(record, topic, self.name, policy.initial_subscription_name, properties, failures)
        self.forget(record)

    def room(self, consumer: Consumer) -> None:
        """Send records to a consumer that has permits again."""
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
            queue, held = consumer.queue, consumer.held
            for _ in range(min(consumer.capacity - len(queue), len(backlog))):
                record = backlog.popleft()
                held[record.number] = record
                queue.append(record)
            if queue and consumer.port.armed:
                consumer.port.notify()
        elif backlog or self.returned.ready:
            self.dispatch()

    def acknowledge(self, consumer: Consumer, records: Iterable[StoredRecord]) -> None:
        """Acknowledge records on behalf of a consumer."""
        take = consumer.held.pop
        plain = not self._policy.follows and consumer.config.ack_timeout is None
        log = self.log
        freed = 0
        for handed in records:
            record = take(handed.number, None)
            if record is None:
                self._acknowledge_elsewhere(handed.number)
            elif plain and not self.counts and record.references == 1:
                if log.records.pop(record.number, None) is not None:  # this was the last reference
                    freed += record.size
            else:
                consumer.taken.pop(record.number, None)
                self.settle(record)
        log.broker.used -= freed

    def forget(self, record: StoredRecord) -> None:
        """Finish with a record that is in none of the four places any more."""
        if self.counts:
            self.counts.pop(record.number, None)
        self.log.release(record)

    def settle(self, record: StoredRecord) -> None:
        """Acknowledge a record just removed from a consumer's ``held``."""
        self._policy.settled(record)
        self.forget(record)

    def _acknowledge_elsewhere(self, number: int) -> None:
        """Acknowledge a record that the acknowledging consumer does not hold (any more); unknown ones are ignored."""
        record = self.returned.take(number)
        holder = next((consumer for consumer in self.consumers if number in consumer.held), None)
        if record is not None:
            self.forget(record)
        elif number in self.in_transaction:  # a plain acknowledgement wins over an open transaction, as in Pulsar
            unit, record = self.in_transaction.pop(number)
            unit.withdraw(self, number)
            self.settle(record)
        elif holder is not None:
            holder.queue = deque(queued for queued in holder.queue if queued.number != number)
            self.settle(holder.held.pop(number))
            self.room(holder)

    def advance(self, number: int) -> None:
        """Acknowledge every record up to and including that number."""
        while self.backlog and self.backlog[0].number <= number:
            self.forget(self.backlog.popleft())
        for pending in self.pending():
            if pending <= number:
                self._acknowledge_elsewhere(pending)

    def give_back(self, consumer: Consumer, number: int, due: float | None, counted: bool) -> None:
        """Return a consumer's record, to be redelivered from ``due`` on (None: at once, by ``dispatch``)."""
        consumer.taken.pop(number, None)
        record = consumer.held.pop(number, None)
        if record is None:
            return
        if counted:
            self.counts[number] = self.counts.get(number, 0) + 1
        self._policy.settled(record)
        if due is not None:
            self.returned.delay(record, due, consumer)
        else:
            self.returned.put_back(record)

    def roll_back(self, number: int) -> None:
        """Undo the acknowledgement of a record by an aborted transaction; the next ``dispatch`` redelivers it."""
        _, record = self.in_transaction.pop(number)
        self.counts[number] = self.counts.get(number, 0) + 1
        self._policy.settled(record)
        self.returned.put_back(record)

    def join(
        self, port: Port, type_: SubscriptionType, config: ConsumerConfig, size: int, metadata: Mapping[str, str]
    ) -> Consumer:
        """Add a consumer.

        Raises:
            ConsumerBusyError: the subscription has a consumer, and the two can't share it.
        """
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
        queue, consumer.queue = consumer.queue, deque()
        for record in queue:
            self.give_back(consumer, record.number, None, counted=False)

    def _take_off(self, consumer: Consumer) -> None:
        """Stop delivery to a consumer, and make its unreceived and returned records available to others at once."""
        self._give_back_queue(consumer)
        self.returned.hurry(consumer)
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
        self._take_off(consumer)
        self.dispatch()

    def resume(self, consumer: Consumer) -> None:
        """Resume delivery to a stopped consumer."""
        if consumer in self.consumers and consumer.stopped:
            consumer.stopped = False
            replaced = self._policy.joined(consumer)
            if replaced is not None:
                self._give_back_queue(replaced)
            self.dispatch()

    def leave(self, consumer: Consumer, keep: bool = False) -> None:
        """Remove a consumer; its records are redelivered at once, counted if the application had received them.

        A subscription that is not durable is deleted with its last consumer, unless ``keep``.
        """
        if consumer not in self.consumers:
            return
        self._take_off(consumer)
        for number in list(consumer.held):
            self.give_back(consumer, number, None, counted=True)
        self.consumers.remove(consumer)
        if self.consumers or self.durable or keep:
            self.dispatch()
        else:
            self.delete()

    def pending(self) -> list[int]:
        """Return the numbers of all unacknowledged records, ascending."""
        numbers = {record.number for record in self.backlog} | self.returned.records.keys() | self.in_transaction.keys()
        return sorted(numbers.union(*(consumer.held for consumer in self.consumers)))

    @property
    def size(self) -> int:
        """Number of unacknowledged records."""
        held = sum(len(consumer.held) for consumer in self.consumers)
        return len(self.backlog) + len(self.returned.records) + len(self.in_transaction) + held

    def _records(self) -> Iterable[StoredRecord]:
        yield from self.backlog
        yield from self.returned.records.values()
        for _, record in self.in_transaction.values():
            yield record
        for consumer in self.consumers:
            yield from consumer.held.values()

    def seek(self, start: StartPosition | WireId | int) -> None:
        """Deliver everything from ``start`` on again; consumers lose the records they hold."""
        wanted = self.log.after(start)
        for record in wanted:
            record.references += 1
        self.clear()
        self.backlog.extend(wanted)
        self.dispatch()

    def clear(self) -> None:
        """Release every record."""
        for record in list(self._records()):
            self.log.release(record)
        for number, (unit, _) in self.in_transaction.items():
            unit.withdraw(self, number)
        for place in (self.in_transaction, self.backlog, self.returned, self.counts):
            place.clear()
        consumers, self.consumers = self.consumers, []
        self._policy = policy_for(self.type, self.log.partition)
        for consumer in consumers:
            for held in (consumer.queue, consumer.held, consumer.taken, consumer.waiting, consumer.parked):
                held.clear()
            consumer.listed = False
            self.consumers.append(consumer)
            if not consumer.stopped:
                self._policy.joined(consumer)

    def delete(self) -> None:
        """Remove the subscription, whose consumers have already been removed."""
        self.clear()
        if self in self.log.listeners:
            self.log.silence(self)
            self.log.subscribed -= 1


def subscriptions_of(log: Partition) -> dict[str, BrokerSubscription]:
    """Return the subscriptions of a topic or partition, by name."""
    return {listener.name: listener for listener in log.listeners if isinstance(listener, BrokerSubscription)}


def subscriptions_named(name: str, logs: Iterable[Partition]) -> list[BrokerSubscription]:
    """Return the subscription of that name in each of ``logs`` that has one."""
    return [found for log in logs if (found := subscriptions_of(log).get(name)) is not None]
