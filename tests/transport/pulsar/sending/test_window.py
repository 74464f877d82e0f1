"""The window of a sender: it fills by records and bytes, and whoever waits for room goes on."""

from __future__ import annotations

import anyio

from jmsaio.transport.pulsar.sending.window import Window


def window(records: int = 4, size: int = 1000) -> Window:
    return Window(records, size, lambda: None)


async def test_room_comes_back_when_half_of_it_has_left() -> None:
    """Not record by record: whoever waits has something to do then."""
    one = window()
    for _ in range(4):
        one.add(10)
    assert one.full
    async with anyio.create_task_group() as group:
        group.start_soon(one.room)
        await anyio.lowlevel.checkpoint()
        one.leave(1, 10)
        await anyio.lowlevel.checkpoint()
        assert one._room
        one.leave(1, 10)
    assert not one.full


async def test_bytes_fill_it_too() -> None:
    one = window(size=15)
    one.add(10)
    assert not one.full
    one.add(10)
    assert one.full
    one.leave(2, 20)
    assert not one.full


async def test_what_is_in_doubt_has_its_outcome_and_takes_room() -> None:
    one = window(1)
    one.add(10)
    one.reported(1)
    with anyio.fail_after(5):
        await one.all_reported()
    assert one.full


async def test_closing_lets_everybody_go_on() -> None:
    one = window(1)
    one.add(10)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(one.room)
            group.start_soon(one.all_reported)
            await anyio.lowlevel.checkpoint()
            one.close()


async def test_a_cancelled_wait_leaves_nothing() -> None:
    one = window(1)
    one.add(10)
    for waiting in (one.room, one.all_reported):
        with anyio.move_on_after(0.01):
            await waiting()
    assert (len(one._room), len(one._all_reported)) == (0, 0)
