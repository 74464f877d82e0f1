"""Which topics and subscriptions are leftovers, and which are deleted."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator

import attrs
import httpx
import pytest

import jmsaio
from jmsaio.client.subscriptions.plan import ConsumerKind, ConsumerRequest, subscription_name
from jmsaio.config import load
from jmsaio.errors import AdminError, NotFoundError
from jmsaio.maintenance.sweep import (
    SUBSCRIPTION_PREFIX,
    TOPIC_PREFIX,
    Leftover,
    delete_leftovers,
    find_leftovers,
)
from jmsaio.model import temporary_names
from jmsaio.transport.base import Position
from jmsaio.transport.pulsar.admin import RestAdmin, open_admin
from jmsaio.transport.pulsar.admin.activity import Activity, SubscriptionActivity
from tests.support.broker import TestBroker

BASE = "persistent://public/default/"
NOW = 10_000_000
TEMP = BASE + "jms-temp-queue-1"
TOPIC = BASE + "orders"
ND = "jmsaio-nd-1"


def test_the_names_are_those_that_clients_give() -> None:
    assert temporary_names.QUEUE_PREFIX.startswith(TOPIC_PREFIX) and temporary_names.TOPIC_PREFIX.startswith(
        TOPIC_PREFIX
    )
    simple = subscription_name(ConsumerRequest(jmsaio.Topic("t"), ConsumerKind.SIMPLE), None, load("memory:"), "unique")
    assert simple == f"{SUBSCRIPTION_PREFIX}unique"


@attrs.define
class FakeAdmin:
    """A broker by its activities; anything else is not found."""

    parts: dict[str, Activity]
    partitioned: dict[str, int] = attrs.field(factory=dict)
    refusal: Exception | None = None
    deleted: list[tuple[str, str | None]] = attrs.field(factory=list)

    async def topics(self, namespace: str) -> list[str]:
        return [*self.parts, "non-persistent://public/default/jms-temp-queue-2"]

    async def partitions(self, topic: str) -> int:
        return self.partitioned.get(topic, 0)

    async def subscriptions(self, topic: str) -> list[str]:
        if topic.endswith("gone"):
            raise NotFoundError("gone")
        return list(self.parts[topic].subscriptions)

    async def activity(self, topic: str) -> Activity:
        return self.parts[topic]

    async def delete_topic(self, topic: str, force: bool = False) -> None:
        await self.delete_subscription(topic, None, force)

    async def delete_subscription(self, topic: str, name: str | None, force: bool = False) -> None:
        assert not force
        if self.refusal is not None:
            raise self.refusal
        self.deleted.append((topic, name))


def active(idle: float | None = 4000, producers: int = 0, **subscriptions: tuple[float | None, int]) -> Activity:
    """A topic idle for some seconds; subscriptions by name (``_`` for ``-``): seconds idle, consumers."""
    return Activity(
        producers, _last(idle), NOW,
        {name.replace("_", "-"): SubscriptionActivity(consumers, _last(age))
         for name, (age, consumers) in subscriptions.items()},
    )  # fmt: skip


def _last(idle: float | None) -> int | None:
    return None if idle is None else NOW - int(idle * 1000)


async def find(admin: FakeAdmin, idle: float = 3600) -> list[Leftover]:
    return await find_leftovers(admin, "public/default", idle)  # type: ignore[arg-type]  # a fake


@pytest.mark.parametrize(
    ("activity", "idle"),
    [
        (active(), 4000),
        (active(q=(3700, 0)), 3700),
        (active(None), None),
        (active(q=(None, 0)), None),
    ],
)
async def test_a_temporary_topic_is_idle_since_its_last_activity_or_for_an_unknown_time(
    activity: Activity, idle: float | None
) -> None:
    assert await find(FakeAdmin({TEMP: activity})) == [Leftover(TEMP, None, idle)]


@pytest.mark.parametrize(
    "activity",
    [active(3599), active(q=(100, 0)), active(producers=1), active(q=(4000, 1)), active(None, producers=1)],
)
async def test_temporary_topics_that_are_used(activity: Activity) -> None:
    assert await find(FakeAdmin({TEMP: activity})) == []


@pytest.mark.parametrize(
    ("subscriptions", "found"),
    [
        ({"jmsaio_nd_1": (4000, 0)}, [Leftover(TOPIC, ND, 4000)]),
        ({"jmsaio_nd_1": (None, 0)}, [Leftover(TOPIC, ND, None)]),
        ({"jmsaio_nd_1": (4000, 1)}, []),
        ({"jmsaio_nd_1": (3000, 0)}, []),
        ({"jms_queue": (4000, 0), "a_jmsaio_nd_1": (None, 0), "name_nd": (4000, 0)}, []),
        ({"jms_queue": (10, 1), "jmsaio_nd_1": (4000, 0)}, [Leftover(TOPIC, ND, 4000)]),
    ],
)
async def test_only_unused_subscriptions_of_jmsaio_are_found(
    subscriptions: dict[str, tuple[float | None, int]], found: list[Leftover]
) -> None:
    assert await find(FakeAdmin({TOPIC: active(0, 3, **subscriptions)})) == found


async def test_other_names_are_left_alone() -> None:
    names = ("my-jms-temp-queue", "jms-temporary", "orders", "orders-gone", "jms-tempo-1")
    assert await find(FakeAdmin({BASE + name: active() for name in names}), 0) == []


async def test_partitions_count_together() -> None:
    parts = {f"{TOPIC}-partition-{index}": active(0, jmsaio_nd_1=(5000 - index, 0)) for index in range(3)}
    admin = FakeAdmin(parts, {TOPIC: 3})
    assert await find(admin) == [Leftover(TOPIC, ND, 4998)]
    admin.parts[f"{TOPIC}-partition-1"] = active(0, jmsaio_nd_1=(5000, 1))
    assert await find(admin) == []
    temporary_parts = {f"{TEMP}-partition-{index}": active(5000 + index) for index in range(2)}
    assert await find(FakeAdmin(temporary_parts, {TEMP: 2})) == [Leftover(TEMP, None, 5000)]
    assert await find(FakeAdmin(temporary_parts, {TEMP: 3})) == []  # one could not be looked at


async def test_only_leftovers_that_are_old_enough_are_deleted() -> None:
    admin = FakeAdmin({TEMP: active(), TOPIC: active(0, jmsaio_nd_1=(4000, 0), jmsaio_nd_2=(None, 0))})
    found = await find(admin)
    results = await delete_leftovers(admin, "public/default", 3600, found, 0)  # type: ignore[arg-type]  # a fake
    assert admin.deleted == [(TEMP, None), (TOPIC, ND)]
    assert {one.place: error for one, error in results.items()} == {(TEMP, None): None, (TOPIC, ND): None}


async def test_leftovers_that_are_used_again_or_refused_are_kept() -> None:
    admin = FakeAdmin({TEMP: active(), TOPIC: active(0, jmsaio_nd_1=(4000, 0))})
    found = await find(admin)
    admin.parts[TEMP] = active(q=(0, 1))
    admin.refusal = AdminError("a consumer is connected", 412)
    results = await delete_leftovers(admin, "public/default", 3600, found, 0)  # type: ignore[arg-type]  # a fake
    assert admin.deleted == []
    assert ["in use again" in str(error) or "connected" in str(error) for error in results.values()] == [True, True]


async def test_errors_come_as_they_are() -> None:
    class Refusing(FakeAdmin):
        async def activity(self, topic: str) -> Activity:
            raise AdminError("broken", 500)

    with pytest.raises(AdminError, match="broken"):
        await find(Refusing({TEMP: active(), f"{TEMP}2": active()}))


# --- the real broker, in a namespace without other clients --------------------------------------------------------


@pytest.fixture
async def namespace(pulsar_broker: TestBroker) -> AsyncIterator[str]:
    """A namespace of its own: with age 0 other tests' destinations would go."""
    name = f"public/sweep-{uuid.uuid4().hex[:12]}"
    async with httpx.AsyncClient(base_url=f"{pulsar_broker.web_service_url}/admin/v2", timeout=30) as client:
        (await client.put(f"/namespaces/{name}", json={})).raise_for_status()
        yield name


@pytest.fixture
async def admin(pulsar_broker: TestBroker) -> AsyncIterator[RestAdmin]:
    admin = open_admin(load(pulsar_broker.service_url, web_service_url=pulsar_broker.web_service_url))
    yield admin
    await admin.aclose()


@pytest.mark.broker
async def test_the_real_broker(pulsar_broker: TestBroker, namespace: str, admin: RestAdmin) -> None:
    base = f"persistent://{namespace}/"
    url = f"{pulsar_broker.url}&jms.systemNamespace={namespace}"
    for topic, partitions in (("jms-temp-queue-left", 0), ("jms-temp-topic-left", 2), ("orders", 0), ("parted", 2)):
        await admin.create_topic(base + topic, partitions)
    for topic, name in (
        ("jms-temp-queue-left", "jms-queue"), ("orders", "jmsaio-nd-left"), ("orders", "durable"),
        ("parted", "jmsaio-nd-left"),
    ):  # fmt: skip
        await admin.create_subscription(base + topic, name, Position.EARLIEST)
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        live = await session.create_temporary_queue()
        async with session.create_consumer(live), session.create_consumer(session.create_topic("orders")):
            async with session.create_producer(session.create_queue(base + "jms-temp-queue-left")) as producer:
                await producer.send("the last one")
                assert await find_leftovers(admin, namespace, 3600) == []
                assert base + "jms-temp-queue-left" not in {
                    one.topic for one in await find_leftovers(admin, namespace, 0)
                }
            await connection._runtime.senders.close_topic(base + "jms-temp-queue-left", 20)
            found = await find_leftovers(admin, namespace, 0)
            expected = [
                (base + "jms-temp-queue-left", None), (base + "jms-temp-topic-left", None),
                (base + "orders", "jmsaio-nd-left"), (base + "parted", "jmsaio-nd-left"),
            ]  # fmt: skip
            assert [one.place for one in found] == expected
            assert all(one.idle is not None and one.idle < 600 for one in found)
            results = await delete_leftovers(admin, namespace, 0, found, 0.1)
            assert list(results.values()) == [None] * 4
            assert await find_leftovers(admin, namespace, 0) == []
            assert (await admin.stats(base + "orders")).subscriptions.keys() >= {"durable"}
            assert len((await admin.stats(base + "orders")).subscriptions) == 2  # and the live consumer's
            left = {topic.rpartition("/")[2] for topic in await admin.topics(namespace)}
            assert {name for name in left if not name.startswith("jms-temp-queue-")} == {
                "orders", "parted-partition-0", "parted-partition-1",
            }  # fmt: skip


@pytest.mark.broker
async def test_a_crashed_client(pulsar_broker: TestBroker, namespace: str, admin: RestAdmin) -> None:
    """What a client leaves that ends without closing anything."""
    url = f"{pulsar_broker.url}&jms.systemNamespace={namespace}"
    script = (
        "import asyncio, jmsaio, os\n"
        "async def main():\n"
        f"    connection = await jmsaio.connect({url!r})\n"
        "    session = await connection.create_session()\n"
        "    await session.create_consumer(await session.create_temporary_queue())\n"
        "    await session.create_consumer(session.create_topic('news'))\n"
        "    os._exit(7)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    assert await process.wait() == 7
    async with asyncio.timeout(60):
        while len(found := await find_leftovers(admin, namespace, 0)) < 2:  # until the broker sees that it is gone
            await asyncio.sleep(0.2)
    assert [one.subscription is None for one in found] == [True, False]
    assert list((await delete_leftovers(admin, namespace, 0, found, 0)).values()) == [None, None]
    assert await find_leftovers(admin, namespace, 0) == []


async def test_what_comes_into_use_while_it_is_watched_is_not_deleted() -> None:
    admin = FakeAdmin({TEMP: active()})
    (found,) = await find_leftovers(admin, "public/default", 3600)  # type: ignore[arg-type]  # a fake
    deleting = asyncio.ensure_future(delete_leftovers(admin, "public/default", 3600, [found], 0.1))  # type: ignore[arg-type]  # a fake
    for _ in range(20):
        await asyncio.sleep(0)
    admin.parts[TEMP] = active(producers=1)
    assert "in use again" in str((await deleting)[found])
    assert admin.deleted == []
