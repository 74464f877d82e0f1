"""A subscription that makes way for one with other properties or other topics."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import ConsumerBusyError
from jmsaio.transport.base import FOREIGN_PROPERTY, StartPosition, Subscription, SubscriptionType
from tests.transport.contract.harness import Harness, Inbox

TERMS = {"jmsaio.selector": "x = 1"}
ONE = "persistent://public/default/one"
TWO = "persistent://public/default/two"


async def inbox(
    harness: Harness, *topics: str, properties: dict[str, str] = TERMS, pattern: str | None = None,
    type: SubscriptionType = SubscriptionType.EXCLUSIVE, replace: bool = True,
) -> Inbox:  # fmt: skip
    wanted = Subscription(topics, "s", type, ConsumerConfig(), pattern=pattern, properties=properties, replace=replace)
    woken = asyncio.Event()
    return Inbox(await harness.transport.open_receiver(wanted, woken.set), woken)


async def backlog(harness: Harness, topic: str) -> int | None:
    found = (await harness.admin.stats(topic)).subscriptions.get("s")
    return None if found is None else found.backlog


@pytest.fixture
async def filled(harness: Harness) -> Harness:
    """A broker with a subscription that keeps one message."""
    await harness.admin.create_topic(TWO)
    await (await inbox(harness, ONE)).close()
    await harness.fill(ONE, "kept")
    return harness


async def test_the_same_is_kept(filled: Harness) -> None:
    await (await inbox(filled, ONE)).close()
    assert await backlog(filled, ONE) == 1


async def test_other_properties_make_it_anew(filled: Harness, caplog: pytest.LogCaptureFixture) -> None:
    await (await inbox(filled, ONE, properties={"jmsaio.selector": ""})).close()
    assert await backlog(filled, ONE) == 0
    assert await filled.admin.subscription_properties(ONE, "s") == {"jmsaio.selector": ""}
    assert "1 messages kept for it are dropped" in caplog.text


@pytest.mark.parametrize("topics", [(TWO,), (ONE, TWO)])
async def test_other_topics_make_it_anew(filled: Harness, topics: tuple[str, ...]) -> None:
    await (await inbox(filled, *topics)).close()
    assert [await backlog(filled, topic) for topic in (ONE, TWO)] == [0 if ONE in topics else None, 0]


async def test_fewer_topics_make_it_anew(filled: Harness) -> None:
    await (await inbox(filled, ONE, TWO)).close()
    await filled.fill(ONE, "kept")
    await (await inbox(filled, ONE)).close()
    assert [await backlog(filled, topic) for topic in (ONE, TWO)] == [0, None]


async def test_a_new_topic_of_a_pattern_is_no_other(harness: Harness) -> None:
    await harness.admin.create_topic(ONE)
    pattern = "persistent://public/default/.*"
    await (await inbox(harness, pattern=pattern)).close()
    await harness.fill(ONE, "kept")
    await harness.admin.create_topic(TWO)
    await (await inbox(harness, pattern=pattern)).close()
    assert [await backlog(harness, topic) for topic in (ONE, TWO)] == [1, 0]


async def test_an_active_one_is_refused(filled: Harness) -> None:
    active = await inbox(filled, ONE, type=SubscriptionType.SHARED, replace=False)
    await active.close()
    active = await inbox(filled, ONE, type=SubscriptionType.SHARED, replace=False)
    for topic, properties in ((ONE, {"jmsaio.selector": ""}), (TWO, TERMS)):
        with pytest.raises(ConsumerBusyError, match="close them first"):
            await inbox(filled, topic, properties=properties, type=SubscriptionType.SHARED)
    assert [record.payload for record in await active.take(1)] == [b"kept"]


@pytest.mark.parametrize("type_", [SubscriptionType.SHARED, SubscriptionType.FAILOVER])
async def test_shared_and_unshared_are_two_kinds(harness: Harness, type_: SubscriptionType) -> None:
    for topic, kinds, kind in (
        (ONE, (SubscriptionType.EXCLUSIVE, type_), "unshared"),
        (TWO, (type_, SubscriptionType.EXCLUSIVE), "shared"),
    ):
        await (await inbox(harness, topic, type=kinds[0])).close()
        with pytest.raises(ConsumerBusyError, match=f"is {kind}: unsubscribe it first"):
            await inbox(harness, topic, type=kinds[1])
        await harness.admin.delete_subscription(topic, "s")


async def test_one_without_the_properties_is_somebody_else_s(harness: Harness) -> None:
    for topic in (ONE, TWO):
        await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
        await harness.fill(topic, "kept")
    await (await inbox(harness, ONE)).close()
    assert [await backlog(harness, topic) for topic in (ONE, TWO)] == [1, 1]
    assert await harness.admin.subscription_properties(ONE, "s") == {**TERMS, FOREIGN_PROPERTY: "true"}
    assert await harness.admin.subscription_properties(TWO, "s") == {}


async def test_a_refused_one_watches_no_pattern(filled: Harness) -> None:
    active = await inbox(filled, ONE)
    with pytest.raises(ConsumerBusyError):
        await inbox(filled, pattern="persistent://public/default/.*", properties={"jmsaio.selector": ""})
    await active.close()
    await filled.fill("persistent://public/default/three", "x")
    assert await backlog(filled, "persistent://public/default/three") is None


def test_replacing_is_asked_for() -> None:
    assert not Subscription((ONE,), "s", SubscriptionType.SHARED, ConsumerConfig()).replace
    assert attrs.fields_dict(Subscription)["replace"].default is False


async def test_one_property_of_several_or_of_one_topic_makes_it_anew(filled: Harness) -> None:
    both = {**TERMS, "jmsaio.noLocal": "true"}
    await filled.admin.set_subscription_properties(ONE, "s", both)
    await (await inbox(filled, ONE, properties={**both, "jmsaio.noLocal": "false"})).close()
    assert await backlog(filled, ONE) == 0
    await (await inbox(filled, ONE, TWO)).close()
    await filled.fill(ONE, "kept")
    await filled.admin.set_subscription_properties(TWO, "s", {"jmsaio.selector": ""})
    await (await inbox(filled, ONE, TWO)).close()
    assert await backlog(filled, ONE) == 0


async def test_one_that_is_not_durable_does_not_make_way(filled: Harness) -> None:
    wanted = Subscription((TWO,), "s", SubscriptionType.EXCLUSIVE, ConsumerConfig(), properties=TERMS, durable=False)
    active = await filled.transport.open_receiver(wanted, lambda: None)
    await (await inbox(filled, ONE)).close()
    assert [await backlog(filled, topic) for topic in (ONE, TWO)] == [1, 0]
    await active.aclose(1)
