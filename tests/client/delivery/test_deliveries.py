"""Unsettled deliveries are redelivered, counted; undelivered messages go back uncounted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import fill, rest, take, texts

Name = Callable[[str], str]


@pytest.fixture
async def transacting(url: str) -> AsyncIterator[jmsaio.Connection]:
    """A connection that may have transacted sessions, of whatever kind its broker offers."""
    async with jmsaio.connect(url, emulate_transactions=url.startswith("pulsar")) as connection:
        yield connection


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.TRANSACTED])
async def test_a_closed_consumer_takes_nothing_more(
    transacting: jmsaio.Connection, name: Name, mode: AcknowledgeMode
) -> None:
    """What it did not deliver, and what is sent later, comes to others in order, unseen; the rest stays its own."""
    connection, queue = transacting, jmsaio.Queue(name("closed"))
    await fill(connection, queue, 20)
    async with connection.create_session(mode) as session:
        consumer = await session.create_consumer(queue)
        kept = await take(consumer, 2)
        await consumer.close()
        async with connection.create_session() as other, other.create_consumer(queue) as taker:
            found = await take(taker, 18)
            assert texts(found) == [str(number) for number in range(2, 20)]
            await fill(connection, queue, 3)
            found += await take(taker, 3)
            assert {message.jms_redelivered for message in found} == {False}
            assert {message.get_int_property("JMSXDeliveryCount") for message in found} == {1}
            assert await taker.receive(timeout=0.5) is None
            if mode is AcknowledgeMode.TRANSACTED:
                await session.commit()
            else:
                for message in kept:
                    await message.acknowledge()
            assert await taker.receive(timeout=0.5) is None
    assert await rest(connection, queue, wait=0.5) == []


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.TRANSACTED])
@pytest.mark.parametrize("how", ["given back", "session closed"])
async def test_unsettled_deliveries_of_a_closed_consumer_are_redelivered_marked(
    transacting: jmsaio.Connection, name: Name, mode: AcknowledgeMode, how: str
) -> None:
    connection, queue = transacting, jmsaio.Queue(name("marked"))
    await fill(connection, queue, 5)
    session = await connection.create_session(mode)
    consumer = await session.create_consumer(queue)
    await take(consumer, 2)
    await consumer.close()
    async with connection.create_session() as other, other.create_consumer(queue) as taker:
        assert texts(await take(taker, 3)) == ["2", "3", "4"]
        if how == "session closed":
            await session.close()
        elif mode is AcknowledgeMode.TRANSACTED:
            await session.rollback()
        else:
            await session.recover()
        again = await take(taker, 2)
        assert sorted(texts(again)) == ["0", "1"]
        assert {message.jms_redelivered for message in again} == {True}
        assert {message.get_int_property("JMSXDeliveryCount") for message in again} == {2}
    await session.close()
    assert await rest(connection, queue, wait=0.5) == []


async def test_what_no_application_saw_is_no_dead_letter(connection: jmsaio.Connection, name: Name) -> None:
    """Consumers that close with prefetched messages and a delivery that is not settled count nothing for the rest."""
    policy = "consumerConfig.deadLetterPolicy.maxRedeliverCount=1&consumerConfig.deadLetterPolicy.deadLetterTopic="
    dead = jmsaio.Queue(name("unseen-dead"))
    queue = jmsaio.Queue(f"{name('unseen')}?{policy}{dead.name}")
    async with connection.create_session() as other:
        letters = await other.create_consumer(dead)
        await fill(connection, queue, 20)
        sessions = []
        for _ in range(4):
            session = await connection.create_session(AcknowledgeMode.CLIENT)
            sessions.append(session)
            consumer = await session.create_consumer(queue)
            await take(consumer, 1)
            await consumer.close()
        taker = await other.create_consumer(queue)
        assert sorted(texts(await take(taker, 16)), key=int) == [str(number) for number in range(4, 20)]
        assert await letters.receive(timeout=0.5) is None
        for session in sessions:
            await session.close()
        assert sorted(texts(await take(taker, 4)), key=int) == [str(number) for number in range(4)]


async def test_a_closed_sessions_deliveries_are_redelivered_marked(connection: jmsaio.Connection, name: Name) -> None:
    """To a consumer that lives; what its consumer had not delivered is not marked."""
    queue = jmsaio.Queue(name("session"))
    session = await connection.create_session(AcknowledgeMode.CLIENT)
    consumer = await session.create_consumer(queue)
    await fill(connection, queue, 5)
    await take(consumer, 2)
    async with connection.create_session() as other, other.create_consumer(queue) as taker:
        await session.close()
        again = {message.get_body(str): message.jms_redelivered for message in await take(taker, 5)}
    assert again == {"0": True, "1": True, "2": False, "3": False, "4": False}


@pytest.mark.parametrize("kind", ["queue", "durable", "delayed"])
@pytest.mark.parametrize("how", ["consumer", "session"])
async def test_what_was_recovered_and_not_delivered_again_comes_to_others_marked(
    url: str, name: Name, kind: str, how: str
) -> None:
    """It stood first in line of its consumer, or was held for its delay, when the consumer or the session closed."""
    delay = {"consumerConfig": {"negativeAckRedeliveryDelayMicros": 60_000_000}} if kind == "delayed" else {}
    async with jmsaio.connect({**delay, "brokerServiceUrl": url}, client_id=name("id")) as connection:
        place = jmsaio.Queue(name("first")) if kind == "queue" else jmsaio.Topic(name("first"))

        async def consume(session: jmsaio.Session) -> jmsaio.MessageConsumer:
            if isinstance(place, jmsaio.Queue):
                return await session.create_consumer(place)
            return await session.create_durable_consumer(place, "first")

        session = await connection.create_session(AcknowledgeMode.CLIENT)
        consumer = await consume(session)
        await fill(connection, place, 3)
        await take(consumer, 2)
        await session.recover()
        await (consumer if how == "consumer" else session).close()
        async with connection.create_session() as other:
            found = await take(await consume(other), 3)
        await session.close()
        counts = {message.get_body(str): message.get_int_property("JMSXDeliveryCount") for message in found}
        assert counts == {"0": 2, "1": 2, "2": 1}
        assert [message.jms_redelivered for message in found] == [count > 1 for count in counts.values()]
