"""A task ends when any other task asks it to, and the wait for it is bounded."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.client.lifetime import background_task
from jmsaio.client.lifetime.background_task import BackgroundTask
from jmsaio.client.lifetime.deadline import Deadline
from jmsaio.errors import OperationTimeoutError
from tests.kit.virtual_time import steady


async def test_the_request_returns_when_the_task_has_ended() -> None:
    task = BackgroundTask()

    async def run() -> None:
        await task.requested.wait()
        task.ended.set()

    running = asyncio.create_task(run())
    await task.end("the task", Deadline.after(10), 10)
    await running
    await task.end("the task", Deadline.after(10), 10)


async def test_the_earliest_deadline_of_all_requests_counts() -> None:
    task = BackgroundTask()
    task.ended.set()
    late, early = Deadline.after(100), Deadline.after(10)
    for deadline in (late, early, late):
        await task.end("the task", deadline, 10)
    assert task.deadline is early


async def test_a_task_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_task, "GRACE", 0.01)
    with pytest.raises(OperationTimeoutError, match="the task did not close within 3 s"):
        await BackgroundTask().end("the task", Deadline.after(0.01), 3)


async def test_a_problem_before_the_time_is_over_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is why the rest of the end has little time left."""
    monkeypatch.setattr(background_task, "GRACE", 0.01)
    task, problem = BackgroundTask(), OperationTimeoutError("a listener did not return")
    task.errors.error = problem
    with pytest.raises(OperationTimeoutError, match=r"within 3 s .*: a listener did not return") as caught:
        await task.end("the task", Deadline.after(0.01), 3)
    assert caught.value.__cause__ is problem
    task.errors.raise_once()  # a connection that closes after its session does not raise it again


async def test_no_one_waits_beyond_the_deadline() -> None:
    """What does not end is given up when the time is over, and not a while later."""
    began = steady()
    with pytest.raises(OperationTimeoutError):
        await BackgroundTask().end("the task", Deadline.after(10), 10)
    assert steady() - began == pytest.approx(10)
