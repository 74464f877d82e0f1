"""Which topics and subscriptions are leftovers, and which are deleted."""

from __future__ import annotations

import asyncio

import attrs
import pytest

import jmsaio
from jmsaio.client.subscriptions.plan import ConsumerKind, ConsumerRequest, plan
from jmsaio.config import load
from jmsaio.errors import AdminError, NotFoundError
from jmsaio.maintenance.sweep import TOPIC_PREFIX, Leftover, delete_leftovers, find_leftovers
from jmsaio.model import topic_names
from jmsaio.transport.administration import Activity, SubscriptionActivity

BASE = "persistent://public/default/"
NOW = 10_000_000
TEMP = BASE + "jms-temp-queue-1"
TOPIC = BASE + "orders"
ND = "jmsaio-nd-1"


def test_the_names_are_those_that_clients_give() -> None:
    assert topic_names.QUEUE_PREFIX.startswith(TOPIC_PREFIX) and topic_names.TOPIC_PREFIX.startswith(TOPIC_PREFIX)
    request = ConsumerRequest(jmsaio.Topic("t"), ConsumerKind.SIMPLE)
    planned = plan(request, None, load("memory:"), jmsaio.AcknowledgeMode.AUTO, "unique")
    assert planned.name == f"{topic_names.SUBSCRIPTION_PREFIX}unique"


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
    assert {(one.topic, one.subscription): error for one, error in results.items()} == {
        (TEMP, None): None,
        (TOPIC, ND): None,
    }


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


async def test_a_leftover_that_comes_into_use_while_watched_is_not_deleted() -> None:
    admin = FakeAdmin({TEMP: active()})
    (found,) = await find_leftovers(admin, "public/default", 3600)  # type: ignore[arg-type]  # a fake
    deleting = asyncio.ensure_future(delete_leftovers(admin, "public/default", 3600, [found], 0.1))  # type: ignore[arg-type]  # a fake
    for _ in range(20):
        await asyncio.sleep(0)
    admin.parts[TEMP] = active(producers=1)
    assert "in use again" in str((await deleting)[found])
    assert admin.deleted == []


async def test_leftovers_of_unknown_age_are_not_even_watched() -> None:
    admin, found = FakeAdmin({TEMP: active(None)}), [Leftover(TEMP, None, None)]
    assert await delete_leftovers(admin, "public/default", 3600, found, 3600) == {}  # type: ignore[arg-type]  # a fake
    assert admin.deleted == []
