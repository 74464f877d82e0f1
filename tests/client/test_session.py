"""Acknowledgement, recovery, transactions and listeners (jms-spec 6 and 7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import fill, rest, take, texts

Name = Callable[[str], str]


async def test_client_acknowledge_settles_the_whole_session(
    connection: jmsaio.Connection, name: Name, url: str
) -> None:
    queue = jmsaio.Queue(name("client"))
    await fill(connection, queue, 5)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 4)
        await messages[0].acknowledge()
        await messages[0].acknowledge()
        await take(consumer, 1)
    left = await rest(connection, queue)
    assert texts(left) == ["4"]
    # Pulsar forgets its count when the last consumer of a subscription leaves
    assert left[0].jms_redelivered is url.startswith("memory")


async def test_group_scope_settles_up_to_the_message(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("group"))
    await fill(connection, queue, 4)
    async with connection.create_session(AcknowledgeMode.CLIENT, acknowledge_scope="group") as session:
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 4)
        await messages[1].acknowledge()
    assert sorted(texts(await rest(connection, queue))) == ["2", "3"]


async def test_individual_settles_one(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("individual"))
    await fill(connection, queue, 3)
    async with connection.create_session(AcknowledgeMode.INDIVIDUAL) as session:
        assert session.acknowledge_mode is AcknowledgeMode.CLIENT
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 3)
        await messages[1].acknowledge()
    assert sorted(texts(await rest(connection, queue))) == ["0", "2"]


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK])
async def test_self_acknowledging(connection: jmsaio.Connection, name: Name, mode: AcknowledgeMode) -> None:
    queue = jmsaio.Queue(name("auto"))
    await fill(connection, queue, 3)
    async with connection.create_session(mode) as session:
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 2)
        await messages[0].acknowledge()
        await session.recover()
    assert texts(await rest(connection, queue)) == ["2"]
    with pytest.raises(jmsaio.IllegalStateError):
        await messages[0].acknowledge()


async def test_recover_keeps_the_order(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("recover"))
    await fill(connection, queue, 6)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        first = await take(consumer, 3)
        assert [message.jms_redelivered for message in first] == [False] * 3
        await session.recover()
        again = await take(consumer, 6)
        assert texts(again) == ["0", "1", "2", "3", "4", "5"]
        assert [message.jms_redelivered for message in again] == [True] * 3 + [False] * 3
        assert [message.get_int_property("JMSXDeliveryCount") for message in again] == [2, 2, 2, 1, 1, 1]
        await again[-1].acknowledge()
    assert await rest(connection, queue, wait=1.0) == []


async def test_closed_consumer_leaves_its_messages_to_the_session(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("linger"))
    await fill(connection, queue, 3)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 3)
        await consumer.close()
        await messages[0].acknowledge()
    assert await rest(connection, queue, wait=1.0) == []


async def test_unacknowledged_messages_come_again(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("unacknowledged"))
    await fill(connection, queue, 2)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        await take(await session.create_consumer(queue), 2)
    assert sorted(texts(await rest(connection, queue))) == ["0", "1"]


async def test_wrong_state_calls(connection: jmsaio.Connection) -> None:
    async with connection.create_session() as session:
        for call in (session.commit, session.rollback):
            with pytest.raises(jmsaio.IllegalStateError):
                await call()
    with pytest.raises(jmsaio.JMSError):
        await connection.create_session(17)
    for use in (lambda: session.create_queue("q"), session.create_text_message, lambda: session.transacted):
        with pytest.raises(jmsaio.ObjectClosedError):
            use()
    await session.close()
