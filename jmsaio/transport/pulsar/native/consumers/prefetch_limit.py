"""``PrefetchLimit``: limits the bytes that pulsar-client prefetches for one receiver.

pulsar-client counts messages: a receiver queue of 1000 holds 4 GB of messages of 4 MB. The queue of a consumer can't be
changed, so a receiver with large messages subscribes again with a smaller queue, and with a larger one when they are
small again. It does so only while the application holds none of its records, because closing also returns those to
others; and never if a topic is not persistent, because closing a consumer loses its queue there.
"""

from __future__ import annotations

import asyncio
import logging

import attrs

from jmsaio.errors import BrokerUnavailableError, ConsumerBusyError, JMSError, OperationTimeoutError
from jmsaio.rules.share import Share
from jmsaio.transport.pulsar.native.binding.bridge import LINGER, Bridge, wait_for
from jmsaio.transport.pulsar.native.binding.handles import MessageHandle
from jmsaio.transport.pulsar.native.consumers.native_consumers import NativeConsumers
from jmsaio.transport.pulsar.native.consumers.pausing import Pausing
from jmsaio.transport.waiting import end

_log = logging.getLogger(__name__)

#: Seconds without deliveries in which the application can settle its records.
PATIENCE = 0.25
#: Seconds after which it subscribes again for a reason other than size, settled or not.
RENEWAL = 3.0
#: Seconds between two attempts, and before a queue grows.
PAUSE = 5.0
#: Maximum seconds to subscribe again.
_TIMEOUT = 30.0


@attrs.define(eq=False)
class PrefetchLimit:
    """The receiver queue of one receiver."""

    _bridge: Bridge
    _pausing: Pausing
    _native_consumers: NativeConsumers
    _share: Share
    _largest: int = attrs.field(default=0, init=False)
    _wanted: int = attrs.field(default=0, init=False)
    _patient_until: float = attrs.field(default=0.0, init=False)
    _must: bool = attrs.field(default=False, init=False)
    _not_before: float = attrs.field(default=0.0, init=False)
    _changing: bool = attrs.field(default=False, init=False)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def look(self) -> None:
        """Check each native consumer's first message, so that its size is known before the application receives."""
        if self._pausing.stopped:
            return
        for native_consumer in self._native_consumers:
            if self._pausing.size > 1 and native_consumer.failure is None:
                message = native_consumer.peek()
                if message is not None and self.too_large([message]):
                    return

    def too_large(self, natives: list[MessageHandle]) -> bool:
        """Record the sizes of received messages.

        Returns:
            True if the receiver subscribes again now, so that they are redelivered.
        """
        largest = max(natives[0].length(), natives[-1].length(), natives[len(natives) // 2].length())
        self._largest = largest = max(largest, self._largest - (self._largest >> 4))
        size, now = self._pausing.size, self._bridge.loop.time()
        wanted = max(1, min(self._pausing.usual_size, self._share.each // (largest + 1)))
        shrinks = size > 1 and wanted < size // 2
        if (not shrinks and wanted < 4 * size) or now < self._not_before or self._wanted:
            return False
        if any(
            native_consumer.topic is not None and not native_consumer.persistent
            for native_consumer in self._native_consumers
        ):
            return False
        if self._pausing.can_move():
            self._begin(wanted)
            return True
        if shrinks:
            self._wanted = wanted
            self._patient_until = now + PATIENCE
        self._not_before = now + PAUSE
        return False

    @property
    def waiting(self) -> bool:
        """Whether receiving pauses: the queue is being changed, or the application is to settle its records."""
        if self._changing:
            return True
        if not self._wanted:
            return False
        if self._pausing.stopped:  # it subscribes again on resume
            self._wanted, self._must = 0, False
            return False
        impatient = self._bridge.loop.time() > self._patient_until
        if self._pausing.can_move() or (self._must and impatient):
            self._begin(self._wanted)
        elif impatient:
            self._wanted = 0
            return False
        else:
            self._bridge.loop.call_later(PATIENCE / 20, self._pausing.woken)
        return True

    def renew(self) -> None:
        """Subscribe again soon, with the same queue: pulsar-client lost permits, so the broker sends too little."""
        if self._pausing.stopped or self._changing or self._must:
            return
        self._wanted = self._wanted or self._pausing.size
        self._patient_until, self._must = self._bridge.loop.time() + RENEWAL, True
        self._pausing.woken()

    def _begin(self, size: int) -> None:
        self._wanted, self._must = 0, False
        self._not_before = self._bridge.loop.time() + PAUSE
        self._pausing.size = size
        self._changing = True
        self._task = self._bridge.task(self._change())

    async def _change(self) -> None:
        try:
            while True:
                if await self._attempt():
                    return
                await asyncio.sleep(PAUSE)
        except JMSError as error:
            for native_consumer in self._native_consumers:
                native_consumer.failure = native_consumer.failure or error
            self._changing = False
            self._pausing.woken()
        finally:
            self._changing = False
            self._pausing.flush()

    async def _attempt(self) -> bool:
        """Stop and resume; return False if the broker is unreachable, or has not noticed the old consumer's end.

        pulsar-client's own consumers would survive that, too.
        """
        try:
            await self._pausing.stop(_TIMEOUT, briefly=True)
        except JMSError as error:  # it is closed all the same; the broker returns everything when it notices
            _log.warning("a consumer was closed without the broker's answer: %s", error)
        try:
            await self._pausing.resume(_TIMEOUT)
        except (BrokerUnavailableError, ConsumerBusyError, OperationTimeoutError) as error:
            _log.warning("receiving pauses, and is tried again: %s", error)
            return False
        return True

    async def settled(self, timeout: float) -> None:
        """Wait until a change in progress has ended; abort it after ``timeout`` seconds.

        Cancellation: the change continues.
        """
        task = self._task
        if task is None or task.done():
            return
        if not await wait_for(asyncio.wait([task]), timeout):
            await end([task], min(timeout, LINGER))
            self._changing = False  # even if it had not begun

    def give_up(self) -> None:
        """Abort a change in progress: the receiver closes, and nothing else would close newly opened consumers."""
        task = self._task
        if task is not None and not task.cancelling():  # a second cancellation would end the wait for a pending opening
            task.cancel()
