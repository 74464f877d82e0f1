"""Everything is closed, whatever goes wrong with some of it, and the first error is raised once."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.client.lifetime.deadline import Deadline
from jmsaio.client.lifetime.first_error import FirstError
from jmsaio.errors import JMSError, OperationTimeoutError


async def test_the_first_error_is_raised_once_after_all_calls() -> None:
    errors, called = FirstError(), []

    async def fail(number: int) -> None:
        called.append(number)
        raise JMSError(str(number))

    for number in range(3):
        await errors.guard(lambda number=number: fail(number))  # type: ignore[misc]  # mypy can't infer it
    assert called == [0, 1, 2]
    with pytest.raises(JMSError, match=r"^0$"):
        errors.raise_once()
    errors.raise_once()


async def test_other_errors_pass() -> None:
    async def fail() -> None:
        raise ValueError

    with pytest.raises(ValueError):
        await FirstError().guard(fail)


async def test_a_call_beyond_the_deadline_is_cancelled_and_kept_as_an_error() -> None:
    errors = FirstError()
    await errors.guard_within(Deadline.after(0.01), asyncio.Event().wait, "waiting")
    with pytest.raises(OperationTimeoutError, match="waiting did not end"):
        errors.raise_once()
