"""What the exception listener is told, and when (jms-spec 5.5)."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator

import pytest

import jmsaio
from jmsaio.client.reports import Reports
from jmsaio.client.temporary import Temporaries


@pytest.fixture
async def owned(url: str) -> AsyncIterator[jmsaio.Connection]:
    """A connection of a factory that others may use, so that its close has nothing to wait for but itself."""
    async with jmsaio.ConnectionFactory(url) as factory:
        yield await factory.create_connection()


async def test_a_listener_may_close_its_connection_and_go_on(owned: jmsaio.Connection) -> None:
    done = asyncio.Event()

    async def listener(error: jmsaio.JMSError) -> None:
        await owned.close()
        await asyncio.sleep(0.01)
        done.set()

    owned.set_exception_listener(listener)
    owned.report(ValueError("broken"))
    await asyncio.wait_for(done.wait(), 20)
    assert owned.closed


async def test_what_fails_at_close_is_told_before_it_returns(
    owned: jmsaio.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    async def listener(error: jmsaio.JMSError) -> None:
        await asyncio.sleep(0.01)
        told.append(str(error))

    async def refuse(*arguments: object) -> None:
        raise jmsaio.AdminError("not now")

    owned.set_exception_listener(listener)
    async with owned.create_session() as session:
        for _ in range(3):
            await session.create_temporary_queue()
    with monkeypatch.context() as patched:
        patched.setattr(Temporaries, "_delete", refuse)
        await owned.close()
    assert told == ["not now"] * 3


async def test_a_listener_that_hangs_does_not_keep_a_connection_open() -> None:
    async with jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}") as factory:
        connection = await factory.create_connection()
        started, end = asyncio.Event(), asyncio.Event()

        async def listener(error: jmsaio.JMSError) -> None:
            started.set()
            await end.wait()

        connection.set_exception_listener(listener)
        connection.report(ValueError("broken"))
        await started.wait()
        await asyncio.wait_for(connection.close(), 10)
        end.set()
        await connection._reports.told(10)


async def test_reports_of_a_slow_listener_are_bounded(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jmsaio.client.reports._MOST", 2)
    told: list[str] = []
    reports = Reports(lambda error: told.append(str(error)))
    with caplog.at_level(logging.WARNING, "jmsaio"):
        for number in range(4):
            reports.add(jmsaio.JMSError(str(number)))
    await reports.told(10)
    assert told == ["0", "1"] and reports.count == 4
    assert ["too slow" in record.message for record in caplog.records].count(True) == 2
    reports.listener = None
    reports.add(jmsaio.JMSError("for nobody"))
    await reports.told(10)
    assert len(told) == 2


async def test_a_listener_that_raises_is_told_the_next(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    def listener(error: jmsaio.JMSError) -> None:
        told.append(str(error))
        raise RuntimeError("in the listener")

    reports = Reports(listener)
    for number in range(2):
        reports.add(ValueError(number))
    await reports.told(10)
    assert told == ["ValueError: 0", "ValueError: 1"]
    assert [record.message for record in caplog.records].count("the exception listener raised") == 2
