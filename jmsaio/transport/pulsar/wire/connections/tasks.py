"""The tasks of one transport: who starts one here need not await it, and closing ends them all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import attrs

from jmsaio.errors import ObjectClosedError

#: What a task returns.
Result = TypeVar("Result")


@attrs.define(eq=False)
class Tasks:
    """Tasks that run until they end or are closed. Whoever starts one takes its error."""

    _tasks: set[asyncio.Task[Any]] = attrs.field(factory=set, init=False)

    def start(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
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


async def shielded(task: asyncio.Task[Result]) -> Result:
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
