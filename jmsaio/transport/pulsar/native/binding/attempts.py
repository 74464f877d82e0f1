"""Retries of operations that the broker refuses temporarily: opening a native consumer or reader, or a request.

pulsar-client answers an attempt to open something that the broker refuses temporarily only at its creation time-out.
Such an attempt can't be cancelled, so it is abandoned and another one is started; whatever it still opens is used, or
closed. For a request, the broker's refusal is the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Generic, TypeVar

import _pulsar
import anyio
import attrs

from jmsaio.errors import ConsumerBusyError, JMSError, OperationTimeoutError, TransportError
from jmsaio.transport.base import METADATA_TOO_LARGE
from jmsaio.transport.pulsar.native.binding.bridge import LINGER, Bridge, close_late
from jmsaio.transport.pulsar.native.binding.handles import ClosableHandle
from jmsaio.transport.pulsar.native.binding.native_log import NATIVE_LOG, Refusal
from jmsaio.transport.pulsar.native.binding.results import passes, translate

#: Seconds to wait for the answer to an attempt.
ATTEMPT = 5.0
#: Seconds between two checks of the log for a refusal.
_LOOK = 0.1
#: Seconds between a refusal and the next attempt: initially, and maximum.
_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
#: Seconds to wait for an earlier attempt when a later one finds the subscription busy.
_GRACE = 1.0
#: Permanent refusals: only an administrator can change them.
_FINAL = {"SubscriptionNotFound": _pulsar.Result.SubscriptionNotFound}
#: The broker's message for a consumer with too large properties. pulsar-client treats it as a transient failure.
_TOO_LARGE = "metadata has a max size"
#: The native consumer or reader.
Opened = TypeVar("Opened", bound=ClosableHandle)
#: The answer to a request.
Answer = TypeVar("Answer")


def _pauses() -> Iterator[float]:
    """Yield the seconds between a refusal and the next attempt, for consecutive attempts."""
    pause = _PAUSE
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


async def ask_again(bridge: Bridge, ask: Callable[[], Awaitable[Answer]], patience: float) -> Answer:
    """Make a request, repeated while the broker temporarily refuses to answer (``results.passes``).

    Args:
        bridge: bridge with the loop whose time counts.
        ask: makes the request once.
        patience: seconds within which the request is repeated; the last one takes as long as ``ask`` allows.

    Raises:
        JMSError: the last error.

    Cancellation: the request is not repeated.
    """
    end, pauses = bridge.loop.time() + patience, _pauses()
    while True:
        try:
            return await ask()
        except JMSError as error:
            pause = next(pauses)
            if not passes(error) or bridge.loop.time() + pause > end:
                raise
        await asyncio.sleep(pause)


@attrs.define(eq=False)
class Attempts(Generic[Opened]):
    """Opens one native consumer or reader.

    Args:
        bridge: bridge to the native threads.
        start: starts one attempt with the native callback.
        what: description of the operation, for errors.
        timeout: seconds for all attempts together.
        discard: called with a result that arrives when no caller waits any more.
        topic, subscription: names in the log; None for any.
        turn: entered for each attempt.
    """

    bridge: Bridge
    start: Callable[[Callable[..., None]], object]
    what: str
    timeout: float
    discard: Callable[[Opened], object] = close_late
    topic: str | None = None
    subscription: str | None = None
    turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    _waiting: list[asyncio.Future[Opened]] = attrs.field(factory=list, init=False)
    _refusal: Refusal | None = attrs.field(default=None, init=False)

    async def run(self) -> Opened:
        """Return the native consumer or reader.

        Raises:
            OperationTimeoutError: none was opened in time; has the broker's reason if it is in the log.
            JMSError: the translated error.

        Cancellation: waits up to 2 seconds for the last attempt, so that nothing is opened afterwards.
        """
        native = None
        try:
            with anyio.fail_after(max(0.0, self.timeout)):
                native = await self._repeat()
                return native
        except TimeoutError:
            raise self._late() from None
        except asyncio.CancelledError:
            if self._waiting:
                with anyio.move_on_after(LINGER, shield=True):
                    await asyncio.wait(self._waiting[-1:])
            raise
        finally:
            self._drop(native)

    def _drop(self, kept: Opened | None) -> None:
        """Discard all results except ``kept``, now or when they arrive."""
        for future in self._waiting:
            if not future.done():
                future.cancel()
            elif not future.cancelled() and future.exception() is None and future.result() is not kept:
                self.discard(future.result())

    async def _repeat(self) -> Opened:
        pauses = _pauses()
        while True:
            async with self.turn():
                position = NATIVE_LOG.read()
                self._waiting.append(self.bridge.start(self.start, self.what, self.discard))
                answered = await self._answer(position)
            if answered is not None:
                return await self._outcome(answered)
            answered = await self._first(next(pauses))
            if answered is not None:
                return await self._outcome(answered)

    async def _first(self, timeout: float) -> asyncio.Future[Opened] | None:
        """Return an attempt that is answered within ``timeout`` seconds."""
        done, _ = await asyncio.wait(self._waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        return next((future for future in self._waiting if future in done), None)

    async def _answer(self, position: int) -> asyncio.Future[Opened] | None:
        """Return the first answered attempt; None if the last one was refused, or took too long.

        Args:
            position: number of lines in the log before the last attempt.
        """
        end = self.bridge.loop.time() + ATTEMPT
        while self.bridge.loop.time() < end:
            answered = await self._first(_LOOK)
            if answered is not None:
                return answered
            refusal = NATIVE_LOG.refusal(position, self.topic, self.subscription)
            if refusal is not None:
                self._refusal = refusal
                if _TOO_LARGE in refusal.reason:
                    raise TransportError(f"{self.what}: {refusal.reason}", METADATA_TOO_LARGE)
                if refusal.name in _FINAL:
                    raise translate(_FINAL[refusal.name], self.what, refusal.reason)
                return None
        return None

    async def _outcome(self, answered: asyncio.Future[Opened]) -> Opened:
        error = answered.exception()
        if error is None:
            return answered.result()
        self._waiting.remove(answered)
        if isinstance(error, ConsumerBusyError) and self._waiting:  # busy with an earlier attempt of this one?
            earlier = await self._first(_GRACE)
            if earlier is not None and earlier.exception() is None:
                return earlier.result()
        if isinstance(error, OperationTimeoutError):
            raise self._late() from None
        raise error

    def _late(self) -> JMSError:
        why = "" if self._refusal is None else f"; the broker refused it for the moment: {self._refusal}"
        return OperationTimeoutError(f"{self.what}: no answer within {self.timeout:g} s{why}")
