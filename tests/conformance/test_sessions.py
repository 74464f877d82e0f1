"""Sessions of the unified API (checklist.txt, group 8)."""

from __future__ import annotations

from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.conformance.kit import row, tck
from tests.conformance.recording import Name, destination

FILE = "core/sessiontests/SessionTestsIT"


async def text(consumer: jmsaio.MessageConsumer) -> str | None:
    return await consumer.receive_body(str, timeout=20)


@pytest.mark.parametrize(
    "kind",
    [row("queue", key=f"{FILE}.SimpleSendAndReceiveQ"), row("topic", key=f"{FILE}.SimpleSendAndReceiveT")],
)
async def test_a_round_trip(session: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(session, kind, name("simple"))
    async with session.create_consumer(where) as consumer, session.create_producer(where) as producer:
        message = session.create_text_message("simple")
        await producer.send(message)
        received = await consumer.receive(timeout=20)
        assert received is not None and received.get_body(str) == "simple"
        assert received.jms_message_id == message.jms_message_id


@tck(f"{FILE}.selectorAndBrowserTests")
async def test_browsers_and_a_selector(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("browsed"))
    async with session.create_producer(queue) as producer:
        for word in ("first", "second"):
            await producer.send(word, properties={"TEST": word})
    async with session.create_browser(queue) as browser:
        assert browser.get_queue() == queue and browser.get_message_selector() is None
        assert [one.get_body(str) async for one in browser] == ["first", "second"]
    async with session.create_browser(queue, "TEST = 'second'") as browser:
        assert browser.get_message_selector() == "TEST = 'second'"
        assert [one.get_body(str) async for one in browser] == ["second"]
    async with session.create_consumer(queue, "TEST = 'second'") as consumer:
        assert await text(consumer) == "second"
    async with session.create_consumer(queue) as consumer:
        assert await text(consumer) == "first"
        assert await consumer.receive(timeout=0.3) is None


@tck(f"{FILE}.SubscriberTests")
async def test_durable_subscribers_differ_in_no_local_and_selector(
    factory: jmsaio.ConnectionFactory, session: jmsaio.Session, name: Name
) -> None:
    topic = session.create_topic(name("subscribed"))
    async with await factory.create_connection(client_id=name("client")) as connection:
        await connection.start()
        async with connection.create_session() as own:
            plain = await own.create_durable_consumer(topic, "plain")
            foreign = await own.create_durable_consumer(topic, "foreign", None, True)
            selecting = await own.create_durable_consumer(topic, "selecting", "TEST = 'test'", False)
            for sender, body, word in ((own, "own", "test"), (session, "other", "no"), (session, "last", "test")):
                async with sender.create_producer(topic) as producer:
                    await producer.send(body, properties={"TEST": word})
            assert [await text(plain) for _ in range(3)] == ["own", "other", "last"]
            assert [await text(foreign) for _ in range(2)] == ["other", "last"]
            assert [await text(selecting) for _ in range(2)] == ["own", "last"]
            for subscription, consumer in (("plain", plain), ("foreign", foreign), ("selecting", selecting)):
                await consumer.close()
                await own.unsubscribe(subscription, topic)


@tck(f"{FILE}.IllegalStateTestQ")
async def test_rollback_without_a_transaction(session: jmsaio.Session) -> None:
    for call in (session.rollback, session.commit):
        with pytest.raises(jmsaio.IllegalStateError):
            await call()


@tck(f"{FILE}.ackTests")
async def test_a_session_reports_the_mode_it_was_created_with(connection: jmsaio.Connection) -> None:
    for mode in (AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.TRANSACTED):
        async with connection.create_session(mode) as session:
            assert session.get_acknowledge_mode() is mode


CREATORS: list[Any] = [
    lambda session, where, *selector: session.create_consumer(where, *selector),
    lambda session, where, *selector: session.create_consumer(where, *(selector or [None]), True),
    lambda session, where, *selector: session.create_durable_consumer(where, "named", *selector),
    lambda session, where, *selector: session.create_durable_consumer(where, "named", *(selector or [None]), False),
]


@tck(f"{FILE}.InvalidDestinationTests", "core/appclient/invalidDest/InvalidDestTestsIT.invalidDestinationTests")
async def test_consumers_and_browsers_without_a_destination_are_refused(session: jmsaio.Session) -> None:
    for create in [*CREATORS, lambda session, where, *selector: session.create_browser(where, *selector)]:
        for selector in ([], ["TEST = 'test'"]):
            with pytest.raises(jmsaio.InvalidDestinationError):
                await create(session, None, *selector)


@tck(f"{FILE}.InvalidSelectorTests")
async def test_a_bad_selector(session: jmsaio.Session, name: Name) -> None:
    topic, queue, bad = session.create_topic(name("topic")), session.create_queue(name("queue")), "=TEST 'test'"
    for create in CREATORS:
        with pytest.raises(jmsaio.InvalidSelectorError):
            await create(session, topic, bad)
    for create in (session.create_consumer, session.create_browser):
        with pytest.raises(jmsaio.InvalidSelectorError):
            await create(queue, bad)
