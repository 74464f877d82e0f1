"""Inboxes whose consumer is closed: they linger until all is settled, and a new consumer takes them over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.client.delivery.sharing import SharingReceiver
from jmsaio.client.lifetime.opening import Opening
from tests.client.helpers import fill, rest, take, text, texts

Name = Callable[[str], str]


async def opened(opening: Opening[jmsaio.MessageConsumer]) -> jmsaio.MessageConsumer:
    return await opening


async def test_a_new_consumer_takes_over_from_a_closed_one(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("adopt"))
    await fill(connection, queue, 4)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        first = await session.create_consumer(queue)
        await take(first, 2)
        await first.close()
        second = await session.create_consumer(queue)
        messages = await take(second, 2)
        assert texts(messages) == ["2", "3"]
        await messages[-1].acknowledge()
    assert await rest(connection, queue, wait=0.5) == []


async def test_recover_after_the_consumer_closed(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("recover"))
    await fill(connection, queue, 2)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        first = await session.create_consumer(queue)
        await take(first, 2)
        await first.close()
        await session.recover()
        second = await session.create_consumer(queue)
        messages = await take(second, 2)
        assert sorted(texts(messages)) == ["0", "1"]
        await messages[-1].acknowledge()


async def test_a_lingering_inbox_keeps_nothing_from_others(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("lingering"))
    await fill(connection, queue, 10)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        (first,) = await take(consumer, 1)
        await consumer.close()
        async with connection.create_session() as other, other.create_consumer(queue) as taker:
            found = texts(await take(taker, 9))
        assert sorted([*found, text(first)]) == [str(number) for number in range(10)]
        await first.acknowledge()
    assert await rest(connection, queue) == []


async def test_a_taken_over_inbox_obeys_the_new_selector(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("selector"))
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        await (await session.create_producer(queue)).send("a", properties={"n": 1})
        async with session.create_consumer(queue) as consumer:
            await take(consumer, 1)
        async with session.create_consumer(queue, selector="n = 2") as consumer:
            await session.recover()
            assert await consumer.receive(timeout=0.5) is None
    assert texts(await rest(connection, queue, 1)) == ["a"]


async def test_what_is_recovered_while_an_inbox_is_taken_over_obeys_the_new_selector(
    connection: jmsaio.Connection, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, resuming, recovered = jmsaio.Queue(name("meanwhile")), asyncio.Event(), asyncio.Event()
    resume = SharingReceiver.resume

    async def resume_late(self: SharingReceiver[Any], timeout: float) -> None:
        resuming.set()
        await recovered.wait()
        await resume(self, timeout)

    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        await (await session.create_producer(queue)).send("a", properties={"n": 1})
        async with session.create_consumer(queue, selector="n = 1") as consumer:
            await take(consumer, 1)
        monkeypatch.setattr(SharingReceiver, "resume", resume_late)
        opening = asyncio.create_task(opened(session.create_consumer(queue, selector="n = 2")))
        await resuming.wait()
        await session.recover()
        recovered.set()
        async with await opening as consumer, connection.create_session() as other:
            assert await consumer.receive(timeout=0.5) is None
            async with other.create_consumer(queue, selector="n = 1") as taker:
                (again,) = await take(taker, 1)
                assert again.get_int_property("JMSXDeliveryCount") == 2


@pytest.mark.parametrize("kind", ["shared", "shared_durable"])
async def test_a_inbox_that_could_not_be_taken_over_is_let_go(
    connection: jmsaio.Connection, name: Name, kind: str
) -> None:
    topic, subscription = jmsaio.Topic(name("claimed")), name("name")
    session = await connection.create_session(AcknowledgeMode.CLIENT)
    async with connection.create_session() as other:
        opening, others = (getattr(one, f"create_{kind}_consumer") for one in (session, other))
        consumer = await opening(topic, subscription)
        stays = await others(topic, subscription)
        producer = await other.create_producer(topic)
        for number in range(4):
            await producer.send(str(number))
        await take(consumer, 1)
        await consumer.close()
        with pytest.raises(jmsaio.JMSError, match="is active"):
            await opening(topic, subscription, selector="n = 1")
        await session.close()
        assert sorted(texts(await take(stays, 4))) == ["0", "1", "2", "3"]


async def test_a_cancelled_close_of_a_consumer_leaves_nothing(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("cancelled"))
    await fill(connection, queue, 3)
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await go_on.wait()

    async with connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        consumer.set_message_listener(listener)
        await asyncio.wait_for(entered.wait(), 20)
        closing = asyncio.ensure_future(consumer.close())
        await asyncio.sleep(0.05)
        closing.cancel()
        go_on.set()
        await asyncio.wait([closing])
    assert sorted(texts(await rest(connection, queue, 2))) == ["1", "2"]
