"""Virtual time: an event loop whose clock jumps to its next timer as soon as it has nothing else to do.

A test on the embedded broker waits for timers only, so it takes as long as its work. The clocks of jmsaio follow their
loop. Tests that also wait for something outside the loop (a thread, a process, a socket) are marked ``real_time``:
virtual time would not wait for it.
"""

from __future__ import annotations

import asyncio
import selectors

from jmsaio.transport.clock import Clock, SystemClock, clock_of


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time, which begins with 0."""

    def __init__(self) -> None:
        self.passed = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Seconds that only grow."""
        return self.passed

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for its threads, which virtual time does not: the bound of newer Pythons would be over at once."""
        await super().shutdown_default_executor()


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
    return _clock().now()


def steady() -> float:
    """Seconds that only grow, as jmsaio reads them."""
    return _clock().steady()


def _clock() -> Clock:
    try:
        return clock_of(asyncio.get_running_loop())
    except RuntimeError:
        return SystemClock()
