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
