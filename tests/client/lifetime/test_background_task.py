"""A task ends when any other task asks it to, and the wait for it is bounded."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.client.lifetime import background_task
from jmsaio.client.lifetime.background_task import Shutdown
from jmsaio.client.lifetime.deadline import Deadline
from jmsaio.errors import OperationTimeoutError


async def test_the_request_returns_when_the_task_has_ended() -> None:
    asked = Shutdown()

    async def run() -> None:
        await asked.requested.wait()
        asked.ended.set()

    task = asyncio.create_task(run())
    await asked.request("the task", Deadline.after(10), 10)
    await task
    await asked.request("the task", Deadline.after(10), 10)


async def test_the_earliest_deadline_of_all_requests_counts() -> None:
    asked = Shutdown()
    asked.ended.set()
    late, early = Deadline.after(100), Deadline.after(10)
    for deadline in (late, early, late):
        await asked.request("the task", deadline, 10)
    assert asked.deadline is early


async def test_a_task_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_task, "GRACE", 0.01)
    with pytest.raises(OperationTimeoutError, match="the task did not close within 3 s"):
        await Shutdown().request("the task", Deadline.after(0.01), 3)
