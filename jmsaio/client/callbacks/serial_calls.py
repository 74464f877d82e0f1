"""``SerialCalls``: calls an application's functions one at a time, in a task that exists only while calls wait."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import attrs

from jmsaio.client.callbacks import callback_context

_log = logging.getLogger(__name__)

#: Maximum number of calls that wait for a slow function.
_MOST = 1000

_calling: ContextVar[SerialCalls | None] = ContextVar("jmsaio_calling", default=None)


@attrs.define(eq=False)
class SerialCalls:
    """The calls of one connection's exception listener and state callbacks, in order.

    The task belongs to no task group: a function can close its connection and continue afterwards.

    Attributes:
        count: number of calls so far.
    """

    count: int = 0
    _waiting: deque[tuple[str, Callable[[], Awaitable[None]]]] = attrs.field(factory=deque, init=False)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def add(self, what: str, function: Callable[[], Awaitable[None]]) -> None:
        """Call ``function`` later; log what it raises, naming it ``what``."""
        self.count += 1
        if len(self._waiting) >= _MOST:
            _log.warning("%s is too slow; a call was dropped", what)
            return
        self._waiting.append((what, function))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="jmsaio callbacks of a connection")

    async def _run(self) -> None:
        callback_context.leave()
        _calling.set(self)
        try:
            while self._waiting:
                what, function = self._waiting.popleft()
                try:
                    await function()
                except Exception:
                    _log.exception("%s raised", what)
        finally:
            self._task = None

    def called_from_here(self) -> bool:
        """Return whether this code runs in one of the functions, or in a task that one started."""
        return _calling.get() is self

    async def wait(self, timeout: float) -> None:
        """Wait up to ``timeout`` seconds until all calls have returned. Cancelling changes nothing."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=timeout)
