"""The embedded broker's time: a clock that is passed in, and the heap of what is to happen at some time."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Where a broker has its time from."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def watch(self, advanced: Callable[[], None]) -> bool:
        """Ask to have ``advanced`` called after each step of time; False if time passes by itself."""


class SystemClock:
    """The machine's wall clock."""

    __slots__ = ()

    #: Seconds since the epoch; the function itself, because it is called for each message.
    now = staticmethod(time.time)

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

    There is no cancelling: an action checks by its token whether it is still wanted.

    Args:
        earlier: called when something was added that comes before everything else.
    """

    __slots__ = ("_earlier", "_heap", "_number")

    def __init__(self, earlier: Callable[[], None]) -> None:
        self._heap: list[tuple[float, int, Callable[[int, int], None], int]] = []
        self._number = 0
        self._earlier = earlier

    def add(self, due: float, action: Callable[[int, int], None], argument: int = 0) -> int:
        """Have ``action(argument, token)`` called at ``due`` (seconds since the epoch); the token."""
        self._number += 1
        heapq.heappush(self._heap, (due, self._number, action, argument))
        if self._heap[0][1] == self._number:
            self._earlier()
        return self._number

    @property
    def due(self) -> float | None:
        """When the next action is due, or None."""
        return self._heap[0][0] if self._heap else None

    def run(self, now: float) -> None:
        """Call every action that is due at ``now``."""
        while self._heap and self._heap[0][0] <= now:
            _, token, action, argument = heapq.heappop(self._heap)
            action(argument, token)
