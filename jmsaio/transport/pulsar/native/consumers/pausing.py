"""``Pausing``: stops receiving while the application can still settle the records that it holds.

pulsar-client can't pause: it fills its queue as long as a consumer is open, and only closing the consumer returns
prefetched records uncounted. Closing also returns the records held by the application. Other receivers of this
transport keep their copies back until they are settled (``SubscriptionRecords``); other clients receive them at once,
as from the Java client. Later acknowledgements are sent through a temporary consumer without prefetch
(``LateAcker``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import attrs

from jmsaio.errors import JMSError, OperationTimeoutError
from jmsaio.transport.base import Subscription, SubscriptionType
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, open_together, wait_for
from jmsaio.transport.pulsar.native.binding.handles import (
    ConsumerHandle,
    MessageHandle,
    MessageIdHandle,
    SettlingConsumerHandle,
    SettlingHandle,
)
from jmsaio.transport.pulsar.native.consumers.native_consumers import NativeConsumers
from jmsaio.transport.pulsar.native.records.unacked_tracker import UnackedTracker

_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class LateAcker:
    """Implements the methods of ``_pulsar.Consumer`` that settle records.

    Args:
        bridge: bridge to the native threads.
        open_consumer: subscribes again.
        what: description of the subscription.
        timeout: seconds to close the consumer.
        holding: the closed consumer is about to be reopened: acknowledgements wait for ``hand_over``, because an
            exclusive subscription allows only one consumer.

    Attributes:
        failure: error of the last acknowledgements that could not be sent; cleared by ``PulsarReceiver.settle``.
    """

    _bridge: Bridge
    _open_consumer: Callable[[], Awaitable[SettlingConsumerHandle]]
    _what: str
    _timeout: float
    _holding: bool = False
    failure: JMSError | None = attrs.field(default=None, init=False)
    _decided: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _waiting: list[MessageHandle | MessageIdHandle] = attrs.field(factory=list, init=False)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def acknowledge_async(self, message: MessageHandle | MessageIdHandle, callback: None) -> None:
        """Queue the acknowledgement of a native message, or of the native id of an entry."""
        self._waiting.append(message)
        self._begin()

    def _begin(self) -> None:
        if self._waiting and self._task is None and not self._holding:
            self._task = self._bridge.task(self._run())

    def hand_over(self, native: SettlingHandle) -> bool:
        """Send queued acknowledgements through a reopened consumer; return whether there were any."""
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            native.acknowledge_async(message, None)
        self.flush()
        return bool(waiting)

    def flush(self) -> None:
        """Send queued acknowledgements through a temporary consumer: no other is reopened."""
        self._holding = False
        self._decided.set()
        self._begin()

    def negative_acknowledge(self, message: MessageHandle | MessageIdHandle) -> None:
        """Do nothing: closing the consumer has returned all records."""

    async def drained(self, timeout: float) -> bool:
        """Wait until all acknowledgements are sent; return False if the time expired."""
        deadline = self._bridge.loop.time() + timeout
        if self._holding and self._waiting and not await wait_for(self._decided.wait(), timeout):
            return False
        task = self._task
        return task is None or await wait_for(asyncio.wait([task]), deadline - self._bridge.loop.time())

    async def aclose(self, timeout: float) -> None:
        """Wait as ``drained``; records whose acknowledgements were not sent are redelivered."""
        if not await self.drained(timeout) and self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                native = await self._open_consumer()
                waiting, self._waiting = self._waiting, []
                for message in waiting:
                    native.acknowledge_async(message, None)
                # Closing sends grouped acknowledgements.
                await self._bridge.ask(native.close_async, f"close {self._what}", self._timeout)
        except JMSError as error:
            self.failure = error
            _log.warning("acknowledgements of %s could not be sent, so these messages will be redelivered: %s",
                         self._what, error)  # fmt: skip
            self._waiting.clear()
        finally:
            self._task = None


#: Subscribes to a topic (None: the receiver's pattern), with a given receiver queue size.
OpenNative = Callable[[str | None, int], Coroutine[Any, Any, ConsumerHandle]]

#: Maximum seconds to close the consumer for late acknowledgements.
_CLOSE = 10.0


class Pausing:
    """Stops and resumes one receiver.

    Attributes:
        stopped: whether its native consumers are closed.
        open_native: subscribes again.
        size: native receiver queue size of each topic, for ``resume``.
        usual_size: configured value of ``size``.
        woken: called when records might be available.
    """

    def __init__(
        self,
        bridge: Bridge,
        subscription: Subscription,
        unacked: UnackedTracker,
        native_consumers: NativeConsumers,
        woken: Callable[[], None],
    ) -> None:
        self.stopped = False
        self.open_native: OpenNative | None = None
        self.size = self.usual_size = queue_size(subscription, 1)
        self._bridge = bridge
        self._subscription = subscription
        self._unacked = unacked
        self._native_consumers = native_consumers
        self.woken = woken
        self._ackers: list[LateAcker] = []
        self._briefly = False

    def sized(self) -> None:
        """Update the queue size after an increase of the number of native consumers."""
        self.size = self.usual_size = queue_size(self._subscription, len(self._native_consumers))

    def can_move(self) -> bool:
        """Return whether stopping takes no records from the application; on an exclusive subscription it never does."""
        exclusive = self._subscription.type is SubscriptionType.EXCLUSIVE
        return not self.stopped and (exclusive or not self._unacked.any_delivered)

    async def stop(self, timeout: float, *, briefly: bool = False) -> None:
        """Close the native consumers.

        Args:
            timeout: seconds to wait.
            briefly: ``resume`` follows at once and sends acknowledgements made until then; otherwise ``flush``.

        Cancellation: closing continues.
        """
        if self.stopped or self.open_native is None:
            return
        self.stopped, self._briefly = True, briefly
        self._unacked.stop(briefly=briefly)
        closing = {}
        for native_consumer in self._native_consumers:
            topic = native_consumer.topic
            words = f"close {topic or self._subscription.pattern}, subscription {self._subscription.name}"
            native = native_consumer.native
            acker = LateAcker(self._bridge, partial(self.open_native, topic, 0), words, _CLOSE, briefly)
            self._ackers.append(acker)
            native_consumer.stop(acker)
            closing[self._bridge.start(native.close_async, words)] = words
        await self._bridge.ask_all(closing, timeout)

    async def resume(self, timeout: float, *, prefetch: bool = True) -> None:
        """Subscribe again. The tracker recognises redelivered records that the application still holds.

        Args:
            timeout: seconds to wait.
            prefetch: whether to receive, too; otherwise the consumers receive nothing.

        Raises:
            JMSError: subscribing failed.
        """
        if not self.stopped or self.open_native is None:
            return
        deadline = self._bridge.loop.time() + timeout
        if not self._briefly:
            await self.drain(timeout)
        for native_consumer in self._native_consumers:
            if not await wait_for(native_consumer.disarmed(), deadline - self._bridge.loop.time()):
                raise OperationTimeoutError(f"resume {self._subscription.name}: it did not stop in {timeout:g} s")
        size = self.size if prefetch else 0
        natives = await open_together(
            [self.open_native(native_consumer.topic, size) for native_consumer in self._native_consumers]
        )
        for native_consumer, native in zip(self._native_consumers, natives, strict=True):
            native_consumer.resume(native, native.receive_async, native.receive)
        self._hand_over(natives)
        self.stopped = False
        self._ackers.clear()
        if prefetch:
            self._bridge.loop.call_soon(self.woken)

    def _hand_over(self, natives: list[ConsumerHandle]) -> None:
        """Send acknowledgements made meanwhile through the new consumers; their records are redelivered anyway."""
        passed = [acker.hand_over(native) for acker, native in zip(self._ackers, natives, strict=True)]
        self._unacked.resume(acknowledged=any(passed))

    def flush(self) -> None:
        """Send late acknowledgements without ``resume``, which does not follow or has failed."""
        self._briefly = False
        for acker in self._ackers:
            acker.flush()

    async def drain(self, timeout: float) -> None:
        """Wait until late acknowledgements are sent.

        Raises:
            OperationTimeoutError: they were not sent in time.
            JMSError: they can't be sent; the messages are redelivered.
        """
        if not self._ackers:
            return
        deadline = self._bridge.loop.time() + timeout
        failures: list[JMSError] = []
        for acker in self._ackers:
            if not await acker.drained(deadline - self._bridge.loop.time()):
                raise OperationTimeoutError(f"acknowledge in {self._subscription.name}: not sent within {timeout:g} s")
            if acker.failure is not None:
                failures.append(acker.failure)
                acker.failure = None
        if failures:
            raise failures[0]

    async def aclose(self, timeout: float) -> None:
        """Wait up to ``timeout`` seconds until late acknowledgements are sent."""
        await asyncio.gather(*(acker.aclose(timeout) for acker in self._ackers))


def queue_size(subscription: Subscription, count: int) -> int:
    """Return the native receiver queue size for each of ``count`` topics or partitions of a subscription.

    At least 1: with 0, pulsar-client drops all records of a batch except the first.
    """
    config = subscription.config
    size = config.receiver_queue_size
    if count > 1:
        size = min(size, config.max_total_receiver_queue_size_across_partitions // count)
    return max(1, size)
