"""``TimeHeap``: the earliest first, of the same time in the order of adding."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import anyio
import attrs

from jmsaio.transport.pulsar.native.record import PulsarRecord
from jmsaio.transport.time_heap import SLICE, DelayQueue, TimeHeap
from tests.kit.native_fakes import make_record
from tests.transport.pulsar.conftest import HANG


def drain(heap: TimeHeap[str], now: float) -> list[str]:
    found = []
    while (entry := heap.pop(now)) is not None:
        found.append(entry[1])
    return found


def test_items_come_in_the_order_of_their_times_and_of_adding() -> None:
    heap: TimeHeap[str] = TimeHeap()
    for due, item in ((3.0, "c"), (1.0, "a"), (3.0, "b"), (2.0, "x")):
        heap.add(due, item)
    assert heap.due == 1.0
    assert drain(heap, 2.0) == ["a", "x"]
    assert heap.due == 3.0
    assert drain(heap, 2.9) == []
    assert drain(heap, 3.0) == ["c", "b"]
    assert heap.due is None and heap.pop(9.0) is None


def test_items_are_never_compared() -> None:
    heap: TimeHeap[object] = TimeHeap()
    items = [object(), object()]
    tokens = [heap.add(1.0, item) for item in items]
    assert [heap.pop(1.0), heap.pop(1.0)] == list(zip(tokens, items, strict=True))


def test_the_first_one_is_known_by_its_token() -> None:
    heap: TimeHeap[str] = TimeHeap()
    assert [heap.is_first(heap.add(due, "x")) for due in (5.0, 7.0, 3.0, 3.0)] == [True, False, True, False]
    assert not TimeHeap[str]().is_first(1)


def test_what_was_cancelled_never_comes_and_takes_no_memory() -> None:
    heap: TimeHeap[str] = TimeHeap()
    heap.add(5.0, "kept")
    for _ in range(1000):
        heap.cancel(heap.add(1.0, "dropped"))
    assert len(heap) < 100
    assert heap.due == 5.0
    assert drain(heap, 9.0) == ["kept"]


def test_all_can_be_taken_at_once_but_for_the_cancelled_ones() -> None:
    heap: TimeHeap[str] = TimeHeap()
    tokens = [heap.add(due, item) for due, item in ((2.0, "b"), (1.0, "a"), (3.0, "c"))]
    heap.cancel(tokens[2])
    assert sorted(heap.take_all()) == ["a", "b"]
    assert heap.take_all() == [] and heap.due is None
    heap.add(1.0, "d")
    assert drain(heap, 1.0) == ["d"]


class Counted(float):
    """A time that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return super().__eq__(other)

    def __lt__(self, other: float) -> bool:
        Counted.compared += 1
        return super().__lt__(other)

    __hash__ = float.__hash__


def test_cancelling_many_items_compares_few_of_them() -> None:
    heap: TimeHeap[str] = TimeHeap()
    tokens = [heap.add(Counted(number), "x") for number in range(1000)]
    Counted.compared = 0
    for token in tokens[:600]:
        heap.cancel(token)
    assert Counted.compared < 5000
    assert heap.due == 600.0


def test_the_first_item_is_taken_past_those_cancelled_before_it() -> None:
    heap: TimeHeap[str] = TimeHeap()
    for token in [heap.add(1.0, "dropped"), heap.add(1.0, "dropped, too")]:
        heap.cancel(token)
    heap.add(1.0, "kept")
    assert drain(heap, 1.0) == ["kept"]


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
