"""Subscriptions that end with their consumers, on an engine whose client has none of that kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio
import attrs
import pytest

import jmsaio
from jmsaio.client.subscriptions.delete import drop_unused, make_way
from jmsaio.config import ConsumerConfig
from jmsaio.errors import AdminError, ConsumerBusyError, JMSSecurityError, NotFoundError
from jmsaio.transport.base import Position, Subscription, SubscriptionType

Name = Callable[[str], str]

TOPICS = ("persistent://public/default/a", "persistent://public/default/b")
WANTED = Subscription(TOPICS, "sub-nd", SubscriptionType.SHARED, ConsumerConfig())
BUSY = AdminError("has consumers", 412)


async def left(connection: jmsaio.Connection, topic: jmsaio.Topic) -> set[str]:
    """The subscriptions of a topic."""
    admin = connection._runtime.transport.admin
    assert admin is not None
    return set((await admin.stats(f"persistent://public/default/{topic.name}")).subscriptions)


async def test_a_cancelled_opening_leaves_no_subscription(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    topic = session.create_topic(name("cancelled"))
    admin = connection._runtime.transport.admin
    assert admin is not None
    await admin.create_topic(f"persistent://public/default/{topic.name}", 2)

    async def opened(shared: bool) -> None:
        await (session.create_shared_consumer(topic, "group") if shared else session.create_consumer(topic))

    for milliseconds in (0, 1, 2, 4, 8):
        for shared in (False, True):
            with anyio.move_on_after(milliseconds / 1000) as scope:
                await opened(shared)
            task = asyncio.create_task(opened(shared))
            await asyncio.sleep(milliseconds / 1000)
            task.cancel()
            await asyncio.wait([task])
            if not (scope.cancelled_caught and task.cancelled()):  # it was ready before
                for inbox in list(session._runtime.inboxes.open):
                    await session._runtime.close_consumer(inbox)
    async with asyncio.timeout(20):
        while await left(connection, topic):
            await asyncio.sleep(0.05)


@pytest.mark.broker
async def test_what_a_crash_left_of_a_shared_subscription_is_not_resumed(url_of_pulsar: str, name: Name) -> None:
    async with jmsaio.connect(url_of_pulsar) as connection, connection.create_session() as session:
        topic = session.create_topic(name("crashed"))
        admin, full = connection._runtime.transport.admin, f"persistent://public/default/{topic.name}"
        assert admin is not None
        await admin.create_subscription(full, "group-nd", Position.EARLIEST)
        producer = await session.create_producer(topic)
        await producer.send("for those who crashed")
        async with session.create_shared_consumer(topic, "group") as consumer:
            await producer.send("new")
            assert await consumer.receive_body(str, timeout=20) == "new"
            async with session.create_shared_consumer(topic, "group") as second:  # it is not taken from the first
                await producer.send("newer")
                getting = [asyncio.ensure_future(one.receive_body(str, timeout=20)) for one in (consumer, second)]
                done, waiting = await asyncio.wait(getting, return_when=asyncio.FIRST_COMPLETED)
                assert [one.result() for one in done] == ["newer"]
                await asyncio.sleep(0.3)
                assert not any(one.done() for one in waiting)
        assert await left(connection, topic) == set()


async def test_a_durable_one_of_that_name_is_neither_taken_over_nor_deleted(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    topic, subscription = session.create_topic(name("named")), name("sub")
    await (await session.create_durable_consumer(topic, f"{subscription}-nd")).close()
    await (await session.create_producer(topic)).send("kept")
    with pytest.raises(ConsumerBusyError, match="durable"):
        await session.create_shared_consumer(topic, subscription)
    async with session.create_durable_consumer(topic, f"{subscription}-nd") as consumer:
        assert await consumer.receive_body(str, timeout=20) == "kept"
    await session.unsubscribe(f"{subscription}-nd")


@pytest.fixture
def url_of_pulsar(pulsar_broker: object) -> str:
    """The real broker."""
    return f"{pulsar_broker.service_url}?webServiceUrl={pulsar_broker.web_service_url}"  # type: ignore[attr-defined]  # the launcher's


# --- an admin interface that fails ---------------------------------------------------------------------------------


@attrs.define
class FakeAdmin:
    """Answers the deletions of a topic in turn, None for success, and notes them."""

    answers: dict[str, list[Exception | None]] = attrs.field(factory=dict)
    properties: dict[str, str] | Exception = attrs.field(factory=dict)
    calls: list[str] = attrs.field(factory=list)

    async def subscription_properties(self, topic: str, name: str) -> dict[str, str]:
        if isinstance(self.properties, Exception):
            raise self.properties
        return self.properties

    async def delete_subscription(self, topic: str, name: str, force: bool = False) -> None:
        assert name == "sub-nd" and not force
        self.calls.append(topic[-1])
        answers = self.answers.get(topic[-1], [])
        error = answers.pop(0) if answers else None
        if error is not None:
            raise error


@pytest.mark.parametrize(
    ("answers", "patient", "asked"),
    [
        ({}, False, "ab"),
        ({"a": [NotFoundError("")]}, False, "ab"),
        ({"a": [BUSY]}, False, "ab"),
        ({"a": [BUSY, BUSY]}, True, "aaab"),
        ({"a": [BUSY] * 99}, True, "a" * 10 + "b"),
        ({"a": [BUSY, NotFoundError("")]}, True, "aab"),
        ({"a": [AdminError("down")] * 9, "b": [JMSSecurityError("not yours")] * 9}, True, "ab"),
    ],
)
async def test_dropping(answers: dict[str, list[Exception | None]], patient: bool, asked: str) -> None:
    admin = FakeAdmin(answers)
    await drop_unused(admin, WANTED, 5, patient=patient)  # type: ignore[arg-type]  # a fake
    assert "".join(admin.calls) == asked


async def test_dropping_goes_on_when_cancelled() -> None:
    admin = FakeAdmin({"a": [BUSY]})
    with anyio.CancelScope() as scope:
        scope.cancel()
        await drop_unused(admin, WANTED, 5, patient=True)  # type: ignore[arg-type]  # a fake
    assert "".join(admin.calls) == "aab"


async def test_without_admin_nothing_is_dropped() -> None:
    await drop_unused(None, WANTED, 5)
    await make_way(None, WANTED, 5)


@pytest.mark.parametrize(
    ("properties", "asked"),
    [({}, "ab"), ({"theirs": "1"}, "ab"), (NotFoundError(""), ""), (AdminError("down"), "")],
)
async def test_making_way(properties: dict[str, str] | Exception, asked: str) -> None:
    admin = FakeAdmin({}, properties)
    await make_way(admin, WANTED, 5)  # type: ignore[arg-type]  # a fake
    assert "".join(admin.calls) == asked


async def test_making_way_spares_durable_ones() -> None:
    admin = FakeAdmin({}, {"jmsaio.shared": "false"})
    with pytest.raises(ConsumerBusyError, match="use another name"):
        await make_way(admin, WANTED, 5)  # type: ignore[arg-type]  # a fake
    assert admin.calls == []
