"""``LateAcker``: sends acknowledgements on behalf of a closed native consumer.

pulsar-client can't pause: as long as a consumer is open, the broker fills its queue. So a receiver that stops closes
it, and later acknowledgements are sent through a temporary consumer without prefetch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import attrs

from jmsaio.errors import JMSError
from jmsaio.transport.pulsar.native.bridge import Bridge, wait_for
from jmsaio.transport.pulsar.native.handles import (
    MessageHandle,
    MessageIdHandle,
    SettlingConsumerHandle,
    SettlingHandle,
)

_log = logging.getLogger("jmsaio")


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
