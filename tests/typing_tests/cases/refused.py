"""Mistakes: a marked line is an error under the rules of mypy and pyright that it names, and no other line is one."""

from __future__ import annotations

import jmsaio


async def typos(session: jmsaio.Session, context: jmsaio.Context, connection: jmsaio.Connection) -> None:
    await session.comit()  # error: attr-defined reportAttributeAccessIssue
    await context.comit()  # error: attr-defined reportAttributeAccessIssue
    await connection.clsoe()  # error: attr-defined reportAttributeAccessIssue
    context.create_queu("q")  # error: attr-defined reportAttributeAccessIssue
    producer = await session.create_producer()
    await producer.sennd("x")  # error: attr-defined reportAttributeAccessIssue
    context.create_producer().set_prioritty(4)  # error: attr-defined reportAttributeAccessIssue


async def options() -> None:
    await jmsaio.connect("memory:", sned_timeout=1)  # error: call-arg reportCallIssue
    await jmsaio.connect("memory:", send_timeout="soon")  # error: arg-type reportArgumentType
    await jmsaio.connect("memory:", expired_messages="keep")  # error: arg-type reportArgumentType


async def arguments(session: jmsaio.Session, consumer: jmsaio.MessageConsumer, context: jmsaio.Context) -> None:
    producer = await session.create_producer(jmsaio.Queue("q"))
    await producer.send(None)  # error: call-overload reportArgumentType
    await producer.send(object())  # error: call-overload reportArgumentType
    await producer.send("q", "x")  # error: call-overload reportArgumentType
    await producer.send("x", prority=5)  # error: call-overload reportCallIssue
    await context.create_producer().send("q", "x")  # error: call-overload reportArgumentType
    await session.create_consumer("q")  # error: arg-type reportArgumentType
    await consumer.receive(timeout="1")  # error: arg-type reportArgumentType


async def nothing_received(consumer: jmsaio.MessageConsumer) -> str | None:
    message = await consumer.receive(timeout=1)
    return message.get_body(str)  # error: union-attr reportOptionalMemberAccess


def properties(message: jmsaio.Message) -> None:
    message.set_object_property("amount", [5])  # error: arg-type reportArgumentType
    message.properties["amount"] = b"5"  # error: assignment reportArgumentType
    jmsaio.TextMessage("x", properties=["amount"])  # error: arg-type reportArgumentType
    jmsaio.BytesMessage().write_object({})  # error: arg-type reportArgumentType


async def missing_awaits(session: jmsaio.Session, queue: jmsaio.Queue) -> None:
    consumer = session.create_consumer(queue)
    await consumer.receive()  # error: attr-defined reportAttributeAccessIssue
    producer = session.create_producer(queue)
    await producer.send("x")  # error: arg-type reportArgumentType
    await producer.send("x", priority=5)  # error: arg-type reportArgumentType
