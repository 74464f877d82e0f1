"""Everyone who waits is woken once; tasks end with their owner; coroutines run concurrently; long work is in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import anyio
import pytest

from jmsaio.errors import BrokerUnavailableError
from jmsaio.transport.waiting import Tasks, Waiters, in_slices, to_the_end, together


async def test_a_wake_lets_all_go_on_that_wait_and_no_later_one() -> None:
    waiters = Waiters()
    waiters.wake()  # with no one waiting it is lost
    waiting = [asyncio.ensure_future(waiters.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    waiters.wake()
    await asyncio.gather(*waiting)
    later = asyncio.ensure_future(waiters.wait())
    await asyncio.sleep(0)
    assert not later.done()
    waiters.wake()
    await later


async def test_a_cancelled_waiter_keeps_no_other_from_being_woken() -> None:
    waiters = Waiters()
    first, second = [asyncio.ensure_future(waiters.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert len(waiters) == 1
    waiters.wake()
    await second
    assert len(waiters) == 0


async def test_a_waiter_cancelled_in_the_turn_of_the_wake_keeps_no_other_from_being_woken() -> None:
    waiters = Waiters()
    first, second = [asyncio.ensure_future(waiters.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    first.cancel()
    waiters.wake()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_one_failure_ends_what_belongs_together() -> None:
    ended: list[int] = []

    async def give(number: int) -> int:
        return number

    async def fail() -> int:
        raise BrokerUnavailableError("no")

    async def hang() -> int:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(1)
        return 0

    assert await together(map(give, range(3))) == [0, 1, 2]
    with pytest.raises(BrokerUnavailableError):
        await together([hang(), fail(), hang()])
    assert ended == [1, 1]


@pytest.mark.parametrize("cancelled", [False, True])
async def test_each_turn_of_the_loop_has_one_step_and_cancelling_ends_none(cancelled: bool) -> None:
    done = list[int]()

    def work() -> Iterator[None]:
        for step in range(4):
            done.append(step)
            yield

    ended = in_slices(asyncio.get_running_loop(), work())
    assert done == [0]
    if cancelled:
        ended.cancel()
    for turn in range(1, 5):
        await asyncio.sleep(0)
        assert done == list(range(min(4, turn + 1)))
    await asyncio.sleep(0)
    assert ended.done() and ended.cancelled() is cancelled


async def test_work_that_takes_too_long_after_a_cancellation_is_cancelled() -> None:
    work = asyncio.ensure_future(asyncio.Event().wait())

    async def wait() -> bool:
        return await work

    task = asyncio.ensure_future(to_the_end(wait(), 0.01))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.cancelled()


@pytest.mark.parametrize("fails", [False, True])
async def test_work_is_done_to_the_end_before_a_cancellation_goes_on(fails: bool) -> None:
    answered, done = asyncio.Event(), list[str]()

    async def work() -> str:
        await answered.wait()
        done.append("work")
        if fails:
            raise BrokerUnavailableError("away")
        return "answer"

    task = asyncio.ensure_future(to_the_end(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    answered.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["work"]
    if fails:
        with pytest.raises(BrokerUnavailableError):
            await to_the_end(work())
    else:
        assert await to_the_end(work()) == "answer"


async def test_a_task_runs_and_is_forgotten() -> None:
    tasks, ran = Tasks(), asyncio.Event()

    async def work() -> None:
        ran.set()

    task = tasks.start(work())
    await task
    assert ran.is_set()
    await asyncio.sleep(0)
    assert task not in tasks._tasks


async def test_closing_cancels_and_awaits_all() -> None:
    tasks, left = Tasks(), list[int]()

    async def work(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            left.append(number)

    started = [tasks.start(work(number)) for number in range(3)]
    await asyncio.sleep(0)
    await tasks.aclose(10.0)
    assert sorted(left) == [0, 1, 2]
    assert all(task.cancelled() for task in started)
    await tasks.aclose(10.0)


@pytest.mark.parametrize("timeout", [0.0, -1.0])
async def test_closing_does_not_wait_for_a_task_that_does_not_end(timeout: float) -> None:
    tasks, released = Tasks(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await released.wait()

    task = tasks.start(work())
    await asyncio.sleep(0)
    await tasks.aclose(timeout)
    assert not task.done()
    released.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_started_while_closing_is_cancelled_too() -> None:
    """A task's last act can be to start another one."""
    tasks = Tasks()
    later: list[asyncio.Task[None]] = []

    async def wait() -> None:
        await asyncio.Event().wait()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            later.append(tasks.start(wait()))

    tasks.start(work())
    await asyncio.sleep(0)
    await tasks.aclose(10.0)
    assert later[0].cancelled()
