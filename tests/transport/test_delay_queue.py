"""``DelayQueue``: items come when they are due, in the order of their times, and many of them in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import anyio
import attrs

from jmsaio.transport.delay_queue import SLICE, DelayQueue
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from tests.kit.native_fakes import make_record
from tests.transport.pulsar.conftest import HANG


@attrs.define
class Due:
    """Collects what came back."""

    calls: list[list[PulsarRecord]] = attrs.field(factory=list)
    came: asyncio.Event = attrs.field(factory=asyncio.Event)

    def due(self, records: list[PulsarRecord]) -> None:
        self.calls.append(records)
        self.came.set()

    @property
    def records(self) -> list[PulsarRecord]:
        return [record for call in self.calls for record in call]

    async def wait(self, count: int) -> None:
        with anyio.fail_after(HANG):
            while len(self.records) < count:
                self.came.clear()
                await self.came.wait()


async def test_order_of_times_not_of_adding() -> None:
    due = Due()
    queue = DelayQueue(asyncio.get_running_loop(), due.due)
    late, early, middle = make_record(3), make_record(1), make_record(2)
    queue.add(late, 0.06)
    queue.add(early, 0.01)
    queue.add(middle, 0.03)
    await due.wait(3)
    assert due.records == [early, middle, late]


async def test_equal_times_keep_the_order_of_adding() -> None:
    due = Due()
    queue = DelayQueue(asyncio.get_running_loop(), due.due)
    records = [make_record(number) for number in range(20)]
    for record in records:
        queue.add(record, 0)
    assert due.calls == []  # never inside the call
    await due.wait(20)
    assert due.records == records


@attrs.define
class Clock:
    """A loop whose time is turned by hand; keeps the one timer."""

    now: float = 100.0
    timers: list[tuple[float, Callable[[], None], Mock]] = attrs.field(factory=list)

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, function: Callable[[], None]) -> Mock:
        handle = Mock()
        self.timers.append((when, function, handle))
        return handle


def test_one_timer_for_the_earliest_and_nothing_before_its_time() -> None:
    clock: Any = Clock()
    calls: list[list[PulsarRecord]] = []
    queue = DelayQueue(clock, calls.append)
    slow, fast, slower = make_record(1), make_record(2), make_record(3)
    queue.add(slow, 10)
    queue.add(fast, 2)
    queue.add(slower, 20)
    assert [when for when, _, _ in clock.timers] == [110, 102]
    clock.timers[0][2].cancel.assert_called_once_with()
    clock.now = 102.0
    clock.timers[1][1]()
    assert calls == [[fast]]
    assert clock.timers[2][0] == 110
    clock.now = 125.0  # the loop was busy: both are due
    clock.timers[2][1]()
    assert calls == [[fast], [slow, slower]]
    assert len(clock.timers) == 3


async def test_a_negative_delay_is_none() -> None:
    due = Due()
    queue = DelayQueue(asyncio.get_running_loop(), due.due)
    queue.add(make_record(), -5)
    assert due.calls == []
    await due.wait(1)


async def test_due_may_add_again() -> None:
    due = Due()
    loop = asyncio.get_running_loop()

    def again(records: list[PulsarRecord]) -> None:
        due.due(records)
        if len(due.records) < 3:
            queue.add(records[0], 0)

    queue = DelayQueue(loop, again)
    record = make_record()
    queue.add(record, 0)
    await due.wait(3)
    assert due.records == [record] * 3


async def test_closed_ones_never_come() -> None:
    due = Due()
    queue = DelayQueue(asyncio.get_running_loop(), due.due)
    queue.add(make_record(), 0)
    queue.add(make_record(), 0.01)
    queue.close()
    queue.close()
    await asyncio.sleep(0.05)
    assert due.calls == []


async def test_many_at_once_come_in_slices() -> None:
    """Nothing of the loop waits until all of them are worked off."""
    due = Due()
    queue = DelayQueue(asyncio.get_running_loop(), due.due)
    records = [make_record(number) for number in range(3 * SLICE)]
    for record in records:
        queue.add(record, 0)
    await due.wait(len(records))
    assert due.records == records and max(map(len, due.calls)) <= SLICE
