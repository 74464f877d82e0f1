"""The window of a sender: it fills by records and bytes, and whoever waits for room goes on."""

from __future__ import annotations

import anyio
import pytest

from jmsaio.errors import OperationTimeoutError
from jmsaio.transport.pulsar.window import Window


def window(records: int = 4, size: int = 1000) -> Window:
    return Window(records, size, lambda: None)


async def test_room_comes_back_when_half_of_it_has_left() -> None:
    """Not record by record: whoever waits has something to do then."""
    one = window()
    for _ in range(4):
        one.add(10)
    assert one.full
    async with anyio.create_task_group() as group:
        group.start_soon(one.room, "t", 0.0)
        await anyio.lowlevel.checkpoint()
        one.remove(1, 10)
        await anyio.lowlevel.checkpoint()
        assert one._room
        one.remove(1, 10)
    assert not one.full


async def test_bytes_fill_it_too() -> None:
    one = window(size=15)
    one.add(10)
    assert not one.full
    one.add(10)
    assert one.full
    one.remove(2, 20)
    assert not one.full


async def test_what_is_in_doubt_has_its_outcome_and_takes_room() -> None:
    one = window(1)
    one.add(10)
    one.reported(1)
    with anyio.fail_after(5):
        await one.all_reported("t", 5.0)
    assert one.full


async def test_closing_lets_everybody_go_on() -> None:
    one = window(1)
    one.add(10)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(one.room, "t", 0.0)
            group.start_soon(one.all_reported, "t", 5.0)
            await anyio.lowlevel.checkpoint()
            one.close()


async def test_a_cancelled_wait_leaves_nothing() -> None:
    one = window(1)
    one.add(10)
    for waiting in (one.room, one.all_reported):
        with anyio.move_on_after(0.01):
            await waiting("t", 5.0)
    assert (len(one._room), len(one._all_reported)) == (0, 0)


async def test_no_room_and_no_outcome_in_time_are_errors() -> None:
    one = window(1)
    one.add(10)
    with pytest.raises(OperationTimeoutError, match=r"send to t: 1 messages before it have no answer within 0\.01 s"):
        await one.room("t", 0.01)
    with pytest.raises(OperationTimeoutError, match=r"1 records to t have no answer within 0\.01 s"):
        await one.all_reported("t", 0.01)
