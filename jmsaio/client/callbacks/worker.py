"""Runs an application's callbacks: message listeners and completion listeners of one session, in order.

One worker runs them one at a time (jms-spec 7 and 10.6); ``listener_concurrency`` gives a session more workers for
those who ask for it, which gives up the order. The workers are tasks of their own beside the dispatch coroutine.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.to_thread
import attrs

from jmsaio.client.callbacks.callback_context import CallbackContext, entered, leave
from jmsaio.errors import JMSError
from jmsaio.transport.waiters import Waiters

#: A piece of work: what to run. It reports its own failures.
Job = Callable[[], Awaitable[None]]


class NoExceptionError(JMSError):
    """A callback raised what is no Exception: its session ends. The ``__cause__`` is what it raised."""


def function_of(listener: object, method: str) -> Callable[..., Any] | None:
    """What of a listener is called: its ``method``, as in Java, else itself; None for what can't be called."""
    found = getattr(listener, method, None)
    if callable(found):
        return found  # type: ignore[no-any-return]  # just seen
    return listener if callable(listener) else None


async def call(function: Callable[..., Any], *arguments: Any, in_thread: bool = False) -> None:
    """Call a plain or coroutine function of the application and wait for it.

    Args:
        function: what to call.
        arguments: its arguments.
        in_thread: run a plain function in a worker thread, so that it may block.

    Raises:
        JMSError: the function ended with a CancelledError of its own, of something that it waited for. It must not
            pass for a cancelled worker, which would end the session.

    Otherwise raises what the function does. Cancelling cancels it.
    """
    try:
        if in_thread and not inspect.iscoroutinefunction(function):
            result = await anyio.to_thread.run_sync(function, *arguments)
        else:
            result = function(*arguments)
        if inspect.isawaitable(result):
            await result
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # it is we who are cancelled
            raise
        raise JMSError("what a callback waited for was cancelled") from cancelled


@attrs.define(eq=False)
class CallbackWorker:
    """The callback workers of one session.

    Attributes:
        next_job: gives the next message job, or None; asked after every job and every ``wake``.
    """

    next_job: Callable[[], Job | None]
    _first: deque[Job] = attrs.field(factory=deque, init=False)
    _waiting: Waiters = attrs.field(factory=Waiters, init=False)
    _idle: Waiters = attrs.field(factory=Waiters, init=False)
    _running: int = attrs.field(default=0, init=False)

    def add(self, job: Job) -> None:
        """Run ``job`` before the next message job."""
        self._first.append(job)
        self.wake()

    def wake(self) -> None:
        """There may be a message job."""
        self._waiting.wake()

    @property
    def busy(self) -> bool:
        """True while a callback runs or a completion waits to be told."""
        return bool(self._running or self._first)

    async def idle(self) -> None:
        """Wait until no callback runs and none waits to be told. Cancelling changes nothing."""
        while self.busy:
            await self._idle.wait()

    async def run_added(self) -> None:
        """Run what ``add`` took, here: for a session whose workers have ended."""
        while self._first:
            await self._first.popleft()()

    async def run(self) -> None:
        """Run jobs until cancelled."""
        leave()
        while True:
            job = self._first.popleft() if self._first else self.next_job()
            if job is None:
                await self._waiting.wait()
                continue
            self._running += 1
            try:
                await job()
            finally:
                self._running -= 1
                if not self.busy:
                    self._idle.wake()
            await asyncio.sleep(0)


async def run_inside(
    callback: CallbackContext, function: Callable[..., Any], *arguments: Any, in_thread: bool
) -> Exception | None:
    """Call an application's callback with its mark on; returns what it raised, which the caller logs, or None.

    Raises:
        NoExceptionError: it raised what is no Exception. KeyboardInterrupt and SystemExit pass.
    """
    with entered(callback):
        try:
            await call(function, *arguments, in_thread=in_thread)
        except Exception as error:
            return error
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            raise NoExceptionError(f"a {callback.kind.value} raised {error!r}, which is no Exception") from error
    return None
