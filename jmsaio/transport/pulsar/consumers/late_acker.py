"""``LateAcker``: takes acknowledgements in place of a native consumer that was closed.

pulsar-client can't pause: as long as a consumer is open, the broker fills its queue. So a receiver that stops closes
it, and what is acknowledged later goes through a consumer without a queue that is opened for this only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from jmsaio.errors import JMSError
from jmsaio.transport.pulsar.native.bridge import Bridge, wait_for
from jmsaio.transport.pulsar.native.handles import (
    MessageHandle,
    MessageIdHandle,
    SettlingConsumerHandle,
    SettlingHandle,
)

_log = logging.getLogger("jmsaio")


class LateAcker:
    """Takes the calls of ``_pulsar.Consumer`` that settle records.

    Args:
        bridge: the way back from native threads.
        open_consumer: subscribes once more.
        what: the subscription in words.
        timeout: seconds to close the consumer.
        holding: the consumer that was closed is about to be reopened: what is taken waits for that (``hand_over``),
            for two consumers would be one too many for an exclusive subscription.

    Attributes:
        failure: why the last acknowledgements could not be sent; taken by ``PulsarReceiver.settle``.
    """

    def __init__(
        self,
        bridge: Bridge,
        open_consumer: Callable[[], Awaitable[SettlingConsumerHandle]],
        what: str,
        timeout: float,
        holding: bool = False,
    ) -> None:
        self.failure: JMSError | None = None
        self._bridge = bridge
        self._open = open_consumer
        self._what = what
        self._timeout = timeout
        self._holding = holding
        self._decided = asyncio.Event()
        self._waiting: list[MessageHandle | MessageIdHandle] = []
        self._task: asyncio.Task[None] | None = None

    def acknowledge_async(self, message: MessageHandle | MessageIdHandle, callback: None) -> None:
        """Acknowledge a native message, or the native id of an entry, soon."""
        self._waiting.append(message)
        self._begin()

    def _begin(self) -> None:
        if self._waiting and self._task is None and not self._holding:
            self._task = self._bridge.task(self._run())

    def hand_over(self, native: SettlingHandle) -> bool:
        """Send what waits through a consumer that was reopened; True when there was something."""
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            native.acknowledge_async(message, None)
        self.let_go()
        return bool(waiting)

    def let_go(self) -> None:
        """Send by itself what waits: no consumer is reopened."""
        self._holding = False
        self._decided.set()
        self._begin()

    def negative_acknowledge(self, message: MessageHandle | MessageIdHandle) -> None:
        """Nothing: closing the consumer gave everything back."""

    async def drained(self, timeout: float) -> bool:
        """Wait until everything taken is sent; False when the time is over."""
        deadline = self._bridge.loop.time() + timeout
        if self._holding and self._waiting and not await wait_for(self._decided.wait(), timeout):
            return False
        task = self._task
        return task is None or await wait_for(asyncio.wait([task]), deadline - self._bridge.loop.time())

    async def aclose(self, timeout: float) -> None:
        """Wait as ``drained``; what was not sent is redelivered."""
        if not await self.drained(timeout) and self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                native = await self._open()
                waiting, self._waiting = self._waiting, []
                for message in waiting:
                    native.acknowledge_async(message, None)
                # Closing sends what is grouped.
                await self._bridge.ask(native.close_async, f"close {self._what}", self._timeout)
        except JMSError as error:
            self.failure = error
            _log.warning("acknowledgements of %s could not be sent, so these messages will be redelivered: %s",
                         self._what, error)  # fmt: skip
            self._waiting.clear()
        finally:
            self._task = None
