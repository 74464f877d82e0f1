"""``TimeHeap``: items with different due times, earliest first; ``DelayQueue`` passes them on when they are due."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Generic, TypeVar

import attrs

Item = TypeVar("Item")


@attrs.define(eq=False)
class TimeHeap(Generic[Item]):
    """Items ordered by due time; those of the same time, in the order of adding. It has no clock."""

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
        """Return whether a token's item comes before all others."""
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

    def take_all(self) -> list[Item]:
        """Remove and return all items, due or not, in no order."""
        heap, cancelled = self._heap, self._cancelled
        self._heap, self._cancelled = [], set()
        return [item for _, token, item in heap if token not in cancelled]

    def _skip(self) -> None:
        """Remove cancelled items from the front."""
        while self._heap and self._heap[0][1] in self._cancelled:
            self._cancelled.discard(heapq.heappop(self._heap)[1])


#: Maximum items passed on in one step of the loop.
SLICE = 500


@attrs.define(eq=False)
class DelayQueue(Generic[Item]):
    """Calls ``due`` with items that are due.

    Args:
        loop: event loop with the clock and timer.
        due: called with one or more items, in the order of their times.
    """

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

    def take_all(self) -> list[Item]:
        """Remove and return all items, in no order."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return self._heap.take_all()

    def close(self) -> None:
        """Remove all items."""
        self.take_all()

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
