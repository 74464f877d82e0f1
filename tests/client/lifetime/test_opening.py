"""``await`` and ``async with`` on the same call."""

from __future__ import annotations

import pytest

from jmsaio.client.lifetime.opening import Opening


class Thing:
    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


async def make() -> Thing:
    return Thing()


async def fail() -> Thing:
    raise ZeroDivisionError


async def test_await_leaves_closing_to_the_caller() -> None:
    thing = await Opening(make())
    assert thing.closed == 0


async def test_async_with_closes_once() -> None:
    async with Opening(make()) as thing:
        assert thing.closed == 0
    assert thing.closed == 1


async def test_errors_of_making_and_of_the_block_pass() -> None:
    with pytest.raises(ZeroDivisionError):
        async with Opening(fail()):
            raise AssertionError("not reached")
    with pytest.raises(KeyError):
        async with Opening(make()) as thing:
            raise KeyError
    assert thing.closed == 1
