"""An application's functions are called one at a time, in order; what they raise is logged; their number is bounded."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import pytest

from jmsaio.client.callbacks.serial_calls import SerialCalls

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
    monkeypatch.setattr("jmsaio.client.callbacks.serial_calls._MOST", 2)
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
