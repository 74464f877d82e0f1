"""The mark of a running callback."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.client.callbacks.callback_context import (
    CallbackContext,
    CallbackKind,
    current,
    listens,
    refuse,
    unmark,
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
        unmark()
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
