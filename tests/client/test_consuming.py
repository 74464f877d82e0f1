"""Topic subscriptions: the five ways to consume, noLocal, unsubscribe (jms-spec 8, seed 002)."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

import jmsaio

Name = Callable[[str], str]


async def text(consumer: jmsaio.MessageConsumer, wait: float = 20) -> str | None:
    message = await consumer.receive(timeout=wait)
    return None if message is None else message.get_body(str)


async def test_simple_topic_consumers_each_get_all(session: jmsaio.Session, name: Name) -> None:
    topic = session.create_topic(name("simple"))
    producer = await session.create_producer(topic)
    await producer.send("before")
    async with session.create_consumer(topic) as one, session.create_consumer(topic) as two:
        await producer.send("a")
        await producer.send("b")
        for consumer in (one, two):
            assert [await text(consumer), await text(consumer)] == ["a", "b"]
            assert await text(consumer, 0.2) is None


async def test_durable_subscription_keeps_messages(url: str, name: Name) -> None:
    client, topic = name("client"), jmsaio.Topic(name("durable"))
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        consumer = await session.create_durable_consumer(topic, "sub")
        await consumer.close()
        producer = await session.create_producer(topic)
        await producer.send("kept")
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        async with session.create_durable_consumer(topic, "sub") as consumer:
            assert await text(consumer) == "kept"
            with pytest.raises(jmsaio.JMSError):
                await session.create_durable_consumer(topic, "sub")
            with pytest.raises(jmsaio.JMSError):
                await session.create_shared_durable_consumer(topic, "sub")
            with pytest.raises(jmsaio.IllegalStateError):
                await session.unsubscribe("sub")
        await session.unsubscribe("sub")
        with pytest.raises(jmsaio.InvalidDestinationError):
            await session.unsubscribe("sub", topic)


async def test_shared_consumers_share(session: jmsaio.Session, name: Name) -> None:
    topic = session.create_topic(name("shared"))
    async with (
        session.create_shared_consumer(topic, "group") as one,
        session.create_shared_consumer(topic, "group") as two,
    ):
        producer = await session.create_producer(topic)
        for number in range(20):
            await producer.send(str(number))
        found = []
        for consumer in (one, two):
            while (got := await text(consumer, 1.0)) is not None:
                found.append(got)
        assert sorted(found, key=int) == [str(number) for number in range(20)]
        with pytest.raises(jmsaio.JMSError):
            await session.create_shared_consumer(topic, "group", "x = 1")
    await producer.send("nobody")
    async with session.create_shared_consumer(topic, "group") as later:
        assert await text(later, 0.5) is None


async def test_shared_durable(session: jmsaio.Session, name: Name) -> None:
    topic, subscription = session.create_topic(name("shared-durable")), name("sub")
    one = await session.create_shared_durable_consumer(topic, subscription)
    await one.close()
    producer = await session.create_producer(topic)
    await producer.send("kept")
    async with session.create_shared_durable_consumer(topic, subscription) as again:
        assert await text(again) == "kept"
    await session.unsubscribe(subscription, topic)


async def test_no_local_case_1(url: str, name: Name) -> None:
    topic = jmsaio.Topic(name("case1"))
    async with jmsaio.connect(url, client_id=name("foo")) as connection, connection.create_session() as session:
        async with session.create_durable_consumer(topic, "bar", no_local=True) as consumer:
            await (await session.create_producer(topic)).send("own")
            assert await text(consumer, 0.5) is None


async def test_no_local_cases_2_and_3(url: str, name: Name) -> None:
    topic, client = jmsaio.Topic(name("case3")), name("foo")
    for step in range(3):
        async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
            if step == 1:  # the producer comes before the activation
                await (await session.create_producer(topic)).send("own, before")
            async with session.create_durable_consumer(topic, "bar", no_local=True) as consumer:
                assert await text(consumer, 0.5) is None
                if step < 2:
                    await (await session.create_producer(topic)).send("own")
                else:
                    async with jmsaio.connect(url) as other, other.create_session() as session2:
                        await (await session2.create_producer(topic)).send("foreign")
                    assert await text(consumer) == "foreign"


async def test_no_local_without_client_id(
    session: jmsaio.Session, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    topic = session.create_topic(name("no-client"))
    with caplog.at_level(logging.WARNING, "jmsaio"):
        async with session.create_durable_consumer(topic, name("bar"), no_local=True) as consumer:
            await (await session.create_producer(topic)).send("own")
            assert await text(consumer) == "own"
    assert [record for record in caplog.records if "noLocal has no effect" in record.message]


async def test_no_local_on_a_simple_consumer(url: str, session: jmsaio.Session, name: Name) -> None:
    topic = session.create_topic(name("no-local"))
    async with session.create_consumer(topic, no_local=True) as consumer:
        await (await session.create_producer(topic)).send("own")
        async with jmsaio.connect(url) as other, other.create_session() as session2:
            await (await session2.create_producer(topic)).send("foreign")
        assert await text(consumer) == "foreign"
        assert await text(consumer, 0.3) is None


async def test_multi_and_regex_destinations(session: jmsaio.Session, name: Name) -> None:
    stem = name("virtual")
    names = [f"{stem}-{letter}" for letter in "ab"]
    producer = await session.create_producer()
    for one in names:
        await producer.send(session.create_queue(one), one)
    async with session.create_consumer(session.create_queue("multi:" + ",".join(names))) as consumer:
        assert sorted([await text(consumer) or "", await text(consumer) or ""]) == names
    with pytest.raises(jmsaio.InvalidDestinationError):
        await producer.send(session.create_queue("multi:" + ",".join(names)), "refused")
    for one in names:
        await producer.send(session.create_queue(one), one)
    async with session.create_consumer(session.create_queue(f"regex:{stem}-.*:other")) as consumer:
        found: set[str | None] = set()
        while found != set(names):  # a broker may keep acknowledged messages for a new subscription
            found.add(await text(consumer))
            assert None not in found
