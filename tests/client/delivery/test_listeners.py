"""Message listeners of a session: served in turn, at no cost while nothing comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import jmsaio

Name = Callable[[str], str]


async def test_an_idle_listener_costs_nothing(session: jmsaio.Session, name: Name) -> None:
    consumer = await session.create_consumer(jmsaio.Queue(name("idle")))
    consumer.set_message_listener(lambda message: None)
    await asyncio.sleep(0.1)
    asked = 0
    give = session._runtime.callbacks.next_job

    def next_job() -> object:
        nonlocal asked
        asked += 1
        return give()

    session._runtime.callbacks.next_job = next_job  # type: ignore[assignment]  # counts on its way
    await asyncio.sleep(0.3)
    assert asked < 20


async def test_a_listener_may_close_another_consumer(session: jmsaio.Session, name: Name) -> None:
    queue = jmsaio.Queue(name("closes"))
    consumer, other = await session.create_consumer(queue), await session.create_consumer(jmsaio.Queue(name("other")))
    closed = asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        await other.close()
        closed.set()

    consumer.set_message_listener(listener)
    await (await session.create_producer(queue)).send("x")
    await asyncio.wait_for(closed.wait(), 10)


async def test_a_listener_whose_subscription_is_lost_is_reported(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("lost"))
    told: asyncio.Queue[jmsaio.JMSError] = asyncio.Queue()
    connection.set_exception_listener(told.put_nowait)
    async with connection.create_session() as session:
        consumer, other = await session.create_consumer(queue), await session.create_consumer(queue)
        consumer.set_message_listener(lambda message: None)
        lost = jmsaio.NotFoundError("the topic was deleted")
        for inbox in (consumer._inbox, other._inbox):
            inbox.fail(lost)
        session._runtime.callbacks.wake()
        assert await asyncio.wait_for(told.get(), 10) is lost
        with pytest.raises(jmsaio.NotFoundError, match="deleted"):
            await other.receive_no_wait()
