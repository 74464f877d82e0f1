"""The mark of a running callback."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import pytest

from jmsaio.client.callbacks.callback_context import (
    CallbackContext,
    CallbackKind,
    SerialCalls,
    current,
    leave,
    listens,
    refuse,
)
from jmsaio.errors import IllegalStateError


def callback(kind: CallbackKind = CallbackKind.LISTENER) -> CallbackContext:
    return CallbackContext(kind, "connection", "session", "owner")


def test_the_mark_is_on_inside_only() -> None:
    assert current() is None
    with callback():
        mark = current()
        assert mark is not None and mark.session == "session"
    assert current() is None


@pytest.mark.parametrize("target", ["connection", "session", "owner"])
def test_own_targets_are_refused(target: str) -> None:
    refuse("close", target)
    with callback():
        refuse("close", "another")
        refuse("commit", target, (CallbackKind.COMPLETION,))
        with pytest.raises(IllegalStateError, match="close from its own MessageListener"):
            refuse("close", target)


async def test_child_tasks_carry_it_until_the_callback_ends() -> None:
    ended = asyncio.Event()
    found = []

    async def child() -> None:
        found.append(current() is not None)
        await ended.wait()
        found.append(current() is not None)

    with callback():
        task = asyncio.ensure_future(child())
        await asyncio.sleep(0)
    ended.set()
    await task
    assert found == [True, False]


async def test_leaving_ends_the_context_in_the_child_task_alone() -> None:
    async def child() -> bool:
        leave()
        return current() is None

    with callback():
        assert await asyncio.ensure_future(child())
        assert current() is not None


def test_a_listener_listens_to_its_session_only() -> None:
    assert not listens("session")
    with callback():
        assert listens("session") and listens("connection") and not listens("another")
    with callback(CallbackKind.COMPLETION):
        assert not listens("session")


def test_the_mark_ends_with_a_callback_that_raises_and_an_outer_one_is_on_again() -> None:
    outer, inner = callback(), callback(CallbackKind.COMPLETION)
    with outer:
        with pytest.raises(ValueError, match="raised"), inner:
            raise ValueError("raised")
        assert current() is outer and not inner.active


#: Maximum seconds for what is done at once.
LONG = 10.0


async def test_calls_are_made_in_order_and_one_at_a_time(caplog: pytest.LogCaptureFixture) -> None:
    calls, told = SerialCalls(), list[str]()

    async def slow(name: str) -> None:
        told.append(f"begin {name}")
        await asyncio.sleep(0)
        told.append(f"end {name}")
        if name == "a":
            raise ValueError("the first fails")

    for name in "ab":
        calls.add("a function", partial(slow, name))
    assert told == []
    await calls.wait(LONG)
    assert told == ["begin a", "end a", "begin b", "end b"]
    assert [record.message for record in caplog.records] == ["a function raised"]
    assert calls.count == 2


async def test_what_waits_is_bounded(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsaio.client.callbacks.callback_context._MOST", 2)
    calls, told = SerialCalls(), list[int]()

    async def tell(number: int) -> None:
        told.append(number)

    with caplog.at_level(logging.WARNING, "jmsaio"):
        for number in range(4):
            calls.add("a function", partial(tell, number))
    await calls.wait(LONG)
    assert told == [0, 1] and calls.count == 4
    assert [record.message for record in caplog.records] == ["a function is too slow; a call was dropped"] * 2


async def test_a_function_can_ask_whether_it_is_called_from_here() -> None:
    calls, other, found = SerialCalls(), SerialCalls(), list[bool]()

    async def ask() -> None:
        found.append(calls.called_from_here())
        found.append(other.called_from_here())

    calls.add("a function", ask)
    await calls.wait(LONG)
    assert found == [True, False] and not calls.called_from_here()
