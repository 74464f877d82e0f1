"""``NativeConsumers``: the native consumers of one receiver, and requests to all of them.

With one consumer per partition, every call knows its topic, any request can serve as a receipt, and messages pass one
queue and one thread fewer. pulsar-client's own consumer over several topics is used for patterns only, so that two of
its faults (version 3.13) can't crash the process:

* ``unsubscribe_async`` sends a request for each topic, and frees its list of topics with the last answer: also inside
  the call, while it iterates over that list. Copying a Python callback waits for the GIL, so that another Python thread
  is enough. Therefore it is called on pulsar-client's network thread, which processes the answers after the call.
* It regularly looks for new topics. The callbacks of these requests refer to the consumer without keeping it alive.
  Therefore a closed consumer is retained until the last request must have ended.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any

import _pulsar
import attrs

from jmsaio.errors import ConsumerBusyError, NotFoundError, TransportError
from jmsaio.model.wire import WireId
from jmsaio.transport.base import StartPosition, Subscription
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, holds_native, wait_for
from jmsaio.transport.pulsar.native.binding.handles import ConsumerHandle, OnResult, Result
from jmsaio.transport.pulsar.native.binding.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.binding.options import native_position
from jmsaio.transport.pulsar.native.binding.results import NO_ANSWER
from jmsaio.transport.waiting import together

#: Consecutive requests of one search for new topics: names, partitions, consumers.
_REQUESTS = 3


@attrs.define(eq=False, repr=False)
class PatternConsumer:
    """A ``ConsumerHandle`` of a topics pattern; all other methods are the native consumer's own."""

    _bridge: Bridge
    _native: ConsumerHandle
    #: Starts a request that is answered on the network thread; None if pulsar-client has several of these.
    _ask_broker: Callable[[Callable[..., None]], object] | None
    _timeout: float  # maximum seconds of a request of pulsar-client
    _unsubscribing: bool = attrs.field(default=False, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        holds_native(self)

    def unsubscribe_async(self, callback: OnResult, /) -> None:
        if self._ask_broker is None:
            raise TransportError(
                "pulsar-client can crash when it deletes a subscription to a pattern with several network threads; "
                "set numIoThreads to 1, or delete the subscription with an administration tool"
            )
        self._unsubscribing = True  # is_connected waits, with the GIL, for a lock held while a callback is copied
        self._ask_broker(partial(self._answered, callback))

    def _answered(self, callback: OnResult, result: Result, *answer: object) -> None:
        """Unsubscribe on the network thread. A native callback: never raises."""
        if self._closed or int(result) in NO_ANSWER:
            self._ended(callback, _pulsar.Result.AlreadyClosed if self._closed else result)
        elif threading.get_ident() == self._bridge.thread:  # the answer was there before its callback
            self._bridge.post(self.unsubscribe_async, callback)
        else:
            self._native.unsubscribe_async(partial(self._ended, callback))

    def _ended(self, callback: OnResult, result: Result) -> None:
        self._unsubscribing = False
        callback(result)

    def close_async(self, callback: OnResult, /) -> None:
        if not self._closed:
            self._closed = True
            self._bridge.retain(self, _REQUESTS * self._timeout)
        self._native.close_async(callback)

    def is_connected(self) -> bool:
        """Return whether it is connected to all topics; True while it unsubscribes."""
        return self._unsubscribing or self._native.is_connected()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)


#: Waits up to some seconds until a topic's broker answers a request on the connection of the topic's consumers.
Answered = Callable[[str, float], Coroutine[Any, Any, None]]

#: Errors sent by the broker itself, which show that it has read earlier requests.
_ANSWERS = ("BrokerMetadataError", "BrokerPersistenceError", "UnknownError", "AuthorizationError", "TopicNotFound")


@attrs.define(eq=False, repr=False)
class NativeConsumers:
    """One native consumer per topic or partition, or one for a pattern."""

    _bridge: Bridge
    _subscription: Subscription
    _woken: Callable[[], None]
    _answered: Answered
    _all: list[NativeConsumer] = attrs.field(factory=list, init=False)
    _turn: int = attrs.field(default=0, init=False)
    _abandoned: bool = attrs.field(default=False, init=False)

    def __iter__(self) -> Iterator[NativeConsumer]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, native: ConsumerHandle, topic: str | None) -> NativeConsumer:
        what = f"receive from {topic or self._subscription.pattern}, subscription {self._subscription.name}"
        native_consumer = NativeConsumer(
            self._bridge, native, native.receive_async, native.receive, topic, what, self._woken
        )
        self._all.append(native_consumer)
        return native_consumer

    @property
    def topics(self) -> list[str]:
        return [native_consumer.topic for native_consumer in self._all if native_consumer.topic is not None]

    def of_topic(self, topic: str) -> NativeConsumer | None:
        pattern = self._subscription.pattern
        if pattern is not None:  # its topics are not known: it counts for all of its namespace
            same = pattern.rpartition("/")[0] == topic.rpartition("/")[0]
            return self._all[0] if same and self._all else None
        return next((native_consumer for native_consumer in self._all if native_consumer.topic == topic), None)

    def in_turn(self) -> list[NativeConsumer]:
        if len(self._all) <= 1:
            return self._all
        first = self._turn % len(self._all)
        self._turn += 1
        return self._all[first:] + self._all[:first]

    def raise_failure(self) -> None:
        for native_consumer in self._all:
            if native_consumer.failure is not None:
                raise native_consumer.failure

    async def wait_for_answers(self, timeout: float, topics: Iterable[str] = ()) -> None:
        """Wait until the broker has processed earlier requests, as any answer shows; a pattern needs their topics."""
        if self._subscription.pattern is not None:
            await together(self._answered(topic, timeout) for topic in topics)
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
        asking = self._start(lambda native_consumer: native_consumer.native.unsubscribe_async, "unsubscribe")
        try:
            await self._bridge.ask_all(asking, timeout)
            self._abandoned = self._subscription.pattern is not None
        except TransportError as error:
            if error.error_code != "BrokerMetadataError":
                raise
            # The broker's answer if the subscription has several consumers, despite its name.
            raise ConsumerBusyError(
                f"unsubscribe {self._subscription.name}: others consume from the subscription; close them first"
            ) from error

    def moved_by(self, position: StartPosition | WireId | int) -> list[NativeConsumer]:
        """Return the consumers moved by a seek: one partition's for an id, else all. Raises NotFoundError."""
        if not isinstance(position, WireId) or len(self._all) <= 1:
            return list(self._all)
        end = f"-partition-{position.partition}"
        found = [native_consumer for native_consumer in self._all if (native_consumer.topic or "").endswith(end)]
        if not found:
            raise NotFoundError(f"seek to {position}: no such partition is received from")
        return found

    async def seek(
        self, native_consumers: list[NativeConsumer], position: StartPosition | WireId | int, timeout: float
    ) -> None:
        target = position if isinstance(position, int) else native_position(position)
        for native_consumer in native_consumers:
            # Not afterwards: pulsar-client might deliver the first record after the move before it reports the move.
            native_consumer.discard()
        seeking = self._start(
            lambda native_consumer: partial(native_consumer.native.seek_async, target), "seek", native_consumers
        )
        await self._bridge.ask_all(seeking, timeout)

    async def disarmed(self, deadline: float) -> None:
        """Wait until no closed consumer has a native callback; an unsubscribed pattern's ends only with the client."""
        for native_consumer in () if self._abandoned else self._all:
            await wait_for(native_consumer.disarmed(), deadline - self._bridge.loop.time())

    def close(self) -> list[asyncio.Future[object]]:
        return self._start(lambda native_consumer: native_consumer.native.close_async, "close")

    def _start(
        self,
        start: Callable[[NativeConsumer], Callable[[Callable[..., None]], object]],
        what: str,
        native_consumers: Iterable[NativeConsumer] | None = None,
    ) -> list[asyncio.Future[object]]:
        name, pattern = self._subscription.name, self._subscription.pattern
        return [
            self._bridge.start(
                start(native_consumer), f"{what}, {native_consumer.topic or pattern}, subscription {name}"
            )
            for native_consumer in (self._all if native_consumers is None else native_consumers)
            if not native_consumer.stopped
        ]
