"""What queues and topics have in common (checklist.txt, groups 5 and 6): each line has a twin."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.conformance.kit import row
from tests.conformance.recording import Heard, Name, destination

QUEUES, TOPICS = "core/queuetests/QueueTestsIT", "core/topictests/TopicTestsIT"
APP_QUEUES, APP_TOPICS = "core/appclient/queuetests/QueueTestsIT", "core/appclient/topictests/TopicTestsIT"


def each_kind(queue: str, topic: str) -> pytest.MarkDecorator:
    """The test runs with a queue and with a topic, each for its line."""
    return pytest.mark.parametrize("kind", [row("queue", key=queue), row("topic", key=topic)])


async def text_of(consumer: jmsaio.MessageConsumer) -> str:
    message = await consumer.receive(timeout=20)
    assert message is not None
    return message.get_body(str) or ""


@each_kind(f"{QUEUES}.simpleSendReceiveQueueTest", f"{TOPICS}.simpleSendReceiveTopicTest")
async def test_a_round_trip(session: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(session, kind, name("simple"))
    async with session.create_consumer(where) as consumer, session.create_producer(where) as producer:
        await producer.send(session.create_text_message("simple"))
        assert await text_of(consumer) == "simple"


@each_kind(f"{QUEUES}.msgProducerNullDestinationQueueTest", f"{TOPICS}.msgProducerNullDestinationTopicTest")
async def test_a_producer_without_destination(session: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(session, kind, name("unidentified"))
    async with session.create_consumer(where) as consumer, session.create_producer(None) as producer:
        assert producer.destination is None
        await producer.send(where, "given with the send")
        assert await text_of(consumer) == "given with the send"


@each_kind(f"{QUEUES}.multipleCloseQueueConnectionTest", f"{TOPICS}.multipleCloseTopicConnectionTest")
async def test_the_second_close_is_silent(factory: jmsaio.ConnectionFactory, kind: str) -> None:
    connection = await factory.create_connection()
    await connection.close()
    await connection.close()
    assert connection.closed


@each_kind(f"{QUEUES}.msgSelectorMsgHeaderQueueTest", f"{TOPICS}.msgSelectorMsgHeaderTopicTest")
async def test_a_selector_on_a_header(session: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(session, kind, name("header"))
    async with session.create_consumer(where, "JMSType = 'wanted'") as consumer:
        async with session.create_producer(where) as producer:
            for kind_of_message in ("other", "wanted"):
                message = session.create_text_message(kind_of_message)
                message.jms_type = kind_of_message
                await producer.send(message)
        assert await text_of(consumer) == "wanted"


@each_kind(f"{QUEUES}.temporaryQueueNotConsumableTest", f"{TOPICS}.temporaryTopicNotConsumableTest")
async def test_a_temporary_destination_belongs_to_its_connection(
    factory: jmsaio.ConnectionFactory, session: jmsaio.Session, kind: str
) -> None:
    where = await temporary(session, kind)
    async with session.create_consumer(where) as consumer, await factory.create_connection() as other:
        async with other.create_session() as foreign:
            with pytest.raises(jmsaio.JMSError):
                await foreign.create_consumer(where)
            async with foreign.create_producer(where) as producer:
                await producer.send("sending to it works")
        assert await text_of(consumer) == "sending to it works"


async def temporary(session: jmsaio.Session, kind: str) -> Any:
    return await (session.create_temporary_queue() if kind == "queue" else session.create_temporary_topic())


@each_kind(f"{QUEUES}.tempQueueTests", f"{TOPICS}.tempTopicTests")
async def test_a_temporary_destination_goes_when_nobody_uses_it(
    factory: jmsaio.ConnectionFactory, session: jmsaio.Session, kind: str
) -> None:
    where = await temporary(session, kind)
    async with session.create_producer(where) as producer:
        async with session.create_consumer(where) as consumer:
            await producer.send("works")
            assert await text_of(consumer) == "works"
            with pytest.raises(jmsaio.JMSError):
                await where.delete()
    await where.delete()
    another = await temporary(session, kind)
    async with await factory.create_connection() as other, other.create_session() as foreign:
        with pytest.raises(jmsaio.JMSError):
            await foreign.create_consumer(another)


@each_kind(f"{APP_QUEUES}.setClientIDLateQueueTest", f"{APP_TOPICS}.setClientIDLateTopicTest")
async def test_a_client_id_can_not_be_set_after_use(connection: jmsaio.Connection, name: Name, kind: str) -> None:
    async with connection.create_session():
        with pytest.raises(jmsaio.IllegalStateError):
            connection.set_client_id(name("late"))


@each_kind(f"{APP_QUEUES}.setGetChangeClientIDQueueTest", f"{APP_TOPICS}.setGetChangeClientIDTopicTest")
async def test_a_client_id_is_set_once_and_is_ones_own(
    factory: jmsaio.ConnectionFactory, name: Name, kind: str
) -> None:
    client_id = name("client")
    async with await factory.create_connection() as first, await factory.create_connection() as second:
        first.set_client_id(client_id)
        assert first.get_client_id() == client_id
        with pytest.raises(jmsaio.IllegalStateError):
            first.set_client_id(name("other"))
        with pytest.raises(jmsaio.InvalidClientIDError):
            second.set_client_id(client_id)


@each_kind(f"{APP_QUEUES}.setGetExceptionListenerTest", f"{APP_TOPICS}.setGetExceptionListenerTest")
async def test_the_exception_listener(connection: jmsaio.Connection, kind: str) -> None:
    def listener(error: Exception) -> None:
        raise error

    connection.set_exception_listener(listener)
    assert connection.get_exception_listener() is listener
    connection.set_exception_listener(None)
    assert connection.get_exception_listener() is None


@each_kind(
    "core/queueConnection/QueueConnectionTestsIT.metaDataTests",
    "core/topicConnection/TopicConnectionTestsIT.metaDataTests",
)
async def test_the_metadata_names_jms_3_1_the_provider_and_the_jmsx_properties(
    connection: jmsaio.Connection, kind: str
) -> None:
    data = connection.get_meta_data()
    assert (data.jms_version, data.jms_major_version, data.jms_minor_version) == ("3.1", 3, 1)
    for text in (data.jms_provider_name, data.provider_version):
        assert isinstance(text, str) and text
    assert isinstance(data.provider_major_version, int) and isinstance(data.provider_minor_version, int)
    assert len({"JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"} & set(data.jmsx_property_names)) >= 2


@each_kind(
    "core/queueConnection/QueueConnectionTestsIT.connNotStartedQueueTest",
    "core/topicConnection/TopicConnectionTestsIT.connNotStartedTopicTest",
)
async def test_a_connection_that_was_not_started_receives_nothing(
    factory: jmsaio.ConnectionFactory, session: jmsaio.Session, name: Name, kind: str
) -> None:
    where = destination(session, kind, name("stopped"))
    async with await factory.create_connection() as stopped, stopped.create_session() as waiting:
        async with waiting.create_consumer(where) as consumer, session.create_producer(where) as producer:
            await producer.send("there")
            if kind == "topic":
                async with session.create_consumer(where) as other:
                    await producer.send("seen by the other")
                    assert await text_of(other) == "seen by the other"
            assert await consumer.receive(timeout=0.3) is None
            assert await consumer.receive_no_wait() is None
            await stopped.start()
            assert await text_of(consumer) == "there"


@each_kind(f"{APP_QUEUES}.receiveNullClosedSessionQueueTest", f"{APP_TOPICS}.receiveNullClosedSessionTopicTest")
async def test_closing_the_session_ends_a_blocked_receive(connection: jmsaio.Connection, name: Name, kind: str) -> None:
    session = await connection.create_session()
    consumer = await session.create_consumer(destination(session, kind, name("blocked")))
    receiving = asyncio.ensure_future(consumer.receive())
    await asyncio.sleep(0.05)
    await session.close()
    assert await asyncio.wait_for(receiving, 20) is None


@each_kind(f"{APP_QUEUES}.autoAckMsgListenerQueueTest", f"{APP_TOPICS}.autoAckMsgListenerTopicTest")
async def test_recover_in_a_listener_redelivers_the_current_message(
    session: jmsaio.Session, name: Name, kind: str
) -> None:
    where = destination(session, kind, name("recover"))
    told: list[tuple[str, bool]] = []

    async def recovering(message: jmsaio.Message) -> None:
        told.append((message.get_body(str) or "", message.jms_redelivered))
        if told[-1] == ("second", False):
            await session.recover()

    heard = Heard(recovering)
    async with session.create_consumer(where) as consumer, session.create_producer(where) as producer:
        consumer.set_message_listener(heard)
        for text in ("first", "second", "third"):
            await producer.send(text)
        await heard.until(4)
    assert told == [("first", False), ("second", False), ("second", True), ("third", False)]


@each_kind(f"{APP_QUEUES}.serialMsgListenerQueueTest", f"{APP_TOPICS}.serialMsgListenerTopicTest")
async def test_listeners_of_one_session_never_overlap(session: jmsaio.Session, name: Name, kind: str) -> None:
    running, most = 0, 0

    async def alone(_: jmsaio.Message) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1

    heard = Heard(alone)
    places = [destination(session, kind, name(stem)) for stem in ("one", "two")]
    consumers = [await session.create_consumer(where) for where in places]
    for consumer in consumers:
        consumer.set_message_listener(heard)
    async with session.create_producer(None) as producer:
        for _ in range(5):
            for where in places:
                await producer.send(where, "serial")
    assert (len(await heard.until(10)), most) == (10, 1)


@each_kind(f"{APP_QUEUES}.clientAckQueueTest", f"{APP_TOPICS}.clientAckTopicTest")
async def test_acknowledge_covers_the_session(connection: jmsaio.Connection, name: Name, kind: str) -> None:
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        where = destination(session, kind, name("acknowledge"))
        async with session.create_consumer(where) as consumer, session.create_producer(where) as producer:
            for text in ("1", "2", "3"):
                await producer.send(text)
            messages = [await consumer.receive(timeout=20) for _ in range(3)]
            assert messages[1] is not None
            await messages[1].acknowledge()
            await producer.send("4")
            assert await text_of(consumer) == "4"
            await session.recover()
            again = await consumer.receive(timeout=20)
            assert again is not None and (again.get_body(str), again.jms_redelivered) == ("4", True)
            await again.acknowledge()
            await producer.send("last")
            assert await text_of(consumer) == "last"


@each_kind(f"{APP_QUEUES}.reverseReceiveClientAckTest", f"{APP_TOPICS}.reverseReceiveClientAckTest")
async def test_several_destinations_in_reverse_order(connection: jmsaio.Connection, name: Name, kind: str) -> None:
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        places = [destination(session, kind, name(f"reverse-{number}")) for number in range(5)]
        consumers = [await session.create_consumer(where) for where in places]
        async with session.create_producer(None) as producer:
            for number, where in enumerate(places):
                await producer.send(where, str(number))
            for number in reversed(range(5)):
                message = await consumers[number].receive(timeout=20)
                assert message is not None and message.get_body(str) == str(number)
                await message.acknowledge()
                if number == 4:
                    await session.recover()
            for number, where in enumerate(places):
                await producer.send(where, f"next {number}")
                assert await text_of(consumers[number]) == f"next {number}"


@pytest.mark.parametrize("kind", [row("topic", key=f"{APP_TOPICS}.nonAckMsgsRedeliveredTopicTest")])
async def test_recover_redelivers_all_that_is_not_acknowledged(
    connection: jmsaio.Connection, name: Name, kind: str
) -> None:
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        where = destination(session, kind, name("unacknowledged"))
        async with session.create_consumer(where) as consumer, session.create_producer(where) as producer:
            for text in ("1", "2", "3"):
                await producer.send(text)
            assert [await text_of(consumer) for _ in range(3)] == ["1", "2", "3"]
            await session.recover()
            assert [await text_of(consumer) for _ in range(3)] == ["1", "2", "3"]


@each_kind(f"{APP_QUEUES}.queueRequestorSimpleSendAndRecvTest", f"{APP_TOPICS}.topicRequestorSimpleSendAndRecvTest")
async def test_a_requestor_gets_its_reply_and_closes_its_session(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name, kind: str
) -> None:
    where = destination(session, kind, name("request"))

    async def answer(message: jmsaio.Message) -> None:
        assert message.jms_reply_to is not None
        async with session.create_producer(message.jms_reply_to) as producer:
            await producer.send(f"reply to {message.get_body(str)}")

    async with session.create_consumer(where) as consumer:
        consumer.set_message_listener(answer)
        asking = await connection.create_session()
        requestor = await requestor_of(kind).open(asking, where)
        reply = await asyncio.wait_for(requestor.request(session.create_text_message("request")), 20)
        assert reply is not None and reply.get_body(str) == "reply to request"
        await requestor.close()
        assert asking.closed


def requestor_of(kind: str) -> Any:
    return jmsaio.QueueRequestor if kind == "queue" else jmsaio.TopicRequestor


@each_kind(f"{APP_QUEUES}.queueRequestorExceptionTests", f"{APP_TOPICS}.topicRequestorExceptionTests")
async def test_a_requestor_needs_a_destination_and_an_open_session(
    connection: jmsaio.Connection, name: Name, kind: str
) -> None:
    session = await connection.create_session()
    with pytest.raises(jmsaio.InvalidDestinationError):
        await requestor_of(kind).open(session, None)
    where = destination(session, kind, name("request"))
    await session.close()
    with pytest.raises(jmsaio.JMSError):
        await requestor_of(kind).open(session, where)
