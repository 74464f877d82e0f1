"""Point-to-point and publish/subscribe (checklist 5 and 6): what holds for queues and topics alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode, DeliveryMode
from tests.conformance.kit import row, tck
from tests.conformance.recording import Heard, Name, destination, twins

DOMAIN = "core/{kind}tests/{Kind}TestsIT."
CLIENT = "core/appclient/{kind}tests/{Kind}TestsIT."
PRODUCER = "core/messageProducer/MessageProducerTestsIT"

OPTIONS: dict[str, Any] = {"delivery_mode": DeliveryMode.NON_PERSISTENT, "priority": 7, "time_to_live": 60}


@pytest.fixture
async def stranger(factory: jmsaio.ConnectionFactory) -> AsyncIterator[jmsaio.Session]:
    """A session of another started connection."""
    async with await factory.create_connection() as other:
        await other.start()
        async with other.create_session() as session:
            yield session


async def texts(consumer: jmsaio.MessageConsumer, count: int) -> list[str | None]:
    """The texts of the next messages; they have to come."""
    return [await consumer.receive_body(str, timeout=20) for _ in range(count)]


async def nothing(*consumers: jmsaio.MessageConsumer) -> bool:
    """Whether none of these gets anything more."""
    return not any(await asyncio.gather(*(it.receive(timeout=0.3) for it in consumers)))


# ---------------------------------------------------------------- sending


@pytest.mark.parametrize("kind", twins(DOMAIN + "simpleSendReceive{Kind}Test"))
async def test_a_text_there_and_back(session: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(session, kind, name("simple"))
    consumer, producer = await session.create_consumer(where), await session.create_producer(where)
    message = session.create_text_message("simple")
    await producer.send(message)
    received = await consumer.receive(timeout=20)
    assert isinstance(received, jmsaio.TextMessage) and received.text == "simple"
    assert received.jms_message_id == message.jms_message_id and received.jms_destination == where


@pytest.mark.parametrize(
    ("kind", "identified", "options"),
    [
        row("queue", False, {}, key=f"{PRODUCER}.sendQueueTest1"),
        row("queue", False, OPTIONS, key=f"{PRODUCER}.sendQueueTest2"),
        row("queue", True, OPTIONS, key=f"{PRODUCER}.sendQueueTest3"),
        row("topic", False, {}, key=f"{PRODUCER}.sendTopicTest4"),
        row("topic", False, OPTIONS, key=f"{PRODUCER}.sendTopicTest5"),
        row("topic", True, OPTIONS, key=f"{PRODUCER}.sendTopicTest6"),
    ],
)
async def test_the_forms_of_send(
    session: jmsaio.Session, name: Name, kind: str, identified: bool, options: dict[str, Any]
) -> None:
    where = destination(session, kind, name("forms"))
    consumer = await session.create_consumer(where)
    message = session.create_text_message("sent")
    if identified:
        await (await session.create_producer(where)).send(message, **options)
    else:
        await (await session.create_producer(None)).send(where, message, **options)
    received = await consumer.receive(timeout=20)
    assert received is not None and received.get_body(str) == "sent"
    for given in (message, received):
        assert given.jms_delivery_mode == options.get("delivery_mode", DeliveryMode.PERSISTENT)
        assert given.jms_priority == options.get("priority", 4)
        assert given.jms_expiration == (given.jms_timestamp + 60_000 if options else 0)


@pytest.mark.parametrize("kind", twins(DOMAIN + "msgProducerNullDestination{Kind}Test"))
async def test_an_unidentified_producer(session: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(session, kind, name("told"))
    consumer, producer = await session.create_consumer(where), await session.create_producer(None)
    assert producer.destination is None
    await producer.send(where, "told at the send")
    assert await texts(consumer, 1) == ["told at the send"]


@pytest.mark.parametrize("kind", twins(DOMAIN + "msgSelectorMsgHeader{Kind}Test"))
async def test_a_selector_on_a_header(session: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(session, kind, name("header"))
    consumer = await session.create_consumer(where, "JMSType = 'selected'")
    producer = await session.create_producer(where)
    for jms_type in (None, "another", "selected"):
        message = session.create_text_message(str(jms_type))
        message.jms_type = jms_type
        await producer.send(message)
    assert await texts(consumer, 1) == ["selected"]


# ---------------------------------------------------------------- temporary destinations


async def temporary(session: jmsaio.Session, kind: str) -> Any:
    """A new temporary queue or topic."""
    return await (session.create_temporary_queue() if kind == "queue" else session.create_temporary_topic())


@pytest.mark.parametrize("kind", twins(DOMAIN + "temporary{Kind}NotConsumableTest"))
async def test_only_the_owner_consumes_from_a_temporary_one(
    session: jmsaio.Session, stranger: jmsaio.Session, kind: str
) -> None:
    where = await temporary(session, kind)
    consumer = await session.create_consumer(where)
    with pytest.raises(jmsaio.JMSError):
        await stranger.create_consumer(where)
    await (await stranger.create_producer(where)).send("anybody may send")
    assert await texts(consumer, 1) == ["anybody may send"]


@pytest.mark.parametrize("kind", twins(DOMAIN + "temp{Kind}Tests"))
async def test_a_temporary_one_is_deleted_when_nobody_consumes(
    session: jmsaio.Session, stranger: jmsaio.Session, kind: str
) -> None:
    where = await temporary(session, kind)
    consumer, producer = await session.create_consumer(where), await session.create_producer(where)
    await producer.send("temporary")
    received = await consumer.receive(timeout=20)
    assert received is not None and received.get_body(str) == "temporary" and received.jms_destination == where
    with pytest.raises(jmsaio.JMSError):
        await where.delete()
    await consumer.close()
    await where.delete()
    with pytest.raises(jmsaio.JMSError):
        await stranger.create_consumer(await temporary(session, kind))


# ---------------------------------------------------------------- connections


@tck(
    "core/queuetests/QueueTestsIT.multipleCloseQueueConnectionTest",
    "core/topictests/TopicTestsIT.multipleCloseTopicConnectionTest",
)
async def test_a_second_close_is_silent(factory: jmsaio.ConnectionFactory) -> None:
    connection = await factory.create_connection()
    await connection.close()
    await connection.close()
    assert connection.closed


@pytest.mark.parametrize("kind", twins(CLIENT + "setClientIDLate{Kind}Test"))
async def test_a_client_id_is_set_first_of_all(factory: jmsaio.ConnectionFactory, name: Name, kind: str) -> None:
    async with await factory.create_connection() as connection:
        async with connection.create_session() as session:
            await session.create_producer(destination(session, kind, name("late")))
        with pytest.raises(jmsaio.IllegalStateError):
            connection.set_client_id(name("late"))
        assert connection.get_client_id() is None


@tck(
    "core/appclient/queuetests/QueueTestsIT.setGetChangeClientIDQueueTest",
    "core/appclient/topictests/TopicTestsIT.setGetChangeClientIDTopicTest",
)
async def test_a_client_id_is_set_once_and_has_one_owner(factory: jmsaio.ConnectionFactory, name: Name) -> None:
    async with await factory.create_connection() as connection, await factory.create_connection() as other:
        connection.set_client_id(name("client"))
        assert connection.get_client_id() == name("client")
        with pytest.raises(jmsaio.IllegalStateError):
            connection.set_client_id(name("changed"))
        with pytest.raises(jmsaio.InvalidClientIDError):
            other.set_client_id(name("client"))
        assert connection.get_client_id() == name("client") and other.get_client_id() is None


@tck(
    "core/appclient/queuetests/QueueTestsIT.setGetExceptionListenerTest",
    "core/appclient/topictests/TopicTestsIT.setGetExceptionListenerTest",
)
async def test_the_exception_listener_that_was_set(connection: jmsaio.Connection) -> None:
    heard: list[jmsaio.JMSError] = []
    connection.set_exception_listener(heard.append)
    listener = connection.get_exception_listener()
    assert listener is not None and listener == connection.exception_listener == heard.append
    connection.set_exception_listener(None)
    assert connection.get_exception_listener() is None


@tck(
    "core/queueConnection/QueueConnectionTestsIT.metaDataTests",
    "core/topicConnection/TopicConnectionTestsIT.metaDataTests",
)
async def test_metadata(connection: jmsaio.Connection) -> None:
    told = connection.get_meta_data()
    assert (told.jms_version, told.jms_major_version, told.jms_minor_version) == ("3.1", 3, 1)
    assert all(isinstance(text, str) and text for text in (told.jms_provider_name, told.provider_version))
    assert type(told.provider_major_version) is type(told.provider_minor_version) is int
    names = list(told.get_jmsx_property_names())
    assert {"JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"} <= set(names)


@pytest.mark.parametrize(
    "kind",
    [
        row("queue", key="core/queueConnection/QueueConnectionTestsIT.connNotStartedQueueTest"),
        row("topic", key="core/topicConnection/TopicConnectionTestsIT.connNotStartedTopicTest"),
    ],
)
async def test_a_connection_that_is_not_started_delivers_nothing(
    factory: jmsaio.ConnectionFactory, session: jmsaio.Session, name: Name, kind: str
) -> None:
    where = destination(session, kind, name("unstarted"))
    async with await factory.create_connection() as connection, connection.create_session() as waiting:
        consumer, other = await waiting.create_consumer(where), None
        if kind == "topic":
            other = await session.create_consumer(where)
        await (await session.create_producer(where)).send("waits")
        assert other is None or await texts(other, 1) == ["waits"]
        assert await consumer.receive_no_wait() is None
        assert await consumer.receive(timeout=0.3) is None
        await connection.start()
        assert await texts(consumer, 1) == ["waits"]


# ---------------------------------------------------------------- receiving and acknowledging


@pytest.mark.parametrize("kind", twins(CLIENT + "receiveNullClosedSession{Kind}Test"))
async def test_closing_the_session_ends_a_receive(connection: jmsaio.Connection, name: Name, kind: str) -> None:
    session = await connection.create_session()
    consumer = await session.create_consumer(destination(session, kind, name("blocked")))
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        receiving = group.create_task(consumer.receive())
        await asyncio.sleep(0.1)
        assert not receiving.done()
        await session.close()
    assert receiving.result() is None


@pytest.mark.parametrize("kind", twins(CLIENT + "autoAckMsgListener{Kind}Test"))
async def test_recover_in_a_listener_brings_back_its_message_only(
    session: jmsaio.Session, stranger: jmsaio.Session, name: Name, kind: str
) -> None:
    where = destination(session, kind, name("recovered"))

    async def recover(message: jmsaio.Message) -> None:
        if message.get_body(str) == "second" and not message.jms_redelivered:
            await session.recover()

    consumer, heard = await session.create_consumer(where), Heard(recover)
    consumer.set_message_listener(heard)
    producer = await stranger.create_producer(where)
    await producer.send("first")
    await producer.send("second")
    await heard.until(3)
    await producer.send("last")
    found = [(message.get_body(str), message.jms_redelivered) for message in await heard.until(4)]
    assert found == [("first", False), ("second", False), ("second", True), ("last", False)]


@pytest.mark.parametrize("kind", twins(CLIENT + "serialMsgListener{Kind}Test"))
async def test_listeners_of_a_session_take_turns(
    session: jmsaio.Session, stranger: jmsaio.Session, name: Name, kind: str
) -> None:
    running: list[jmsaio.Message] = []
    most = 0

    async def work(message: jmsaio.Message) -> None:
        nonlocal most
        running.append(message)
        most = max(most, len(running))
        await asyncio.sleep(0.01)
        running.remove(message)

    listeners: dict[Any, Heard] = {}
    for number in (1, 2):
        where = destination(session, kind, name(f"serial-{number}"))
        listeners[where] = Heard(work)
        (await session.create_consumer(where)).set_message_listener(listeners[where])
    producer = await stranger.create_producer()
    for number in range(5):
        for where in listeners:
            await producer.send(where, str(number))
    for heard in listeners.values():
        assert [message.get_body(str) for message in await heard.until(5)] == ["0", "1", "2", "3", "4"]
    assert most == 1


@pytest.mark.parametrize("kind", twins(CLIENT + "reverseReceiveClientAckTest"))
async def test_several_destinations_in_reverse_order(
    connection: jmsaio.Connection, stranger: jmsaio.Session, name: Name, kind: str
) -> None:
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        places = [destination(session, kind, name(f"reverse-{number}")) for number in range(3)]
        consumers = [await session.create_consumer(where) for where in places]
        producer = await stranger.create_producer()
        for number, where in enumerate(places):
            await producer.send(where, str(number))
        for number in (2, 1, 0):
            message = await consumers[number].receive(timeout=20)
            assert message is not None and message.get_body(str) == str(number) and not message.jms_redelivered
            await message.acknowledge()
            if number == 2:
                await session.recover()
        assert await nothing(*consumers)


@pytest.mark.parametrize("kind", twins(CLIENT + "clientAck{Kind}Test"))
async def test_acknowledge_covers_what_the_session_received(
    connection: jmsaio.Connection, stranger: jmsaio.Session, name: Name, kind: str
) -> None:
    where = destination(stranger, kind, name("client-ack"))
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer, producer = await session.create_consumer(where), await stranger.create_producer(where)
        for number in range(4):
            await producer.send(str(number))
        received = [await consumer.receive(timeout=20) for _ in range(3)]
        assert received[1] is not None
        await received[1].acknowledge()
        assert await texts(consumer, 1) == ["3"]
        await session.recover()
        again = await consumer.receive(timeout=20)
        assert again is not None and again.get_body(str) == "3" and again.jms_redelivered
        await again.acknowledge()
        assert await nothing(consumer)


# ---------------------------------------------------------------- requestors


async def open_requestor(kind: str, session: jmsaio.Session, where: Any) -> Any:
    opener: Any = jmsaio.QueueRequestor if kind == "queue" else jmsaio.TopicRequestor
    return await opener.open(session, where)


@pytest.mark.parametrize("kind", twins(CLIENT + "{kind}RequestorSimpleSendAndRecvTest"))
async def test_a_requestor(connection: jmsaio.Connection, stranger: jmsaio.Session, name: Name, kind: str) -> None:
    session = await connection.create_session()
    where = destination(session, kind, name("requests"))
    answering = await stranger.create_producer()

    async def answer(request: jmsaio.Message) -> None:
        reply = stranger.create_text_message(f"reply to {request.get_body(str)}")
        reply.jms_correlation_id = request.jms_message_id
        await answering.send(request.jms_reply_to, reply)

    (await stranger.create_consumer(where)).set_message_listener(answer)
    requestor = await open_requestor(kind, session, where)
    request = session.create_text_message("request")
    async with asyncio.timeout(20):
        reply = await requestor.request(request)
    assert reply.get_body(str) == "reply to request" and reply.jms_correlation_id == request.jms_message_id
    await requestor.close()
    assert session.closed


@pytest.mark.parametrize("kind", twins(CLIENT + "{kind}RequestorExceptionTests"))
async def test_a_requestor_that_can_not_be(connection: jmsaio.Connection, name: Name, kind: str) -> None:
    session = await connection.create_session()
    with pytest.raises(jmsaio.InvalidDestinationError):
        await open_requestor(kind, session, None)
    where = destination(session, kind, name("requests"))
    await session.close()
    with pytest.raises(jmsaio.JMSError):
        await open_requestor(kind, session, where)
