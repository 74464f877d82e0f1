"""Contract: what JMS needs is promised on every subscription type, whatever the broker itself offers."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.config import DeadLetterPolicy
from jmsaio.errors import ConsumerBusyError, NotFoundError
from jmsaio.model.wire import DELIVERY_TIME, OutgoingRecord
from jmsaio.transport.base import SHARED_PROPERTY, StartPosition, SubscriptionType
from tests.kit.records import record, texts
from tests.transport.contract.harness import GUARD, QUIET, Harness, Inbox

EXCLUSIVE, FAILOVER = SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER
#: Types that keep the order of what is given back.
ORDERED = (EXCLUSIVE, FAILOVER)

every_type = pytest.mark.parametrize("type_", SubscriptionType, ids=lambda type_: type_.value)
shared_type = pytest.mark.parametrize(
    "type_", [type_ for type_ in SubscriptionType if type_ is not EXCLUSIVE], ids=lambda type_: type_.value
)
ordered_type = pytest.mark.parametrize("type_", ORDERED, ids=lambda type_: type_.value)


def delayed(harness: Harness, text: str, seconds: float) -> OutgoingRecord:
    """A record that is not to be delivered before so many seconds have passed, as JMS sends it."""
    due = int((harness.transport.clock.now() + seconds) * 1000)
    return record(text, properties={DELIVERY_TIME: str(due)}, deliver_at=due)


async def left(harness: Harness, topic: str) -> set[str]:
    """Names of a topic's subscriptions."""
    return set((await harness.admin.stats(topic)).subscriptions)


@every_type
async def test_a_delayed_record_comes_at_its_time_and_later_ones_pass(
    harness: Harness, type_: SubscriptionType
) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=type_)
    await harness.fill(
        topic, delayed(harness, "late", 2.5), delayed(harness, "later", 3.0), delayed(harness, "past", -60), "soon"
    )
    [*first, second, third] = await inbox.take(4)
    assert (sorted(texts(first)), texts([second, third])) == (["past", "soon"], ["late", "later"])
    assert harness.transport.clock.now() * 1000 >= int(third.properties[DELIVERY_TIME])
    assert [each.redelivery_count for each in (second, third)] == [0, 0]
    inbox.receiver.acknowledge([*first, second, third])
    await inbox.close()
    assert await (await harness.inbox(topic, type=type_)).rest() == []


@every_type
async def test_a_delayed_record_outlives_its_consumer(harness: Harness, type_: SubscriptionType) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=type_)
    await harness.fill(topic, delayed(harness, "late", 2.0))
    assert await inbox.rest() == []
    await inbox.close()
    [late] = await (await harness.inbox(topic, type=type_)).take(1)
    assert (texts([late]), late.redelivery_count) == (["late"], 0)
    assert harness.transport.clock.now() * 1000 >= int(late.properties[DELIVERY_TIME])


@ordered_type
async def test_what_is_given_back_comes_again_in_order_before_later_records(
    harness: Harness, type_: SubscriptionType
) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=type_)
    await harness.fill(topic, *"abcdef")
    inbox.receiver.negative_acknowledge(await inbox.take(3), 0.0)
    await inbox.rest(QUIET / 3)  # given time to come back
    await inbox.close()
    again = await harness.inbox(topic, type=type_)
    records = await again.take(2)
    again.receiver.negative_acknowledge(list(reversed(records)), 0.0)
    await again.woken.wait()
    assert texts(await again.take(6)) == list("abcdef")


@every_type
async def test_what_is_given_back_comes_again_after_its_delay_and_is_counted(
    harness: Harness, type_: SubscriptionType
) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=type_)
    await harness.fill(topic, record("x", key="k"))
    begin = harness.transport.clock.steady()
    for count in range(2):
        [received] = await inbox.take(1)
        assert (texts([received]), received.redelivery_count) == (["x"], count)
        inbox.receiver.negative_acknowledge([received], 0.5)
    assert await inbox.consume(1) == ["x"]
    assert harness.transport.clock.steady() - begin >= 0.9
    assert await inbox.rest() == []


@every_type
async def test_a_subscription_that_is_not_durable_ends_with_its_last_consumer(
    harness: Harness, type_: SubscriptionType
) -> None:
    topic = harness.topic()
    inboxes = [await harness.inbox(topic, type=type_, durable=False) for _ in range(1 if type_ is EXCLUSIVE else 2)]
    await harness.fill(topic, "1")
    while len(inboxes) > 1:
        await inboxes.pop().close()
        assert "s" in await left(harness, topic)
    assert await inboxes[0].consume(1) == ["1"]
    await harness.fill(topic, "forgotten")
    await inboxes[0].close()
    assert await left(harness, topic) == set()
    again = await harness.inbox(topic, type=type_, durable=False, position=StartPosition.LATEST)
    await harness.fill(topic, "2")
    assert await again.consume(1) == ["2"]


async def test_consumers_that_leave_at_once_leave_no_subscription_that_is_not_durable(harness: Harness) -> None:
    topic = harness.topic()
    for _ in range(3):
        await harness.inbox(topic, durable=False)
    await harness.admin.create_subscription(topic, "keeper", StartPosition.EARLIEST)
    other = await harness.other()
    await harness.stop()
    assert await left(other, topic) == {"keeper"}
    await other.stop()


@shared_type  # names of unshared subscriptions that are not durable are unique
async def test_a_durable_subscription_is_not_taken_over_as_one_that_is_not(
    harness: Harness, type_: SubscriptionType
) -> None:
    topic = harness.topic()
    await (await harness.inbox(topic, type=type_, properties={SHARED_PROPERTY: "true"}, replace=True)).close()
    await harness.fill(topic, "kept")
    with pytest.raises(ConsumerBusyError, match="durable"):
        await harness.inbox(topic, type=type_, durable=False)
    assert await (await harness.inbox(topic, type=type_)).consume(1) == ["kept"]


@every_type
async def test_a_subscription_opened_with_other_properties_is_made_anew(
    harness: Harness, type_: SubscriptionType
) -> None:
    topic = harness.topic()

    async def opened(selector: str) -> Inbox:
        properties = {"selector": selector, SHARED_PROPERTY: str(type_ is not EXCLUSIVE).lower()}
        return await harness.inbox(
            topic, type=type_, properties=properties, replace=True, position=StartPosition.LATEST
        )

    await (await opened("a")).close()
    await harness.fill(topic, "1")
    same = await opened("a")
    assert texts(await same.take(1)) == ["1"]
    with pytest.raises(ConsumerBusyError):
        await opened("b")
    await same.close()
    other = await opened("b")
    assert (await harness.admin.subscription_properties(topic, "s"))["selector"] == "b"
    await harness.fill(topic, "2")
    assert await other.consume(1) == ["2"]


async def test_a_durable_subscription_is_not_replaced_by_one_shared_otherwise(harness: Harness) -> None:
    topic = harness.topic()
    shared, unshared = {SHARED_PROPERTY: "true"}, {SHARED_PROPERTY: "false"}
    await (await harness.inbox(topic, properties=shared, replace=True)).close()
    await harness.fill(topic, "kept")
    with pytest.raises(ConsumerBusyError, match="unsubscribe it first"):
        await harness.inbox(topic, type=EXCLUSIVE, properties=unshared, replace=True)
    assert await (await harness.inbox(topic, properties=shared, replace=True)).consume(1) == ["kept"]


async def test_properties_are_kept_with_a_new_subscription_and_changed_by_none_that_does_not_replace(
    harness: Harness,
) -> None:
    topic = harness.topic()
    await (await harness.inbox(topic, properties={"a": "b"})).close()
    await harness.inbox(topic, properties={"a": "c"})
    assert await harness.admin.subscription_properties(topic, "s") == {"a": "b"}


@every_type
async def test_what_is_given_back_too_often_becomes_a_dead_letter(harness: Harness, type_: SubscriptionType) -> None:
    topic = harness.topic()
    dead = await harness.inbox(f"{topic}-s-DLQ", name="dead")
    inbox = await harness.inbox(topic, type=type_, dead_letter=DeadLetterPolicy(max_redeliver_count=1))
    await harness.fill(topic, record("fails", properties={"a": "1"}, key="k"), record("works", key="k"))
    got: list[str] = []
    while "works" not in got:
        [received] = await inbox.take(1)
        got += texts([received])
        if got[-1] == "works":
            inbox.receiver.acknowledge([received])
        else:
            inbox.receiver.negative_acknowledge([received], 0.0)
    while got.count("fails") < 2:
        [received] = await inbox.take(1)
        got += texts([received])
        inbox.receiver.negative_acknowledge([received], 0.0)
    async with asyncio.timeout(GUARD):
        while not (letters := dead.receiver.receive(1)):
            inbox.receiver.negative_acknowledge(inbox.receiver.receive(1), 0.0)  # if it could not be moved at once
            await asyncio.sleep(0.05)
    assert (texts(letters), letters[0].properties["a"]) == (["fails"], "1")
    await inbox.receiver.settle(GUARD)
    await inbox.close()
    assert await (await harness.inbox(topic, type=type_)).rest() == []


@every_type
async def test_a_record_becomes_a_dead_letter_at_will_and_only_acknowledged_without_a_policy(
    harness: Harness, type_: SubscriptionType
) -> None:
    topic = harness.topic()
    dead = await harness.inbox(f"{topic}-s-DLQ", name="dead")
    policy = DeadLetterPolicy(max_redeliver_count=5)
    with_policy = await harness.inbox(topic, type=type_, dead_letter=policy)
    without = await harness.inbox(topic, type=type_, name="plain")
    await harness.fill(topic, "x")
    for inbox in (with_policy, without):
        [received] = await inbox.take(1)
        inbox.receiver.dead_letter(received, {"why": "at will"})
    [letter] = await dead.take(1)
    assert (texts([letter]), letter.properties["why"]) == (["x"], "at will")
    with pytest.raises(NotFoundError):
        await harness.admin.stats(f"{topic}-plain-DLQ")
    for inbox in (with_policy, without):
        await inbox.receiver.settle(GUARD)
        await inbox.close()
    assert await (await harness.inbox(topic, type=type_)).rest() == []
    assert await (await harness.inbox(topic, type=type_, name="plain")).rest() == []
