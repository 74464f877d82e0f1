"""The embedded broker's time: a clock that is passed in, and the heap of what is to happen at some time.

There are two times. The wall clock's stands in messages; whoever sets the machine's clock lets it jump. The steady time
only goes on: everything that is to happen after a while goes by it.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Where a broker has its time from."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def steady(self) -> float:
        """Seconds that only ever grow, by as much as time passes; where they began is of no account."""

    def watch(self, advanced: Callable[[], None]) -> bool:
        """Ask to have ``advanced`` called after each step of time; False if time passes by itself."""


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    #: Seconds since the epoch; the function itself, because it is called for each message.
    now = staticmethod(time.time)
    #: Seconds that only grow.
    steady = staticmethod(time.monotonic)

    def watch(self, advanced: Callable[[], None]) -> bool:
        """Time passes by itself: False, nothing is called."""
        return False


class ManualClock:
    """A clock that stands still until it is told to go on; for tests that must not wait.

    Args:
        start: seconds since the epoch; default: the real time when it is made, because messages carry the real time.
    """

    def __init__(self, start: float | None = None) -> None:
        self._now = time.time() if start is None else start
        self._watchers: list[Callable[[], None]] = []

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._now

    def steady(self) -> float:
        """The same: this clock never jumps."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time go on: everything due by then happens in the broker before this returns.

        Raises:
            ValueError: a negative number of seconds.
        """
        if seconds < 0:
            raise ValueError(f"time goes forward only, not by {seconds} seconds")
        self._now += seconds
        for advanced in self._watchers:
            advanced()

    def watch(self, advanced: Callable[[], None]) -> bool:
        """Have ``advanced`` called after each step of time; True."""
        self._watchers.append(advanced)
        return True


class Timers:
    """What is to happen, by time; of the same time, in the order of adding.

    Args:
        earlier: called when something was added that comes before everything else.
    """

    __slots__ = ("_cancelled", "_earlier", "_heap", "_number")

    def __init__(self, earlier: Callable[[], None]) -> None:
        self._heap: list[tuple[float, int, Callable[[int, int], None], int]] = []
        self._cancelled: set[int] = set()
        self._number = 0
        self._earlier = earlier

    def add(self, due: float, action: Callable[[int, int], None], argument: int = 0) -> int:
        """Have ``action(argument, token)`` called at ``due``, in steady time; the token."""
        self._number += 1
        heapq.heappush(self._heap, (due, self._number, action, argument))
        if self._heap[0][1] == self._number:
            self._earlier()
        return self._number

    def cancel(self, token: int) -> None:
        """It shall not happen; nothing if it happened already. Takes constant time on average."""
        cancelled, heap = self._cancelled, self._heap
        cancelled.add(token)
        if len(cancelled) > max(64, len(heap) // 2):  # else what was cancelled would fill the memory
            self._heap = [entry for entry in heap if entry[1] not in cancelled]
            heapq.heapify(self._heap)
            cancelled.clear()

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def due(self) -> float | None:
        """When the next action is due, or None."""
        self._skip()
        return self._heap[0][0] if self._heap else None

    def _skip(self) -> None:
        while self._heap and self._heap[0][1] in self._cancelled:
            self._cancelled.discard(heapq.heappop(self._heap)[1])

    def run(self, now: float) -> None:
        """Call every action that is due at ``now``."""
        self._skip()
        while self._heap and self._heap[0][0] <= now:
            _, token, action, argument = heapq.heappop(self._heap)
            action(argument, token)
            self._skip()
