"""What a connection's children share: its identity, its warnings, its inboxes."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

import jmsaio
from tests.kit.inside import runtime_of

Name = Callable[[str], str]


async def test_a_client_id_becomes_part_of_the_connection_id(url: str, name: Name) -> None:
    async with jmsaio.connect(url) as connection:
        assert runtime_of(connection).connection_id == runtime_of(connection).uuid
    async with jmsaio.connect(url, client_id=name("client")) as connection:
        assert runtime_of(connection).connection_id == f"{name('client')}_{runtime_of(connection).uuid}"


async def test_the_same_warning_is_logged_once(connection: jmsaio.Connection, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "jmsaio"):
        runtime_of(connection).reports.warn_once("only once")
        runtime_of(connection).reports.warn_once("only once")
    assert [record.message for record in caplog.records] == ["only once"]


async def test_inboxes_are_those_of_open_consumers_and_of_closed_ones_with_unsettled_messages(
    connection: jmsaio.Connection, name: Name
) -> None:
    queue, runtime = jmsaio.Queue(name("inboxes")), runtime_of(connection)
    async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
        async with session.create_producer(queue) as producer:
            await producer.send("x")
        consumer = await session.create_consumer(queue)
        topics = [inbox.subscription.topics for inbox in runtime.all_inboxes()]
        assert topics == [(f"persistent://public/default/{queue.name}",)]
        message = await consumer.receive(timeout=20)
        assert message is not None
        await consumer.close()
        assert len(list(runtime.all_inboxes())) == 1
        await message.acknowledge()
        assert list(runtime.all_inboxes()) == []


async def test_half_of_the_bytes_that_are_received_in_advance_are_for_inboxes(name: Name) -> None:
    async with jmsaio.connect(f"memory://{name('bytes')}", receive_buffer_bytes=2_000_000) as connection:
        assert runtime_of(connection).inbox_bytes.each == 1_000_000


async def test_no_delivery_before_the_connection_is_started(name: Name) -> None:
    async with jmsaio.ConnectionFactory(f"memory://{name('stopped')}") as factory:
        connection = await factory.create_connection()
        assert runtime_of(connection).started is False
        await connection.start()
        assert runtime_of(connection).started is True
        await connection.stop()
        assert runtime_of(connection).started is False
