"""The senders to topics, shared by all connections of a factory, and the subscriptions of queues they send to."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict
from collections.abc import Collection, Sequence
from functools import partial
from weakref import WeakValueDictionary

import anyio
import attrs

from jmsaio.client.senders.pending import PendingSends
from jmsaio.config import Configuration
from jmsaio.errors import (
    BrokerUnavailableError,
    InvalidDestinationError,
    JMSError,
    NotFoundError,
    ObjectClosedError,
    OperationTimeoutError,
)
from jmsaio.model.destinations import Destination
from jmsaio.model.log_fields import log_fields
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import is_temporary, split_partition
from jmsaio.transport.base import Route, Sender, Transport
from jmsaio.transport.clock import LoopTimers
from jmsaio.transport.sending import sender_options
from jmsaio.transport.subscriptions import passes, precreate

_log = logging.getLogger(__name__)

#: Seconds without a send after which a sender to a temporary destination is closed: its owner might be gone.
_TEMPORARY_IDLE = 10.0
#: Minimum time between two checks for idle senders, in seconds.
_SHORTEST_CHECK = 0.1
#: Maximum number of topics opened concurrently. Brokers are not faster with more, and time-outs would include the wait
#: for all others.
TOGETHER = 20
#: Maximum number of topics checked concurrently: when a broker starts, many might have changed.
_AT_ONCE = 4

#: Topic of a sender, whether it is for the sends of transactions, the schema of its messages, and whether each of its
#: batches holds one group.
_Key = tuple[str, bool, Schema | None, bool]


@attrs.frozen
class Target:
    """A destination, resolved for a sender."""

    destination: Destination
    topic: str
    queue_subscription: str | None = None  # created before the first send to a queue; None for a topic
    transacted: bool = False  # whether each send is part of a transport's transaction
    schema: Schema | None = None
    by_group: bool = False  # whether each batch holds messages of one group id


@attrs.define(eq=False)
class PooledSender:
    """A sender in the pool."""

    sender: Sender
    used: float  # time of the last request for it, in seconds of the clock
    limit: float | None  # seconds without a send after which it is closed; None: never
    subscriptions: set[str]
    in_pool: bool = True  # False once it closes
    closed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)


class _Turn(asyncio.Lock):
    """A lock for opening senders to one topic."""

    #: Key, subscription and error of the last opening that the broker did not answer in time.
    unanswered: tuple[_Key, str | None, JMSError] | None = None


@attrs.define(eq=False)
class Restoring:
    """Recreates the subscriptions of queues whose topic was deleted while messages were being sent to it.

    A producer recreates a deleted topic, but not the queue's subscription, without which no message is stored. It
    recreates the partitions of a partitioned topic as topics of their own, which the log names.
    """

    transport: Transport
    config: Configuration
    timers: LoopTimers
    _changed: dict[str, Collection[str]] = attrs.field(factory=dict, init=False)  # subscriptions by topic
    _unfinished: set[str] = attrs.field(factory=set, init=False)  # topics whose check has begun and not ended
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def topic_changed(self, subscriptions: Collection[str], topic: str) -> None:
        """Create missing subscriptions of a topic's queues, because the topic might have been recreated."""
        if not subscriptions or not self.config.precreate_queue_subscription or is_temporary(topic):
            return
        self._changed[topic] = subscriptions
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="jmsaio queue subscriptions")

    async def _run(self) -> None:
        limiter = anyio.CapacityLimiter(_AT_ONCE)
        try:
            while self._changed:
                changed, self._changed = self._changed, {}
                self._unfinished.update(changed)
                async with anyio.create_task_group() as group:
                    for topic, subscriptions in changed.items():
                        group.start_soon(self._restore, topic, subscriptions, limiter)
        finally:
            self._task = None

    async def _restore(self, topic: str, subscriptions: Collection[str], limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            for name in tuple(subscriptions):  # more can be added meanwhile
                try:
                    if await precreate(self.transport, self.config, topic, name, self.timers):
                        await self._log_missing(topic, name)
                except JMSError as error:
                    _log.error(
                        "subscription %s of the queue %s might be gone with its topic and can't be recreated, so the "
                        "queue keeps nothing until a consumer opens: %s", name, topic, error,
                        extra=log_fields(destination=topic, subscription=name),
                    )  # fmt: skip
            self._unfinished.discard(topic)

    async def _log_missing(self, topic: str, name: str) -> None:
        whole, partition = split_partition(topic)
        if partition < 0 or await self._has_partitions(whole):
            _log.warning(
                "%s was deleted while messages were being sent to it; its queue's subscription %s was recreated",
                topic,
                name,
                extra=log_fields(destination=topic, subscription=name),
            )
            return
        _log.error(
            "%s, a partitioned topic, was deleted while messages were being sent to it. New messages go to the queue "
            "%s, and consumers of %s that open now don't get them: stop its producers, empty and delete the topics of "
            "its partitions, and recreate it", whole, topic, whole,
            extra=log_fields(destination=whole, subscription=name),
        )  # fmt: skip

    async def _has_partitions(self, topic: str) -> bool:
        admin = self.transport.admin
        assert admin is not None  # otherwise a missing subscription can't be detected
        try:
            return await admin.partitions(topic) > 0
        except NotFoundError:
            return False

    async def aclose(self, timeout: float) -> None:
        task = self._task
        if task is None:
            return
        try:
            await asyncio.wait({task}, timeout=max(0.0, timeout))
        finally:
            task.cancel()
            for topic in sorted(self._unfinished | self._changed.keys()):
                _log.error(
                    "the connection was closed before the subscriptions of the queue %s could be checked: if its topic "
                    "was deleted, the queue keeps nothing until a consumer opens", topic,
                    extra=log_fields(destination=topic),
                )  # fmt: skip
        await asyncio.wait({task})


@attrs.define(eq=False)
class SenderPool:
    """A bounded cache of senders; the least recently used one is closed for a new one.

    Each topic has one for the sends of transactions, and one for all others, each with its own window. Sends with a
    schema, or in batches of one group, also have their own senders. With a configured producer name, each topic has one
    sender: one with another schema replaces it, and so does one by group, which then serves all. Each is a producer at
    the broker, so each counts for ``jms.maxNumOfProducers`` and is replaced by itself, as in the Java client.

    ``route`` chooses a partition; None leaves the choice to the transport.
    """

    transport: Transport
    config: Configuration
    route: Route | None
    _entries: OrderedDict[_Key, PooledSender] = attrs.field(factory=OrderedDict, init=False)
    _closing: dict[PooledSender, str] = attrs.field(factory=dict, init=False)  # those that close, with their topics
    _opening: WeakValueDictionary[str, _Turn] = attrs.field(factory=WeakValueDictionary, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    _closing_idle: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _making: anyio.CapacityLimiter = attrs.field(init=False)
    _most: float = attrs.field(init=False)  # topics opened concurrently
    _together: anyio.CapacityLimiter = attrs.field(init=False)
    _restoring: Restoring = attrs.field(init=False)
    _timers: LoopTimers = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._timers = LoopTimers(self.transport.clock)
        # Opening waits for the producers of others with this mode; senders to other topics must not wait for them.
        self._most = math.inf if self.config.producer.access_mode == "WaitForExclusive" else TOGETHER
        self._together = anyio.CapacityLimiter(self._most)
        self._restoring = Restoring(self.transport, self.config, self._timers)
        self._making = anyio.CapacityLimiter(max(1, self.config.max_num_of_producers))

    def use(self, target: Target) -> PooledSender | None:
        """Return an open sender's entry, for a millisecond unless it closes or is ``outdated``; None: call ``open``."""
        key = self._key(target)
        entry, queue = self._entries.get(key), target.queue_subscription
        if entry is None or (queue is not None and queue not in entry.subscriptions):
            return None
        if entry.sender.outdated:  # perhaps the topic was deleted, with the queue's subscription
            return None
        self._entries.move_to_end(key)
        if entry.limit is not None:
            entry.used = self._timers.clock.steady()
        return entry

    def _key(self, target: Target) -> _Key:
        """Return a sender's key. Brokers allow a producer name once per topic: with a configured name all share it."""
        topic, schema = target.topic, target.schema
        if self.config.producer.producer_name is None:
            return topic, target.transacted, schema, target.by_group
        return topic, False, schema, target.by_group or (topic, False, schema, True) in self._entries

    async def open(self, target: Target) -> Sender:
        """Return the sender to a target, opened if necessary; a topic and several queues can share it.

        A queue's subscription is created before its first send (``jms.precreateQueueSubscription``), so that the queue
        stores the messages. Raises ObjectClosedError once the factory is closed, InvalidDestinationError for a deleted
        temporary destination, and TransportError. If the broker does not answer, all callers that wait for this sender
        fail at once, not one after the other. Cancelling leaves no half-open sender.
        """
        turn = self._opening.setdefault(target.topic, _Turn())
        before = turn.unanswered
        async with turn:
            entry, key, queue_subscription = self.use(target), self._key(target), target.queue_subscription
            if entry is not None:
                return entry.sender
            latest = turn.unanswered
            if latest is not None and latest is not before and latest[:2] == (key, queue_subscription):
                raise latest[2]
            try:
                entry = await self._open_beside_others(key, queue_subscription)
            except (BrokerUnavailableError, OperationTimeoutError) as error:
                turn.unanswered = key, queue_subscription, error
                raise
            return entry.sender

    async def _open_beside_others(self, key: _Key, queue_subscription: str | None) -> PooledSender:
        async with self._together:
            try:
                entry = await self._open(key, queue_subscription)
            except JMSError as error:
                if passes(error):  # otherwise waiting callers would wait as long as this one did, one after another
                    self._together.total_tokens = math.inf
                raise
            self._together.total_tokens = self._most
            return entry

    async def _open(self, key: _Key, queue_subscription: str | None) -> PooledSender:
        if self._closed:
            raise ObjectClosedError("the connection factory is closed; create a new one")
        topic = key[0]
        entry = self._entries.get(key)
        if entry is not None and entry.sender.outdated:
            await self._close_all([key], self.config.close_timeout)
        if self.config.producer.producer_name is not None:
            await self._free_name(key)
        if is_temporary(topic):
            await self._check_alive(topic)
        if queue_subscription is not None and self.config.precreate_queue_subscription:
            await precreate(self.transport, self.config, topic, queue_subscription, self._timers)
        entry = self._entries.get(key) or await self._make(key)
        if queue_subscription is not None:
            entry.subscriptions.add(queue_subscription)
        return entry

    async def _free_name(self, key: _Key) -> None:
        """Close the topic's other senders: their producer name is needed."""
        topic = key[0]
        others = [each for each in self._entries if each[0] == topic and each != key]
        await self._close_all(others, self.config.close_timeout)
        for entry in [each for each, its_topic in self._closing.items() if its_topic == topic]:
            await entry.closed.wait()

    async def _make(self, key: _Key) -> PooledSender:
        topic, transacted, schema, by_group = key
        async with self._making:
            await self.close_idle()
            while len(self._entries) + self._making.borrowed_tokens > self._making.total_tokens:
                await self._close_all([next(iter(self._entries))], self.config.close_timeout)
            subscriptions: set[str] = set()
            options = attrs.evolve(
                sender_options(self.config, self.route, PendingSends.settled, by_group),
                metadata=self._metadata(transacted),
                transacted=transacted,
                schema=schema,
                topic_changed=partial(self._restoring.topic_changed, subscriptions),
            )
            sender = await self.transport.open_sender(topic, options)
            self._entries[key] = entry = PooledSender(
                sender, self._timers.clock.steady(), self._limit(topic), subscriptions
            )
            if entry.limit is not None and self._closing_idle is None:
                self._closing_idle = asyncio.create_task(self._close_when_idle(), name="jmsaio idle senders")
            return entry

    def _limit(self, topic: str) -> float | None:
        limit = self.config.producer_auto_close
        return limit if not is_temporary(topic) else min(math.inf if limit is None else limit, _TEMPORARY_IDLE)

    async def _check_alive(self, topic: str) -> None:
        """Refuse to send to a temporary destination that was deleted: the broker would recreate its topic."""
        admin = self.transport.admin
        if admin is None:
            return
        try:
            await admin.partitions(topic)
        except NotFoundError as error:
            raise InvalidDestinationError(
                f"the temporary destination {topic} no longer exists: its connection deleted it"
            ) from error

    async def close_topic(self, topic: str, timeout: float) -> None:
        await self._close_all([key for key in self._entries if key[0] == topic], timeout)

    async def close_idle(self) -> None:
        """Close senders unused for ``jms.producerAutoCloseTimeoutSec``, those to temporary destinations sooner."""
        now = self._timers.clock.steady()
        for key, entry in list(self._entries.items()):
            if entry.limit is None or now - entry.used <= entry.limit or self._entries.get(key) is not entry:
                continue
            try:
                await entry.sender.drain(0.0)
            except OperationTimeoutError:
                entry.used = now
                continue
            if self._entries.get(key) is entry:  # not closed meanwhile
                await self._close_all([key], self.config.close_timeout)

    async def _close_when_idle(self) -> None:
        try:
            while limits := [entry.limit for entry in self._entries.values() if entry.limit is not None]:
                await self._timers.sleep(max(_SHORTEST_CHECK, min(limits) / 4))
                await self.close_idle()
        finally:
            self._closing_idle = None

    async def close(self, timeout: float) -> None:
        self._closed = True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        if self._closing_idle is not None:
            self._closing_idle.cancel()
            await asyncio.wait({self._closing_idle}, timeout=timeout)
        await self._close_all(list(self._entries), timeout)
        await self._restoring.aclose(deadline - loop.time())

    async def _close_all(self, keys: Sequence[_Key], timeout: float) -> None:
        entries = [self._entries.pop(key) for key in keys]
        for entry in entries:  # before the first await: no one receives a sender that closes
            entry.in_pool = False
        async with anyio.create_task_group() as group:
            for key, entry in zip(keys, entries, strict=True):
                group.start_soon(self._close, key[0], entry, timeout)

    async def _close(self, topic: str, entry: PooledSender, timeout: float) -> None:
        self._closing[entry] = topic
        try:
            await entry.sender.aclose(timeout)
        finally:
            del self._closing[entry]
            entry.closed.set()

    def _metadata(self, transacted: bool) -> dict[str, str]:
        shared = self.config.enable_transaction and self.config.producer.producer_name is not None
        enabled = transacted or shared or self.config.emulate_transactions
        metadata: dict[str, str] = {"jms.transactions": "enabled" if enabled else "disabled"}
        if self.config.enable_jms_priority:
            metadata |= {"jms.priority": "enabled", "jms.priorityMapping": self.config.priority_mapping}
        return metadata
