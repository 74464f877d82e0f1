"""Dead letters on the real broker: count, parts, default topic, first subscription."""

from __future__ import annotations

import anyio
import pytest

from jmsaio.config import DeadLetterPolicy
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.pulsar.emulation.unacked import tally
from tests.kit.records import Outcomes
from tests.transport.pulsar.conftest import HANG, Kit, new_topic


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
async def test_moved_after_so_many_redeliveries(kit: Kit, kind: SubscriptionType) -> None:
    box = await kit.box(kind, dead_letter=DeadLetterPolicy(max_redeliver_count=2))
    dead = await kit.box(SubscriptionType.SHARED, f"{kit.topic}-sub-DLQ", name="d")
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(OutgoingRecord(None, {"a": "ä"}, "key", 77), outcomes)
    counts = []
    for _ in range(3):
        [record] = await box.take(1)
        counts.append(record.redelivery_count)
        box.receiver.negative_acknowledge([record], 0.1)
    [letter] = await dead.take(1)
    assert counts == [0, 1, 2]
    assert (letter.payload, letter.key, letter.event_time, letter.redelivery_count) == (None, "key", 77, 0)
    assert letter.properties["a"] == "ä"
    assert letter.properties["REAL_TOPIC"] == kit.topic
    assert letter.properties["ORIGIN_MESSAGE_ID"] == str(record.message_id).removeprefix("ID:")
    await box.nothing()
    await box.receiver.aclose(HANG)
    await (await kit.box(kind)).nothing()


async def test_a_dead_letter_waits_for_a_consumer_that_comes_later(kit: Kit) -> None:
    """The letter waits for a consumer that comes later."""
    topic = new_topic("dead")
    policy = DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic=topic, initial_subscription_name="keep")
    box = await kit.box(dead_letter=policy)
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(OutgoingRecord(b"x", {}), outcomes)
    for _ in range(2):
        box.receiver.negative_acknowledge(await box.take(1), 0.1)
    await box.nothing()
    assert len(await (await kit.box(SubscriptionType.SHARED, topic, name="keep")).take(1)) == 1


async def test_what_the_application_never_got_does_not_die(kit: Kit) -> None:
    box = await kit.box(dead_letter=DeadLetterPolicy(max_redeliver_count=1))
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(OutgoingRecord(b"x", {}), outcomes)
    box.receiver.negative_acknowledge(await box.take(1), 0.1)
    box.receiver.negative_acknowledge(await box.take(1), 0.1, counted=False)
    await box.receiver.aclose(HANG)
    assert len(await (await kit.box()).take(1)) == 1


async def test_what_came_too_often_is_moved_unseen(kit: Kit) -> None:
    """Its consumers gave it back, or died with it, more often than this one's policy allows."""
    box = await kit.box()
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(OutgoingRecord(b"x", {}), outcomes)
    for _ in range(3):
        box.receiver.negative_acknowledge(await box.take(1), 0.1)
    [record] = await box.take(1)
    assert record.redelivery_count == 3
    dead = await kit.box(SubscriptionType.SHARED, f"{kit.topic}-sub-DLQ", name="d")
    strict = await kit.box(dead_letter=DeadLetterPolicy(max_redeliver_count=1))
    box.receiver.negative_acknowledge([record], 0.1)
    await box.receiver.aclose(HANG)
    with anyio.fail_after(HANG):
        while not (letters := dead.receiver.receive(1)):
            assert strict.receiver.receive(1) == []
            await anyio.sleep(0.02)
    assert [one.payload for one in letters] == [b"x"]


async def test_where_selectors_reject_only_failures_here_count(kit: Kit) -> None:
    """Other processes may have rejected it as often as they like."""
    policy = DeadLetterPolicy(max_redeliver_count=1)
    other = await kit.box()
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(OutgoingRecord(b"x", {}), outcomes)
    for _ in range(3):
        other.receiver.negative_acknowledge(await other.take(1), 0.1, counted=False)
    [record] = await other.take(1)
    tally._tallies.clear()  # as in a process that knows of none of it
    box = await kit.box(dead_letter=policy, selective=True)
    other.receiver.negative_acknowledge([record], 0.1, counted=False)
    await other.receiver.aclose(HANG)
    dead = await kit.box(SubscriptionType.SHARED, f"{kit.topic}-sub-DLQ", name="d")
    for _ in range(2):
        box.receiver.negative_acknowledge(await box.take(1), 0.1)
    assert len(await dead.take(1)) == 1
    await box.nothing()
