"""``LateAcker``: acknowledgements after the native consumer was closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import _pulsar
import anyio
import anyio.lowlevel
import pytest

from jmsaio.errors import BrokerUnavailableError
from jmsaio.transport.pulsar.consumers.late_acker import LateAcker
from jmsaio.transport.pulsar.native.bridge import Bridge
from tests.kit.native_fakes import FakeMessage

A, B, C, D = (FakeMessage(entry) for entry in range(4))


class Opened:
    """Native consumers that were opened: what each was told until it was closed."""

    def __init__(self) -> None:
        self.told: list[list[Any]] = []
        self.closed = 0
        self.failure: Exception | None = None

    async def open(self) -> Opened:
        await anyio.lowlevel.checkpoint()
        if self.failure is not None:
            raise self.failure
        self.told.append([])
        return self

    def acknowledge_async(self, message: Any, callback: None) -> None:
        self.told[-1].append(message)

    def negative_acknowledge(self, message: Any) -> None:
        raise AssertionError("closing gives back")

    def close_async(self, callback: Callable[[Any], None]) -> None:
        self.closed += 1
        callback(_pulsar.Result.Ok)


async def test_what_comes_together_goes_through_one_consumer_that_is_closed_then() -> None:
    opened = Opened()
    settler = LateAcker(Bridge(), opened.open, "s", 5)
    settler.acknowledge_async(A, None)
    settler.acknowledge_async(B, None)
    settler.negative_acknowledge(C)
    assert await settler.drained(5)
    assert (opened.told, opened.closed) == ([[A, B]], 1)
    settler.acknowledge_async(D, None)
    await settler.aclose(5)
    assert (opened.told, opened.closed) == ([[A, B], [D]], 2)
    assert await settler.drained(0)


async def test_what_can_not_be_sent_is_an_error_and_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    opened = Opened()
    opened.failure = BrokerUnavailableError("gone")
    settler = LateAcker(Bridge(), opened.open, "close t", 5)
    settler.acknowledge_async(A, None)
    assert await settler.drained(5)
    assert isinstance(settler.failure, BrokerUnavailableError)
    assert "will be redelivered" in caplog.text
    opened.failure = None
    settler.acknowledge_async(B, None)
    assert await settler.drained(5)
    assert opened.told == [[B]]


async def test_closing_is_bounded() -> None:
    async def never() -> Opened:
        await anyio.sleep_forever()
        raise AssertionError

    settler = LateAcker(Bridge(), never, "s", 5)
    settler.acknowledge_async(A, None)
    assert not await settler.drained(0.01)
    with anyio.fail_after(5):
        await settler.aclose(0.01)
        await settler.drained(5)


async def test_what_is_held_goes_to_the_consumer_that_is_opened_anew() -> None:
    opened, anew = Opened(), Opened()
    anew.told.append([])
    settler = LateAcker(Bridge(), opened.open, "s", 5, holding=True)
    assert await settler.drained(0)
    settler.acknowledge_async(A, None)
    assert not await settler.drained(0.01)
    assert settler.hand_over(anew)
    assert not settler.hand_over(anew)
    assert await settler.drained(5)
    assert (opened.told, anew.told) == ([], [[A]])


async def test_what_is_held_is_told_by_itself_when_nothing_is_opened_anew() -> None:
    opened = Opened()
    settler = LateAcker(Bridge(), opened.open, "s", 5, holding=True)
    settler.acknowledge_async(A, None)
    settler.flush()
    settler.acknowledge_async(B, None)
    assert await settler.drained(5)
    assert opened.told == [[A, B]]
