"""A queue whose topic is deleted by force during sends keeps the messages sent from then on."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from typing import Any

import anyio
import attrs
import httpx
import pytest

import jmsaio
from jmsaio.client.subscriptions.restore import Restoring
from jmsaio.config import load
from jmsaio.errors import AdminError, NotFoundError
from jmsaio.model.partitions import partition_names
from jmsaio.transport.base import Admin
from jmsaio.transport.clock import LoopTimers
from tests.support.broker import TestBroker

LIMIT = 20


@attrs.define
class Shop:
    """A connection that sends to one queue."""

    connection: jmsaio.Connection
    session: jmsaio.Session
    queue: jmsaio.Queue

    @property
    def admin(self) -> Admin:
        admin = self.connection._runtime.transport.admin
        assert admin is not None
        return admin

    @property
    def topic(self) -> str:
        return f"persistent://public/default/{self.queue.name}"

    async def backlog(self, count: int, topic: str = "") -> None:
        """Wait until the queue keeps so many."""
        with anyio.fail_after(LIMIT):
            while True:
                kept = (await self.admin.stats(topic or self.topic)).subscriptions.get("jms-queue")
                if kept is not None and kept.backlog == count:
                    return
                await anyio.sleep(0.05)


@pytest.fixture
async def shop(url: str) -> AsyncIterator[Shop]:
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        yield Shop(connection, session, jmsaio.Queue(f"deleted-{uuid.uuid4()}"))


@pytest.mark.parametrize("before", [3, 1, 0])
async def test_the_queue_keeps_what_is_sent_after_the_deletion(shop: Shop, before: int) -> None:
    """Also a single message, and also when nothing was sent before."""
    async with shop.session.create_producer(shop.queue) as producer:
        for number in range(before):
            await producer.send(f"gone {number}")
        if not before:
            await anyio.sleep(1.1)  # a producer that is used at once needs no second look
        await shop.admin.delete_topic(shop.topic, force=True)
        await producer.send("kept")
    await shop.backlog(1)
    async with shop.session.create_consumer(shop.queue) as consumer:
        assert await consumer.receive_body(str, timeout=LIMIT) == "kept"


async def test_closing_waits_until_the_queue_is_there_again(url: str) -> None:
    name = f"deleted-{uuid.uuid4()}"
    async with jmsaio.connect(url) as other:
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            shop = Shop(other, session, jmsaio.Queue(name))
            producer = await session.create_producer(shop.queue)
            await producer.send("gone")
            await shop.admin.delete_topic(shop.topic, force=True)
            await producer.send("kept")
        assert (await shop.admin.stats(shop.topic)).subscriptions["jms-queue"].backlog == 1


@pytest.mark.broker
async def test_partitions_are_kept_and_reported(pulsar_broker: TestBroker, caplog: pytest.LogCaptureFixture) -> None:
    """pulsar-client recreates them as topics of their own, where no new consumer of the queue looks."""
    url = pulsar_broker.url
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        shop = Shop(connection, session, jmsaio.Queue(f"deleted-{uuid.uuid4()}"))
        await shop.admin.create_topic(shop.topic, 2)
        async with shop.session.create_producer(shop.queue) as producer:
            for _ in range(2):
                await producer.send("gone")
            await shop.admin.delete_topic(shop.topic, force=True)
            for _ in range(2):
                await producer.send("kept")
        parts = partition_names(shop.topic, 2)
        for part in parts:
            await shop.backlog(1, part)
            with anyio.fail_after(LIMIT):
                while not any("a partitioned topic" in one.getMessage() and part in one.getMessage()
                              for one in caplog.records):  # fmt: skip
                    await anyio.sleep(0.05)


@pytest.mark.broker
async def test_an_unload_recreates_nothing(pulsar_broker: TestBroker, caplog: pytest.LogCaptureFixture) -> None:
    """Records lie in another ledger, but the subscription is there."""
    url = pulsar_broker.url
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        shop = Shop(connection, session, jmsaio.Queue(f"unloaded-{uuid.uuid4()}"))
        async with shop.session.create_producer(shop.queue) as producer:
            await producer.send("1")
            unload = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{shop.queue.name}/unload"
            async with httpx.AsyncClient(timeout=LIMIT) as http:
                (await http.put(unload)).raise_for_status()
            await producer.send("2")
        await shop.backlog(2)
    assert not [one for one in caplog.records if "deleted" in one.getMessage()]


class Refusing:
    """A transport whose admin interface creates no subscription."""

    def __init__(self) -> None:
        self.admin = self
        self.asked: list[tuple[str, str]] = []

    async def create_subscription(self, topic: str, name: str, position: Any) -> bool:
        self.asked.append((topic, name))
        raise AdminError("no", status=403)


async def test_a_subscription_that_can_not_be_recreated_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    transport = Refusing()
    restoring = Restoring(transport, load("memory://x"), LoopTimers())  # type: ignore[arg-type] # the part of a transport that it needs
    restoring.topic_changed({"jms-queue"}, "persistent://a/b/c")
    await restoring.aclose(LIMIT)
    [logged] = caplog.records
    assert logged.levelno == logging.ERROR and "can't be recreated" in logged.getMessage()
    assert transport.asked == [("persistent://a/b/c", "jms-queue")]


@pytest.mark.parametrize(
    ("topic", "subscriptions", "precreate"),
    [
        ("persistent://a/b/jms-temp-queue-1", {"jms-queue"}, True),
        ("persistent://a/b/c", set(), True),
        ("persistent://a/b/c", {"jms-queue"}, False),
    ],
)
async def test_subscriptions_that_are_not_recreated(topic: str, subscriptions: set[str], precreate: bool) -> None:
    """Temporary destinations, whose owner deleted them; topics; and queues of an application that makes them itself."""
    transport = Refusing()
    config = load("memory://x", precreate_queue_subscription=precreate)
    restoring = Restoring(transport, config, LoopTimers())  # type: ignore[arg-type] # the part of a transport that it needs
    restoring.topic_changed(subscriptions, topic)
    assert restoring._task is None
    await restoring.aclose(LIMIT)
    assert transport.asked == []


class Silent(Refusing):
    """A transport whose admin interface does not answer."""

    async def create_subscription(self, topic: str, name: str, position: Any) -> bool:
        await anyio.sleep(LIMIT)
        raise AssertionError(topic)


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_check_that_a_close_interrupts_is_reported(caplog: pytest.LogCaptureFixture, cancelled: bool) -> None:
    """Also where the close itself is cancelled; nothing runs on then."""
    restoring = Restoring(Silent(), load("memory://x"), LoopTimers())  # type: ignore[arg-type] # the part of a transport that it needs
    for letter in "abcdef":  # more than are looked after at once
        restoring.topic_changed({"jms-queue"}, f"persistent://a/b/{letter}")
    await anyio.sleep(0.01)
    restoring.topic_changed({"jms-queue"}, "persistent://a/b/g")
    assert len(checks()) == 1
    with anyio.move_on_after(0.1) as scope:
        await restoring.aclose(LIMIT if cancelled else 0.05)
    assert scope.cancelled_caught is cancelled
    if cancelled:
        await anyio.sleep(0.01)
    assert checks() == []
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == 7 and all("was closed before" in text for text in logged)
    assert logged == sorted(logged)


def checks() -> list[asyncio.Task[Any]]:
    """The tasks that check the subscriptions of queues."""
    return [task for task in asyncio.all_tasks() if task.get_name() == "jmsaio queue subscriptions"]


@attrs.define(eq=False)
class Creating:
    """Creates every subscription, in a while; knows how many partitions each topic has, None: it is gone."""

    left: int | None = None
    made: list[str] = attrs.field(factory=list)

    @property
    def admin(self) -> Creating:
        return self

    async def create_subscription(self, topic: str, name: str, position: Any) -> bool:
        await anyio.sleep(0.01)
        self.made.append(f"{topic} {name}")
        return True

    async def partitions(self, topic: str) -> int:
        assert topic == "persistent://a/b/c"
        if self.left is None:
            raise NotFoundError("no such topic")
        return self.left


@pytest.mark.parametrize(
    ("topic", "left", "level", "text"),
    [
        ("persistent://a/b/c", None, logging.WARNING, "jms-queue was recreated"),
        ("persistent://a/b/c-partition-0", 1, logging.WARNING, "jms-queue was recreated"),
        ("persistent://a/b/c-partition-0", 0, logging.ERROR, "a partitioned topic"),
        ("persistent://a/b/c-partition-0", None, logging.ERROR, "a partitioned topic"),
    ],
)
async def test_a_subscription_that_was_missing_is_reported_once(
    topic: str, left: int | None, level: int, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """More is to be done where the partitions of a deleted topic came back as topics of their own."""
    restoring = Restoring(Creating(left), load("memory://x"), LoopTimers())  # type: ignore[arg-type] # the part of a transport that it needs
    restoring.topic_changed({"jms-queue"}, topic)
    await restoring.aclose(LIMIT)
    (logged,) = caplog.records
    assert logged.levelno == level and text in logged.getMessage()


async def test_what_changes_during_a_check_and_after_it_is_checked_too() -> None:
    admin = Creating()
    restoring = Restoring(admin, load("memory://x"), LoopTimers())  # type: ignore[arg-type] # the part of a transport that it needs
    restoring.topic_changed({"q"}, "1")
    await anyio.sleep(0.005)
    restoring.topic_changed({"q"}, "2")
    await anyio.sleep(0.1)
    assert admin.made == ["1 q", "2 q"] and checks() == []
    restoring.topic_changed({"q"}, "3")
    await restoring.aclose(LIMIT)
    assert admin.made == ["1 q", "2 q", "3 q"]
