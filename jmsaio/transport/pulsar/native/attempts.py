"""Repeating what the broker refuses for the moment: opening a native consumer or reader, or a question.

pulsar-client answers an attempt that the broker refuses for the moment only when its creation times out. Such an
attempt can't be ended, so it is given up and another one is started. What still comes of it is used, or closed. To a
question it gives the broker's refusal as the answer.
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
from jmsaio.transport.options import METADATA_TOO_LARGE
from jmsaio.transport.pulsar.native.bridge import LINGER, Bridge
from jmsaio.transport.pulsar.native.native_log import NATIVE_LOG, Refusal
from jmsaio.transport.pulsar.native.results import passes, translate

#: Seconds that an attempt may go without an answer.
ATTEMPT = 5.0
#: Seconds between two looks into the log for a refusal.
_LOOK = 0.1
#: Seconds between a refusal and the next attempt: at first, and at most.
_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
#: Seconds that an earlier attempt has to answer when a later one finds that the place is taken.
_GRACE = 1.0
#: Refusals that stay: nothing but an administrator changes them.
_FINAL = {"SubscriptionNotFound": _pulsar.Result.SubscriptionNotFound}
#: The broker's words for a consumer whose properties are too long. pulsar-client takes that for a passing failure.
_TOO_LARGE = "metadata has a max size"
#: The native consumer or reader.
Opened = TypeVar("Opened")
#: What a question is answered with.
Answer = TypeVar("Answer")


def _pauses() -> Iterator[float]:
    """Seconds between a refusal and the next attempt, for one attempt after the other."""
    pause = _PAUSE
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


async def ask_again(bridge: Bridge, ask: Callable[[], Awaitable[Answer]], patience: float) -> Answer:
    """Ask, and ask again where the broker refuses to answer for the moment (``results.passes``).

    Args:
        bridge: whose loop's time counts.
        ask: asks once.
        patience: seconds within which it is asked again; what is asked then takes as long as ``ask`` lets it.

    Raises:
        JMSError: the last answer.

    Cancellation: nothing more is asked.
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
        bridge: the way back from native threads.
        start: begins one attempt; gets the native callback.
        what: the operation in words, for errors.
        timeout: seconds for all attempts together.
        discard: gets what arrives when no one waits any more.
        topic, subscription: what the log calls it; None for any.
        turn: entered for each attempt.
    """

    bridge: Bridge
    start: Callable[[Callable[..., None]], object]
    what: str
    timeout: float
    discard: Callable[[Opened], object]
    topic: str | None = None
    subscription: str | None = None
    turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    _waiting: list[asyncio.Future[Opened]] = attrs.field(factory=list, init=False)
    _refusal: Refusal | None = attrs.field(default=None, init=False)

    async def run(self) -> Opened:
        """The native consumer or reader.

        Raises:
            OperationTimeoutError: none in time; carries the broker's reason where the log has it.
            JMSError: the answer, translated.

        Cancellation: the last attempt is waited for, at most 2 seconds, so that nothing is made afterwards.
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
        """Discard everything but ``kept``, now or when it arrives."""
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
        """An attempt that is answered within ``timeout`` seconds."""
        done, _ = await asyncio.wait(self._waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        return next((future for future in self._waiting if future in done), None)

    async def _answer(self, position: int) -> asyncio.Future[Opened] | None:
        """The first attempt that is answered; None when the last one was refused, or waited for long enough.

        Args:
            position: lines of the log before the last attempt.
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
