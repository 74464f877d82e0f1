"""Turns of those who create a subscription and those who subscribe."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from jmsaio.errors import OperationTimeoutError
from jmsaio.transport.pulsar.admin import turns
from jmsaio.transport.pulsar.admin.turns import creating, subscribing

TOPIC = "persistent://public/default/t"
#: Seconds after which a turn never comes.
LONG = 20.0


async def settle() -> None:
    """Let everything that can go on go on."""
    for _ in range(5):
        await anyio.lowlevel.checkpoint()


class Visitor:
    """Somebody who takes a turn and keeps it until told to leave."""

    def __init__(self, turn: object, topic: str = TOPIC, name: str = "s", timeout: float = LONG) -> None:
        self.inside = False
        self.leave = asyncio.Event()
        self.task = asyncio.ensure_future(self._run(turn(topic, name, timeout)))  # type: ignore[operator] # one of two

    async def _run(self, turn: object) -> None:
        async with turn:  # type: ignore[attr-defined] # a context manager
            self.inside = True
            try:
                await self.leave.wait()
            finally:
                self.inside = False

    async def end(self) -> None:
        self.leave.set()
        await self.task


async def test_subscribers_do_not_wait_for_each_other() -> None:
    """Those who subscribe are inside at the same time; who creates waits until all have left."""
    first, second = Visitor(subscribing), Visitor(subscribing, f"{TOPIC}-partition-3")
    await settle()
    maker = Visitor(creating)
    await settle()
    assert first.inside and second.inside and not maker.inside
    await first.end()
    await settle()
    assert not maker.inside
    await second.end()
    await settle()
    assert maker.inside
    await maker.end()


async def test_who_creates_goes_first() -> None:
    """Who comes to subscribe after somebody who waits to create comes in after it, so that nobody waits for ever."""
    first = Visitor(subscribing)
    await settle()
    makers = [Visitor(creating), Visitor(creating)]
    late = Visitor(subscribing)
    await settle()
    await first.end()
    await settle()
    assert [one.inside for one in makers] == [True, False]
    await makers[0].end()
    await settle()
    assert makers[1].inside and not late.inside
    await makers[1].end()
    await settle()
    assert late.inside
    await late.end()


async def test_other_subscriptions_are_other_places() -> None:
    """Another name, or another topic, never waits."""
    visitors = [Visitor(creating), Visitor(creating, name="other"), Visitor(creating, f"{TOPIC}2")]
    await settle()
    assert all(one.inside for one in visitors)
    for one in visitors:
        await one.end()
    assert not turns._TURNS[asyncio.get_running_loop()]


async def test_a_turn_that_does_not_come() -> None:
    """The wait is bounded, and says what is waited for."""
    holder = Visitor(creating)
    await settle()
    for turn, words in ((creating, "create subscription s"), (subscribing, "subscribe s")):
        with pytest.raises(OperationTimeoutError, match=words):
            async with turn(TOPIC, "s", 0.01):
                pass
    await holder.end()
    await Visitor(subscribing).end()


async def test_a_cancelled_wait_leaves_no_trace() -> None:
    """Nobody waits for one who has given up."""
    holder = Visitor(subscribing)
    await settle()
    maker = Visitor(creating)
    await settle()
    maker.task.cancel()
    await settle()
    other = Visitor(subscribing)
    await settle()
    assert other.inside
    await other.end()
    await holder.end()
    assert not turns._TURNS[asyncio.get_running_loop()]
