"""A durable subscription opened with other settings (Jakarta Messaging 3.1, 8.3.3 Unshared durable subscriptions)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable

import attrs
import pytest

import jmsaio
from jmsaio.config import ConsumerConfig
from jmsaio.errors import ConsumerBusyError
from jmsaio.transport.base import (
    StartPosition,
    Subscription,
    SubscriptionType,
)
from tests.client.helpers import drain, full_name, texts
from tests.kit.inside import admin_of, transport_of
from tests.support.broker import TestBroker

Name = Callable[[str], str]

#: Unsubscribing looks for a subscription in all topics of the namespace.
pytestmark = pytest.mark.small_namespace


@attrs.define
class Case:
    """A subscription of a client with an identifier, in a session of its own."""

    session: jmsaio.Session
    connection: jmsaio.Connection
    topic: jmsaio.Topic
    shared: bool

    async def open(self, selector: str | None = None, no_local: bool = False) -> jmsaio.MessageConsumer:
        if self.shared:
            return await self.session.create_shared_durable_consumer(self.topic, "sub", selector)
        return await self.session.create_durable_consumer(self.topic, "sub", selector, no_local)

    async def send(self, *bodies: str) -> None:
        async with self.session.create_producer(self.topic) as producer:
            for body in bodies:
                await producer.send(body, properties={"x": 1})

    async def kept(self, least: int, selector: str | None = None, no_local: bool = False) -> list[str]:
        """What an opened consumer gets, which is closed again; see ``drain``."""
        async with await self.open(selector, no_local) as consumer:
            return texts(await drain(consumer, least, 0.7))


@pytest.fixture(params=[False, True], ids=["unshared", "shared"])
async def case(url: str, name: Name, request: pytest.FixtureRequest) -> AsyncIterator[Case]:
    async with jmsaio.connect(url, client_id=name("client")) as connection, connection.create_session() as session:
        case = Case(session, connection, session.create_topic(name("renewed")), request.param)
        yield case
        await session.unsubscribe("sub")


def dropped(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "is recreated" in record.message]


async def test_the_same_is_resumed(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    for selector in (None, ""):  # an empty selector is none
        await (await case.open(selector)).close()
        await case.send("kept")
        assert await case.kept(1) == ["kept"]
    await case.session.unsubscribe("sub")
    await (await case.open("x = 1")).close()
    await case.send("kept")
    assert await case.kept(1, "x = 1") == ["kept"]
    assert not dropped(caplog)


async def test_another_selector_recreates_it(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    await (await case.open()).close()
    await case.send("a", "b")
    assert await case.kept(0, "x = 1") == []
    assert ["2 messages" in text for text in dropped(caplog)] == [True]
    await case.send("c")
    assert await case.kept(1, "x = 1") == ["c"]
    await case.send("d")
    assert await case.kept(0) == []
    assert len(dropped(caplog)) == 2


async def test_an_active_one_is_refused(case: Case) -> None:
    async with await case.open("x = 1") as consumer:
        with pytest.raises(jmsaio.JMSError, match="use"):
            await case.open("x = 2") if not case.shared else await case.session.create_durable_consumer(
                case.topic, "sub"
            )
        with pytest.raises(jmsaio.JMSError):
            await case.open("x = 2")
        await case.send("a")
        assert await consumer.receive_body(str, timeout=20) == "a"
    assert await case.kept(0, "x = 1") == []


async def test_shared_and_unshared_don_t_mix(case: Case) -> None:
    await (await case.open()).close()
    await case.send("kept")
    other = attrs.evolve(case, shared=not case.shared)
    with pytest.raises(jmsaio.JMSError, match="unsubscribe it first"):
        await other.open()
    assert await case.kept(1) == ["kept"]


async def test_one_that_another_process_uses(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    """A receiver beside the client stands for the other process: the list of uses does not know it."""
    await (await case.open("x = 1")).close()
    await case.send("kept")
    subscription = Subscription(
        (full_name(case.connection, case.topic),), f"{case.connection.client_id}_sub",
        SubscriptionType.SHARED if case.shared else SubscriptionType.EXCLUSIVE, ConsumerConfig(receiver_queue_size=1),
    )  # fmt: skip
    theirs = await transport_of(case.connection).open_receiver(subscription, lambda: None)
    with pytest.raises(ConsumerBusyError):
        await case.open("x = 2")
    await theirs.aclose(20)
    assert await case.kept(1, "x = 1") == ["kept"]
    assert not dropped(caplog)


async def test_no_local_is_part_of_it(url: str, name: Name, caplog: pytest.LogCaptureFixture) -> None:
    async with jmsaio.connect(url, client_id=name("client")) as connection, connection.create_session() as session:
        case = Case(session, connection, session.create_topic(name("renewed")), False)
        await (await case.open(no_local=True)).close()
        await case.send("own")
        assert await case.kept(0) == []  # and not what noLocal left out
        assert len(dropped(caplog)) == 1
        await case.send("own")
        assert await case.kept(1) == ["own"]
        assert await case.kept(0, no_local=True) == []
        assert len(dropped(caplog)) == 2
        await session.unsubscribe("sub")


async def test_no_local_without_effect_changes_nothing(session: jmsaio.Session, name: Name) -> None:
    topic, subscription = session.create_topic(name("renewed")), name("sub")
    await (await session.create_durable_consumer(topic, subscription, no_local=True)).close()
    await (await session.create_producer(topic)).send("kept")
    async with session.create_durable_consumer(topic, subscription) as consumer:
        assert await consumer.receive_body(str, timeout=20) == "kept"
    await session.unsubscribe(subscription, topic)


async def test_unsettled_messages_keep_it_as_it_is(url: str, name: Name) -> None:
    async with jmsaio.connect(url, client_id=name("client")) as connection:
        async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
            case = Case(session, connection, session.create_topic(name("renewed")), False)
            consumer = await case.open()
            await case.send("a")
            message = await consumer.receive(timeout=20)
            assert message is not None
            await consumer.close()
            with pytest.raises(jmsaio.JMSError, match="unsettled"):
                await case.open("x = 2")
            await message.acknowledge()
            assert await case.kept(0, "x = 2") == []
        async with connection.create_session() as session:
            await session.unsubscribe("sub")


async def test_a_name_on_another_topic_replaces_the_subscription_on_the_embedded_broker(
    url: str, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    """The embedded broker knows a name once, as JMS says; Pulsar's names are per topic."""
    async with jmsaio.connect(url, client_id=name("client")) as connection, connection.create_session() as session:
        first, second = [Case(session, connection, session.create_topic(name(stem)), False) for stem in "ab"]
        await (await first.open()).close()
        await first.send("one")
        await (await second.open()).close()
        embedded = url.startswith("memory:")
        assert len(dropped(caplog)) == embedded
        assert await first.kept(0 if embedded else 1) == ([] if embedded else ["one"])
        for topic in [first.topic] if embedded else [first.topic, second.topic]:
            await session.unsubscribe("sub", topic)


async def test_topics_of_a_virtual_name(url: str, name: Name, caplog: pytest.LogCaptureFixture) -> None:
    async with jmsaio.connect(url, client_id=name("client")) as connection, connection.create_session() as session:
        topics = [session.create_topic(name(stem)) for stem in "ab"]
        both = session.create_topic("multi:" + ",".join(topic.name for topic in topics))
        case = Case(session, connection, both, False)
        await (await case.open()).close()
        for topic in topics:
            await (await session.create_producer(topic)).send("kept")
        assert await case.kept(2) == ["kept", "kept"]
        for topic in topics:
            await (await session.create_producer(topic)).send("dropped")
        assert await case.kept(0, "x = 1") == []
        assert len(dropped(caplog)) == 2
        for topic in topics:
            await session.unsubscribe("sub", topic)


@pytest.mark.broker
async def test_pulsar_remembers_it_as_properties(pulsar_broker: TestBroker, name: Name) -> None:
    async with jmsaio.connect(pulsar_broker.url, client_id="c") as connection, connection.create_session() as session:
        topic = session.create_topic(name("renewed"))
        admin, full = admin_of(connection), full_name(connection, topic)
        await admin.create_subscription(full, "c_sub", StartPosition.LATEST)  # made by somebody else
        await admin.set_subscription_properties(full, "c_sub", {"theirs": "1"})
        await (await session.create_producer(topic)).send("kept")
        async with session.create_durable_consumer(topic, "sub", "x IS NULL", no_local=True) as consumer:
            assert await admin.subscription_properties(full, "c_sub") == {
                "theirs": "1", "jmsaio.selector": "x IS NULL", "jmsaio.nolocal": "true", "jmsaio.shared": "false",
                "jmsaio.foreign": "true",
            }  # fmt: skip
            assert (await admin.stats(full)).subscriptions["c_sub"].backlog == 1
            await consumer.close()
        await session.unsubscribe("sub", topic)


@pytest.mark.broker
async def test_pulsar_without_admin_resumes_with_one_warning(
    pulsar_broker: TestBroker, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"{pulsar_broker.url}&jms.usePulsarAdmin=false"
    async with jmsaio.connect(url, client_id=name("client")) as connection, connection.create_session() as session:
        case = Case(session, connection, session.create_topic(name("renewed")), False)
        await (await case.open()).close()
        await case.send("kept")
        assert await case.kept(1, "x = 1") == ["kept"]
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert ["could not find out" in record.message for record in warnings] == [True]
