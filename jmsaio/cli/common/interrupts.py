"""Interrupts by Ctrl-C: the first one cancels a command, which then closes its connection in order."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Coroutine
from types import FrameType
from typing import Any, Final, TypeVar

import attrs

from jmsaio.cli.common.output import INTERRUPTED

T = TypeVar("T")

#: Seconds for which further interrupts count as the first one: keys are pressed twice, and terminals repeat them.
_SAME: Final = 1.0
#: Shows the cursor, which the line with the progress hides.
_SHOW_CURSOR: Final = "\x1b[?25h"


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine on a new event loop; an interrupt closes the connection before the command exits.

    Another interrupt, a second or more after the first one, ends the process at once, without a traceback: as after a
    kill, what was sent and not yet acknowledged is sent again by the next run.

    Raises:
        KeyboardInterrupt: the command was interrupted.
    """
    interrupts = _Interrupts()
    try:
        previous = signal.signal(signal.SIGINT, interrupts.handle)
    except ValueError:  # another thread than the main one, which receives no signals
        return asyncio.run(work)
    try:
        return asyncio.run(interrupts.watch(work))
    except asyncio.CancelledError:
        if interrupts.first is None:
            raise
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, previous)


@attrs.define(eq=False)
class _Interrupts:
    """The interrupts of one command; ``first`` is the time of the first one."""

    first: float | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _task: asyncio.Task[Any] | None = None

    async def watch(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine as the task that an interrupt cancels."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        return await work

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        now = time.monotonic()
        if self._loop is None or self._task is None:
            raise KeyboardInterrupt
        if self.first is None:
            self.first = now
            self._loop.call_soon_threadsafe(self._task.cancel)
        elif now - self.first >= _SAME:
            sys.stderr.write(f"{_SHOW_CURSOR if sys.stderr.isatty() else ''}jmsaio: interrupted again\n")
            sys.stderr.flush()
            os._exit(INTERRUPTED)
