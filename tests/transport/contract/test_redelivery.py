"""Contract: acknowledgement, what comes again and how it is counted, dead letters, delayed delivery."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.config import DeadLetterPolicy
from jmsaio.errors import ObjectClosedError
from jmsaio.transport.base import StartPosition, SubscriptionType
from tests.kit.records import record, texts
from tests.kit.virtual_time import wall
from tests.transport.contract.harness import GUARD, Harness

EXCLUSIVE, SHARED = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED


async def test_what_is_acknowledged_does_not_come_again(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, *[str(number) for number in range(10)])
    records = await inbox.take(10)
    inbox.receiver.acknowledge(records[:5])
    inbox.receiver.acknowledge(records[5:])
    inbox.receiver.acknowledge(records)  # settled ones are ignored
    await inbox.close()
    assert await (await harness.inbox(topic)).rest() == []


async def test_a_closed_receiver_settles_nothing(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "x")
    records = await inbox.take(1)
    await inbox.close()
    receiver = inbox.receiver
    with pytest.raises(ObjectClosedError):
        receiver.acknowledge(records)
    with pytest.raises(ObjectClosedError):
        receiver.negative_acknowledge(records, 0.0)
    with pytest.raises(ObjectClosedError):
        receiver.dead_letter(records[0], {})
    assert texts(await (await harness.inbox(topic)).take(1)) == ["x"]


async def test_records_of_a_non_persistent_topic_have_different_ids(harness: Harness) -> None:
    topic = harness.topic().replace("persistent", "non-persistent", 1)
    inbox = await harness.inbox(topic)
    records = []
    for number in range(3):
        await harness.fill(topic, *[f"{number}.{index}" for index in range(2)])
        records += await inbox.take(2)
    assert len({each.message_id for each in records}) == 6


@pytest.mark.parametrize("type_", [EXCLUSIVE, SHARED])
async def test_part_of_a_batch_can_be_acknowledged(harness: Harness, type_: SubscriptionType) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=type_)
    await harness.fill(topic, *[str(number) for number in range(10)])
    records = await inbox.take(10)
    inbox.receiver.acknowledge(records[::2])
    await inbox.receiver.settle(GUARD)
    await inbox.close()
    again = await harness.inbox(topic, type=type_)
    assert texts(await again.take(5)) == ["1", "3", "5", "7", "9"]
    assert await again.rest() == []


async def test_with_receipts_settle_waits_for_the_broker(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, ack_receipt_enabled=True)
    await harness.fill(topic, "1", "2")
    inbox.receiver.acknowledge(await inbox.take(2))
    await inbox.receiver.settle(GUARD)
    await inbox.receiver.settle(GUARD)
    assert (await harness.admin.stats(topic)).subscriptions["s"].backlog == 0


@pytest.mark.parametrize("type_", [EXCLUSIVE, SHARED])
async def test_what_is_not_acknowledged_comes_again_after_close(harness: Harness, type_: SubscriptionType) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=type_)
    await harness.fill(topic, "1", "2", "3", "4")
    taken = await inbox.take(2)
    inbox.receiver.acknowledge(taken[:1])
    await inbox.close()
    again = await harness.inbox(topic, type=type_)
    records = await again.take(3)
    assert texts(records) == ["2", "3", "4"]
    if harness.capabilities.exact_redelivery_count:
        assert [each.redelivery_count for each in records] == [1, 0, 0]


async def test_what_is_given_back_comes_again_and_is_counted(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "x")
    for count in range(4):
        records = await inbox.take(1)
        assert (texts(records), records[0].redelivery_count) == (["x"], count)
        inbox.receiver.negative_acknowledge(records, 0.0)
    inbox.receiver.acknowledge(await inbox.take(1))
    assert await inbox.rest() == []


async def test_a_count_belongs_to_its_subscription(harness: Harness) -> None:
    topic = harness.topic()
    first, second = await harness.inbox(topic, name="first"), await harness.inbox(topic, name="second")
    await harness.fill(topic, "x")
    first.receiver.negative_acknowledge(await first.take(1), 0.0)
    assert [each.redelivery_count for each in await first.take(1)] == [1]
    assert [each.redelivery_count for each in await second.take(1)] == [0]


async def test_what_the_application_never_got_is_not_counted_where_the_engine_can_tell(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "x")
    inbox.receiver.negative_acknowledge(await inbox.take(1), 0.0, counted=False)
    records = await inbox.take(1)
    assert texts(records) == ["x"]
    if harness.capabilities.exact_redelivery_count:
        assert records[0].redelivery_count == 0
        inbox.receiver.count_delivery(records)
        inbox.receiver.negative_acknowledge(records, 0.0)
        assert [each.redelivery_count for each in await inbox.take(1)] == [2]
    else:
        inbox.receiver.count_delivery(records)


async def test_what_is_given_back_goes_to_any_consumer(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "x")
    records = await inbox.take(1)
    other = await harness.inbox(topic)
    inbox.receiver.negative_acknowledge(records, 0.0)
    await inbox.close()
    assert await other.consume(1) == ["x"]


async def test_what_is_given_back_waits_for_its_delay(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "late", "soon")
    late, soon = await inbox.take(2)
    inbox.receiver.negative_acknowledge([late], 1.5)
    inbox.receiver.negative_acknowledge([soon], 0.1)
    assert await inbox.consume(2) == ["soon", "late"]


async def test_a_closed_consumer_does_not_hold_back_what_it_gave_back(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "x")
    inbox.receiver.negative_acknowledge(await inbox.take(1), 3600.0)
    await inbox.close()
    assert await (await harness.inbox(topic)).consume(1) == ["x"]


async def test_what_fails_again_and_again_becomes_a_dead_letter(harness: Harness) -> None:
    topic = harness.topic()
    dead = await harness.inbox(f"{topic}-s-DLQ", name="dead")
    inbox = await harness.inbox(topic, dead_letter=DeadLetterPolicy(max_redeliver_count=2))
    await harness.fill(topic, record("x", properties={"a": "ü"}, key="k"))
    for count in range(3):
        records = await inbox.take(1)
        assert records[0].redelivery_count == count
        inbox.receiver.negative_acknowledge(records, 0.0)
    [letter] = await dead.take(1)
    assert (texts([letter]), letter.key, letter.redelivery_count) == (["x"], "k", 0)
    assert letter.properties["a"] == "ü"
    assert (letter.properties["REAL_TOPIC"], letter.properties["REAL_SUBSCRIPTION"]) == (topic, "s")
    assert letter.properties["ORIGIN_MESSAGE_ID"]
    assert letter.properties["JMS_jmsaio_failed_deliveries"] == "3"
    assert letter.properties["JMS_jmsaio_failed_deliveries_jsmtype"] == "int"
    assert await inbox.rest() == []
    await inbox.close()
    assert await (await harness.inbox(topic)).rest() == []


async def test_dead_letters_go_where_the_policy_says(harness: Harness) -> None:
    topic, other = harness.topic(), harness.topic("dead")
    policy = DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic=other, initial_subscription_name="kept")
    inbox = await harness.inbox(topic, dead_letter=policy)
    await harness.fill(topic, "fails", "works")
    records = await inbox.take(2)
    inbox.receiver.acknowledge(records[1:])
    inbox.receiver.negative_acknowledge(records[:1], 0.0)
    inbox.receiver.negative_acknowledge(await inbox.take(1), 0.0)
    kept = await harness.inbox(other, name="kept", position=StartPosition.LATEST)
    assert await kept.consume(1) == ["fails"]


async def test_delayed_records_come_at_their_time(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    due = int(wall() * 1000) + 2500
    await harness.fill(topic, record("late", deliver_at=due), "soon", record("past", deliver_at=1))
    assert sorted(await inbox.consume(2)) == ["past", "soon"]
    assert await inbox.consume(1) == ["late"]


async def test_a_record_is_moved_to_the_dead_letters_at_will(harness: Harness) -> None:
    topic, other = harness.topic(), harness.topic("dead")
    policy = DeadLetterPolicy(max_redeliver_count=5, dead_letter_topic=other, initial_subscription_name="kept")
    inbox = await harness.inbox(topic, dead_letter=policy)
    await harness.fill(topic, record("moved", properties={"a": "ü"}, key="k"), "stays")
    moved, stays = await inbox.take(2)
    inbox.receiver.dead_letter(moved, {"b": "ö"})
    inbox.receiver.dead_letter(moved, {"b": "twice"})  # it is on its way already
    [letter] = await (await harness.inbox(other, name="kept")).take(1)
    assert (texts([letter]), letter.key, letter.redelivery_count) == (["moved"], "k", 0)
    assert (letter.properties["b"], letter.properties["REAL_TOPIC"]) == ("ö", topic)
    assert "JMS_jmsaio_failed_deliveries" not in letter.properties
    assert "a" not in letter.properties
    inbox.receiver.negative_acknowledge([stays], 0.0)
    assert texts(await inbox.take(1)) == ["stays"]
    await inbox.close()
    assert texts(await (await harness.inbox(topic)).rest()) == ["stays"]


async def test_without_a_policy_a_dead_letter_is_acknowledged(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "gone")
    [gone] = await inbox.take(1)
    inbox.receiver.dead_letter(gone, {})
    await inbox.close()
    assert await (await harness.inbox(topic)).rest() == []


async def test_what_is_set_aside_comes_again_when_it_is_given_back(harness: Harness) -> None:
    """Nothing of it comes before that, also when an acknowledgement is due; its neighbours are settled as ever."""
    topic = harness.topic()
    inbox = await harness.inbox(topic, ack_timeout=1)
    await harness.fill(topic, *[str(number) for number in range(10)])
    records = await inbox.take(10)
    aside = inbox.receiver.set_aside(records[2:6])
    inbox.receiver.acknowledge([*records[:2], *records[6:]])
    await asyncio.sleep(1.5)
    assert inbox.receiver.receive(10) == []
    inbox.receiver.negative_acknowledge(aside, 0.0, counted=False)
    again = await inbox.take(4)
    assert sorted(texts(again)) == ["2", "3", "4", "5"]
    inbox.receiver.acknowledge(again)
    assert await inbox.rest() == []
