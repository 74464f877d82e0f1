"""What lives behind a session: lingering consumers, bounded closes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import fill, rest, take, texts

Name = Callable[[str], str]


async def test_a_listener_that_never_returns_bounds_the_close(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("stuck"))
    entered = asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await asyncio.sleep(3600)

    connection = await jmsaio.connect(url, close_timeout=0.2)
    await fill(connection, queue, 1)
    session = await connection.create_session()
    (await session.create_consumer(queue)).set_message_listener(listener)
    await asyncio.wait_for(entered.wait(), 20)
    with pytest.raises(jmsaio.OperationTimeoutError, match="did not return"):
        await session.close()
    assert session.closed
    await connection.close()
    async with jmsaio.connect(url) as again:
        assert texts(await rest(again, queue)) == ["0"]


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


async def test_many_idle_consumers(connection: jmsaio.Connection, name: Name, url: str) -> None:
    count = 100 if url.startswith("memory") else 10
    async with connection.create_session() as session:
        queue = session.create_queue(name("idle"))
        consumers = [await session.create_consumer(queue) for _ in range(count)]
        waiting = [asyncio.ensure_future(consumer.receive()) for consumer in consumers]
        await asyncio.sleep(0.05)
    assert await asyncio.wait_for(asyncio.gather(*waiting), 30) == [None] * count
