"""Queues, and the forms of send (checklist.txt, group 5)."""

from __future__ import annotations

from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode, DeliveryMode
from tests.conformance.kit import row, tck
from tests.conformance.recording import Name, destination

FILE = "core/queuetests/QueueTestsIT"
CLIENT = "core/appclient/queuetests/QueueTestsIT"
SENDS = "core/messageProducer/MessageProducerTestsIT"
CONNECTION = "core/appclient/queueconn/QueueConnTestsIT"


@pytest.fixture
def queue(name: Name) -> jmsaio.Queue:
    """A queue of its own."""
    return jmsaio.Queue(name("queue"))


async def send(session: jmsaio.Session, where: Any, *texts: str) -> None:
    async with session.create_producer(where) as producer:
        for one in texts:
            await producer.send(one)


async def text(consumer: jmsaio.MessageConsumer) -> str | None:
    return await consumer.receive_body(str, timeout=20)


@tck(f"{FILE}.emptyMsgsQueueTest")
async def test_empty_messages_of_each_kind(session: jmsaio.Session, queue: jmsaio.Queue) -> None:
    empty: dict[type[Any], Any] = {
        jmsaio.Message: lambda it: it.get_body(object) is None,
        jmsaio.TextMessage: lambda it: it.text is None,
        jmsaio.BytesMessage: lambda it: it.body_length == 0,
        jmsaio.MapMessage: lambda it: it.get_map_names() == [],
        jmsaio.StreamMessage: lambda it: it._body() == [],
        jmsaio.ObjectMessage: lambda it: it.get_object() is None,
    }
    async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
        for kind, is_empty in empty.items():
            await producer.send(kind())
            received = await consumer.receive(timeout=20)
            assert type(received) is kind and is_empty(received)


@tck(f"{FILE}.autoAckQueueTest")
async def test_recover_does_not_bring_acknowledged_messages_back(session: jmsaio.Session, queue: jmsaio.Queue) -> None:
    message = session.create_text_message("the same object")
    async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
        for last in (False, True):
            message.set_boolean_property("last", last)
            await producer.send(message)
        first = await consumer.receive(timeout=20)
        assert first is not None and first.get_boolean_property("last") is False
        await session.recover()
        second = await consumer.receive(timeout=20)
        assert second is not None and second.get_boolean_property("last") is True


@pytest.mark.parametrize(
    "mode",
    [row(DeliveryMode.PERSISTENT, key=f"{FILE}.messageOrderQueueTest"),
     row(DeliveryMode.NON_PERSISTENT, key=f"{FILE}.messageOrderDeliveryModeQueueTest")],
)  # fmt: skip
async def test_the_order_is_kept(session: jmsaio.Session, queue: jmsaio.Queue, mode: DeliveryMode) -> None:
    async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
        producer.delivery_mode = mode
        for number in range(10):
            await producer.send(str(number))
        for number in range(10):
            message = await consumer.receive(timeout=20)
            assert message is not None
            assert (message.get_body(str), message.jms_delivery_mode) == (str(number), mode)


@tck(f"{FILE}.messageSelectorMsgRemainsOnQueueTest")
async def test_what_is_not_selected_stays(session: jmsaio.Session, queue: jmsaio.Queue) -> None:
    async with session.create_producer(queue) as producer:
        async with session.create_consumer(queue, "wanted = TRUE") as consumer:
            for wanted in (False, True):
                await producer.send(f"wanted {wanted}", properties={"wanted": wanted})
            assert await text(consumer) == "wanted True"
        async with session.create_consumer(queue) as consumer:
            assert await text(consumer) == "wanted False"


@tck(f"{FILE}.queueBrowserMsgsRemainOnQueueTest")
async def test_a_browser_removes_nothing(session: jmsaio.Session, queue: jmsaio.Queue) -> None:
    texts = ["1", "2", "3"]
    await send(session, queue, *texts)
    async with session.create_browser(queue) as browser:
        assert [one.get_body(str) async for one in browser] == texts
    async with session.create_consumer(queue) as consumer:
        assert [await text(consumer) for _ in texts] == texts


@tck(f"{FILE}.inactiveClientReceiveQueueTest")
async def test_a_queue_keeps_messages_without_a_consumer(session: jmsaio.Session, queue: jmsaio.Queue) -> None:
    async with session.create_consumer(queue) as consumer:
        await send(session, queue, "while there is one")
        assert await text(consumer) == "while there is one"
    await send(session, queue, "1", "2", "3")
    async with session.create_consumer(queue) as consumer:
        assert [await text(consumer) for _ in range(3)] == ["1", "2", "3"]


@tck(f"{CLIENT}.nonAckMsgsRedeliveredQueueTest")
async def test_what_is_not_acknowledged_comes_again(connection: jmsaio.Connection, queue: jmsaio.Queue) -> None:
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        await send(session, queue, "1", "2", "3")
        consumer = await session.create_consumer(queue)
        assert [await text(consumer) for _ in range(3)] == ["1", "2", "3"]
    async with connection.create_session() as session, session.create_consumer(queue) as consumer:
        assert [await text(consumer) for _ in range(3)] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("kind", "named", "options"),
    [
        row("queue", False, {}, key=f"{SENDS}.sendQueueTest1"),
        row("queue", False, {"priority": 7}, key=f"{SENDS}.sendQueueTest2"),
        row("queue", True, {"priority": 7}, key=f"{SENDS}.sendQueueTest3"),
        row("topic", False, {}, key=f"{SENDS}.sendTopicTest4"),
        row("topic", False, {"priority": 7}, key=f"{SENDS}.sendTopicTest5"),
        row("topic", True, {"priority": 7}, key=f"{SENDS}.sendTopicTest6"),
    ],
)
async def test_the_forms_of_send(
    session: jmsaio.Session, name: Name, kind: str, named: bool, options: dict[str, int]
) -> None:
    """``named``: the producer has the destination, else the send; ``options``: all three are given."""
    where, message = destination(session, kind, name("forms")), session.create_text_message("sent")
    given: dict[str, Any] = options and {**options, "delivery_mode": DeliveryMode.NON_PERSISTENT, "time_to_live": 60}
    async with session.create_consumer(where) as consumer:
        async with session.create_producer(where if named else None) as producer:
            await producer.send(*([message] if named else [where, message]), **given)
        received = await consumer.receive(timeout=20)
    assert received is not None and received.get_body(str) == "sent"
    if not given:
        assert (received.jms_priority, received.jms_delivery_mode, received.jms_expiration) == (4, 2, 0)
    else:
        assert (received.jms_priority, received.jms_delivery_mode) == (7, 1)
        assert received.jms_expiration == message.jms_timestamp + 60_000


@tck(f"{CONNECTION}.connStoppedQueueTest")
async def test_what_is_sent_while_stopped_arrives_after_start(
    factory: jmsaio.ConnectionFactory, session: jmsaio.Session, queue: jmsaio.Queue
) -> None:
    async with await factory.create_connection() as connection, connection.create_session() as stopped:
        await connection.start()
        async with stopped.create_consumer(queue) as consumer:
            await connection.stop()
            await send(session, queue, "while stopped")
            assert await consumer.receive(timeout=0.3) is None
            await connection.start()
            assert await text(consumer) == "while stopped"


@tck(f"{CONNECTION}.closedQueueConnectionNoForcedAckTest")
async def test_close_acknowledges_nothing(
    factory: jmsaio.ConnectionFactory, session: jmsaio.Session, queue: jmsaio.Queue
) -> None:
    first = await factory.create_connection()
    await first.start()
    consumer = await (await first.create_session(AcknowledgeMode.CLIENT)).create_consumer(queue)
    await send(session, queue, "not acknowledged")
    assert await text(consumer) == "not acknowledged"
    await first.close()
    async with session.create_consumer(queue) as again:
        assert await text(again) == "not acknowledged"
