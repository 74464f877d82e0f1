"""Sends that wait leave in the order in which they began, and hold up nobody else."""

from __future__ import annotations

import asyncio

from jmsaio.client.senders.line import Lines


async def send(lines: Lines, sent: list[str], name: str, waits: asyncio.Event | None = None) -> None:
    """Send to topic ``name[0]``; ``waits``: for this when it is its turn."""
    async with lines.turn(name[0]):
        if waits is not None:
            await waits.wait()
        sent.append(name)


async def pause() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_they_leave_in_order_whatever_each_waits_for() -> None:
    lines, sent = Lines(), list[str]()
    room, more = asyncio.Event(), asyncio.Event()
    sends = [asyncio.create_task(send(lines, sent, "a0", room))]
    sends += [asyncio.create_task(send(lines, sent, f"a{number}")) for number in range(1, 150)]
    sends.append(asyncio.create_task(send(lines, sent, "a150", more)))
    sends += [asyncio.create_task(send(lines, sent, f"a{number}")) for number in range(151, 400)]
    await pause()
    assert sent == []
    assert "a" in lines
    room.set()
    await pause()
    assert sent == [f"a{number}" for number in range(150)]
    more.set()
    await asyncio.gather(*sends)
    assert sent == [f"a{number}" for number in range(400)]
    assert not lines


async def test_another_topic_waits_for_nobody() -> None:
    lines, sent, room = Lines(), list[str](), asyncio.Event()
    first = asyncio.create_task(send(lines, sent, "a", room))
    await pause()
    await send(lines, sent, "b")
    assert sent == ["b"]
    room.set()
    await first
    assert not lines


async def test_one_that_is_cancelled_leaves_its_place_and_the_others_their_order() -> None:
    lines, sent, room = Lines(), list[str](), asyncio.Event()
    sends = [asyncio.create_task(send(lines, sent, f"a{number}", room)) for number in range(6)]
    await pause()
    for number in (0, 3, 5):
        sends[number].cancel()
    await pause()
    room.set()
    await asyncio.wait(sends)
    assert sent == ["a1", "a2", "a4"]
    assert not lines
