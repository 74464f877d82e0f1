"""Subscriptions that end with their consumers, whatever the broker offers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio
import pytest

import jmsaio
from jmsaio.client.lifetime.scope import Deadline
from jmsaio.errors import ConsumerBusyError
from jmsaio.transport.base import StartPosition
from tests.client.helpers import full_name
from tests.kit.inside import admin_of, runtime_of
from tests.support.broker import TestBroker

Name = Callable[[str], str]

#: Unsubscribing looks for a subscription in all topics of the namespace.
pytestmark = pytest.mark.small_namespace


async def left(connection: jmsaio.Connection, topic: jmsaio.Topic) -> set[str]:
    """The subscriptions of a topic."""
    admin = admin_of(connection)
    return set((await admin.stats(full_name(connection, topic))).subscriptions)


async def test_a_cancelled_opening_leaves_no_subscription(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    topic = session.create_topic(name("cancelled"))
    admin = admin_of(connection)
    await admin.create_topic(full_name(connection, topic), 2)

    async def opened(shared: bool) -> None:
        await (session.create_shared_consumer(topic, "group") if shared else session.create_consumer(topic))

    for milliseconds in (0, 1, 2, 4, 8):
        for shared in (False, True):
            with anyio.move_on_after(milliseconds / 1000) as scope:
                await opened(shared)
            task = asyncio.create_task(opened(shared))
            await asyncio.sleep(milliseconds / 1000)
            task.cancel()
            await asyncio.wait([task])
            if not (scope.cancelled_caught and task.cancelled()):  # it was ready before
                for inbox in list(runtime_of(session).inboxes.open):
                    await runtime_of(session).close_consumer(inbox, Deadline.after(5))
    async with asyncio.timeout(20):
        while await left(connection, topic):
            await asyncio.sleep(0.05)


@pytest.mark.broker
async def test_what_a_crash_left_of_a_shared_subscription_is_not_resumed(pulsar_broker: TestBroker, name: Name) -> None:
    async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
        topic = session.create_topic(name("crashed"))
        admin, full = admin_of(connection), full_name(connection, topic)
        await admin.create_subscription(full, "group-nd", StartPosition.EARLIEST)
        producer = await session.create_producer(topic)
        await producer.send("for those who crashed")
        async with session.create_shared_consumer(topic, "group") as consumer:
            await producer.send("new")
            assert await consumer.receive_body(str, timeout=20) == "new"
            async with session.create_shared_consumer(topic, "group") as second:  # it is not taken from the first
                await producer.send("newer")
                getting = [asyncio.ensure_future(one.receive_body(str, timeout=20)) for one in (consumer, second)]
                done, waiting = await asyncio.wait(getting, return_when=asyncio.FIRST_COMPLETED)
                assert [one.result() for one in done] == ["newer"]
                await asyncio.sleep(0.3)
                assert not any(one.done() for one in waiting)
        assert await left(connection, topic) == set()


async def test_a_durable_one_of_that_name_is_neither_taken_over_nor_deleted(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    topic, subscription = session.create_topic(name("named")), name("sub")
    await (await session.create_durable_consumer(topic, f"{subscription}-nd")).close()
    await (await session.create_producer(topic)).send("kept")
    with pytest.raises(ConsumerBusyError, match="durable"):
        await session.create_shared_consumer(topic, subscription)
    async with session.create_durable_consumer(topic, f"{subscription}-nd") as consumer:
        assert await consumer.receive_body(str, timeout=20) == "kept"
    await session.unsubscribe(f"{subscription}-nd")
