"""Mistakes: each line with a mark is an error of that kind, and no other line is one."""

from __future__ import annotations

import jmsaio


async def typos(session: jmsaio.Session, context: jmsaio.Context, connection: jmsaio.Connection) -> None:
    await session.comit()  # error: [attr-defined]
    await context.comit()  # error: [attr-defined]
    await connection.clsoe()  # error: [attr-defined]
    context.create_queu("q")  # error: [attr-defined]
    producer = await session.create_producer()
    await producer.sennd("x")  # error: [attr-defined]
    context.create_producer().set_prioritty(4)  # error: [attr-defined]


async def options() -> None:
    await jmsaio.connect("memory:", sned_timeout=1)  # error: [call-arg]
    await jmsaio.connect("memory:", send_timeout="soon")  # error: [arg-type]
    await jmsaio.connect("memory:", expired_messages="keep")  # error: [arg-type]


async def arguments(session: jmsaio.Session, consumer: jmsaio.MessageConsumer, context: jmsaio.Context) -> None:
    producer = await session.create_producer(jmsaio.Queue("q"))
    await producer.send(None)  # error: [call-overload]
    await producer.send(object())  # error: [call-overload]
    await producer.send("q", "x")  # error: [call-overload]
    await producer.send("x", prority=5)  # error: [call-overload]
    await context.create_producer().send("q", "x")  # error: [call-overload]
    await session.create_consumer("q")  # error: [arg-type]
    await consumer.receive(timeout="1")  # error: [arg-type]


async def nothing_received(consumer: jmsaio.MessageConsumer) -> str | None:
    message = await consumer.receive(timeout=1)
    return message.get_body(str)  # error: [union-attr]
