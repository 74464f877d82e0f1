"""The state of a connection, its callbacks and iterator, `Connection.ping` and ``wait``, on both brokers."""

from __future__ import annotations

import asyncio
import logging
import uuid

import anyio
import anyio.to_thread
import pytest

import jmsaio
from jmsaio import ConnectionState, StateChange
from jmsaio.client.factory import _Connecting
from jmsaio.testing import FaultProxy, embedded_broker
from tests.client.helpers import until
from tests.kit.broker_fixtures import Disturbed
from tests.support.broker import TestBroker

CONNECTING, CONNECTED = ConnectionState.CONNECTING, ConnectionState.CONNECTED
RECONNECTING, CLOSED = ConnectionState.RECONNECTING, ConnectionState.CLOSED
#: Seconds after which a test hangs: a change takes 10 at most, and more on a crowded machine.
LONG = 60.0


async def test_an_idle_connection_notices_an_outage_and_its_end(disturbed: Disturbed) -> None:
    """Nothing is open on it, as in a service that only answers a health check."""
    told: list[StateChange] = []
    async with jmsaio.connect(disturbed.url, on_state=told.append) as connection:
        assert connection.state is CONNECTED
        with disturbed.outage():
            lost = await until(connection, RECONNECTING)
            assert isinstance(lost.error, jmsaio.BrokerUnavailableError)
        assert (await until(connection, CONNECTED)).error is None
        assert await connection.ping(LONG) >= 0
    assert connection.state is CLOSED
    assert [change.state for change in told] == [CONNECTING, CONNECTED, RECONNECTING, CONNECTED, CLOSED]
    assert [change.error is None for change in told] == [True, True, False, True, True]


async def test_a_connection_counts_its_reconnects(disturbed: Disturbed) -> None:
    async with jmsaio.connect(disturbed.url) as connection:
        assert connection.stats() == jmsaio.ConnectionStats(
            state=CONNECTED, reconnects=0, sessions=0, producers=(), consumers=()
        )
        session = await connection.create_session()
        consumer = await session.create_consumer(session.create_queue(f"reconnects-{uuid.uuid4()}"))
        assert consumer.stats().reconnects == 0
        with disturbed.outage():
            await until(connection, RECONNECTING)
        await until(connection, CONNECTED)
        stats = connection.stats()
        assert (stats.reconnects, stats.consumers[0].reconnects) == (1, 1)
        later = await session.create_consumer(session.create_queue(f"reconnects-{uuid.uuid4()}"))
        assert later.stats().reconnects == 0
    with pytest.raises(jmsaio.ObjectClosedError):
        connection.stats()


async def test_a_connection_that_only_sends_notices_an_outage(disturbed: Disturbed) -> None:
    async with jmsaio.connect(disturbed.url) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue(f"state-{uuid.uuid4()}"))
        await producer.send("before")
        with disturbed.outage():
            await until(connection, RECONNECTING)
        await until(connection, CONNECTED)
        await producer.send("after")


@pytest.mark.broker
async def test_a_frozen_broker_is_noticed_though_its_connections_stay_open(pulsar_broker: TestBroker) -> None:
    """By connections with a consumer, with a producer and with nothing."""
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        url = f"{proxy.url}?webServiceUrl={pulsar_broker.web_service_url}"
        async with jmsaio.connect(url) as idle, jmsaio.connect(url) as sending, jmsaio.connect(url) as receiving:
            queue = jmsaio.Queue(f"state-{uuid.uuid4()}")
            session, other = await sending.create_session(), await receiving.create_session()
            await session.create_producer(queue)
            await other.create_consumer(queue)
            proxy.stall()
            for connection in (idle, sending, receiving):
                await until(connection, RECONNECTING)
                with pytest.raises(jmsaio.TransportError):
                    await connection.ping(0.5)
            proxy.resume()
            for connection in (idle, sending, receiving):
                await until(connection, CONNECTED)


@pytest.mark.broker
async def test_a_killed_broker_is_back_when_it_runs_again(own_broker: TestBroker) -> None:
    async with jmsaio.connect(own_broker.url) as connection:
        await anyio.to_thread.run_sync(own_broker.kill)
        await until(connection, RECONNECTING)
        await anyio.to_thread.run_sync(own_broker.start)
        await until(connection, CONNECTED)


async def test_the_iterator_begins_with_the_current_state_and_ends_with_closed(disturbed: Disturbed) -> None:
    async with jmsaio.connect(disturbed.url) as connection:
        changes = connection.state_changes()
        assert (await anext(changes)).state is CONNECTED
        waiting = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0.01)
    assert (await waiting).state is CLOSED
    assert [change async for change in changes] == []
    assert [change.state async for change in connection.state_changes()] == [CLOSED]


async def test_callbacks_are_plain_or_coroutine_functions_and_end_when_told() -> None:
    told: list[str] = []

    async def slow(change: StateChange) -> None:
        await asyncio.sleep(0.01)
        told.append(f"slow {change.state.value}")

    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection:
            connection.on_state(slow)
            stop = connection.on_state(lambda change: told.append(f"quick {change.state.value}"))
            with broker.faults.outage():
                await asyncio.sleep(1)
            await asyncio.sleep(1)
            stop()
    lost_and_back = ["slow reconnecting", "quick reconnecting", "slow connected", "quick connected"]
    assert told == [*lost_and_back, "slow closed"]


async def test_a_callback_that_raises_is_logged_and_one_may_close_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with embedded_broker() as broker:
        connection = await jmsaio.connect(broker.url)

        def broken(change: StateChange) -> None:
            raise ValueError("no callback")

        async def closing(change: StateChange) -> None:
            await connection.close()

        connection.on_state(broken)
        connection.on_state(closing)
        with broker.faults.outage():
            await until(connection, CLOSED)
        await asyncio.sleep(1)
    assert [record.message for record in caplog.records].count("a state callback raised") == 2
    with pytest.raises(jmsaio.ObjectClosedError):
        connection.on_state(broken)


async def test_wrong_arguments_are_named() -> None:
    async with jmsaio.connect("memory:") as connection:
        with pytest.raises(jmsaio.IllegalArgumentError, match="on_state must be a function of one StateChange"):
            connection.on_state(3)  # type: ignore[arg-type]  # what is refused
        with pytest.raises(jmsaio.IllegalArgumentError, match="timeout must be above 0 seconds, and is 0"):
            await connection.ping(0)
        with pytest.raises(jmsaio.IllegalArgumentError, match="wait"):
            await jmsaio.connect("memory:", wait=-1)
    with pytest.raises(jmsaio.ObjectClosedError):
        await connection.ping()


async def test_ping_says_that_the_broker_is_away(disturbed: Disturbed) -> None:
    async with jmsaio.connect(disturbed.url) as connection:
        assert await connection.ping(LONG) >= 0
        with disturbed.outage(), pytest.raises(jmsaio.TransportError):
            await connection.ping(2)


async def test_connecting_waits_for_a_broker_that_starts_later(
    disturbed: Disturbed, caplog: pytest.LogCaptureFixture
) -> None:
    with disturbed.outage():
        connecting = asyncio.ensure_future(jmsaio.connect(disturbed.url, wait=LONG))
        with caplog.at_level(logging.WARNING, "jmsaio"), anyio.fail_after(LONG):
            while not any("trying again for" in record.message for record in caplog.records):
                await asyncio.sleep(0.01)
    async with await connecting as connection:
        assert connection.state is CONNECTED


async def test_the_wait_for_a_broker_ends() -> None:
    told: list[ConnectionState] = []
    with embedded_broker() as broker, broker.faults.outage():
        with pytest.raises(jmsaio.BrokerUnavailableError):
            await jmsaio.connect(broker.url, wait=3, on_state=lambda change: told.append(change.state))
        await asyncio.sleep(0.1)
    assert told == [CONNECTING, CLOSED]


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(_Connecting(None, "secret", None))
