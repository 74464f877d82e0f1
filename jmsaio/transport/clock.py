"""Time: clocks, timers based on them, and items ordered by due time.

There are two times. The wall clock's is written into messages, and jumps when the machine's clock is set. The steady
time only moves forward, so all delays use it.

The embedded broker and the client both use the clock of their transport, which follows the event loop: on a loop whose
time is not the machine's, such as one for tests that skips all waiting, both times pass as the loop's does.

Limits that prevent hanging, such as ``close_timeout``, use the event loop's time: they must end even if no one advances
a `ManualClock`.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import math
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Generic, Protocol, TypeVar

import attrs


class Clock(Protocol):
    """Provides the time of a broker and its clients."""

    def now(self) -> float:
        """Return the seconds since the epoch."""

    def steady(self) -> float:
        """Return seconds that only grow, as fast as time passes, from an arbitrary start."""

    def watch(self, advanced: Callable[[], None]) -> bool:
        """Register ``advanced`` to be called after each step of time; return False if time passes by itself.

        A bound method is held by a weak reference only.
        """


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    #: Seconds since the epoch; the function itself, because it is called for each message.
    now = staticmethod(time.time)
    #: Seconds that only grow.
    steady = staticmethod(time.monotonic)

    def watch(self, advanced: Callable[[], None]) -> bool:
        return False

    def has_time_of(self, loop: asyncio.AbstractEventLoop) -> bool:
        return _is_machines(loop)


#: Difference in seconds below which a loop's time is the machine's: uvloop's is rounded to milliseconds.
_ROUNDED = 0.01
#: Seconds since the epoch at time 0 of each loop with a time of its own.
_EPOCHS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, float] = weakref.WeakKeyDictionary()


class LoopClock:
    """The clocks of an event loop that might have a time of its own.

    While the loop's time is the machine's, so is the wall clock, and settings of the machine's clock are followed.
    Otherwise it began with the machine's, and advances as the loop's time does. ``start`` is the steady time from now
    on, by default the loop's time.
    """

    __slots__ = ("_ahead", "_epoch", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, start: float | None = None) -> None:
        self._loop = loop
        self._ahead = 0.0 if start is None else start - loop.time()
        self._epoch = _EPOCHS.setdefault(loop, time.time() - loop.time())

    def now(self) -> float:
        before = time.monotonic()
        moment = self._loop.time()
        if before - _ROUNDED <= moment <= time.monotonic() + _ROUNDED:  # no pause between the readings matters
            return time.time()
        return self._epoch + moment

    def steady(self) -> float:
        return self._loop.time() + self._ahead

    def watch(self, advanced: Callable[[], None]) -> bool:
        return False

    def has_time_of(self, loop: asyncio.AbstractEventLoop) -> bool:
        return loop is self._loop or (_is_machines(self._loop) and _is_machines(loop))


def _is_machines(loop: asyncio.AbstractEventLoop) -> bool:
    before = time.monotonic()
    return before - _ROUNDED <= loop.time() <= time.monotonic() + _ROUNDED


def clock_of(loop: asyncio.AbstractEventLoop, previous: Clock | None = None) -> Clock:
    """Return the clock that follows a loop: the machine's for loops of asyncio and uvloop.

    It continues the steady time of the clock used before, ``previous``.
    """
    machines = previous is None or isinstance(previous, SystemClock)
    if machines and (
        getattr(loop.time, "__func__", None) is asyncio.BaseEventLoop.time or type(loop).__module__ == "uvloop"
    ):
        return SystemClock()
    return LoopClock(loop, None if previous is None else previous.steady())


class ManualClock:
    """A clock that stands still until it is advanced, for tests that must not wait.

    Args:
        start: seconds since the epoch; default: the real time, because messages contain the real time.
    """

    def __init__(self, start: float | None = None) -> None:
        self._now = time.time() if start is None else start
        self._watchers: list[Callable[[], Callable[[], None] | None]] = []  # references, which might be weak

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return self._now

    def steady(self) -> float:
        """Return the value of ``now``: this clock never jumps."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Advance the time: everything due by then happens in the broker before this returns.

        Raises:
            ValueError: the number of seconds is negative or not finite.
        """
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"time goes forward only, not by {seconds} seconds")
        self._now += seconds
        for watcher in list(self._watchers):
            advanced = watcher()
            if advanced is not None:
                advanced()

    def watch(self, advanced: Callable[[], None]) -> bool:
        """Call ``advanced`` after each step of time, a method as long as its object lives; return True."""
        if inspect.ismethod(advanced):  # the clock of a test session outlives brokers and clients
            self._watchers.append(weakref.WeakMethod(advanced, self._watchers.remove))
        else:
            self._watchers.append(lambda: advanced)
        return True


#: Difference of the clocks in seconds above which the wall clock was set; a smaller one is a pause or drift.
_CLOCK_SET = 0.05


class SteadyTimes:
    """Converts wall clock times to steady time.

    The difference between the clocks is kept until the wall clock is set. If it were read again for each message, a
    pause between the two readings would change the order of due times.
    """

    __slots__ = ("_clock", "_difference")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._difference = math.inf  # until first measured

    def at(self, moment: float) -> float:
        difference = self._clock.steady() - self._clock.now()
        if abs(difference - self._difference) > _CLOCK_SET:
            self._difference = difference
        return moment + self._difference


Item = TypeVar("Item")


@attrs.define(eq=False)
class TimeHeap(Generic[Item]):
    """Items ordered by due time, and then by the order of adding. It has no clock."""

    _heap: list[tuple[float, int, Item]] = attrs.field(factory=list, init=False)
    _cancelled: set[int] = attrs.field(factory=set, init=False)
    _tokens: Iterator[int] = attrs.field(factory=count, init=False)

    def __len__(self) -> int:
        """Return the number of items, possibly including cancelled ones."""
        return len(self._heap)

    def add(self, due: float, item: Item) -> int:
        """Add an item. Returns a token for ``cancel``."""
        token = next(self._tokens)
        heapq.heappush(self._heap, (due, token, item))
        return token

    def cancel(self, token: int) -> None:
        """Remove an item; ignored if it was already removed. Takes constant time on average."""
        cancelled, heap = self._cancelled, self._heap
        cancelled.add(token)
        if len(cancelled) > max(64, len(heap) // 2):  # otherwise cancelled items would fill the memory
            self._heap = [entry for entry in heap if entry[1] not in cancelled]
            heapq.heapify(self._heap)
            cancelled.clear()

    def is_first(self, token: int) -> bool:
        return bool(self._heap) and self._heap[0][1] == token

    @property
    def due(self) -> float | None:
        """Due time of the first item; None if there is none."""
        self._skip()
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> tuple[int, Item] | None:
        """Remove and return the first item with its token, if it is due at ``now``."""
        self._skip()
        if not self._heap or self._heap[0][0] > now:
            return None
        _, token, item = heapq.heappop(self._heap)
        return token, item

    def remove_all(self) -> list[Item]:
        """Remove and return all items, due or not, in no order."""
        heap, cancelled = self._heap, self._cancelled
        self._heap, self._cancelled = [], set()
        return [item for _, token, item in heap if token not in cancelled]

    def _skip(self) -> None:
        """Remove cancelled items from the front."""
        while self._heap and self._heap[0][1] in self._cancelled:
            self._cancelled.discard(heapq.heappop(self._heap)[1])


class Timers:
    """Actions ordered by due time, and then by the order of adding.

    ``earlier`` is called when an action was added that is due before all others.
    """

    __slots__ = ("_earlier", "_heap")

    def __init__(self, earlier: Callable[[], None]) -> None:
        self._heap: TimeHeap[tuple[Callable[[int, int], None], int]] = TimeHeap()
        self._earlier = earlier

    def add(self, due: float, action: Callable[[int, int], None], argument: int = 0) -> int:
        """Schedule ``action(argument, token)`` at ``due``, in steady time; return the token."""
        token = self._heap.add(due, (action, argument))
        if self._heap.is_first(token):
            self._earlier()
        return token

    def cancel(self, token: int) -> None:
        self._heap.cancel(token)

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def due(self) -> float | None:
        return self._heap.due

    def run(self, now: float) -> None:
        """Call every action that is due at ``now``."""
        while (entry := self._heap.pop(now)) is not None:
            token, (action, argument) = entry
            action(argument, token)


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call; ignored if it has already been made."""


@attrs.define(eq=False)
class LoopTimers:
    """Timers of one event loop, based on a clock, by default the loop's. Created and used on the loop's thread.

    If time passes by itself, they are the loop's own timers. With a `ManualClock` they are due once it was advanced far
    enough; their callbacks run in the loop's next turn, in the order of their times.
    """

    clock: Clock = attrs.field(factory=lambda: clock_of(asyncio.get_running_loop()))
    _loop: asyncio.AbstractEventLoop = attrs.field(init=False)  # with a manual clock only
    _manual: Timers | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        if self.clock.watch(self._advanced):
            self._loop = asyncio.get_running_loop()
            self._manual = Timers(lambda: None)

    def milliseconds(self) -> int:
        return int(self.clock.now() * 1000)

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        """Call ``callback`` after ``delay`` seconds, or in the loop's next turn if that is not positive."""
        manual = self._manual
        if manual is None:
            return asyncio.get_running_loop().call_later(delay, callback)

        def ring(_argument: int, _token: int) -> None:
            callback()

        token = manual.add(self.clock.steady() + delay, ring)
        if delay <= 0:
            self._loop.call_soon(self._run)
        return _ManualTimer(partial(manual.cancel, token))

    async def sleep(self, delay: float) -> None:
        """Wait for ``delay`` seconds; at least one turn of the loop. Cancelling has no side effects."""
        if self._manual is None:
            await asyncio.sleep(delay)
            return
        woken = asyncio.Event()
        timer = self.call_later(delay, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    def _advanced(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        assert self._manual is not None  # only a manual clock is watched
        self._manual.run(self.clock.steady())


@attrs.frozen
class _ManualTimer:
    cancel: Callable[[], None]


#: Maximum items passed on in one step of the loop.
SLICE = 500


@attrs.define(eq=False)
class DelayQueue(Generic[Item]):
    """Calls ``due`` with items that are due, one or more, in the order of their times."""

    loop: asyncio.AbstractEventLoop
    due: Callable[[list[Item]], None]
    _heap: TimeHeap[Item] = attrs.field(factory=TimeHeap, init=False)
    _timer: asyncio.TimerHandle | None = attrs.field(default=None, init=False)

    def add(self, item: Item, delay: float) -> None:
        """Pass ``item`` to ``due`` after ``delay`` seconds, never inside this call."""
        self.add_at(item, self.loop.time() + max(0.0, delay))

    def add_at(self, item: Item, when: float) -> None:
        """Pass ``item`` to ``due`` at the loop time ``when``, never inside this call."""
        if self._heap.is_first(self._heap.add(when, item)):
            self._arm(when)

    def remove_all(self) -> list[Item]:
        """Remove and return all items, in no order."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return self._heap.remove_all()

    def close(self) -> None:
        self.remove_all()

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(when, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = self.loop.time() + 0.001  # the loop's timer can fire slightly early
        ready: list[Item] = []
        while len(ready) < SLICE and (entry := self._heap.pop(now)) is not None:
            ready.append(entry[1])
        due = self._heap.due
        if due is not None:
            self._arm(due)
        if ready:
            self.due(ready)
