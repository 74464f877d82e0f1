"""Tasks end by themselves or are cancelled by the close, which has a bound."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.transport.pulsar.wire.connections.tasks import Tasks

pytestmark = pytest.mark.fast


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
