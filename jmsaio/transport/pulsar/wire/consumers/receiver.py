"""``WireReceiver``: one subscription, over a consumer for each topic and partition."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby

import anyio

from jmsaio.errors import IllegalStateError, JMSError, ObjectClosedError, OperationTimeoutError, TransportError
from jmsaio.model.log_fields import log_fields
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import ReceivedRecord, SetAside, WireId
from jmsaio.rules.record_life import RecordEvent
from jmsaio.transport.base import LinkChange, StartPosition, Subscription, Transaction, Wake
from jmsaio.transport.pulsar.dead_letters import DeadLetters
from jmsaio.transport.pulsar.wire.connections.client import Client
from jmsaio.transport.pulsar.wire.consumers.consumer import Consumer
from jmsaio.transport.pulsar.wire.records.record import WireRecord
from jmsaio.transport.pulsar.wire.transactions.transaction import WireTransaction
from jmsaio.transport.waiting import together

_log = logging.getLogger(__name__)


class WireReceiver:
    """Receives from one subscription. Opened by ``WireTransport.open_receiver``."""

    def __init__(
        self, client: Client, subscription: Subscription, wake: Wake, letters: DeadLetters | None,
        closed: Callable[[WireReceiver], None],
    ) -> None:  # fmt: skip
        self.subscription = subscription
        self._client = client
        self._wake = wake
        self._letters = letters
        self._on_closed = closed
        self._consumers: list[Consumer] = []
        self._by_topic: dict[str, Consumer] = {}
        # Called last, with the remaining seconds, if a subscription that ends now could not be deleted here.
        self.after_close: Callable[[float], Awaitable[None]] | None = None
        self._refusals: set[str] = set()  # topics whose consumers the broker refuses for now
        self._first = 0  # the consumer that is asked first
        self._growth: asyncio.Task[None] | None = None
        self._stopped = False
        self._closed = False
        self._closing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        state = "closed" if self._closed else "stopped" if self._stopped else "open"
        return f"<WireReceiver {self.subscription.name}, {len(self._consumers)} consumers, {state}>"

    async def start(self, timeout: float) -> None:
        """Subscribe to all topics and partitions. Raises the first error, with the others closed."""
        deadline = self._client.loop.time() + timeout
        names = await self._partitions()
        await self._add(names, len(names), deadline - self._client.loop.time())
        config = self.subscription.config
        interval = math.inf
        if self.subscription.pattern is not None:
            interval = config.pattern_auto_discovery_period
        if config.auto_update_partitions:
            interval = min(interval, config.auto_update_partitions_interval)
        if interval != math.inf:
            self._growth = self._client.tasks.start(self._grow(interval))

    async def _partitions(self) -> list[str]:
        wanted, topics = self.subscription, self._client.topics
        names: Sequence[str] = wanted.topics
        if wanted.pattern is not None:
            names = await topics.matching(wanted.pattern, wanted.config.regex_subscription_mode)
        return [name for found in await together(topics.partitions(topic) for topic in names) for name in found]

    async def _add(self, names: list[str], sharing: int, timeout: float) -> None:
        config = self.subscription.config
        total = config.max_total_receiver_queue_size_across_partitions
        size = min(config.receiver_queue_size, max(1, total // max(1, sharing)))
        consumers = [
            Consumer(self._client, name, self.subscription, size, self._woken, self._letters, self._refused)
            for name in names
        ]
        try:
            await together(consumer.open(timeout) for consumer in consumers)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await together(consumer.aclose(1.0) for consumer in consumers)
            raise
        if self._stopped:
            await together(consumer.stop(timeout) for consumer in consumers)
        self._consumers += consumers
        self._by_topic.update((consumer.topic, consumer) for consumer in consumers)
        self._client.loop.call_soon(self._woken)

    async def _grow(self, interval: float) -> None:
        """Add consumers for new partitions, and new topics of a pattern, from time to time."""
        while True:
            await asyncio.sleep(interval)
            try:
                known: set[str] = set(self._by_topic)
                new = [name for name in await self._partitions() if name not in known]
            except JMSError as error:
                _log.info("new topics of %s can't be looked for: %s", self.subscription.name, error)
                continue
            if not self.subscription.config.auto_update_partitions:  # only topics that are new
                known = {split_partition(name)[0] for name in known}
                new = [name for name in new if split_partition(name)[0] not in known]
            if not self._stopped:
                await together(self._add_new(name, len(new)) for name in new)

    async def _add_new(self, name: str, sharing: int) -> None:
        """Add a consumer; one that is refused does not keep others from receiving."""
        try:
            await self._add([name], sharing, self._client.config.operation_timeout)
        except JMSError as error:
            _log.info("%s can't be received from on %s yet: %s", name, self.subscription.name, error)

    def _woken(self) -> None:
        if not self._closed:
            self._wake()

    def _check(self) -> None:
        self._client.check()
        if self._closed:
            raise ObjectClosedError(f"the receiver of subscription {self.subscription.name} is closed")

    def receive(self, limit: int) -> list[ReceivedRecord]:
        self._check()
        consumers, found = self._consumers, list[ReceivedRecord]()
        count = len(consumers)
        for turn in range(count):
            if len(found) == limit:
                break
            found += consumers[(self._first + turn) % count].receive(limit - len(found))
        if count > 1:
            self._first = (self._first + 1) % count
        if not found and limit > 0:
            failure = next((consumer.failure for consumer in consumers if consumer.failure is not None), None)
            if failure is not None:
                raise failure
        return found

    def _refused(self, topic: str, error: JMSError | None) -> None:
        """Report that the broker refuses a consumer, unless the whole connection is refused; None: no longer."""
        if error is not None and self._client.loss is None:
            self._refusals.add(topic)
            self._client.report(LinkChange(str(error), error, receiver=self))
        elif error is None and topic in self._refusals:
            self._refusals.discard(topic)
            if not self._refusals:
                text = f"subscription {self.subscription.name} of {topic} is back"
                self._client.report(LinkChange(text, receiver=self))

    def _of(self, record: SetAside) -> Consumer | None:
        if isinstance(record, WireRecord):
            return self._by_topic.get(record.entry.topic)
        return next((consumer for consumer in self._consumers if consumer.find(record) is not None), None)

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        self._check()
        if transaction is not None:
            self._acknowledge_in(transaction, records)  # type: ignore[arg-type]  # of this transport
            return
        if len(self._consumers) == 1:
            self._consumers[0].acks.acknowledge(records)  # type: ignore[arg-type]  # of this receiver
            return
        for consumer, some in groupby(records, self._of):
            if consumer is not None:
                consumer.acks.acknowledge(some)  # type: ignore[arg-type]  # of this receiver

    def _acknowledge_in(self, transaction: WireTransaction, records: Sequence[ReceivedRecord]) -> None:
        by_consumer: dict[Consumer, list[WireRecord]] = {}
        for record in records:
            consumer = self._of(record)
            if consumer is None:
                transaction.fail(TransportError(f"{record!r} was received by a consumer that is closed"))
                return
            by_consumer.setdefault(consumer, []).append(record)  # type: ignore[arg-type]  # of this receiver
        for consumer, some in by_consumer.items():
            consumer.acks.acknowledge_in(transaction, some)

    def negative_acknowledge(self, records: Sequence[SetAside], delay: float, *, counted: bool = True) -> None:
        self._check()
        for record in records:
            consumer = self._of(record)
            found = None if consumer is None else consumer.find(record)
            if consumer is not None and found is not None:
                consumer.returning.nack(*found, delay, counted)

    def set_aside(self, records: Sequence[ReceivedRecord]) -> list[SetAside]:
        kept: list[SetAside] = []
        for record in records:
            assert isinstance(record, WireRecord)
            record.entry.step(record.index, RecordEvent.SET_ASIDE)
            kept.append(tuple(record.message_id))  # type: ignore[arg-type]  # of these four
        return kept

    def dead_letter(self, record: ReceivedRecord, properties: Mapping[str, str]) -> None:
        self._check()
        if self._letters is None:
            self.acknowledge((record,))
            return
        consumer = self._of(record)
        if consumer is not None:
            consumer.returning.dead_letter(record, properties)  # type: ignore[arg-type]  # of this receiver

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        for record in records:
            assert isinstance(record, WireRecord)
            record.deliver_again()

    async def settle(self, timeout: float, *, receipt: bool = False) -> None:
        self._check()
        wait = receipt or self.subscription.config.ack_receipt_enabled
        await together(consumer.acks.settle(timeout, wait) for consumer in self._consumers)

    async def unsubscribe(self, timeout: float) -> None:
        self._check()
        await together(consumer.unsubscribe(timeout) for consumer in self._consumers)

    async def seek(self, position: StartPosition | WireId | int, timeout: float) -> None:
        self._check()
        if self._stopped:
            raise IllegalStateError(f"seek {self.subscription.name}: the receiver is stopped; resume it first")
        consumers = self._consumers
        if isinstance(position, WireId):
            consumers = [one for one in consumers if split_partition(one.topic)[1] == position.partition]
            if not consumers:
                raise TransportError(f"seek {self.subscription.name}: partition {position.partition} has no consumer")
        await together(consumer.seek(position, timeout) for consumer in consumers)

    async def stop(self, timeout: float) -> None:
        self._check()
        if self.subscription.shared:
            self._stopped = True
            await self._stop_all(timeout)

    async def _stop_all(self, timeout: float) -> None:
        stopping = [self._client.tasks.start(consumer.stop(timeout)) for consumer in self._consumers]
        if stopping:
            await asyncio.wait(stopping)

    async def resume(self, timeout: float, selector: str | None = None) -> None:
        """Receive again; statistics show a new selector after the next reconnect, since consumers stay registered."""
        self._check()
        if self._stopped:
            self.subscription = self.subscription.showing(selector)
            self._stopped = False
            try:
                await together(consumer.resume(timeout, self.subscription) for consumer in self._consumers)
            except BaseException:
                self._stopped = True
                raise
            finally:
                if self._stopped:  # or it was stopped meanwhile; some consumers are resumed
                    await self._stop_all(timeout)

    async def aclose(self, timeout: float) -> None:
        if self._closing is None:
            self._closed = True
            for consumer in self._consumers:
                consumer.begin_close()
            self._closing = self._client.tasks.start(self._close(self._client.loop.time() + timeout))
            self._closing.add_done_callback(lambda _: self._on_closed(self))  # until then the transport's close waits
        await asyncio.wait({self._closing}, timeout=max(0.0, timeout))

    async def _close(self, deadline: float) -> None:
        loop = self._client.loop
        if self._growth is not None:
            self._growth.cancel()
            await asyncio.wait({self._growth})
        if self._letters is not None:
            await self._letters.aclose((deadline - loop.time()) / 2)
        for consumer in self._consumers:
            consumer.acks.flush()
        deleted = self.subscription.durable
        try:
            await together(consumer.acks.settle((deadline - loop.time()) / 2, True) for consumer in self._consumers)
            if not deleted:
                await together(consumer.unsubscribe((deadline - loop.time()) / 2) for consumer in self._consumers)
                deleted = True
        except (JMSError, OperationTimeoutError) as error:
            text, name = "the subscription %s was not settled, or not deleted: %s", self.subscription.name
            _log.info(text, name, error, extra=log_fields(subscription=name))
        await together(consumer.aclose(deadline - loop.time()) for consumer in self._consumers)
        if not deleted and self.after_close is not None:
            await self.after_close(deadline - loop.time())
