"""``Receiver`` of the embedded broker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import cast

import attrs

from jmsaio.errors import (
    ConsumerBusyError,
    JMSError,
    NotFoundError,
    ObjectClosedError,
    TransactionRolledBackError,
    TransportError,
)
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import full_name
from jmsaio.model.topic_names import topic_pattern
from jmsaio.model.wire import ReceivedRecord, SetAside, WireId
from jmsaio.rules.record_life import RecordEvent
from jmsaio.transport import base
from jmsaio.transport.base import METADATA_TOO_LARGE, LinkChange, StartPosition, Transaction, Wake
from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.broker.consumer import Consumer
from jmsaio.transport.memory.broker.partition import Partition, StoredRecord
from jmsaio.transport.memory.broker.replacement import renew
from jmsaio.transport.memory.broker.subscription import BrokerSubscription, subscriptions_of
from jmsaio.transport.memory.link import Link
from jmsaio.transport.memory.transaction import MemoryTransaction, TransactionState
from jmsaio.transport.names import named

#: Maximum size of a consumer's metadata in bytes; Pulsar's ``maxConsumerMetadataSize``.
METADATA = 1024


#: Properties of replaced subscriptions when none was replaced.
_NONE: Mapping[Partition, Mapping[str, str]] = {}


def _check_metadata(wanted: base.Subscription) -> None:
    metadata = {**wanted.config.properties, **wanted.metadata}
    if sum(len(name) + len(value) for name, value in metadata.items()) > METADATA:
        raise TransportError(f"metadata has a max size of {METADATA} bytes", METADATA_TOO_LARGE)


@attrs.define(eq=False)
class Attachment:
    """A consumer and its subscription."""

    subscription: BrokerSubscription
    consumer: Consumer


class MemoryReceiver:
    """Consumes one subscription of one or more topics. Created with the broker's lock held; a failure joins none.

    ``by_priority``: partitions with a higher number receive a larger share of the receiver queue.
    """

    __slots__ = (
        "_attached",
        "_broker",
        "_by_priority",
        "_closed",
        "_failure",
        "_link",
        "_refused",
        "_single",
        "_stopped",
        "_turn",
        "_wake",
        "_wanted",
        "armed",
        "pattern",
    )  # fmt: skip

    def __init__(self, link: Link, wanted: base.Subscription, wake: Wake, by_priority: bool = False) -> None:
        self._link = link
        self._broker: Broker = link.broker
        self._wanted = named(wanted)
        self._wake = wake
        self._by_priority = by_priority
        self._attached: dict[Partition, Attachment] = {}
        self._single: Attachment | None = None
        self._turn = 0
        self._failure: JMSError | None = None
        self._refused: JMSError | None = None
        self._closed = False
        self._stopped = False
        self.armed = True
        self.pattern: re.Pattern[str] = re.compile(r"(?!)")
        _check_metadata(wanted)
        logs = [log for topic in wanted.topics for log in self._broker.open(topic)]
        if wanted.pattern is not None:
            self.pattern = topic_pattern(full_name(wanted.pattern))
            logs += [log for found in self._broker.matching(self.pattern).values() for log in found]
            self._broker.watchers.append(self)
        try:
            self._join(logs, renew(self._broker, wanted, logs) if wanted.replace else {})
        except JMSError:
            self._detach()
            raise

    def _join(self, logs: Sequence[Partition], kept: Mapping[Partition, Mapping[str, str]] = _NONE) -> None:
        wanted = self._wanted
        total = len(self._attached) + len(logs)
        for log in logs:
            if log in self._attached:
                continue
            new = wanted.name not in subscriptions_of(log)
            subscription = self._broker.subscribe(log, wanted.name, wanted.durable, wanted.position)
            if subscription.durable is not wanted.durable:
                kinds = ("durable", "not durable") if subscription.durable else ("not durable", "durable")
                raise ConsumerBusyError(
                    f"subscription {shown(wanted.name)} of {log.name} is {kinds[0]}, not {kinds[1]}"
                )
            if new or wanted.replace:
                added = wanted.properties if new else wanted.added_to(subscription.properties)
                subscription.properties.update({**kept.get(log, {}), **added})
            size = self._queue_size(log, total)
            self._attach(log, subscription, size)

    def _attach(self, log: Partition, subscription: BrokerSubscription, size: int) -> None:
        consumer = subscription.join(self, self._wanted.type, self._wanted.config, size, self._wanted.metadata)
        self._attached[log] = Attachment(subscription, consumer)
        self._note()
        if self._stopped:
            subscription.stop(consumer)

    def _note(self) -> None:
        self._single = next(iter(self._attached.values())) if len(self._attached) == 1 else None

    def _queue_size(self, log: Partition, total: int) -> int:
        config = self._wanted.config
        size = config.receiver_queue_size
        if total > 1 and size > 0:
            size = max(1, min(size, config.max_total_receiver_queue_size_across_partitions // total))
            if self._by_priority:
                size = max(1, (max(log.partition, 0) + 1) * size // (total * (total + 1) // 2))
        return size

    def discovered(self, topic: str, logs: list[Partition]) -> None:
        with suppress(ConsumerBusyError):  # as in Pulsar: topics without conflict are consumed
            self._join(logs)

    def _detach(self, keep: bool = False) -> None:
        attached = list(self._attached.values())
        if not keep:
            if self in self._broker.watchers:
                self._broker.watchers.remove(self)
            self._attached.clear()
            self._single = None
        for each in attached:
            each.subscription.remove(each.consumer, keep)
        self._broker.freed()

    def broker_down(self) -> None:
        self._detach(keep=True)

    def reconnect(self) -> None:
        reason: JMSError | None = None
        for log, each in list(self._attached.items()):
            subscription, consumer = each.subscription, each.consumer
            if consumer in subscription.consumers:
                continue
            del self._attached[log]
            if subscriptions_of(subscription.log).get(subscription.name) is not subscription:
                reason = NotFoundError(f"subscription {shown(subscription.name)} of {log.name} was deleted")
                continue
            try:
                self._attach(log, subscription, consumer.capacity)
            except ConsumerBusyError as error:
                reason = error
        self._finish(reason)

    def notify(self) -> None:
        self.armed = False
        self._link.defer(self)

    def end(self, reason: JMSError | None) -> None:
        """Handle the deletion of a topic or subscription; the receiver ends with the last one."""
        self._attached = {
            log: each for log, each in self._attached.items() if each.consumer in each.subscription.consumers
        }
        self._finish(reason)

    def _finish(self, reason: JMSError | None) -> None:
        self._note()
        if not self._attached and reason is not None:
            self._failure = reason
            self.notify()
            if isinstance(reason, ConsumerBusyError):
                self._link.notify(LinkChange(str(reason), reason))

    def run_deferred(self) -> None:
        if not self._closed:
            self._wake()

    def receive(self, limit: int) -> list[ReceivedRecord]:
        with self._broker.lock:
            single = self._single
            records = single.consumer.receive(limit) if single is not None else self._receive_in_turn(limit)
            self.armed = len(records) < limit
        if not records:
            self._check_open()
            if self._failure is not None:
                raise self._failure
        return cast("list[ReceivedRecord]", records)

    def _check_open(self) -> None:
        if self._closed:
            raise ObjectClosedError(f"the receiver of subscription {shown(self._wanted.name)} is closed")

    def _receive_in_turn(self, limit: int) -> list[StoredRecord]:
        consumers = [each.consumer for each in self._attached.values()]
        records: list[StoredRecord] = []
        if not consumers:
            return records
        self._turn = turn = (self._turn + 1) % len(consumers)
        share = max(1, limit // len(consumers))
        for most in (share, limit):
            for consumer in consumers[turn:] + consumers[:turn]:
                room = min(most, limit - len(records))
                if room and (consumer.queue or consumer.zero_queue):
                    records += consumer.receive(room)
        return records

    def _attachments(self, records: Sequence[SetAside]) -> Iterator[tuple[Attachment, StoredRecord]]:
        self._check_open()
        for record in cast("Sequence[StoredRecord]", records):
            each = self._attached.get(record.log)
            if each is not None:
                yield each, record

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        broker = self._broker
        if broker.down:
            return  # lost in transit: they are redelivered
        stored = cast("Sequence[StoredRecord]", records)
        with broker.lock:
            if broker.faults.lost_acknowledgements:
                stored = [record for record in stored if not broker.faults.loses_acknowledgement()]
            single = self._single
            if isinstance(transaction, MemoryTransaction):
                for each, record in self._attachments(stored):
                    self._acknowledge_in(transaction, each, record.number)
            elif single is not None:
                single.subscription.acknowledge(single.consumer, stored)
            else:
                for each, record in self._attachments(stored):
                    each.subscription.acknowledge(each.consumer, (record,))
            if broker.blocked:
                broker.freed()

    def _acknowledge_in(self, transaction: MemoryTransaction, each: Attachment, number: int) -> None:
        subscription, consumer = each.subscription, each.consumer
        if transaction.state is not TransactionState.OPEN:
            self._refused = TransactionRolledBackError(f"the transaction is {transaction.state.value} already")
            subscription.give_back(consumer, number, None, counted=True)  # as its abort returned the others
            subscription.dispatch()
            return
        stored = consumer.held.pop(number, None)
        consumer.ack_deadlines.pop(number, None)
        conflict = transaction.acknowledge(subscription, number, stored)
        if conflict is not None:
            self._refused = conflict

    def negative_acknowledge(self, records: Sequence[SetAside], delay: float, *, counted: bool = True) -> None:
        with self._broker.lock:
            due = self._broker.steady() + delay if delay > 0 else None
            subscriptions: dict[BrokerSubscription, None] = {}
            for each, record in self._attachments(records):
                each.subscription.give_back(each.consumer, record.number, due, counted)
                subscriptions[each.subscription] = None
            for subscription in subscriptions:
                subscription.dispatch()

    def set_aside(self, records: Sequence[ReceivedRecord]) -> Sequence[SetAside]:
        self._pass(records, RecordEvent.SET_ASIDE)
        return records

    def _pass(self, records: Sequence[SetAside], event: RecordEvent) -> None:
        with self._broker.lock:
            for each, record in self._attachments(records):
                each.subscription.pass_event(each.consumer, record.number, event)

    def dead_letter(self, record: ReceivedRecord, properties: Mapping[str, str]) -> None:
        broker, stored = self._broker, cast("StoredRecord", record)
        if broker.down:
            return  # it is redelivered
        with broker.lock:
            for each, _ in self._attachments((record,)):
                each.subscription.dead_letter(each.consumer, stored.number, properties)
            broker.freed()

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        self._pass(records, RecordEvent.DELIVERED_AGAIN)

    async def settle(self, timeout: float, *, receipt: bool = False) -> None:
        refused, self._refused = self._refused, None
        if refused is not None:
            raise refused

    async def unsubscribe(self, timeout: float) -> None:
        with self._broker.lock:
            subscriptions = [each.subscription for each in self._attached.values()]
            if not subscriptions and self._wanted.pattern is None:
                raise NotFoundError(f"subscription {shown(self._wanted.name)} is gone")
            for subscription in subscriptions:
                if len(subscription.consumers) > 1:
                    raise ConsumerBusyError(
                        f"subscription {shown(subscription.name)} of {subscription.log.name} has other consumers"
                    )
            self._detach()
            for subscription in subscriptions:
                self._broker.remove(subscription, None)

    async def seek(self, position: StartPosition | WireId | int, timeout: float) -> None:
        """Move the subscription. See ``Receiver.seek``; with an id, only on the topic of that record."""
        with self._broker.lock:
            subscriptions = [each.subscription for each in self._attached.values()]
            if isinstance(position, WireId) and len(subscriptions) > 1:
                subscriptions = [each for each in subscriptions if each.log.ledger == position.ledger]
                if not subscriptions:
                    raise NotFoundError(f"{position} is in no topic of subscription {shown(self._wanted.name)}")
            for subscription in subscriptions:
                subscription.seek(position)
            self._broker.freed()

    async def stop(self, timeout: float) -> None:
        with self._broker.lock:
            self._stopped = True
            for each in self._attached.values():
                each.subscription.stop(each.consumer)

    async def resume(self, timeout: float, selector: str | None = None) -> None:
        if not self._stopped:
            return
        wanted = self._wanted.showing(selector)
        _check_metadata(wanted)
        with self._broker.lock:
            self._stopped, self._wanted = False, wanted
            for each in self._attached.values():
                each.consumer.metadata = wanted.metadata
                each.subscription.resume(each.consumer)

    async def aclose(self, timeout: float) -> None:
        with self._broker.lock:
            self.abandon()

    @property
    def closed(self) -> bool:
        return self._closed

    def abandon(self) -> None:
        self._closed = True
        self._detach()
