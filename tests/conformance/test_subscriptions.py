"""Sessions, durable and shared subscriptions of JMS 2.0 (checklist.txt, group 17)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.conformance.kit import row, tck
from tests.conformance.recording import Name, destination, next_text, send_text

#: Unsubscribing looks for a subscription in all topics of the namespace.
pytestmark = pytest.mark.small_namespace

FILE = "core20/sessiontests/ClientIT"
Create = Callable[..., Any]


def each_kind(queue: str, topic: str) -> pytest.MarkDecorator:
    """The test runs with a queue and with a topic, each for its line."""
    return pytest.mark.parametrize("kind", [row("queue", key=f"{FILE}.{queue}"), row("topic", key=f"{FILE}.{topic}")])


@pytest.fixture
def topic(name: Name) -> jmsaio.Topic:
    """One message in advance for each consumer: those that share take turns, in the order in which they were made."""
    return jmsaio.Topic(name("subscribed") + "?consumerConfig.receiverQueueSize=1")


async def nothing(consumer: jmsaio.MessageConsumer) -> bool:
    return await consumer.receive(timeout=0.3) is None


@each_kind("sendAndRecvMsgsOfEachMsgTypeQueueTest", "sendRecvMsgsOfEachMsgTypeTopicTest")
async def test_messages_of_each_kind(session: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(session, kind, name("kinds"))
    data = session.create_bytes_message()
    data.write_byte(1)
    data.write_int(22)
    mapped = session.create_map_message()
    mapped.set_boolean("boolean", True)
    mapped.set_long("long", 9)
    stream = session.create_stream_message()
    stream.write_boolean(True)
    stream.write_string("text")
    sent = [
        session.create_message(), data, mapped, session.create_object_message(["object"]), stream,
        session.create_text_message("text"),
    ]  # fmt: skip
    async with session.create_consumer(where) as consumer, session.create_producer(where) as producer:
        for message in sent:
            message.set_string_property("which", type(message).__name__)
            await producer.send(message)
        found: list[Any] = [await consumer.receive(timeout=20) for _ in sent]
    assert [type(one) for one in found] == [type(one) for one in sent]
    assert [one.get_string_property("which") for one in found] == [type(one).__name__ for one in sent]
    _, data, mapped, held, stream, worded = found
    assert (data.read_byte(), data.read_int()) == (1, 22)
    assert (mapped.get_boolean("boolean"), mapped.get_long("long")) == (True, 9)
    assert held.get_object() == ["object"] and worded.text == "text"
    assert (stream.read_boolean(), stream.read_string()) == (True, "text")


@each_kind("createTemporayQueueTest", "createTemporayTopicTest")
async def test_a_temporary_destination(session: jmsaio.Session, kind: str) -> None:
    make = session.create_temporary_queue if kind == "queue" else session.create_temporary_topic
    where = await make()
    async with session.create_consumer(where) as consumer:
        await send_text(session, where, "temporary")
        assert await next_text(consumer) == "temporary"
    await where.delete()


@each_kind("getTransactedQueueTest", "getTransactedTopicTest")
async def test_only_a_transacted_session_says_it_is(connection: jmsaio.Connection, kind: str) -> None:
    for mode in (AcknowledgeMode.TRANSACTED, AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT):
        async with connection.create_session(mode) as session:
            assert session.get_transacted() is (mode is AcknowledgeMode.TRANSACTED)


@each_kind("getAcknowledgeModeQueueTest", "getAcknowledgeModeTopicTest")
async def test_a_session_reports_its_acknowledge_mode_in_both_domains(connection: jmsaio.Connection, kind: str) -> None:
    modes = [AcknowledgeMode.TRANSACTED, AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK]
    for mode in modes:
        async with connection.create_session(mode) as session:
            assert session.get_acknowledge_mode() is mode


@each_kind("createConsumerProducerQueueTest", "createConsumerProducerTopicTest")
async def test_the_forms_of_a_consumer(session: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(session, kind, name("forms"))
    async with session.create_consumer(where) as consumer:
        await send_text(session, where, "plain")
        assert await next_text(consumer) == "plain"
    async with session.create_consumer(where, "TEST = 'test'") as consumer:
        assert consumer.get_message_selector() == "TEST = 'test'"
        await send_text(session, where, "other", TEST="other")
        await send_text(session, where, "selected", TEST="test")
        assert await next_text(consumer) == "selected"
    async with session.create_consumer(where, "TEST = 'again'", False) as consumer:
        assert consumer.get_no_local() is False
        await send_text(session, where, "again", TEST="again")
        assert await next_text(consumer) == "again"
    if kind == "topic":
        async with session.create_consumer(where, None, True) as consumer:
            await send_text(session, where, "its own")
            assert await nothing(consumer)


@tck(f"{FILE}.createQueueBrowserTest")
async def test_a_browser_with_and_without_selector(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("browsed"))
    async with session.create_consumer(queue) as consumer:
        await consumer.receive_no_wait()
    await send_text(session, queue, "first", TEST="other")
    await send_text(session, queue, "last", TEST="test")
    async with session.create_browser(queue) as browser:
        assert browser.get_queue() == queue
        assert [one.get_body(str) async for one in browser] == ["first", "last"]
    async with session.create_browser(queue, "TEST = 'test'") as browser:
        assert browser.get_message_selector() == "TEST = 'test'"
        assert [one.get_body(str) async for one in browser] == ["last"]
    async with session.create_consumer(queue) as consumer:
        assert [await next_text(consumer), await next_text(consumer)] == ["first", "last"]


@pytest.mark.parametrize(
    "line",
    [row("subscriber", key=f"{FILE}.createDurableSubscriberTopicTest1"),
     row("consumer", key=f"{FILE}.createDurableConsumerTopicTest1")],
)  # fmt: skip
async def test_a_durable_one(own: jmsaio.Session, topic: jmsaio.Topic, line: str) -> None:
    async with own.create_durable_consumer(topic, line) as consumer:
        await send_text(own, topic, "active")
        assert await next_text(consumer) == "active"
    await send_text(own, topic, "inactive")
    async with own.create_durable_consumer(topic, line) as consumer:
        assert await next_text(consumer) == "inactive"
    await own.unsubscribe(line, topic)


@pytest.mark.parametrize(
    "line",
    [row("subscriber", key=f"{FILE}.createDurableSubscriberTopicTest2"),
     row("consumer", key=f"{FILE}.createDurableConsumerTopicTest2")],
)  # fmt: skip
async def test_a_durable_one_with_selector_and_no_local(
    own: jmsaio.Session, session: jmsaio.Session, topic: jmsaio.Topic, line: str
) -> None:
    async with own.create_durable_consumer(topic, line, "TEST = 'test'", False) as consumer:
        await send_text(own, topic, "other", TEST="other")
        await send_text(own, topic, "selected", TEST="test")
        assert await next_text(consumer) == "selected"
    async with own.create_durable_consumer(topic, line, "TEST = 'test'", True) as consumer:
        assert consumer.get_no_local() is True
        await send_text(own, topic, "its own", TEST="test")
        await send_text(session, topic, "of another connection", TEST="test")
        assert await next_text(consumer) == "of another connection"
    await own.unsubscribe(line, topic)


@tck(f"{FILE}.createSharedConsumerTopicTest1")
async def test_two_share_one(session: jmsaio.Session, name: Name, topic: jmsaio.Topic) -> None:
    first = await session.create_shared_consumer(topic, name("shared"))
    second = await session.create_shared_consumer(topic, name("shared"))
    await send_text(session, topic, "to the first")
    assert await next_text(first) == "to the first"
    await send_text(session, topic, "to the second")
    assert await next_text(second) == "to the second"
    assert await nothing(first)


@tck(f"{FILE}.createSharedConsumerTopicTest2")
async def test_two_share_one_with_a_selector(session: jmsaio.Session, name: Name, topic: jmsaio.Topic) -> None:
    selector = "TEST = 'test'"
    first = await session.create_shared_consumer(topic, name("shared"), selector)
    second = await session.create_shared_consumer(topic, name("shared"), selector)
    await send_text(session, topic, "to the first", TEST="test")
    assert await next_text(first) == "to the first"
    await send_text(session, topic, "to the second", TEST="test")
    assert await next_text(second) == "to the second"
    await send_text(session, topic, "to nobody", TEST="other")
    assert await nothing(first) and await nothing(second)


@pytest.mark.parametrize(
    "with_client_id",
    [row(True, key=f"{FILE}.createSharedDurableConsumerTopicTest1"),
     row(False, key=f"{FILE}.createSharedDurableConsumerTopicTest3")],
)  # fmt: skip
async def test_two_share_a_durable_one(
    own: jmsaio.Session, session: jmsaio.Session, name: Name, topic: jmsaio.Topic, with_client_id: bool
) -> None:
    user, shared = own if with_client_id else session, name("shared-durable")
    first = await user.create_shared_durable_consumer(topic, shared)
    second = await user.create_shared_durable_consumer(topic, shared)
    await send_text(user, topic, "to the first")
    assert await next_text(first) == "to the first"
    await send_text(user, topic, "to the second")
    assert await next_text(second) == "to the second"
    await first.close()
    await second.close()
    await send_text(user, topic, "kept")
    async with user.create_shared_durable_consumer(topic, shared) as again:
        assert await next_text(again) == "kept"
        assert await nothing(again)
    await user.unsubscribe(shared, topic)


@tck(f"{FILE}.createSharedDurableConsumerTopicTest2")
async def test_two_share_a_durable_one_with_a_selector(own: jmsaio.Session, name: Name, topic: jmsaio.Topic) -> None:
    shared, selector = name("shared-durable"), "TEST = 'test'"
    first = await own.create_shared_durable_consumer(topic, shared, selector)
    second = await own.create_shared_durable_consumer(topic, shared, selector)
    for word in ("other", "another", "test"):
        await send_text(own, topic, word, TEST=word)
    assert await next_text(first) == "test"
    assert await nothing(second)
    await first.close()
    await second.close()
    await own.unsubscribe(shared, topic)


CREATORS: dict[str, Create] = {
    "durable": lambda session, topic, *more: session.create_durable_consumer(topic, "named", *more),
    "shared": lambda session, topic, *more: session.create_shared_consumer(topic, "named", *more[:1]),
    "shared durable": lambda session, topic, *more: session.create_shared_durable_consumer(topic, "named", *more[:1]),
}


@tck(f"{FILE}.invalidDestinationExceptionTests")
async def test_subscribing_to_no_topic_and_unsubscribing_an_unknown_one_are_refused(own: jmsaio.Session) -> None:
    for create in CREATORS.values():
        for more in ((), ("TEST = 'test'", False)):
            with pytest.raises(jmsaio.InvalidDestinationError):
                await create(own, None, *more)
    with pytest.raises(jmsaio.InvalidDestinationError):
        await own.unsubscribe("nobody has this name", jmsaio.Topic("nobody-has-this-topic"))


@tck(f"{FILE}.invalidSelectorExceptionTopicTests")
async def test_a_bad_selector(own: jmsaio.Session, topic: jmsaio.Topic) -> None:
    for create in CREATORS.values():
        with pytest.raises(jmsaio.InvalidSelectorError):
            await create(own, topic, "=TEST 'test'", False)


@tck(f"{FILE}.jMSExceptionTests")
async def test_a_name_in_use(
    factory: jmsaio.ConnectionFactory, url: str, own: jmsaio.Session, name: Name, topic: jmsaio.Topic
) -> None:
    """Starlight lets a name be used on several topics; here one process keeps the rule, also over Pulsar."""
    async with jmsaio.connect(url, strict_client_id=True) as strict, strict.create_session() as session:
        with pytest.raises(jmsaio.IllegalStateError):  # without client id; allowed by default, as Starlight does
            await session.create_durable_consumer(topic, "named")
    selector, elsewhere = "TEST = 'test'", jmsaio.Topic(name("elsewhere"))
    for kind, create in CREATORS.items():
        async with create(own, topic, selector, True):
            for other in ((elsewhere, selector, True), (topic, "TEST = 'other'", True)):
                with pytest.raises(jmsaio.JMSError):
                    await create(own, *other)
            if kind == "durable":
                with pytest.raises(jmsaio.JMSError):
                    await create(own, topic, selector, False)
        if kind != "shared":
            await own.unsubscribe("named", topic)
