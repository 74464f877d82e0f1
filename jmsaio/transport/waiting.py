"""Waiting on the event loop: for a change, for tasks and coroutines, and for long work in slices."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any, TypeVar

import anyio
import attrs

from jmsaio.errors import ObjectClosedError


@attrs.define(eq=False)
class Waiters:
    """Tasks waiting for one kind of change; each checks by itself whether it is the one it needs."""

    _futures: list[asyncio.Future[None]] = attrs.field(factory=list, init=False)

    def __len__(self) -> int:
        return len(self._futures)

    async def wait(self) -> None:
        """Wait for the next ``wake``. Cancelling does not affect other tasks."""
        future = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future in self._futures:
                self._futures.remove(future)
            raise

    def wake(self) -> None:
        """Wake all tasks that wait now."""
        futures, self._futures = self._futures, []
        for future in futures:
            if not future.done():  # done only if its task was cancelled
                future.set_result(None)


async def end(tasks: Iterable[asyncio.Task[None]], timeout: float) -> None:
    """Cancel tasks, each once, and wait up to ``timeout`` seconds until they have ended.

    A task that opens something can wait for it briefly; it ends with its transport.
    """
    running = [task for task in tasks if not task.done()]
    for task in running:
        if not task.cancelling():  # a second cancellation would end the wait for a pending opening
            task.cancel()
    if running:
        await asyncio.wait(running, timeout=max(0.0, timeout))


_Value = TypeVar("_Value")


@attrs.define(eq=False)
class Tasks:
    """Tasks of one owner, which run until they end or are closed. Whoever starts one receives its error."""

    _tasks: set[asyncio.Task[Any]] = attrs.field(factory=set, init=False)

    def start(self, work: Coroutine[Any, Any, _Value]) -> asyncio.Task[_Value]:
        """Start a task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def aclose(self, timeout: float) -> None:
        """Cancel all tasks, and those they start meanwhile; wait up to ``timeout`` seconds until they have ended."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        cancelled: set[asyncio.Task[Any]] = set()
        while found := self._tasks - cancelled:
            for task in found:
                task.cancel()
            cancelled |= found
            await asyncio.wait(found, timeout=max(0.0, deadline - loop.time()))


async def shielded(task: asyncio.Task[_Value]) -> _Value:
    """Wait for one of these tasks, which continues if the wait is cancelled.

    Raises ObjectClosedError if closing the transport has cancelled the task: its caller was not.
    """
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        caller = asyncio.current_task()
        if task.cancelled() and caller is not None and not caller.cancelling():
            raise ObjectClosedError("the connection to the broker was closed before the answer arrived") from None
        raise


async def together(work: Iterable[Coroutine[Any, Any, _Value]]) -> list[_Value]:
    """Run coroutines concurrently; return their results in order.

    Raises the first error, after the other coroutines were cancelled and have ended.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def to_the_end(work: Coroutine[Any, Any, _Value], limit: float = math.inf) -> _Value:
    """Return what a coroutine returns.

    A cancellation waits for its end, which the coroutine must bound, or cancels it after ``limit`` seconds.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with anyio.move_on_after(limit, shield=True):
            await asyncio.gather(task, return_exceptions=True)  # an error changes nothing for who cancelled
        raise


#: Maximum records whose outcome is reported in one turn of the loop: 10 ms, including the tasks waiting for them.
SLICE = 500


def in_slices(loop: asyncio.AbstractEventLoop, work: Iterator[object]) -> asyncio.Future[None]:
    """Run one step of ``work`` now and one in each of the next turns of the loop.

    Returns:
        A future that ends with the last step. Cancelling it does not stop the work.
    """
    ended = loop.create_future()

    def step() -> None:
        for _ in work:
            loop.call_soon(step)
            return
        if not ended.done():
            ended.set_result(None)

    step()
    return ended
