"""Delayed messages on every kind of subscription."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

import jmsaio
from jmsaio.config import ConnectOptions
from jmsaio.transport.base import SubscriptionType
from tests.kit.inside import admin_of, inbox_of
from tests.support.broker import TestBroker

Name = Callable[[str], str]


@pytest.fixture
async def session_on_pulsar(pulsar_broker: TestBroker) -> AsyncIterator[jmsaio.Session]:
    async with jmsaio.connect(f"{pulsar_broker.url}&consumerConfig.receiverQueueSize=3") as connection:
        async with connection.create_session() as session:
            yield session


async def send(session: jmsaio.Session, topic: jmsaio.Topic, count: int, delay: float) -> None:
    async with session.create_producer(topic) as producer:
        for number in range(count):
            await producer.send(str(number), delivery_delay=delay)
        await producer.send("at once")


async def bodies(consumer: jmsaio.MessageConsumer, count: int) -> list[str | None]:
    return [await consumer.receive_body(str, timeout=30) for _ in range(count)]


@pytest.mark.broker
async def test_later_messages_pass_held_ones(session_on_pulsar: jmsaio.Session, name: Name) -> None:
    """More are held than the receiver queue takes, so their permits were given; and none is acknowledged."""
    topic, subscription = session_on_pulsar.create_topic(name("held")), name("sub")
    async with session_on_pulsar.create_durable_consumer(topic, subscription) as consumer:
        await send(session_on_pulsar, topic, 20, 4)
        assert await bodies(consumer, 1) == ["at once"]
        admin = admin_of(session_on_pulsar)
        assert await admin.backlog(f"persistent://public/default/{topic.name}", subscription) >= 20
        assert await bodies(consumer, 20) == [str(number) for number in range(20)]
        assert await consumer.receive(timeout=0.3) is None
    await session_on_pulsar.unsubscribe(subscription, topic)


@pytest.mark.broker
async def test_a_closed_consumer_gives_held_ones_back(session_on_pulsar: jmsaio.Session, name: Name) -> None:
    topic, subscription = session_on_pulsar.create_topic(name("held")), name("sub")
    async with session_on_pulsar.create_durable_consumer(topic, subscription) as consumer:
        await send(session_on_pulsar, topic, 5, 4)
        assert await bodies(consumer, 1) == ["at once"]
    async with session_on_pulsar.create_durable_consumer(topic, subscription) as consumer:
        assert await bodies(consumer, 5) == [str(number) for number in range(5)]
    await session_on_pulsar.unsubscribe(subscription, topic)


@pytest.mark.broker
async def test_an_acknowledgement_timeout_does_not_double_held_ones(pulsar_broker: TestBroker, name: Name) -> None:
    async with jmsaio.connect(f"{pulsar_broker.url}&consumerConfig.ackTimeoutMillis=1000") as connection:
        async with connection.create_session() as session:
            topic = session.create_topic(name("held"))
            async with session.create_consumer(topic) as consumer:
                await send(session, topic, 1, 4)
                assert await bodies(consumer, 2) == ["at once", "0"]
                assert await consumer.receive(timeout=1.5) is None


async def test_shared_simple_consumers_leave_the_delay_to_the_broker(url: str, name: Name) -> None:
    options: ConnectOptions = {"use_exclusive_subscriptions_for_simple_consumers": False}
    async with jmsaio.connect(url, **options) as connection, connection.create_session() as session:
        topic = session.create_topic(name("shared"))
        async with session.create_consumer(topic) as consumer:
            assert inbox_of(consumer).subscription.type is SubscriptionType.SHARED
            await send(session, topic, 2, 4)
            assert await bodies(consumer, 1) == ["at once"]
            assert sorted(map(str, await bodies(consumer, 2))) == ["0", "1"]


async def test_a_failover_subscription_delays_too(url: str, name: Name) -> None:
    options: ConnectOptions = {"topic_shared_subscription_type": "Failover"}
    async with jmsaio.connect(url, **options) as connection, connection.create_session() as session:
        topic = session.create_topic(name("failover"))
        async with session.create_shared_consumer(topic, name("sub")) as consumer:
            await send(session, topic, 2, 4)
            assert await bodies(consumer, 3) == ["at once", "0", "1"]
