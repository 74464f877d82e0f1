"""``DelayQueue``: passes items on when they are due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import attrs

from jmsaio.transport.clock import TimeHeap

Item = TypeVar("Item")

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
