"""Unsubscribe: the named subscription and nothing else (jms-spec 8.4; the Java client's scan is the trap)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import jmsaio
from jmsaio.transport.base import Position

Name = Callable[[str], str]


async def test_another_topic_s_subscription_of_that_name_is_left_alone(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    subscription = name("same")
    topics = [session.create_topic(name(f"topic{index}")) for index in range(2)]
    await (await session.create_shared_durable_consumer(topics[1], subscription)).close()
    admin = connection.transport.admin
    assert admin is not None
    await admin.create_subscription(f"persistent://public/default/{topics[0].name}", subscription, Position.EARLIEST)
    producer = await session.create_producer(topics[1])
    await producer.send("kept")
    with pytest.raises(jmsaio.InvalidDestinationError, match="exists on 2 topics"):
        await session.unsubscribe(subscription)
    await session.unsubscribe(subscription, topics[0])
    async with session.create_shared_durable_consumer(topics[1], subscription) as consumer:
        assert await consumer.receive_body(str, timeout=20) == "kept"
    await session.unsubscribe(subscription)


async def test_what_is_no_durable_subscription(session: jmsaio.Session, name: Name) -> None:
    for wrong in ("", "jms-queue", name("unknown")):
        with pytest.raises(jmsaio.InvalidDestinationError):
            await session.unsubscribe(wrong)


async def test_one_that_another_connection_uses(url: str, session: jmsaio.Session, name: Name) -> None:
    topic, subscription = session.create_topic(name("used")), name("sub")
    async with jmsaio.connect(url) as other, other.create_session() as theirs:
        async with theirs.create_shared_durable_consumer(topic, subscription):
            with pytest.raises(jmsaio.IllegalStateError):
                await session.unsubscribe(subscription, topic)
    await session.unsubscribe(subscription, topic)
