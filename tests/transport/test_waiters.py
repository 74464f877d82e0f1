"""Everyone who waits is woken once, and whoever was cancelled does not stand in the way."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.transport.waiters import Waiters


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
