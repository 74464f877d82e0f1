"""noLocal: consumers of a topic without the messages of their own connection, durable ones of their client id."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable

import pytest

import jmsaio
from jmsaio.client.subscriptions import in_process
from tests.kit.inside import runtime_of

Name = Callable[[str], str]


async def text(consumer: jmsaio.MessageConsumer, wait: float = 20) -> str | None:
    message = await consumer.receive(timeout=wait)
    return None if message is None else message.get_body(str)


async def publish(session: jmsaio.Session, topic: jmsaio.Topic, body: str) -> None:
    async with session.create_producer(topic) as producer:
        await producer.send(body)


async def never_added(url: str, client: str, topic: jmsaio.Topic, after: str) -> None:
    """The next message of another client is the first one in the subscription."""
    async with jmsaio.connect(url) as other, other.create_session() as theirs:
        await publish(theirs, topic, after)
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        async with session.create_durable_consumer(topic, "bar", no_local=True) as consumer:
            assert await text(consumer) == after
            assert await text(consumer, 0.3) is None


async def test_a_durable_consumer_gets_nothing_that_its_own_connection_sends(url: str, name: Name) -> None:
    """The connection that made the subscription sends."""
    topic, client = jmsaio.Topic(name("case1")), name("foo")
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        async with session.create_durable_consumer(topic, "bar", no_local=True) as consumer:
            await publish(session, topic, "own")
            async with connection.create_session() as another:
                await publish(another, topic, "own, of another session")
            assert await text(consumer, 0.5) is None
    await never_added(url, client, topic, "foreign")


async def test_a_later_connection_of_the_client_gets_nothing_that_an_earlier_one_sent(url: str, name: Name) -> None:
    """What that connection sent is not there for a second connection of the same client either."""
    topic, client = jmsaio.Topic(name("case2")), name("foo")
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        await (await session.create_durable_consumer(topic, "bar", no_local=True)).close()
        await publish(session, topic, "own")  # no one receives, so nothing rejected it yet
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        async with session.create_durable_consumer(topic, "bar", no_local=True) as consumer:
            assert await text(consumer, 0.5) is None
    await never_added(url, client, topic, "foreign")


async def test_a_third_connection_of_the_client_gets_nothing_that_the_second_sent(url: str, name: Name) -> None:
    """The second connection sends, before and after it opens the subscription, and a third one receives."""
    topic, client = jmsaio.Topic(name("case3")), name("foo")
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        await (await session.create_durable_consumer(topic, "bar", no_local=True)).close()
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        await publish(session, topic, "own, before it is opened")
        async with session.create_durable_consumer(topic, "bar", no_local=True) as consumer:
            await publish(session, topic, "own, while it is open")
            assert await text(consumer, 0.5) is None
        await publish(session, topic, "own, after it was closed")
    await never_added(url, client, topic, "foreign")


async def test_no_local_distinguishes_clients(url: str, name: Name) -> None:
    """By the client id before the last underscore and a uuid, and by nothing else."""
    topic, client = jmsaio.Topic(name("apart")), name("foo")
    others = [f"{client}_{client}", f"{client}_", f"{client}_{uuid.uuid4()}", name("bar")]
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        async with session.create_durable_consumer(topic, "bar", no_local=True) as consumer:
            for other in others:
                async with jmsaio.connect(url, client_id=other) as theirs, theirs.create_session() as session2:
                    await publish(session2, topic, other)
            assert [await text(consumer) for _ in others] == others
        await session.unsubscribe("bar", topic)


async def test_no_local_of_another_process(url: str, name: Name) -> None:
    """Two connections of one client at once are refused in one process, not in two."""
    topic, client = jmsaio.Topic(name("process")), name("foo")
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        async with session.create_durable_consumer(topic, "bar", no_local=True) as consumer:
            in_process.release_client_id(runtime_of(connection).broker, client)
            async with jmsaio.connect(url, client_id=client) as twin, twin.create_session() as theirs:
                await publish(theirs, topic, "same client")
            assert await text(consumer, 0.5) is None


async def test_no_local_leaves_shared_subscriptions_alone(url: str, name: Name) -> None:
    """They have no noLocal: each gets what its own connection sends, also beside one that has it."""
    topic, client = jmsaio.Topic(name("shared")), name("foo")
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        async with (
            session.create_durable_consumer(topic, "bar", no_local=True) as unshared,
            session.create_shared_durable_consumer(topic, "baz") as durable,
            session.create_shared_consumer(topic, "baz") as shared,
        ):
            await publish(session, topic, "own")
            assert [await text(durable), await text(shared)] == ["own", "own"]
            assert await text(unshared, 0.3) is None
        for subscription in ("bar", "baz"):
            await session.unsubscribe(subscription, topic)
        with pytest.raises(TypeError):
            session.create_shared_durable_consumer(topic, "baz", None, True)  # type: ignore[call-arg]  # no such argument


async def test_no_local_on_a_simple_consumer_is_about_its_connection(url: str, name: Name) -> None:
    """Not about the client: what another connection of the same client sends is received."""
    topic, client = jmsaio.Topic(name("own")), name("foo")
    async with jmsaio.connect(url, client_id=client) as connection, connection.create_session() as session:
        async with session.create_consumer(topic, no_local=True) as consumer, connection.create_session() as another:
            await publish(another, topic, "own")
            in_process.release_client_id(runtime_of(connection).broker, client)
            async with jmsaio.connect(url, client_id=client) as twin, twin.create_session() as theirs:
                await publish(theirs, topic, "twin")
            assert await text(consumer) == "twin"
            assert await text(consumer, 0.3) is None


async def test_strict_client_ids(url: str, name: Name) -> None:
    async with jmsaio.connect(url, strict_client_id=True) as connection, connection.create_session() as session:
        for no_local in (False, True):
            with pytest.raises(jmsaio.IllegalStateError, match="client id"):
                await session.create_durable_consumer(jmsaio.Topic(name("strict")), "bar", no_local=no_local)
        topic = jmsaio.Topic(name("strict"))
        await (await session.create_shared_durable_consumer(topic, name("bar"))).close()  # these need none
        await session.unsubscribe(name("bar"), topic)


async def test_no_local_without_client_id(
    session: jmsaio.Session, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    topic = session.create_topic(name("no-client"))
    with caplog.at_level(logging.WARNING, "jmsaio"):
        async with session.create_durable_consumer(topic, name("bar"), no_local=True) as consumer:
            await (await session.create_producer(topic)).send("own")
            assert await text(consumer) == "own"
            assert consumer.no_local
        await (await session.create_durable_consumer(topic, name("bar"), no_local=True)).close()
    assert len([record for record in caplog.records if "noLocal has no effect" in record.message]) == 1


async def test_no_local_on_a_simple_consumer(url: str, session: jmsaio.Session, name: Name) -> None:
    topic = session.create_topic(name("no-local"))
    async with session.create_consumer(topic, no_local=True) as consumer:
        await (await session.create_producer(topic)).send("own")
        async with jmsaio.connect(url) as other, other.create_session() as session2:
            await (await session2.create_producer(topic)).send("foreign")
        assert await text(consumer) == "foreign"
        assert await text(consumer, 0.3) is None


async def test_no_local_is_about_the_connection_of_each_send(url: str, session: jmsaio.Session, name: Name) -> None:
    """The same message object, sent by one connection after another, and a received one that is sent on."""
    topic = session.create_topic(name("each-send"))
    async with (
        session.create_consumer(topic, no_local=True) as consumer,
        jmsaio.connect(url) as other,
        other.create_session() as theirs,
        session.create_producer(topic) as mine,
        theirs.create_producer(topic) as foreign,
    ):
        message = session.create_text_message("x")
        await mine.send(message)
        await foreign.send(message)
        received = await consumer.receive(timeout=20)
        assert received is not None
        await mine.send(received)
        assert await consumer.receive(timeout=0.5) is None
