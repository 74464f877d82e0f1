"""``Stopping``: a receiver that takes nothing more while its application has records that it may still settle.

pulsar-client can't pause: it fills its queue as long as a consumer is open, and only closing the consumer
gives the prefetched records back uncounted. Closing gives back what the application has, too. Other receivers of this
transport keep their copies of that until it is settled (``PriorDeliveries``); other clients get it at once, as they do
from the Java client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from jmsaio.errors import JMSError, OperationTimeoutError
from jmsaio.transport.base import Subscription, SubscriptionType
from jmsaio.transport.pulsar.consumers.late_acker import LateAcker
from jmsaio.transport.pulsar.consumers.native_consumers import NativeConsumers
from jmsaio.transport.pulsar.emulation.unacked_tracker import UnackedTracker
from jmsaio.transport.pulsar.native.bridge import Bridge, open_together, wait_for
from jmsaio.transport.pulsar.native.handles import ConsumerHandle

#: Subscribes to a topic (None: the receiver's pattern), with a receiver queue of some size.
OpenNative = Callable[[str | None, int], Coroutine[Any, Any, ConsumerHandle]]

#: Seconds to close the consumer that sent late acknowledgements.
_CLOSE = 10.0


class Stopping:
    """The stopping and resuming of one receiver.

    Attributes:
        stopped: its native consumers are closed.
        open_native: subscribes once more.
        size: native receiver queue of each topic; for ``resume``.
        usual_size: what the configuration says of it.
        woken: called when there may be something to receive.
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
        self._since = 0.0  # loop's time of the last stop

    def sized(self) -> None:
        """There are more native consumers."""
        self.size = self.usual_size = queue_size(self._subscription, len(self._native_consumers))

    def can_move(self) -> bool:
        """Whether stopping takes nothing out of the application's hands: on an exclusive subscription it never does."""
        exclusive = self._subscription.type is SubscriptionType.EXCLUSIVE
        return not self.stopped and (exclusive or not self._unacked.any_delivered)

    async def stop(self, timeout: float, *, briefly: bool = False) -> None:
        """Close the native consumers.

        Args:
            timeout: seconds to wait.
            briefly: ``resume`` follows at once, and passes on what is acknowledged until then; or else ``let_go``.

        Cancellation: closing goes on.
        """
        if self.stopped or self.open_native is None:
            return
        self.stopped, self._briefly, self._since = True, briefly, self._bridge.loop.time()
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
        """Subscribe again. The tracker recognises what the application has when it is redelivered.

        Args:
            timeout: seconds to wait.
            prefetch: receive, too; otherwise the consumers get nothing.

        Raises:
            JMSError: as of subscribing.
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
        """Have the new consumers pass on what was acknowledged meanwhile. They subscribed before: it is redelivered."""
        passed = [acker.hand_over(native) for acker, native in zip(self._ackers, natives, strict=True)]
        self._unacked.resume(self._since, any(passed))

    def let_go(self) -> None:
        """``resume`` does not follow, or has failed: late acknowledgements are sent without it."""
        self._briefly = False
        for acker in self._ackers:
            acker.let_go()

    async def drain(self, timeout: float) -> None:
        """Wait until late acknowledgements are sent.

        Raises:
            OperationTimeoutError: they were not, in time.
            JMSError: why they can't be; those messages are redelivered.
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
        """Wait until late acknowledgements are sent, at most ``timeout`` seconds."""
        await asyncio.gather(*(acker.aclose(timeout) for acker in self._ackers))


def queue_size(subscription: Subscription, count: int) -> int:
    """Native receiver queue of each of ``count`` topics or partitions of a subscription.

    At least 1: with 0, pulsar-client drops all of a batch but its first record.
    """
    config = subscription.config
    size = config.receiver_queue_size
    if count > 1:
        size = min(size, config.max_total_receiver_queue_size_across_partitions // count)
    return max(1, size)
