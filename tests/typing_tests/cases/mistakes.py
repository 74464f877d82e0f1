"""29 mistakes that newcomers make, marked as in ``refused.py``: each of them is one line."""

from __future__ import annotations

from datetime import datetime

import jmsaio


async def wrong_modes(
    connection: jmsaio.Connection, factory: jmsaio.ConnectionFactory, producer: jmsaio.MessageProducer
) -> None:
    await connection.create_session(jmsaio.DeliveryMode.PERSISTENT)  # error: arg-type reportArgumentType
    await connection.create_session(2)  # error: arg-type reportArgumentType
    await connection.create_session("CLIENT")  # error: arg-type reportArgumentType
    print(jmsaio.AcknowledgeMode.CLIENT_ACKNOWLEDGE)  # error: attr-defined reportAttributeAccessIssue
    await connection.create_session(transacted=True)  # error: call-arg reportCallIssue
    await factory.create_context("user")  # error: arg-type reportArgumentType
    await producer.send("x", delivery_mode=jmsaio.AcknowledgeMode.CLIENT)  # error: call-overload reportArgumentType
    producer.delivery_mode = 2  # error: assignment reportAttributeAccessIssue


async def wrong_properties(producer: jmsaio.MessageProducer, context: jmsaio.Context) -> None:
    now = datetime.now()
    await producer.send("x", properties={"at": now})  # error: dict-item reportArgumentType
    context.create_producer().set_property("at", now)  # error: arg-type reportArgumentType
    jmsaio.TextMessage("x", properties={"at": now})  # error: dict-item reportArgumentType
    jmsaio.Message().properties.update(at=now)  # error: call-overload reportArgumentType


async def wrong_durations(producer: jmsaio.MessageProducer, session: jmsaio.Session, queue: jmsaio.Queue) -> None:
    await producer.send("x", time_to_live="60")  # error: call-overload reportArgumentType
    await session.request(queue, "x")  # error: call-arg reportCallIssue
    await jmsaio.connect("memory:", connect_timeout="5s")  # error: arg-type reportArgumentType


async def wrong_destinations(session: jmsaio.Session) -> None:
    await session.create_producer("orders")  # error: arg-type reportArgumentType
    await session.create_durable_consumer(session.create_queue("orders"), "name")  # error: arg-type reportArgumentType
    await session.create_browser(session.create_topic("prices"))  # error: arg-type reportArgumentType
    await session.create_consumer(session.create_temporary_queue())  # error: arg-type reportArgumentType


async def missing_awaits(consumer: jmsaio.MessageConsumer, session: jmsaio.Session, message: jmsaio.Message) -> None:
    print(consumer.receive().text)  # error: attr-defined reportAttributeAccessIssue
    session.commit()  # error: unused-coroutine reportUnusedCoroutine
    message.acknowledge()  # error: unused-coroutine reportUnusedCoroutine
    with jmsaio.connect("memory:") as connection:  # error: attr-defined reportGeneralTypeIssues
        print(connection)
    for each in consumer:  # error: attr-defined reportGeneralTypeIssues
        print(each)


def takes_two(message: jmsaio.Message, session: jmsaio.Session) -> None: ...


async def wrong_callbacks(
    consumer: jmsaio.MessageConsumer, producer: jmsaio.MessageProducer, connection: jmsaio.Connection
) -> None:
    consumer.set_message_listener(takes_two)  # error: arg-type reportArgumentType
    connection.set_exception_listener(lambda: None)  # error: arg-type reportArgumentType
    await producer.send_async("x", completion_listener=print)  # error: call-overload reportArgumentType


async def wrong_receipts(producer: jmsaio.MessageProducer) -> None:
    receipt = await producer.send("x")
    print(receipt.message_id)  # error: attr-defined reportAttributeAccessIssue
    print((await producer.send_async("x")).jms_message_id)  # error: attr-defined reportAttributeAccessIssue
