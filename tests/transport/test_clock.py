"""None"""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from unittest.mock import Mock

import anyio
import attrs
import pytest
import uvloop

import jmsaio
from jmsaio.testing import embedded_broker
from jmsaio.transport.clock import (
    SLICE,
    DelayQueue,
    LoopClock,
    LoopTimers,
    ManualClock,
    SteadyTimes,
    SystemClock,
    TimeHeap,
    Timers,
    clock_of,
)
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from tests.kit.native_fakes import make_record
from tests.kit.virtual_time import VirtualLoop
from tests.transport.pulsar.conftest import HANG


def test_the_system_clock_is_the_wall_clock() -> None:
    assert abs(SystemClock().now() - time.time()) < 60
    assert SystemClock().watch(lambda: None) is False


def test_steady_time_is_the_machines_that_nobody_sets() -> None:
    """It grows as time passes, and a manual clock's is the one that the test advances."""
    assert abs(SystemClock().steady() - time.monotonic()) < 60
    clock = ManualClock(100.0)
    clock.advance(1)
    assert clock.steady() == 101.0


def on_virtual_time(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
async def test_the_clock_of_an_ordinary_loop_is_the_machines(factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    loop = factory()
    try:
        assert isinstance(clock_of(loop), SystemClock)
        assert isinstance(clock_of(loop, SystemClock()), SystemClock)
    finally:
        loop.close()


def test_both_times_of_a_virtual_loop_pass_as_it_does() -> None:
    async def main() -> None:
        clock = clock_of(asyncio.get_running_loop())
        wall, steady = clock.now(), clock.steady()
        assert abs(wall - time.time()) < 60
        await asyncio.sleep(3600)
        assert clock.now() - wall == clock.steady() - steady == 3600
        assert clock_of(asyncio.get_running_loop()).now() == clock.now()  # one epoch for a loop

    on_virtual_time(main)


class OwnLoop(asyncio.SelectorEventLoop):
    """A loop with a method ``time`` of its own that returns the machine's, as Qt's loops have."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def test_a_loop_on_the_machines_time_follows_settings_of_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does a service that runs for months on a loop which defines its time itself."""
    wall = time.time()
    loop = OwnLoop()
    try:
        clock = clock_of(loop)
        assert isinstance(clock, LoopClock)
        monkeypatch.setattr(time, "time", lambda: wall - 3600)
        assert clock.now() == wall - 3600
        loop.ahead = 60
        assert 59 < clock.now() - wall < 120
    finally:
        loop.close()


def test_the_time_of_a_broker_goes_on_with_the_loop_of_its_next_client() -> None:
    """A message that is delayed on one loop arrives after the rest of the delay on another."""
    with embedded_broker() as broker:

        async def send() -> None:
            async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
                queue = session.create_queue("delayed")
                async with session.create_consumer(queue), session.create_producer(queue) as producer:
                    await producer.send("late", delivery_delay=100)
                    await asyncio.sleep(70)

        async def receive() -> None:
            loop = asyncio.get_running_loop()
            async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
                async with session.create_consumer(session.create_queue("delayed")) as consumer:
                    began = loop.time()
                    assert await consumer.receive_body(str) == "late"
                    assert 25 < loop.time() - began <= 30.1

        on_virtual_time(send)
        on_virtual_time(receive)


def test_a_broker_refuses_a_second_loop_with_another_time() -> None:
    """Its delays and time-outs can't follow two times at once."""
    with embedded_broker() as broker:
        begun, done = threading.Event(), threading.Event()

        async def stay() -> None:
            async with jmsaio.connect(broker.url):
                begun.set()
                await asyncio.to_thread(done.wait)

        async def refused() -> None:
            with pytest.raises(jmsaio.IllegalStateError, match="virtual time"):
                await jmsaio.connect(broker.url)

        for first in (on_virtual_time, lambda main: asyncio.run(main())):
            thread = threading.Thread(target=first, args=(stay,))
            thread.start()
            begun.wait()
            on_virtual_time(refused)
            done.set()
            thread.join()
            begun.clear()
            done.clear()


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
async def test_what_waits_in_the_broker_does_not_wait_for_the_wall_clock(
    step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry, a delayed delivery and a send time-out come in their time although somebody sets the machine's clock."""
    steps = [0.0]
    monkeypatch.setattr(SystemClock, "now", staticmethod(lambda: time.time() + steps[0]))
    options = {
        "consumerConfig": {"negativeAckRedeliveryDelayMicros": 300_000},
        "producerConfig": {"sendTimeoutMs": 300},
    }
    with embedded_broker() as broker:
        async with (
            jmsaio.connect({"brokerServiceUrl": broker.url, **options}) as connection,
            connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session,
        ):
            retried, delayed = session.create_queue("retried"), session.create_queue("delayed")
            first, second = await session.create_consumer(retried), await session.create_consumer(delayed)
            producer = await session.create_producer()
            await producer.send(retried, "again")
            await producer.send(delayed, "later", delivery_delay=0.3)
            assert await first.receive_body(str, timeout=30) == "again"
            await session.recover()
            steps[0] = step
            async with asyncio.timeout(30):
                assert await first.receive_body(str) == "again"
                assert await second.receive_body(str) == "later"
                broker.faults.take_down()
                with pytest.raises(jmsaio.SendError):
                    await producer.send(retried, "never")
            broker.faults.bring_up()


async def test_delayed_messages_keep_their_order_whatever_pauses_between_two_readings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that loses the processor between them reads clocks that seem to differ by more or by less."""
    pauses = itertools.cycle([0.04, 0.0, 0.02])
    monkeypatch.setattr(SystemClock, "now", staticmethod(lambda: time.time() + next(pauses)))
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            queue, names = session.create_queue("ordered"), [str(number) for number in range(20)]
            async with session.create_producer(queue) as producer, session.create_consumer(queue) as consumer:
                for number in names:
                    await producer.send(number, delivery_delay=1)
                assert [await consumer.receive_body(str, timeout=30) for _ in names] == names


def test_a_manual_clock_stands_still_until_advanced() -> None:
    clock, steps = ManualClock(100.0), []
    assert clock.watch(lambda: steps.append(clock.now())) is True
    assert clock.now() == 100.0
    clock.advance(2.5)
    assert (clock.now(), steps) == (102.5, [102.5])


def test_a_manual_clock_keeps_no_broker_and_no_client_that_is_gone() -> None:
    class Watcher:
        steps = 0

        def advanced(self) -> None:
            Watcher.steps += 1

    clock, kept, gone = ManualClock(), Watcher(), Watcher()
    clock.watch(kept.advanced)
    clock.watch(gone.advanced)
    reference = weakref.ref(gone)
    del gone
    gc.collect()
    clock.advance(1)
    assert (reference(), kept.steps, len(clock._watchers)) == (None, 1, 1)


def test_a_manual_clock_starts_at_the_real_time() -> None:
    assert abs(ManualClock().now() - time.time()) < 60


def test_time_does_not_go_back() -> None:
    clock = ManualClock(100.0)
    with pytest.raises(ValueError, match="forward"):
        clock.advance(-1)
    clock.advance(0)
    assert clock.now() == 100.0


def test_a_step_of_time_may_end_what_another_one_waits_for() -> None:
    class Watcher:
        steps = 0

        def advanced(self) -> None:
            Watcher.steps += 1

    clock, watchers = ManualClock(), [Watcher()]
    clock.watch(watchers.clear)
    clock.watch(watchers[0].advanced)
    clock.advance(1)
    assert Watcher.steps == 0


class TwoClocks:
    """A wall clock that is set by hand, and a steady time beside it."""

    def __init__(self) -> None:
        self.wall, self.passed = 5000.0, 100.0

    def now(self) -> float:
        return self.wall

    def steady(self) -> float:
        return self.passed

    def watch(self, advanced: Callable[[], None]) -> bool:
        return False


def test_a_moment_keeps_its_steady_time_until_the_wall_clock_is_set() -> None:
    clock = TwoClocks()
    times = SteadyTimes(clock)
    assert times.at(5010.0) == 110.0
    clock.wall, clock.passed = 5001.0, 101.02  # a pause between two readings
    assert times.at(5010.0) == 110.0
    clock.wall = 4001.0  # somebody sets it
    assert times.at(4010.0) == pytest.approx(110.02)


def test_timers_run_in_order_of_time_then_of_adding() -> None:
    done: list[tuple[int, int]] = []
    timers = Timers(lambda: None)
    tokens = [timers.add(due, lambda *call: done.append(call), number) for number, due in enumerate([3.0, 1.0, 3.0])]
    assert timers.due == 1.0
    timers.run(0.5)
    assert done == []
    timers.run(3.0)
    assert done == [(1, tokens[1]), (0, tokens[0]), (2, tokens[2])]
    assert timers.due is None


def test_a_timer_may_add_another_that_is_due_at_once() -> None:
    done: list[str] = []
    timers = Timers(lambda: None)

    def first(argument: int, token: int) -> None:
        done.append("first")
        timers.add(1.0, lambda argument, token: done.append("second"))

    timers.add(1.0, first)
    timers.run(1.0)
    assert done == ["first", "second"]


def test_timers_tell_when_something_comes_earlier() -> None:
    earlier: list[float | None] = []
    timers = Timers(lambda: earlier.append(timers.due))
    for due in (5.0, 7.0, 3.0, 3.0):
        timers.add(due, lambda argument, token: None)
    assert earlier == [5.0, 3.0]


def test_cancelled_timers_do_not_run_and_take_no_memory() -> None:
    done: list[int] = []
    timers = Timers(lambda: None)
    kept = timers.add(5.0, lambda argument, token: done.append(token))
    for _ in range(1000):
        timers.cancel(timers.add(1.0, lambda argument, token: done.append(token)))
    assert len(timers) < 100
    assert timers.due == 5.0
    timers.run(10.0)
    timers.cancel(kept)
    assert done == [kept]
    assert timers.due is None


async def test_timers_go_by_a_manual_clock_in_the_order_of_their_times() -> None:
    clock = ManualClock(100.0)
    timers, rung = LoopTimers(clock), list[str]()
    for name, delay in (("late", 2.0), ("early", 1.0), ("cancelled", 1.0), ("last", 9.0)):
        timer = timers.call_later(delay, partial(rung.append, name))
        if name == "cancelled":
            timer.cancel()
    await asyncio.sleep(0.01)
    assert rung == []
    clock.advance(2)
    await asyncio.sleep(0)
    assert rung == ["early", "late"]
    assert timers.milliseconds() == 102_000


async def test_a_sleep_ends_when_a_manual_clock_was_advanced_far_enough() -> None:
    clock = ManualClock()
    timers = LoopTimers(clock)
    sleeping = asyncio.ensure_future(timers.sleep(10))
    await asyncio.sleep(0)
    clock.advance(9.9)
    await asyncio.sleep(0)
    assert not sleeping.done()
    clock.advance(0.1)
    await sleeping


async def test_what_is_due_at_once_needs_no_advance() -> None:
    timers = LoopTimers(ManualClock())
    await timers.sleep(0)


async def test_a_cancelled_sleep_leaves_no_timer() -> None:
    clock = ManualClock()
    timers = LoopTimers(clock)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await timers.sleep(1)
    assert timers._manual is not None
    assert timers._manual.due is None


async def test_timers_of_the_machines_clock_are_the_loops() -> None:
    timers = LoopTimers(SystemClock())
    rung = asyncio.Event()
    timers.call_later(0.001, rung.set)
    async with asyncio.timeout(30):
        await rung.wait()
        await timers.sleep(0.001)
    assert abs(timers.milliseconds() - time.time() * 1000) < 60_000


async def test_a_sleep_by_the_machines_clock_takes_its_time_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, delays = asyncio.get_running_loop(), list[float]()
    call_later = loop.call_later

    def noted(delay: float, *call: Any) -> asyncio.TimerHandle:
        delays.append(delay)
        return call_later(delay, *call)

    monkeypatch.setattr(loop, "call_later", noted)
    await LoopTimers(SystemClock()).sleep(0.001)
    assert delays == [0.001]


def test_a_clock_that_outlives_a_loop_can_be_advanced() -> None:
    clock = ManualClock()

    async def make() -> None:
        LoopTimers(clock).call_later(1, lambda: None)

    asyncio.run(make())
    clock.advance(2)


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
    assert sorted(heap.remove_all()) == ["a", "b"]
    assert heap.remove_all() == [] and heap.due is None
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
