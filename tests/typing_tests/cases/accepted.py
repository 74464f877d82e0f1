"""Ordinary code: nothing here is an error."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Unpack, assert_type

import jmsaio
from jmsaio.config import ConnectOptions


async def sends(session: jmsaio.Session, queue: jmsaio.Queue) -> None:
    async with session.create_producer(queue) as producer, session.create_producer() as anonymous:
        for body in ("text", b"bytes", {"a": 1}, [1, "two"], jmsaio.TextMessage("x")):
            assert_type(await producer.send(body), jmsaio.Receipt)
        await anonymous.send(queue, "text", priority=5, time_to_live=1.5, properties={"n": 1})


async def receives(consumer: jmsaio.MessageConsumer) -> Iterable[str | None]:
    message = await consumer.receive(timeout=1)
    assert_type(message, jmsaio.Message | None)
    assert_type(await consumer.receive_body(str), str | None)
    texts = [] if message is None else [message.get_body(str)]
    async for one in consumer:
        assert_type(one, jmsaio.Message)
        assert_type(one.text, str | None)
        texts.append(one.text)
    return texts


async def simplified(context: jmsaio.Context) -> None:
    queue = context.create_queue("q")
    assert_type(queue, jmsaio.Queue)
    assert_type(context.create_text_message("x"), jmsaio.TextMessage)
    await context.create_producer().set_priority(5).send(queue, "x")
    await context.commit()


async def opens_from_a_factory(factory: jmsaio.ConnectionFactory) -> None:
    async with factory.create_connection() as connection, connection.create_session(jmsaio.AcknowledgeMode.CLIENT):
        assert_type(connection, jmsaio.Connection)
    async with factory.create_context(jmsaio.AcknowledgeMode.CLIENT) as context:
        assert_type(context, jmsaio.Context)
    assert_type(await factory.create_connection("user", "password"), jmsaio.Connection)
    assert_type(await factory.create_context(jmsaio.AcknowledgeMode.CLIENT, "user", "password"), jmsaio.Context)
    assert_type(await asyncio.create_task(factory.create_context()), jmsaio.Context)


async def passes_options_on(url: str, **options: Unpack[ConnectOptions]) -> None:
    async with jmsaio.connect(url, **options) as connection, connection.create_session() as session:
        await session.commit()


def properties_and_bodies(message: jmsaio.Message) -> None:
    message.properties.update({"region": "EU", "amount": 5}, weight=jmsaio.Float(0.5))
    message.properties.update([("region", "EU"), ("amount", 5)])
    message.properties.update(message.properties, more=True)
    message.properties = {"region": None}
    message.set_object_property("amount", jmsaio.Short(3))
    assert_type(message.get_object_property("amount"), bool | int | float | str | None)
    values = [True, 5, 1.5, "text", b"bytes", None]
    jmsaio.StreamMessage(values, properties={"region": "EU", "amount": 5}).write_object(jmsaio.Char("c"))
    jmsaio.MapMessage({"amount": 5, "data": b"bytes"})["region"] = "EU"


async def opens_in_tasks(session: jmsaio.Session, queue: jmsaio.Queue) -> None:
    assert_type(await session.create_consumer(queue), jmsaio.MessageConsumer)
    assert_type(await asyncio.create_task(session.create_consumer(queue)), jmsaio.MessageConsumer)
    assert_type(await asyncio.wait_for(session.create_browser(queue), 5), jmsaio.QueueBrowser)
    consumer, producer = await asyncio.gather(session.create_consumer(queue), session.create_producer(queue))
    assert_type(consumer, jmsaio.MessageConsumer)
    assert_type(producer, jmsaio.MessageProducer)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(session.create_producer(queue))
    assert_type(task.result(), jmsaio.MessageProducer)
    assert_type(asyncio.run(jmsaio.connect("memory:")), jmsaio.Connection)


async def names_of_jms_1_1(factory: jmsaio.ConnectionFactory, topic: jmsaio.Topic, queue: jmsaio.Queue) -> None:
    connection = await factory.create_topic_connection("user", "password")
    session = await connection.create_topic_session(False, jmsaio.AcknowledgeMode.CLIENT)
    assert_type(await session.create_durable_subscriber(topic, "s", "a = 1", True), jmsaio.MessageConsumer)
    assert_type(await session.create_receiver(queue), jmsaio.MessageConsumer)
    assert_type(await (await session.create_publisher(topic)).publish("x", priority=5), jmsaio.Receipt)
