"""Queue browsers (jms-spec 11, seed 004)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import jmsaio

Name = Callable[[str], str]


async def test_browser(session: jmsaio.Session, connection: jmsaio.Connection, name: Name) -> None:
    queue = session.create_queue(name("browser"))
    async with session.create_producer(queue) as producer:
        for number in range(10):
            await producer.send(str(number), properties={"n": number})
    async with session.create_consumer(queue) as consumer:
        for _ in range(3):
            await consumer.receive(timeout=20)
    await asyncio.sleep(0.3)
    browser = await session.create_browser(queue)
    some = await session.create_browser(queue, "n >= 8")
    assert [message.get_body(str) async for message in browser] == [str(number) for number in range(3, 10)]
    assert [message.get_body(str) async for message in some] == ["8", "9"]
    enumeration = await browser.get_enumeration()
    assert [message.get_body(str) async for message in browser.stream()] == [str(number) for number in range(3, 10)]
    with pytest.raises(jmsaio.InvalidDestinationError):
        await session.create_browser(session.create_topic("t"))  # type: ignore[arg-type]  # what a caller may do
    async with session.create_consumer(queue) as consumer:
        messages = [await consumer.receive(timeout=20) for _ in range(7)]
        assert all(message and message.get_int_property("JMSXDeliveryCount") <= 2 for message in messages)
    await session.close()
    assert len(list(enumeration)) == 7
    with pytest.raises(jmsaio.ObjectClosedError):
        await browser.get_enumeration()


async def browsed(connection: jmsaio.Connection, queue: jmsaio.Queue, selector: str | None = None) -> list[str | None]:
    async with connection.create_session() as session, session.create_browser(queue, selector) as browser:
        return [message.get_body(str) async for message in browser]


async def test_the_limit_counts_what_is_examined(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("limited"))
    async with jmsaio.ConnectionFactory(url) as factory:
        first = await factory.create_connection()
        async with first.create_session() as session, session.create_producer(queue) as producer:
            for number in range(10):
                await producer.send(str(number), properties={"n": number})
        factory.queue_browser_read_max = 4
        second = await factory.create_connection()
        factory.set_queue_browser_read_max(-2)
        third = await factory.create_connection(queue_browser_read_max=6)
        fourth = await factory.create_connection()
        for connection, limit, seen in ((first, 0, 10), (second, 4, 4), (third, 6, 6), (fourth, -2, 10)):
            assert connection.queue_browser_read_max == connection.get_queue_browser_read_max() == limit
            assert await browsed(connection, queue) == [str(number) for number in range(seen)]
            assert await browsed(connection, queue, "n >= 3") == [str(number) for number in range(3, seen)]
        async with await factory.create_context(queue_browser_read_max=1) as context:
            async with await context.create_browser(queue) as browser:
                assert [message.get_body(str) async for message in browser.stream()] == ["0"]


async def test_a_stream_that_is_left_closes_its_reader(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("left"))
    async with session.create_producer(queue) as producer:
        for number in range(5):
            await producer.send(str(number))
    browser = await session.create_browser(queue)
    stream = browser.stream()
    assert (await anext(stream)).get_body(str) == "0"
    await stream.aclose()  # type: ignore[attr-defined]  # an asynchronous generator
    admin = session._runtime.connection.transport.admin
    assert admin is not None
    async with asyncio.timeout(20):
        while set((await admin.stats(f"persistent://public/default/{queue.name}")).subscriptions) != {"jms-queue"}:
            await asyncio.sleep(0.05)
