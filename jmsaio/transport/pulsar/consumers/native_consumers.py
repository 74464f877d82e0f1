"""``NativeConsumers``: the native consumers of one receiver, and the requests that go to all of them.

pulsar-client's own consumer over several topics is used for patterns only: with one consumer a partition every call
knows its topic, any of its requests can serve as a receipt, and a message passes one queue and one thread less.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any

from jmsaio.errors import ConsumerBusyError, NotFoundError, TransportError
from jmsaio.model.wire import WireId
from jmsaio.transport.base import Position, Subscription
from jmsaio.transport.pulsar.native.bridge import Bridge, wait_for
from jmsaio.transport.pulsar.native.handles import ConsumerHandle
from jmsaio.transport.pulsar.native.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.options import native_position
from jmsaio.transport.together import together

#: Has the broker of a topic answer a request, within some seconds, on the connection that the topic's consumers use.
Answered = Callable[[str, float], Coroutine[Any, Any, None]]

#: Errors that the broker itself answers with, so that it has read what was sent before.
_ANSWERS = ("BrokerMetadataError", "BrokerPersistenceError", "UnknownError", "AuthorizationError", "TopicNotFound")


class NativeConsumers:
    """One native consumer for each topic or partition, or one for a pattern.

    Args:
        bridge: the way back from native threads.
        subscription: what is received.
        woken: called when there may be something to take.

    Attributes:
        answered: has the broker of one of a pattern's topics answer.
    """

    def __init__(self, bridge: Bridge, subscription: Subscription, woken: Callable[[], None]) -> None:
        self._bridge = bridge
        self._subscription = subscription
        self._woken = woken
        self.answered: Answered | None = None
        self._all: list[NativeConsumer] = []
        self._turn = 0
        self._abandoned = False

    def __iter__(self) -> Iterator[NativeConsumer]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, native: ConsumerHandle, topic: str | None) -> NativeConsumer:
        """Receive from one more; ``topic`` is None for a pattern."""
        what = f"receive from {topic or self._subscription.pattern}, subscription {self._subscription.name}"
        native_consumer = NativeConsumer(
            self._bridge, native, native.receive_async, native.receive, topic, what, self._woken
        )
        self._all.append(native_consumer)
        return native_consumer

    @property
    def topics(self) -> list[str]:
        """Topics and partitions received from; empty with a pattern."""
        return [native_consumer.topic for native_consumer in self._all if native_consumer.topic is not None]

    def of_topic(self, topic: str) -> NativeConsumer | None:
        """The one that receives from a topic; a pattern's stands for all topics of its namespace."""
        pattern = self._subscription.pattern
        if pattern is not None:  # its topics are not known
            same = pattern.rpartition("/")[0] == topic.rpartition("/")[0]
            return self._all[0] if same and self._all else None
        return next((native_consumer for native_consumer in self._all if native_consumer.topic == topic), None)

    def in_turn(self) -> list[NativeConsumer]:
        """All of them; each call begins with the next one."""
        if len(self._all) <= 1:
            return self._all
        first = self._turn % len(self._all)
        self._turn += 1
        return self._all[first:] + self._all[:first]

    def raise_failure(self) -> None:
        """Raise what ended one of them, if anything did."""
        for native_consumer in self._all:
            if native_consumer.failure is not None:
                raise native_consumer.failure

    async def wait_for_answers(self, timeout: float, topics: Iterable[str] = ()) -> None:
        """Wait until the broker has worked off what was sent before: any answer of the broker shows it.

        Args:
            timeout: seconds to wait.
            topics: of a pattern, those that something was sent for; its native consumer has no request for them.

        Raises:
            TransportError: no answer came; OperationTimeoutError where none came in time.
        """
        if self._subscription.pattern is not None:
            assert self.answered is not None
            await together(self.answered(topic, timeout) for topic in topics)
            return
        asking = self._start(
            lambda native_consumer: native_consumer.native.get_last_message_id_async, "wait for receipts"
        )
        try:
            await self._bridge.ask_all(asking, timeout)
        except TransportError as error:
            if error.error_code not in _ANSWERS:
                raise

    async def unsubscribe(self, timeout: float) -> None:
        """Delete the subscription.

        Raises:
            ConsumerBusyError: others consume from it.
            OperationTimeoutError: no answer in time.
        """
        asking = self._start(lambda native_consumer: native_consumer.native.unsubscribe_async, "unsubscribe")
        try:
            await self._bridge.ask_all(asking, timeout)
            self._abandoned = self._subscription.pattern is not None
        except TransportError as error:
            if error.error_code != "BrokerMetadataError":
                raise
            # The broker's answer to the unsubscribing of one of several consumers, whatever its name says.
            raise ConsumerBusyError(
                f"unsubscribe {self._subscription.name}: others consume from the subscription; close them first"
            ) from error

    def moved_by(self, position: Position | WireId | int) -> list[NativeConsumer]:
        """Those that a seek to ``position`` moves: one partition's for an id, else all.

        Raises:
            NotFoundError: the id's partition is not received from.
        """
        if not isinstance(position, WireId) or len(self._all) <= 1:
            return list(self._all)
        end = f"-partition-{position.partition}"
        found = [native_consumer for native_consumer in self._all if (native_consumer.topic or "").endswith(end)]
        if not found:
            raise NotFoundError(f"seek to {position}: no such partition is received from")
        return found

    async def seek(
        self, native_consumers: list[NativeConsumer], position: Position | WireId | int, timeout: float
    ) -> None:
        """Move some of them.

        Raises:
            TransportError: the broker refused.
            OperationTimeoutError: no answer in time.
        """
        target = native_position(position)
        for native_consumer in native_consumers:
            # Not afterwards: pulsar-client may hand over the first record of the new place before it says "moved".
            native_consumer.discard()
        seeking = self._start(
            lambda native_consumer: partial(native_consumer.native.seek_async, target), "seek", native_consumers
        )
        await self._bridge.ask_all(seeking, timeout)

    async def disarmed(self, deadline: float) -> None:
        """Wait until no native callback is outstanding, or the loop's time is ``deadline``. They must be closed.

        pulsar-client never answers the armed receive of a pattern that was unsubscribed; it goes with the client.
        """
        for native_consumer in () if self._abandoned else self._all:
            await wait_for(native_consumer.disarmed(), deadline - self._bridge.loop.time())

    def close(self) -> dict[asyncio.Future[object], str]:
        """Start closing all of them. Returns what to wait for with ``Bridge.ask_all``."""
        return self._start(lambda native_consumer: native_consumer.native.close_async, "close")

    def _start(
        self,
        start: Callable[[NativeConsumer], Callable[[Callable[..., None]], object]],
        what: str,
        native_consumers: Iterable[NativeConsumer] | None = None,
    ) -> dict[asyncio.Future[object], str]:
        """Start one native operation on each of them that has a consumer."""
        futures = {}
        for native_consumer in self._all if native_consumers is None else native_consumers:
            if not native_consumer.stopped:
                topic = native_consumer.topic or self._subscription.pattern
                words = f"{what}, {topic}, subscription {self._subscription.name}"
                futures[self._bridge.start(start(native_consumer), words)] = words
        return futures
