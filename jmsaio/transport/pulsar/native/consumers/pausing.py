"""``Pausing``: stops receiving while the application can still settle its records, and limits what is prefetched.

pulsar-client can't pause: only closing the consumer returns prefetched records uncounted, and those that the
application has with them. Other receivers of this transport retain their copies until they are settled
(``SubscriptionRecords``); other clients receive them at once, as from the Java client. Later acknowledgements are sent
through a temporary consumer without prefetch (``LateAcker``).

pulsar-client prefetches by number: a queue of 1000 holds 4 GB of messages of 4 MB. So a receiver with large messages is
stopped and resumed at once with a smaller queue, and with a larger one when they are small again, but only while the
application has none of its records, and never if a topic is not persistent: closing loses its queue there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import attrs

from jmsaio.errors import BrokerUnavailableError, ConsumerBusyError, JMSError, OperationTimeoutError
from jmsaio.rules.share import Share
from jmsaio.transport.base import Subscription, SubscriptionType
from jmsaio.transport.pulsar.native.binding.bridge import LINGER, Bridge, open_together, wait_for
from jmsaio.transport.pulsar.native.binding.handles import (
    ConsumerHandle,
    MessageHandle,
    MessageIdHandle,
    SettlingHandle,
)
from jmsaio.transport.pulsar.native.consumers.native_consumers import NativeConsumers
from jmsaio.transport.pulsar.native.records.unacked_tracker import UnackedTracker
from jmsaio.transport.waiting import end

_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class LateAcker:
    """Settles the records of a closed consumer, through another one."""

    _bridge: Bridge
    _open_consumer: Callable[[], Awaitable[ConsumerHandle]]
    _what: str
    _timeout: float  # seconds to close that consumer
    _waits: bool = False  # for ``pass_to``: an exclusive subscription allows no second consumer
    failure: JMSError | None = attrs.field(default=None, init=False)  # of what could not be sent, until it is raised
    _decided: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _waiting: list[MessageHandle | MessageIdHandle] = attrs.field(factory=list, init=False)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def acknowledge_async(self, message: MessageHandle | MessageIdHandle, callback: None) -> None:
        self._waiting.append(message)
        self._begin()

    def _begin(self) -> None:
        if self._waiting and self._task is None and not self._waits:
            self._task = self._bridge.task(self._run())

    def pass_to(self, native: SettlingHandle) -> bool:
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            native.acknowledge_async(message, None)
        self.flush()
        return bool(waiting)

    def flush(self) -> None:
        """Send queued acknowledgements through a temporary consumer: no other is reopened."""
        self._waits = False
        self._decided.set()
        self._begin()

    def negative_acknowledge(self, message: MessageHandle | MessageIdHandle) -> None:
        """Do nothing: closing the consumer has returned all records."""

    async def drained(self, timeout: float) -> bool:
        deadline = self._bridge.loop.time() + timeout
        if self._waits and self._waiting and not await wait_for(self._decided.wait(), timeout):
            return False
        task = self._task
        return task is None or await wait_for(asyncio.wait([task]), deadline - self._bridge.loop.time())

    async def aclose(self, timeout: float) -> None:
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
#: Seconds without deliveries in which the application can settle its records.
PATIENCE = 0.25
#: Seconds after which it subscribes again for a reason other than size, settled or not.
RENEWAL = 3.0
#: Seconds between two attempts, and before a queue grows.
PAUSE = 5.0
#: Maximum seconds to subscribe again.
_TIMEOUT = 30.0


@attrs.define(eq=False, repr=False)
class Pausing:
    """Stops and resumes one receiver, and reopens it with another native receiver queue ``size`` for each topic."""

    _bridge: Bridge
    _subscription: Subscription
    _unacked: UnackedTracker
    _native_consumers: NativeConsumers
    _share: Share
    _open_native: OpenNative
    _woken: Callable[[], None]
    stopped: bool = attrs.field(default=False, init=False)
    size: int = attrs.field(init=False)
    _usual_size: int = attrs.field(init=False)
    _ackers: list[LateAcker] = attrs.field(factory=list, init=False)
    _briefly: bool = attrs.field(default=False, init=False)
    _largest: int = attrs.field(default=0, init=False)  # bytes of a message, of the recent ones
    _not_before: float = attrs.field(default=0.0, init=False)  # loop time of the next change of the queue size
    _reopening: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _patient_until: float = attrs.field(default=0.0, init=False)  # it waits until then for the application to settle
    _must: bool = attrs.field(default=False, init=False)  # whether it then reopens even if the application did not

    def __attrs_post_init__(self) -> None:
        self.size = self._usual_size = queue_size(self._subscription, 1)

    def sized(self) -> None:
        self.size = self._usual_size = queue_size(self._subscription, len(self._native_consumers))

    async def stop(self, timeout: float, *, briefly: bool = False) -> None:
        """Close the native consumers, which cancelling does not stop; ``briefly``: ``resume`` follows at once."""
        if self.stopped:
            return
        self.stopped, self._briefly = True, briefly
        self._unacked.stop(briefly=briefly)
        closing = []
        for native_consumer in self._native_consumers:
            topic = native_consumer.topic
            words = f"close {topic or self._subscription.pattern}, subscription {self._subscription.name}"
            native = native_consumer.native
            acker = LateAcker(self._bridge, partial(self._open_native, topic, 0), words, _CLOSE, briefly)
            self._ackers.append(acker)
            native_consumer.stop(acker)
            closing.append(self._bridge.start(native.close_async, words))
        await self._bridge.ask_all(closing, timeout)

    async def resume(self, timeout: float, *, prefetch: bool = True) -> None:
        """Subscribe again, without receiving unless ``prefetch``. It stays stopped if that raises."""
        if not self.stopped:
            return
        deadline = self._bridge.loop.time() + timeout
        if not self._briefly:
            await self.drain(timeout)
        for native_consumer in self._native_consumers:
            if not await wait_for(native_consumer.disarmed(), deadline - self._bridge.loop.time()):
                raise OperationTimeoutError(f"resume {self._subscription.name}: it did not stop in {timeout:g} s")
        size = self.size if prefetch else 0
        natives = await open_together(
            [self._open_native(native_consumer.topic, size) for native_consumer in self._native_consumers]
        )
        for native_consumer, native in zip(self._native_consumers, natives, strict=True):
            native_consumer.resume(native)
        # Acknowledgements made meanwhile go through the new consumers; their records are redelivered anyway.
        passed = [acker.pass_to(native) for acker, native in zip(self._ackers, natives, strict=True)]
        self._unacked.resume(acknowledged=any(passed))
        self.stopped = False
        self._ackers.clear()
        if prefetch:
            self._bridge.loop.call_soon(self._woken)

    async def drain(self, timeout: float) -> None:
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
        await asyncio.gather(*(acker.aclose(timeout) for acker in self._ackers))

    # reopening with another queue

    def check_sizes(self) -> None:
        if self.stopped or self.waiting:
            return
        for native_consumer in self._native_consumers:
            if self.size > 1 and native_consumer.failure is None:
                message = native_consumer.peek()
                if message is not None and self.too_large([message]):
                    return

    def too_large(self, natives: list[MessageHandle]) -> bool:
        """Record sizes of received messages; return True if it subscribes again now, so that they are redelivered."""
        largest = max(natives[0].length(), natives[-1].length(), natives[len(natives) // 2].length())
        self._largest = largest = max(largest, self._largest - (self._largest >> 4))
        size, now = self.size, self._bridge.loop.time()
        wanted = max(1, min(self._usual_size, self._share.each // (largest + 1)))
        shrinks = size > 1 and wanted < size // 2
        if (not shrinks and wanted < 4 * size) or now < self._not_before or self.waiting:
            return False
        if any(
            native_consumer.topic is not None and not native_consumer.persistent
            for native_consumer in self._native_consumers
        ):
            return False
        at_once = self._can_reopen
        if at_once or shrinks:
            self._reopen(wanted, PATIENCE, must=at_once)  # then the caller leaves messages to the new consumers
        self._not_before = now + PAUSE
        return at_once

    @property
    def _can_reopen(self) -> bool:
        """Whether that takes no records from the application; on an exclusive subscription it never does."""
        exclusive = self._subscription.type is SubscriptionType.EXCLUSIVE
        return not self.stopped and (exclusive or not self._unacked.any_delivered)

    @property
    def waiting(self) -> bool:
        """Whether receiving pauses: the queue is being changed, or the application is to settle its records."""
        return self._reopening is not None

    def renew(self) -> None:
        """Subscribe again soon, with the same queue: pulsar-client lost permits, so the broker sends too little."""
        if not self.stopped and not (self.waiting and self._must):
            self._reopen(self.size, RENEWAL, must=True)

    def _reopen(self, size: int, patience: float, *, must: bool) -> None:
        self._patient_until, self._must = self._bridge.loop.time() + patience, must
        if self._reopening is None:
            self._reopening = self._bridge.task(self._run(size))

    async def _run(self, size: int) -> None:
        loop = self._bridge.loop
        try:
            while True:
                if self._can_reopen or loop.time() > self._patient_until:
                    break
                await asyncio.sleep(PATIENCE / 20)
            if self.stopped or not (self._must or self._can_reopen):  # stopped: it subscribes again on resume
                return
            self.size, self._not_before, self._must = size, loop.time() + PAUSE, True
            while True:
                if await self._attempt():
                    return
                await asyncio.sleep(PAUSE)
        except JMSError as error:
            for native_consumer in self._native_consumers:
                native_consumer.fail(error)
        finally:
            self._reopening = None
            self._briefly = False
            for acker in self._ackers:  # they are not resumed, so that late acknowledgements need other consumers
                acker.flush()
            loop.call_soon(self._woken)

    async def _attempt(self) -> bool:
        """Stop and resume; return False if the broker is unreachable, or has not noticed the old consumer's end."""
        try:
            await self.stop(_TIMEOUT, briefly=True)
        except JMSError as error:  # it is closed all the same; the broker returns everything when it notices
            _log.warning("a consumer was closed without the broker's answer: %s", error)
        try:
            await self.resume(_TIMEOUT)
        except (BrokerUnavailableError, ConsumerBusyError, OperationTimeoutError) as error:
            _log.warning("receiving pauses, and is tried again: %s", error)
            return False
        return True

    async def changed(self, timeout: float, *, abandon: bool = False) -> None:
        """Wait until a change ends, or the timeout aborts it; ``abandon``: it need not wait for the application."""
        task = self._reopening
        if task is None:
            return
        self._patient_until = 0.0
        if abandon and not self.stopped:
            self._must = False
        if not await wait_for(asyncio.wait([task]), timeout):
            await end([task], min(timeout, LINGER))
            self._reopening = None  # even if it had not begun

    def give_up(self) -> None:
        """Abort a change in progress: the receiver closes, and nothing else would close newly opened consumers."""
        task = self._reopening
        if task is not None and not task.cancelling():  # a second cancellation would end the wait for a pending opening
            task.cancel()


def queue_size(subscription: Subscription, count: int) -> int:
    """Return the receiver queue size per topic; at least 1, since 0 drops all records of a batch but the first."""
    config = subscription.config
    size = config.receiver_queue_size
    if count > 1:
        size = min(size, config.max_total_receiver_queue_size_across_partitions // count)
    return max(1, size)
