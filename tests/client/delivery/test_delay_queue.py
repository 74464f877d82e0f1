"""Messages held in the client until their delivery time, and the bound of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import attrs
import pytest

import jmsaio
from jmsaio.client.delivery.delay_queue import HELD_BYTES, HELD_RECORDS, SLICE, DelayQueue
from jmsaio.transport.base import SubscriptionType
from tests.kit.virtual_time import wall

Name = Callable[[str], str]


@attrs.define(eq=False)
class Record:
    number: int
    size: int = 10

    @property
    def message_id(self) -> int:
        return self.number


@attrs.define(eq=False)
class Kit:
    """What is held, and how often its owner was woken."""

    held: DelayQueue = attrs.field(init=False)
    wakes: int = 0
    woken: asyncio.Event = attrs.field(factory=asyncio.Event)

    def __attrs_post_init__(self) -> None:
        self.held = DelayQueue("Topic('t')", self.wake)

    def wake(self) -> None:
        self.wakes += 1
        self.woken.set()

    def put(self, number: int, delay: float, size: int = 10) -> None:
        record: Any = Record(number, size)
        self.held.put(record, wall() + delay)

    def due(self) -> list[int]:
        records: list[Any] = self.held.due()
        return [record.number for record in records]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "pauses" in record.message]


def test_the_bounds() -> None:
    assert (HELD_RECORDS, HELD_BYTES) == (10_000, 64 * 1024 * 1024)
    held = DelayQueue("", lambda: None)
    assert (held.most_records, held.most_bytes) == (HELD_RECORDS, HELD_BYTES)


async def test_records_come_in_the_order_of_their_times() -> None:
    kit = Kit()
    for number, delay in ((1, 0.06), (2, 100), (3, 0.03), (4, -1)):
        kit.put(number, delay)
    assert len(kit.held) == 4
    found: list[int] = []
    async with asyncio.timeout(20):
        while len(found) < 3:
            await kit.woken.wait()
            kit.woken.clear()
            found += kit.due()
    assert found == [4, 3, 1]
    assert kit.due() == [] and len(kit.held) == 1
    assert [record.number for record in kit.held.clear()] == [2]  # type: ignore[attr-defined]  # ours
    assert len(kit.held) == 0 and kit.held._timer is None


async def test_an_earlier_one_wakes_earlier() -> None:
    kit = Kit()
    kit.put(1, 1000)
    kit.put(2, 0.02)
    async with asyncio.timeout(20):
        await kit.woken.wait()
    assert kit.due() == [2]
    kit.held.clear()


@pytest.mark.parametrize(("records", "size"), [(6, 5), (100, 10)], ids=["number", "bytes"])
async def test_the_bound_pauses_with_one_warning(records: int, size: int, caplog: pytest.LogCaptureFixture) -> None:
    kit = Kit()
    kit.held.most_records, kit.held.most_bytes = records, 60

    numbers = itertools.count()

    def fill(*delays: float) -> None:
        for delay in delays:
            assert kit.held.room() == records - len(kit.held)
            kit.put(next(numbers), delay, size)
        assert len(kit.held) == 6 and kit.held.room() == kit.held.room() == 0

    fill(0, 0, 0.1, 0.1, 1000, 1000)
    assert len(warnings(caplog)) == 1
    assert f"6 delayed messages of {6 * size} bytes" in warnings(caplog)[0] and "Topic('t')" in warnings(caplog)[0]
    assert kit.due() == [0, 1]
    fill(1000, 1000)  # after a short relief
    assert len(warnings(caplog)) == 1
    kit.held.clear()
    fill(0, 0, 0, 0, 1000, 1000)
    assert len(warnings(caplog)) == 2
    assert len(kit.due()) == 4
    fill(1000, 1000, 1000, 1000)  # after more than half
    assert len(warnings(caplog)) == 3
    kit.held.clear()


async def test_one_that_comes_again_while_it_is_held_is_held_once() -> None:
    kit = Kit()
    kit.put(1, -1, size=10)
    again: Any = Record(1)
    kit.held.put(again, wall() + 1000)
    kit.put(2, -1)
    assert len(kit.held) == 2
    records: list[Any] = kit.held.due()
    assert [record.number for record in records] == [1, 2] and records[0] is again
    kit.put(1, -1)
    assert kit.due() == [1] and kit.held._bytes == 0


# --- the real broker: it delays on shared subscriptions only ----------------------------------------------------------


@pytest.fixture
async def session_on_pulsar(pulsar_broker: Any) -> Any:
    url = f"{pulsar_broker.service_url}?webServiceUrl={pulsar_broker.web_service_url}"
    async with jmsaio.connect(f"{url}&consumerConfig.receiverQueueSize=3") as connection:
        async with connection.create_session() as session:
            yield session


async def send(session: jmsaio.Session, topic: jmsaio.Topic, count: int, delay: float) -> None:
    async with session.create_producer(topic) as producer:
        for number in range(count):
            await producer.send(str(number), delivery_delay=delay)
        await producer.send("at once")


async def bodies(consumer: jmsaio.MessageConsumer, count: int) -> list[str | None]:
    return [await consumer.receive_body(str, timeout=30) for _ in range(count)]


@pytest.mark.broker
async def test_later_messages_pass_held_ones(session_on_pulsar: jmsaio.Session, name: Name) -> None:
    """More are held than the receiver queue takes, so their permits were given; and none is acknowledged."""
    topic, subscription = session_on_pulsar.create_topic(name("held")), name("sub")
    async with session_on_pulsar.create_durable_consumer(topic, subscription) as consumer:
        await send(session_on_pulsar, topic, 20, 4)
        assert await bodies(consumer, 1) == ["at once"]
        admin = session_on_pulsar._runtime.connection.transport.admin
        assert admin is not None
        assert await admin.backlog(f"persistent://public/default/{topic.name}", subscription) >= 20
        assert await bodies(consumer, 20) == [str(number) for number in range(20)]
        assert await consumer.receive(timeout=0.3) is None
    await session_on_pulsar.unsubscribe(subscription, topic)


@pytest.mark.broker
async def test_a_closed_consumer_gives_held_ones_back(session_on_pulsar: jmsaio.Session, name: Name) -> None:
    topic, subscription = session_on_pulsar.create_topic(name("held")), name("sub")
    async with session_on_pulsar.create_durable_consumer(topic, subscription) as consumer:
        await send(session_on_pulsar, topic, 5, 4)
        assert await bodies(consumer, 1) == ["at once"]
    async with session_on_pulsar.create_durable_consumer(topic, subscription) as consumer:
        assert await bodies(consumer, 5) == [str(number) for number in range(5)]
    await session_on_pulsar.unsubscribe(subscription, topic)


@pytest.mark.broker
async def test_an_acknowledgement_timeout_does_not_double_held_ones(pulsar_broker: Any, name: Name) -> None:
    url = f"{pulsar_broker.service_url}?webServiceUrl={pulsar_broker.web_service_url}"
    async with jmsaio.connect(f"{url}&consumerConfig.ackTimeoutMillis=1000") as connection:
        async with connection.create_session() as session:
            topic = session.create_topic(name("held"))
            async with session.create_consumer(topic) as consumer:
                await send(session, topic, 1, 4)
                assert await bodies(consumer, 2) == ["at once", "0"]
                assert await consumer.receive(timeout=1.5) is None


async def test_shared_simple_consumers_leave_the_delay_to_the_broker(url: str, name: Name) -> None:
    options = {"use_exclusive_subscriptions_for_simple_consumers": False}
    async with jmsaio.connect(url, **options) as connection, connection.create_session() as session:
        topic = session.create_topic(name("shared"))
        async with session.create_consumer(topic) as consumer:
            assert consumer._inbox.subscription.type is SubscriptionType.SHARED
            await send(session, topic, 2, 4)
            assert await bodies(consumer, 1) == ["at once"]
            assert sorted(map(str, await bodies(consumer, 2))) == ["0", "1"]


async def test_a_failover_subscription_delays_too(url: str, name: Name) -> None:
    options = {"topic_shared_subscription_type": "Failover"}
    async with jmsaio.connect(url, **options) as connection, connection.create_session() as session:
        topic = session.create_topic(name("failover"))
        async with session.create_shared_consumer(topic, name("sub")) as consumer:
            await send(session, topic, 2, 4)
            assert await bodies(consumer, 3) == ["at once", "0", "1"]


async def test_many_that_are_due_at_once_come_in_slices() -> None:
    kit = Kit()
    for number in range(3 * SLICE):
        kit.put(number, -1)
    found: list[int] = []
    while len(found) < 3 * SLICE:
        due = kit.due()
        assert 0 < len(due) <= SLICE
        found += due
        kit.woken.clear()
        if len(found) < 3 * SLICE:
            await asyncio.wait_for(kit.woken.wait(), 20)
    assert found == list(range(3 * SLICE))
