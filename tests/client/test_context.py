"""The simplified API (jms-spec 12)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import jmsaio

Name = Callable[[str], str]


class Listener:
    """Collects what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, Exception | None]] = []
        self.inside: list[object] = []

    async def on_completion(self, message: jmsaio.Message) -> None:
        await asyncio.sleep(0)
        self.told.append((message, None))

    def on_exception(self, message: jmsaio.Message, error: Exception) -> None:
        self.told.append((message, error))


async def test_context(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("context"))
    async with jmsaio.ConnectionFactory(url) as factory, await factory.create_context() as context:
        listener = Listener()
        producer = context.create_producer().set_property("n", 1).set_jms_type("t").set_priority(8)
        await producer.send(queue, "hello")
        await producer.set_async(listener).send(queue, {"k": 2})
        async with context.create_consumer(queue) as consumer:
            message = await consumer.receive(timeout=20)
            assert message is not None and message.get_body(str) == "hello"
            assert (message.properties["n"], message.jms_type, message.jms_priority) == (1, "t", 8)
            assert await consumer.receive_body(dict, timeout=20) == {"k": 2}
        async with context.create_context(jmsaio.AcknowledgeMode.CLIENT) as second:
            assert second.client_id is None
        with pytest.raises(jmsaio.IllegalStateError):
            await context.commit()
    with pytest.raises(jmsaio.ObjectClosedError):
        context.create_producer()
    assert len(listener.told) == 1


async def test_a_listener_may_create_a_consumer(url: str, name: Name) -> None:
    async with jmsaio.ConnectionFactory(url) as factory, await factory.create_context() as context:
        queue = context.create_queue(name("inside"))
        made: asyncio.Future[jmsaio.MessageConsumer] = asyncio.get_running_loop().create_future()

        async def listener(message: jmsaio.Message) -> None:
            made.set_result(await context.create_consumer(context.create_queue(name("second"))))

        (await context.create_consumer(queue)).set_message_listener(listener)
        await context.create_producer().send(queue, "x")
        assert not (await asyncio.wait_for(made, 20)).closed
