"""Virtual time: an event loop whose clock jumps to its next timer as soon as it has nothing else to do.

A test on the embedded broker waits for timers only, so it takes as long as its work. While such a loop runs, the
machine's clocks as jmsaio reads them (`SystemClock`) show the loop's time. Tests that also wait for something outside
the loop (a thread, a process, a socket) are marked ``real_time``: virtual time would not wait for it.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from asyncio import _get_running_loop

from jmsaio.transport.clock import SystemClock


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time. Its time begins with the machine's."""

    def __init__(self) -> None:
        self.passed = 0.0
        self._began = (time.time(), time.monotonic())
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Seconds that only grow."""
        return self._began[1] + self.passed

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for its threads, which virtual time does not: the bound of newer Pythons would be over at once."""
        await super().shutdown_default_executor()

    def wall(self) -> float:
        """Seconds since the epoch, by as much later than the start as `time`."""
        return self._began[0] + self.passed


class _JumpingSelector(selectors.DefaultSelector):
    """Lets the time until the loop's next timer pass at once, unless something is ready before."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(0)
        if not ready:
            self._loop.passed += timeout
        return ready


def wall() -> float:
    """Seconds since the epoch, as jmsaio reads them."""
    loop = _get_running_loop()
    return loop.wall() if isinstance(loop, VirtualLoop) else time.time()


def steady() -> float:
    """Seconds that only grow, as jmsaio reads them."""
    loop = _get_running_loop()
    return loop.time() if isinstance(loop, VirtualLoop) else time.monotonic()


def install() -> None:
    """Have `SystemClock` follow the running loop where that is a `VirtualLoop`."""
    SystemClock.now = staticmethod(wall)
    SystemClock.steady = staticmethod(steady)
