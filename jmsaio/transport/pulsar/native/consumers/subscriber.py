"""``Subscriber``: opens receivers with one native consumer per topic or partition, and adds new partitions."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from functools import partial
from typing import cast

import _pulsar
import anyio
import attrs

from jmsaio.config import ConsumerConfig
from jmsaio.errors import ConsumerBusyError, JMSError, NotFoundError, TransportError
from jmsaio.model.topic_names import SUBSCRIPTION_PREFIX
from jmsaio.model.wire import WireId
from jmsaio.rules.share import Share
from jmsaio.transport.base import Sender, SenderOptions, StartPosition, Subscription, SubscriptionType, Wake
from jmsaio.transport.names import named
from jmsaio.transport.pulsar.admin.paths import subscribing
from jmsaio.transport.pulsar.dead_letters import DeadLetters, LetterSubscriptions
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, close_late, ignore
from jmsaio.transport.pulsar.native.binding.handles import (
    ClientHandle,
    ConsumerHandle,
    MessageIdHandle,
    ReaderHandle,
)
from jmsaio.transport.pulsar.native.binding.native_log import Attempts, ask_again
from jmsaio.transport.pulsar.native.binding.options import consumer_configuration, native_position
from jmsaio.transport.pulsar.native.consumers.native_consumers import PatternConsumer
from jmsaio.transport.pulsar.native.consumers.pausing import queue_size
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver
from jmsaio.transport.pulsar.native.records.subscription_records import subscription_records
from jmsaio.transport.waiting import together

#: Opens the consumer, with whose end its subscription ends.
Open = Callable[[Subscription, Wake], Awaitable[PulsarReceiver]]


async def last_message_id(
    bridge: Bridge, open_receiver: Open, topic: str, timeout: float, closing: float
) -> WireId | None:
    """Return the id of the last record that a reader can receive now, requested through a temporary consumer.

    A reader at the latest record finds nothing if the topic ends with the marker of a transaction.
    """
    name = f"{SUBSCRIPTION_PREFIX}{uuid.uuid4()}"
    config = ConsumerConfig(receiver_queue_size=1)  # no message is to be received
    wanted = Subscription((topic,), name, SubscriptionType.EXCLUSIVE, config, durable=False)
    receiver = await open_receiver(wanted, ignore)
    try:
        [native] = receiver.natives
        ask = partial(bridge.ask, native.get_last_message_id_async, f"last place of {topic}", timeout)
        last: MessageIdHandle = await ask_again(bridge, ask, timeout)
    finally:
        with anyio.CancelScope(shield=True):
            await receiver.aclose(closing)
    if last.entry_id() < 0:
        return None
    return WireId(last.ledger_id(), last.entry_id(), last.partition(), last.batch_index())


#: Topic of ``Subscriber.ask_broker``: a partition's name, so that no broker creates it.
PROBE = "persistent://public/default/jmsaio-connect-partition-0"
_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class Subscriber:
    """Opens receivers for one transport."""

    bridge: Bridge
    client: ClientHandle
    timeout: float  # seconds for one request
    open_sender: Callable[[str, SenderOptions], Awaitable[Sender]]  # for dead letters
    share: Share  # bytes prefetched by the receivers
    letters: Callable[[], LetterSubscriptions]  # returns the transport's
    broker: str = ""  # the service URL
    network_threads: int = 1  # of pulsar-client

    async def partitions(self, topic: str) -> list[str]:
        """Return the full names of a topic's partitions, or its own name if it has none."""
        ask = partial(self.client.get_topic_partitions_async, topic)
        return list(await self.bridge.ask(ask, f"look up {topic}", self.timeout))

    async def open(
        self, subscription: Subscription, wake: Wake, closed: Callable[[PulsarReceiver], None]
    ) -> PulsarReceiver:
        self.bridge.check()
        subscription = named(subscription)
        others, policy = subscription_records(self.broker, subscription.identity), subscription.config.dead_letter
        letters = None
        if policy is not None:
            letters = DeadLetters(policy, subscription.name, self.open_sender, self.letters())
        receiver = PulsarReceiver(
            self.bridge, subscription, wake, closed, others, self.share, self._subscribe, self._have_answered, letters
        )
        try:
            if subscription.pattern is not None:
                receiver.add_native_consumer(await self._subscribe(subscription, None, 1), None)
            else:
                lists = await together(map(self.partitions, subscription.topics))
                topics = [name for names in lists for name in names]
                await self._add(receiver, subscription, topics)
                if topics != list(subscription.topics) and subscription.config.auto_update_partitions:
                    receiver.tasks.append(self.bridge.task(self._grow(receiver)))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await receiver.aclose(1.0)
            raise
        return receiver

    async def _add(self, receiver: PulsarReceiver, subscription: Subscription, topics: list[str]) -> None:
        """Add one native consumer per topic. All opened ones belong to the receiver, even if one fails."""
        size = queue_size(subscription, len(topics) + len(receiver.topics))
        tasks = [self.bridge.loop.create_task(self._subscribe(subscription, topic, size)) for topic in topics]
        try:
            await asyncio.wait(tasks)
        finally:  # cancelled once, however often this is, so that each can wait for its pending request
            for task in tasks:
                task.cancel()
            if not all(task.done() for task in tasks):  # otherwise a cancellation would lose what they opened
                with anyio.CancelScope(shield=True):
                    await asyncio.wait(tasks)
            for task, topic in zip(tasks, topics, strict=True):
                if task.cancelled() or task.exception() is not None:
                    continue
                if receiver.closed or receiver.stopped:  # meanwhile; the next check finds the partition again
                    close_late(task.result())
                else:
                    receiver.add_native_consumer(task.result(), topic)
        for task in tasks:
            task.result()

    async def _subscribe(self, subscription: Subscription, topic: str | None, size: int) -> ConsumerHandle:
        name, source = subscription.name, topic
        if topic is None:
            source, size = _pulsar.TopicRegex(subscription.pattern), queue_size(subscription, 1)
        native = consumer_configuration(subscription, size)
        attempts: Attempts[ConsumerHandle] = Attempts(
            self.bridge,
            partial(self.client.subscribe_async_v2, source, name, native),
            f"subscribe {name} to {topic or subscription.pattern}",
            self.timeout,
            close_late if topic is not None or subscription.durable else self._discard_pattern,
            topic=topic,
            subscription=name,
            turn=nullcontext if topic is None else partial(subscribing, topic, name, self.timeout),
        )
        try:
            opened = await attempts.run()
        except ConsumerBusyError as error:
            if subscription.type is SubscriptionType.EXCLUSIVE:
                raise
            raise ConsumerBusyError(
                f"{attempts.what}: the subscription has consumers of another type than {subscription.type.value}; "
                "close them first, or open this one with their type (jms.queueSubscriptionType for queues, "
                "jms.topicSharedSubscriptionType for topics)",
                error.error_code,
            ) from error
        return opened if topic is not None else self._of_pattern(opened)

    def _of_pattern(self, native: ConsumerHandle) -> ConsumerHandle:
        ask = self.ask_broker if self.network_threads == 1 else None
        return cast(ConsumerHandle, PatternConsumer(self.bridge, native, ask, self.timeout))

    def _discard_pattern(self, native: ConsumerHandle) -> None:
        """Close a consumer of a pattern that nobody waits for, with its subscriptions: no name finds them later."""
        consumer = self._of_pattern(native)
        try:
            consumer.unsubscribe_async(lambda result: self.bridge.post(close_late, consumer))
        except TransportError as error:
            _log.info("subscriptions to %s stay behind: %s", native.topic(), error)
            close_late(consumer)

    def ask_broker(self, callback: Callable[..., None]) -> None:
        """Start a request that the broker answers, or refuses, and that changes nothing, with the native callback."""
        self.client.get_topic_partitions_async(PROBE, callback)

    async def _have_answered(self, topic: str, timeout: float) -> None:
        """Wait until a topic's broker answers: a reader uses the connection of the topic's consumers."""
        if topic.startswith("non-persistent://"):
            return  # nothing of it is stored, not even acknowledgements
        config, what = _pulsar.ReaderConfiguration(), f"wait for receipts of {topic}"
        with suppress(NotFoundError):  # deleted meanwhile, with everything to be acknowledged
            close_late(await self.open_reader(topic, StartPosition.LATEST, config, what, timeout))

    async def open_reader(
        self,
        topic: str,
        start: StartPosition | WireId,
        config: _pulsar.ReaderConfiguration,
        what: str,
        timeout: float,
    ) -> ReaderHandle:
        create = partial(self.client.create_reader_async_v2, topic, native_position(start), config)
        attempts: Attempts[ReaderHandle] = Attempts(self.bridge, create, what, timeout, topic=topic)
        return await attempts.run()

    async def _grow(self, receiver: PulsarReceiver) -> None:
        # Everything in a new partition was sent after the subscription was created, so all of it is received.
        while not receiver.closed:
            subscription = attrs.evolve(receiver.subscription, position=StartPosition.EARLIEST)
            await asyncio.sleep(subscription.config.auto_update_partitions_interval)
            if receiver.stopped:
                continue
            try:
                lists = await together(map(self.partitions, subscription.topics))
                known = set(receiver.topics)
                new = [name for names in lists for name in names if name not in known]
                if new:
                    await self._add(receiver, subscription, new)
            except JMSError:
                # The broker does not answer or refuses; the next check follows after the usual interval.
                continue
