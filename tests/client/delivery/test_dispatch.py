"""The dispatch coroutine."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from types import SimpleNamespace

import attrs
import pytest

from jmsaio.client.delivery import dispatch
from jmsaio.client.delivery.dispatch import Dispatch
from jmsaio.client.delivery.filter import Filter, parse_selector


@attrs.define(eq=False)
class Inbox:
    """Says how often it wants to be filled."""

    fills: int
    filled: int = 0
    wanted: bool = True
    filter: Filter = attrs.field(factory=Filter)

    def fill(self) -> bool:
        self.filled += 1
        return self.filled < self.fills


async def run(dispatch: Dispatch, inboxes: list[Inbox]) -> None:
    task = asyncio.ensure_future(dispatch.run())
    for inbox in inboxes:
        await asyncio.wait_for(dispatch.turn(inbox), 5)  # type: ignore[arg-type]  # what dispatch uses of one
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_channels_are_filled_until_they_have_enough() -> None:
    filled: list[None] = []
    inboxes = [Inbox(1), Inbox(20)]
    await run(Dispatch(lambda: filled.append(None)), inboxes)
    assert [inbox.filled for inbox in inboxes] == [1, 20]
    assert len(filled) >= 4  # after each inbox, and after each 8 fills


async def test_a_forgotten_channel_is_not_filled() -> None:
    one, gone = Dispatch(lambda: None), Inbox(1)
    one.mark(gone)  # type: ignore[arg-type]  # what dispatch uses of one
    one.forget(gone)  # type: ignore[arg-type]  # what dispatch uses of one
    await run(one, [Inbox(1)])
    assert gone.filled == 0


@attrs.define(eq=False)
class Slow(Inbox):
    """Each fill takes its time."""

    def fill(self) -> bool:
        time.sleep(0.02)
        return super().fill()


async def test_others_have_their_turn_between_long_fills() -> None:
    """As long as one inbox has more, however few fills that is."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.ensure_future(others())
    await run(Dispatch(lambda: None), [Slow(5)])
    task.cancel()
    assert turns >= 5


async def test_a_turn_of_a_session_that_has_ended_does_not_wait() -> None:
    dispatch = Dispatch(lambda: None)
    await run(dispatch, [Inbox(1)])
    await asyncio.wait_for(dispatch.turn(Inbox(1)), 5)  # type: ignore[arg-type]  # what dispatch uses of one


async def test_a_turn_ends_with_the_session_and_a_cancelled_one_harms_no_one() -> None:
    dispatch = Dispatch(lambda: None)
    task = asyncio.ensure_future(dispatch.run())
    await asyncio.sleep(0)
    for cancelled in (True, False):
        turn = asyncio.ensure_future(dispatch.turn(Inbox(1)))  # type: ignore[arg-type]  # what dispatch uses of one
        await asyncio.sleep(0)
        if cancelled:
            turn.cancel()
            await asyncio.sleep(0.01)
    assert not task.done()
    task.cancel()
    await asyncio.wait_for(turn, 5)
    with suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(("seconds", "turns"), [(0.0, [8, 16, 20]), (0.006, [*range(2, 21, 2), 20])])
async def test_callbacks_and_other_tasks_have_their_turn_after_eight_fills_or_ten_milliseconds(
    monkeypatch: pytest.MonkeyPatch, seconds: float, turns: list[int]
) -> None:
    inbox, loop = Inbox(20), asyncio.get_running_loop()
    told: list[int] = []
    others: list[int] = []

    def filled() -> None:
        told.append(inbox.filled)
        loop.call_soon(lambda: others.append(inbox.filled))

    monkeypatch.setattr(dispatch, "time", SimpleNamespace(perf_counter=lambda: 1000.0 + seconds * inbox.filled))
    await run(Dispatch(filled), [inbox])
    assert told == others == turns


async def test_what_is_announced_to_a_receive_that_waits_is_there_at_once() -> None:
    """Also where there is more than one fill takes: the rest is filled by the coroutine."""
    filled: list[None] = []
    one, inbox = Dispatch(lambda: filled.append(None)), Inbox(3)
    one.announce(inbox)  # type: ignore[arg-type]  # what dispatch uses of one
    assert (inbox.filled, len(filled)) == (1, 1)
    await run(one, [Inbox(1)])
    assert inbox.filled == 3


@pytest.mark.parametrize(
    "inbox",
    [Inbox(1, wanted=False), Inbox(1, filter=Filter(parse_selector("a = 1")))],
    ids=["no one waits", "a selector"],
)
async def test_what_costs_something_is_filled_by_the_coroutine(inbox: Inbox) -> None:
    one = Dispatch(lambda: None)
    one.announce(inbox)  # type: ignore[arg-type]  # what dispatch uses of one
    assert inbox.filled == 0
    await run(one, [Inbox(1)])
    assert inbox.filled == 1


async def test_an_announced_inbox_is_not_filled_before_those_that_wait_for_their_turn() -> None:
    one, first, second = Dispatch(lambda: None), Inbox(1), Inbox(1)
    one.mark(first)  # type: ignore[arg-type]  # what dispatch uses of one
    one.announce(second)  # type: ignore[arg-type]  # what dispatch uses of one
    assert (first.filled, second.filled) == (0, 0)
    await run(one, [Inbox(1)])
    assert (first.filled, second.filled) == (1, 1)


async def test_an_error_in_a_fill_ends_the_dispatch_whoever_filled() -> None:
    @attrs.define(eq=False)
    class Broken(Inbox):
        def fill(self) -> bool:
            raise RuntimeError("broken")

    one = Dispatch(lambda: None)
    one.announce(Broken(1))  # type: ignore[arg-type]  # what dispatch uses of one
    with pytest.raises(RuntimeError, match="broken"):
        await asyncio.wait_for(one.run(), 5)
