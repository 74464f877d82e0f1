"""Records on their way back: a heap by due time, one timer of the loop."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Generic, TypeVar

import attrs

Item = TypeVar("Item")

#: Records handed on in one step of the loop.
SLICE = 500


@attrs.define(eq=False)
class DelayQueue(Generic[Item]):
    """Calls ``due`` with the records whose time has come.

    Args:
        loop: whose clock and timer are used.
        due: gets one or more records, in the order of their times.
    """

    loop: asyncio.AbstractEventLoop
    due: Callable[[list[Item]], None]
    _heap: list[tuple[float, int, Item]] = attrs.field(factory=list, init=False)
    _number: int = attrs.field(default=0, init=False)
    _timer: asyncio.TimerHandle | None = attrs.field(default=None, init=False)

    def add(self, record: Item, delay: float) -> None:
        """Hand ``record`` to ``due`` after ``delay`` seconds, never inside this call."""
        self.add_at(record, self.loop.time() + max(0.0, delay))

    def add_at(self, record: Item, when: float) -> None:
        """Hand ``record`` to ``due`` when the loop's time is ``when``, never inside this call."""
        self._number += 1
        heapq.heappush(self._heap, (when, self._number, record))
        if self._heap[0][2] is record:
            self._arm()

    def take_all(self) -> list[Item]:
        """Forget all of them, and say which they were."""
        records = [record for _, _, record in self._heap]
        self.close()
        return records

    def close(self) -> None:
        """Forget all of them."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(self._heap[0][0], self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = self.loop.time() + 0.001  # the loop's clock may fire a tick early
        ready: list[Item] = []
        while self._heap and self._heap[0][0] <= now and len(ready) < SLICE:
            ready.append(heapq.heappop(self._heap)[2])
        if self._heap:
            self._arm()
        if ready:
            self.due(ready)
