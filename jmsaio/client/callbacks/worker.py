"""Runs an application's callbacks: the message listeners and completion listeners of one session, in order.

One worker runs them one at a time (Jakarta Messaging 3.1, 6.2.13 Serial execution of client code). With
``listener_concurrency`` a session has more workers and no order. Workers are separate tasks next to the one that
fills the inboxes.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import attrs

from jmsaio.client.callbacks.callback_context import CallbackContext, unmark
from jmsaio.errors import JMSError
from jmsaio.transport.waiting import Waiters

_log = logging.getLogger(__name__)

#: Seconds for which a callback can hold the loop without being logged, and between two such log records.
_BLOCKING, _BLOCKING_PAUSE = 1.0, 60.0
#: Maximum number of messages, and of seconds, before other tasks of the loop run. Yielding costs as much as a message.
_MESSAGES_A_TURN = 32
_LONGEST_TURN = 0.001

#: A job for a worker. It reports its own failures.
Job = Callable[[], Awaitable[None]]


class NoExceptionError(JMSError):
    """A callback raised a BaseException that is not an Exception (its ``__cause__``), which ends its session."""


def function_of(listener: object, method: str) -> Callable[..., Any] | None:
    """Return a listener's ``method``, as in Java, or the listener itself; None if neither is callable."""
    found = getattr(listener, method, None)
    if callable(found):
        return found  # type: ignore[no-any-return]  # checked above
    return listener if callable(listener) else None


async def call(function: Callable[..., Any], *arguments: Any) -> None:
    """Call a plain or coroutine function of the application, and wait for it.

    A CancelledError of something that it awaited is raised as a JMSError: it would look like a cancelled worker, which
    would end the session. Cancelling cancels the function.
    """
    try:
        began = time.perf_counter()
        result = function(*arguments)
        _watch.check(function, began)
        if result is not None and inspect.isawaitable(result):
            await _Timed(function, result)
    except asyncio.CancelledError as cancelled:
        if _is_cancelled(asyncio.current_task()):
            raise
        raise JMSError("something that a callback awaited was cancelled") from cancelled


@attrs.define
class _Watch:
    """Logs callbacks that hold the event loop, but not before ``quiet_until`` of ``perf_counter``."""

    quiet_until: float = float("-inf")

    def check(self, function: Callable[..., Any], began: float) -> None:
        now = time.perf_counter()
        if now - began > _BLOCKING and now >= self.quiet_until:
            self.quiet_until = now + _BLOCKING_PAUSE
            _log.warning(
                "the callback %s blocked the event loop for %.1f s, in which nothing is received or confirmed: await "
                "what it waits for, or run it with asyncio.to_thread",
                getattr(function, "__qualname__", None) or type(function).__qualname__, now - began,
            )  # fmt: skip


_watch = _Watch()  # of the process, whose loop it is


@attrs.frozen
class _Timed:
    """Awaits what a callback returned, and checks how long each of its steps holds the loop."""

    function: Callable[..., Any]
    awaitable: Awaitable[Any]

    def __await__(self) -> Generator[Any, Any, None]:
        steps: Any = self.awaitable.__await__()
        thrown: BaseException | None = None
        while True:
            began = time.perf_counter()
            try:
                waits_for = next(steps) if thrown is None else steps.throw(thrown)
            except StopIteration:
                return
            finally:
                _watch.check(self.function, began)
            thrown = None
            try:
                yield waits_for
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:  # a cancellation, above all
                thrown = error


def _is_cancelled(task: asyncio.Task[Any] | None) -> bool:
    return task is not None and task.cancelling() > 0


@attrs.define(eq=False)
class CallbackWorker:
    """The callback workers of one session; ``next_job`` returns the next message job, or None."""

    next_job: Callable[[], Job | None]
    _first: deque[Job] = attrs.field(factory=deque, init=False)
    _waiting: Waiters = attrs.field(factory=Waiters, init=False)
    _idle: Waiters = attrs.field(factory=Waiters, init=False)
    _running: int = attrs.field(default=0, init=False)

    def add(self, job: Job) -> None:
        """Add a job that runs before the next message job."""
        self._first.append(job)
        self.wake()

    def wake(self) -> None:
        self._waiting.wake()

    @property
    def busy(self) -> bool:
        return bool(self._running or self._first)

    async def idle(self) -> None:
        while self.busy:
            await self._idle.wait()

    async def run_added(self) -> None:
        """Run the jobs added by ``add`` in this task, for a session whose workers have ended."""
        while self._first:
            await self._first.popleft()()

    async def run(self) -> None:
        """Run jobs until cancelled.

        Other tasks run after each job of ``add``, after 32 message jobs or a millisecond, and at once if one waits for
        ``idle``. A worker that was cancelled by its own callback ends before the next job.
        """
        unmark()
        task = asyncio.current_task()
        clock = time.perf_counter
        left, until = 0, 0.0
        while True:
            if left == 0:  # a turn starts
                left, until = _MESSAGES_A_TURN, clock() + _LONGEST_TURN
            added = bool(self._first)
            job = self._first.popleft() if added else self.next_job()
            if job is None:
                await self._waiting.wait()
                left = 0
                continue
            self._running += 1
            try:
                await job()
            finally:
                self._running -= 1
                awaited = len(self._idle) and not self.busy
                if awaited:
                    self._idle.wake()
            left -= 1
            if added or awaited or left == 0 or clock() > until or _is_cancelled(task):
                await asyncio.sleep(0)
                left = 0


async def run_inside(callback: CallbackContext, function: Callable[..., Any], *arguments: Any) -> Exception | None:
    """Call an application's callback, marked as running; return the Exception that it raised, or None."""
    with callback:
        try:
            await call(function, *arguments)
        except Exception as error:
            return error
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            raise NoExceptionError(f"a {callback.kind.value} raised {error!r}, which is not an Exception") from error
    return None
