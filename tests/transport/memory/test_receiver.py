"""What the contract suite can't see: lost connections, zero queues, priorities, conflicts."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise

import pytest

from jmsaio.config import ConsumerConfig, DeadLetterPolicy
from jmsaio.errors import (
    BrokerUnavailableError,
    ConsumerBusyError,
    JMSError,
    NotFoundError,
    TransactionRolledBackError,
    TransportError,
)
from jmsaio.model.wire import WireId
from jmsaio.testing import EmbeddedBroker, ManualClock
from jmsaio.transport.base import LinkChange, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.memory.broker.broker import broker_named
from jmsaio.transport.memory.broker.subscription import subscriptions_of
from tests.kit.records import Outcomes, record, texts
from tests.transport.contract.harness import GUARD, Harness
from tests.transport.memory.bench import FakePort
from tests.transport.memory.connecting import connect


async def test_a_refused_receiver_leaves_nothing_behind(harness: Harness) -> None:
    first, second = harness.topic(), harness.topic()
    await harness.inbox(second, type=SubscriptionType.EXCLUSIVE)
    with pytest.raises(ConsumerBusyError):
        await harness.inbox(first, second, type=SubscriptionType.EXCLUSIVE)
    inbox = await harness.inbox(first, type=SubscriptionType.EXCLUSIVE)
    await harness.fill(first, "x")
    assert await inbox.consume(1) == ["x"]


async def test_durable_and_not_durable_do_not_share(harness: Harness) -> None:
    topic = harness.topic()
    await harness.inbox(topic)
    with pytest.raises(ConsumerBusyError, match="is durable, not not durable"):
        await harness.inbox(topic, durable=False)
    await harness.inbox(topic, name="nd", durable=False)
    with pytest.raises(ConsumerBusyError, match="is not durable, not durable"):
        await harness.inbox(topic, name="nd")


async def test_a_lost_connection_gives_everything_back_and_joins_again(
    embedded: EmbeddedBroker, harness: Harness
) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, receiver_queue_size=2)
    await harness.fill(topic, *"1234")
    taken = await inbox.take(1)
    assert embedded.faults.drop_consumers(topic, "s") == 1
    again = await inbox.take(4)
    assert texts(again) == ["1", "2", "3", "4"]
    assert [each.redelivery_count for each in again] == [1, 0, 0, 0]
    inbox.receiver.acknowledge(taken)
    inbox.receiver.acknowledge(again[1:])
    assert embedded.backlog(topic, "s") == 0


async def test_a_connection_that_ends_with_an_error(embedded: EmbeddedBroker, harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "1")
    embedded.faults.drop_consumers(topic, "s", error=TransportError("gone"))
    with pytest.raises(TransportError, match="gone"):
        inbox.receiver.receive(1)
    assert await (await harness.inbox(topic)).consume(1) == ["1"]


async def test_a_record_whose_acknowledgement_is_lost_comes_again_after_the_timeout(
    embedded: EmbeddedBroker, clock: ManualClock, harness: Harness
) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, ack_timeout=10)
    await harness.fill(topic, "1", "2")
    embedded.faults.lose_acknowledgements()
    inbox.receiver.acknowledge(await inbox.take(2))
    clock.advance(10)
    [again] = await inbox.take(1)
    assert (texts([again]), again.redelivery_count) == (["1"], 1)
    assert inbox.receiver.receive(1) == []


async def test_after_an_outage_unsettled_records_are_redelivered_and_transactions_rolled_back(
    embedded: EmbeddedBroker, harness: Harness
) -> None:
    topic, transient = harness.topic(), harness.topic()
    inbox = await harness.inbox(topic, transient)
    short_lived = await harness.inbox(transient, name="nd", durable=False)
    await harness.fill(topic, "1", "2")
    taken = await inbox.take(2)
    transaction = await harness.transport.begin(60)
    inbox.receiver.acknowledge(taken[:1], transaction)
    with embedded.faults.outage():
        inbox.receiver.acknowledge(taken)
        assert inbox.receiver.receive(5) == []
    again = await inbox.take(2)
    assert (texts(again), [each.redelivery_count for each in again]) == (["1", "2"], [1, 1])
    with pytest.raises(TransactionRolledBackError):
        await transaction.commit()
    await harness.fill(transient, "3")
    assert await short_lived.consume(1) == ["3"]
    assert await inbox.consume(1) == ["3"]


async def test_what_is_deleted_in_an_outage_ends_the_receiver(embedded: EmbeddedBroker, harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.admin.delete_subscription(topic, "s", force=True)
    with pytest.raises(NotFoundError, match="deleted"):
        inbox.receiver.receive(1)
    with pytest.raises(NotFoundError):
        await inbox.receiver.unsubscribe(GUARD)


async def test_without_prefetch_a_receiver_gets_only_what_it_asks_for(harness: Harness) -> None:
    topic = harness.topic()
    slow, fast = await harness.inbox(topic, receiver_queue_size=0), await harness.inbox(topic, receiver_queue_size=0)
    await harness.fill(topic, *"123")
    assert await fast.consume(3) == ["1", "2", "3"]
    assert slow.receiver.receive(5) == []
    await harness.fill(topic, "4")
    assert await slow.consume(1) == ["4"]


@pytest.mark.parametrize(("partitions", "total", "queued"), [(4, 8, 8), (4, 1, 4), (2, 8, 8), (0, 8, 50), (1, 8, 50)])
async def test_the_receiver_queue_is_divided_among_partitions(
    harness: Harness, partitions: int, total: int, queued: int
) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic, partitions)
    await harness.inbox(topic, name="keeper")
    inbox = await harness.inbox(topic, receiver_queue_size=50, max_total_receiver_queue_size_across_partitions=total)
    await harness.fill(topic, *map(str, range(80)))
    other = await harness.inbox(topic)
    assert len(other.receiver.receive(100)) == 80 - queued
    await inbox.close()
    assert len(await other.take(queued)) == queued


async def test_a_topic_that_a_pattern_finds_gets_its_part_of_the_receiver_queue(harness: Harness) -> None:
    prefix = harness.topic()
    await harness.admin.create_topic(f"{prefix}-a")
    await harness.inbox(pattern=f"{prefix}-.*", max_total_receiver_queue_size_across_partitions=8)
    await harness.fill(f"{prefix}-b", *map(str, range(10)))
    assert len((await harness.inbox(f"{prefix}-b")).receiver.receive(100)) == 6


async def test_without_prefetch_nothing_of_several_topics_comes_unasked(harness: Harness) -> None:
    topics = [harness.topic(), harness.topic()]
    first, second = [await harness.inbox(*topics, receiver_queue_size=0) for _ in range(2)]
    for topic in topics:
        await harness.fill(topic, topic)
    assert sorted(texts(second.receiver.receive(9))) == sorted(topics)
    assert first.receiver.receive(9) == []


async def test_with_priorities_higher_partitions_get_a_larger_share(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, enable_jms_priority=True)
    topic = harness.topic()
    await harness.admin.create_topic(topic, 3)
    inbox = await harness.inbox(topic, receiver_queue_size=60)
    small = await harness.inbox(topic, receiver_queue_size=1)
    sizes = [
        [each.consumer.capacity for each in one.receiver._attached.values()]  # type: ignore[attr-defined]  # the queue's size can't be seen otherwise
        for one in (inbox, small)
    ]
    assert sizes == [[10, 20, 30], [1, 1, 1]]
    await harness.stop()


async def test_a_conflict_is_told_by_settle_and_by_commit(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "x")
    records = await inbox.take(1)
    inbox.receiver.acknowledge(records)
    transaction = await harness.transport.begin(60)
    inbox.receiver.acknowledge(records, transaction)
    with pytest.raises(TransactionRolledBackError, match="conflict"):
        await inbox.receiver.settle(GUARD)
    await inbox.receiver.settle(GUARD)
    with pytest.raises(TransactionRolledBackError, match="conflict"):
        await transaction.commit()
    inbox.receiver.acknowledge(records, transaction)
    with pytest.raises(TransactionRolledBackError, match="aborted already"):
        await inbox.receiver.settle(GUARD)


async def test_seek_to_a_record_of_one_of_several_topics(harness: Harness) -> None:
    topics = [harness.topic(), harness.topic()]
    await harness.inbox(*topics, name="keeper")
    inbox = await harness.inbox(*topics)
    for topic in topics:
        await harness.fill(topic, *"12")
    records = await inbox.take(4)
    inbox.receiver.acknowledge(records)
    second = next(each for each in records if each.topic == topics[1] and each.payload == b"2")
    await inbox.receiver.seek(second.message_id, GUARD)
    [again] = await inbox.take(1)
    assert (again.topic, texts([again])) == (topics[1], ["2"])
    with pytest.raises(NotFoundError):
        await inbox.receiver.seek(WireId(10**9, 0), GUARD)


async def test_a_pattern_finds_a_topic_before_its_first_record(harness: Harness) -> None:
    prefix = harness.topic()
    inbox = await harness.inbox(pattern=f"{prefix}-.*", position=StartPosition.LATEST)
    await harness.fill(f"{prefix}-a", "1")
    await harness.admin.create_topic(f"{prefix}-b", 2)
    await harness.fill(f"{prefix}-b", "2", "3")
    assert sorted(await inbox.consume(3)) == ["1", "2", "3"]
    await inbox.receiver.unsubscribe(GUARD)
    for name in ("c", "d"):
        await harness.admin.create_topic(f"{prefix}-{name}")
        assert (await harness.admin.stats(f"{prefix}-{name}")).subscriptions == {}
        await inbox.close()


async def test_a_pattern_leaves_out_what_is_taken(harness: Harness) -> None:
    prefix = harness.topic()
    inbox = await harness.inbox(pattern=f"{prefix}-.*", type=SubscriptionType.EXCLUSIVE)
    other = await harness.inbox(f"{prefix}-a", name="other")
    await harness.fill(f"{prefix}-a", record("x"))
    assert await inbox.consume(1) == await other.consume(1) == ["x"]


async def test_records_that_come_at_once_wake_once(harness: Harness) -> None:
    topic, woken = harness.topic(), list[None]()
    wanted = Subscription((topic,), "s", SubscriptionType.SHARED, ConsumerConfig())
    receiver = await harness.transport.open_receiver(wanted, lambda: woken.append(None))
    sender, outcomes = await harness.sender(topic), Outcomes()
    for round_ in range(2):
        for text in "123":
            sender.send(record(text), outcomes)
        await sender.drain(GUARD)
        assert len(woken) == 1 + round_
        assert texts(receiver.receive(10)) == ["1", "2", "3"]
    sender.send(record("4"), outcomes)
    await receiver.aclose(GUARD)
    await sender.drain(GUARD)
    assert len(woken) == 2  # no one is told any more


async def test_a_receiver_that_got_as_many_as_it_asked_for_is_not_woken(harness: Harness) -> None:
    topic, woken = harness.topic(), list[None]()
    wanted = Subscription((topic,), "s", SubscriptionType.SHARED, ConsumerConfig())
    receiver = await harness.transport.open_receiver(wanted, lambda: woken.append(None))
    await harness.fill(topic, "1")
    assert texts(receiver.receive(1)) == ["1"]
    woken.clear()
    await harness.fill(topic, "2")
    assert woken == []
    assert texts(receiver.receive(2)) == ["2"]


async def test_a_delivery_of_what_is_gone_is_not_counted(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, ack_timeout=10)
    await harness.fill(topic, "1")
    taken = await inbox.take(1)
    await harness.admin.delete_subscription(topic, "s", force=True)
    inbox.receiver.count_delivery(taken)
    inbox.receiver.acknowledge(taken)
    inbox.receiver.acknowledge(taken, await harness.transport.begin(60))
    inbox.receiver.negative_acknowledge(taken, 0)
    inbox.receiver.set_aside(taken)
    inbox.receiver.dead_letter(taken[0], {})
    again = await harness.inbox(topic)
    await harness.fill(topic, "2")
    assert [each.redelivery_count for each in await again.take(1)] == [0]


async def test_the_delay_of_what_is_given_back_is_in_seconds(harness: Harness, clock: ManualClock) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "x")
    inbox.receiver.negative_acknowledge(await inbox.take(1), 5.0)
    clock.advance(4.9)
    assert inbox.receiver.receive(1) == []
    clock.advance(0.1)
    assert texts(await inbox.take(1)) == ["x"]


async def test_what_is_acknowledged_in_a_transaction_that_is_over_comes_again(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "x")
    records = await inbox.take(1)
    transaction = await harness.transport.begin(60)
    await transaction.abort()
    inbox.receiver.acknowledge(records, transaction)
    [again] = await inbox.take(1)
    assert (texts([again]), again.redelivery_count) == (["x"], 1)


async def test_a_delivery_is_counted_of_what_is_held_only(harness: Harness, clock: ManualClock) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "x")
    records = await inbox.take(1)
    inbox.receiver.negative_acknowledge(records, 5.0)
    inbox.receiver.count_delivery(records)
    clock.advance(5)
    assert [each.redelivery_count for each in await inbox.take(1)] == [1]


async def test_a_pattern_takes_a_partition_once_although_it_was_a_topic_before(harness: Harness) -> None:
    prefix = harness.topic()
    inbox = await harness.inbox(pattern=f"{prefix}-.*")
    await harness.fill(f"{prefix}-x-partition-1", "1")
    await harness.admin.create_topic(f"{prefix}-x", 2)
    await harness.fill(f"{prefix}-x", *"23456789")
    assert sorted(await inbox.consume(9)) == list("123456789")


async def test_a_pattern_without_topics_can_be_unsubscribed(harness: Harness) -> None:
    prefix = harness.topic()
    inbox = await harness.inbox(pattern=f"{prefix}-.*")
    await inbox.receiver.unsubscribe(GUARD)
    await harness.admin.create_topic(f"{prefix}-a")
    assert (await harness.admin.stats(f"{prefix}-a")).subscriptions == {}


async def test_a_stopped_receiver_takes_nothing_of_a_new_topic_either(harness: Harness) -> None:
    prefix = harness.topic()
    inbox = await harness.inbox(pattern=f"{prefix}-.*")
    await inbox.receiver.stop(GUARD)
    await harness.fill(f"{prefix}-a", "1")
    assert inbox.receiver.receive(9) == []
    await inbox.receiver.resume(GUARD)
    await harness.fill(f"{prefix}-b", "2")
    assert sorted(await inbox.consume(2)) == ["1", "2"]


async def test_a_receiver_resumed_in_an_outage_gets_all_after_it(embedded: EmbeddedBroker, harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await inbox.receiver.stop(GUARD)
    await harness.fill(topic, "1")
    with embedded.faults.outage():
        await inbox.receiver.resume(GUARD)
    await harness.fill(topic, "2")
    assert await inbox.consume(2) == ["1", "2"]


async def test_a_receiver_without_prefetch_that_waits_is_woken_after_an_outage(
    embedded: EmbeddedBroker, harness: Harness
) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, receiver_queue_size=0)
    waiting = asyncio.ensure_future(inbox.consume(1))
    await asyncio.sleep(0)
    with embedded.faults.outage():
        pass
    await harness.fill(topic, "x")
    assert await waiting == ["x"]


async def test_what_one_topic_of_several_loses_concerns_no_other(embedded: EmbeddedBroker, harness: Harness) -> None:
    lost, other = harness.topic(), harness.topic()
    inbox = await harness.inbox(lost, other)
    await harness.fill(other, *"12")
    await inbox.take(2)
    assert embedded.faults.drop_consumers(lost, "s") == 1
    await harness.fill(other, *"3456")
    assert await inbox.consume(4) == list("3456")
    await harness.admin.delete_topic(lost, force=True)
    assert inbox.receiver.receive(1) == []
    await harness.fill(other, "7")
    assert await inbox.consume(1) == ["7"]


@pytest.mark.parametrize("taken_away", ["by another consumer", "by a deletion"])
async def test_a_subscription_that_is_gone_after_an_outage_ends_the_receiver(
    embedded: EmbeddedBroker, harness: Harness, taken_away: str
) -> None:
    topic, changes = harness.topic(), list[LinkChange]()
    inbox = await harness.inbox(topic, type=SubscriptionType.EXCLUSIVE)
    harness.transport.link_listeners.add(changes.append)
    broker = broker_named(harness.configuration.broker_name)
    [log] = broker.find(topic)
    with embedded.faults.outage():
        if taken_away == "by a deletion":
            broker.remove(subscriptions_of(log)["s"], None)
        else:
            subscriptions_of(log)["s"].join(FakePort(), SubscriptionType.EXCLUSIVE, ConsumerConfig(), 1, {})
    await asyncio.sleep(0)
    expected: type[JMSError] = NotFoundError if taken_away == "by a deletion" else ConsumerBusyError
    with pytest.raises(expected):
        inbox.receiver.receive(1)
    told = [type(change.error) for change in changes]
    assert told == [BrokerUnavailableError, type(None), *([ConsumerBusyError] if expected is ConsumerBusyError else [])]


async def test_what_is_moved_to_the_dead_letters_in_an_outage_comes_again(
    embedded: EmbeddedBroker, harness: Harness
) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic, dead_letter=DeadLetterPolicy(max_redeliver_count=5))
    await harness.fill(topic, "x")
    [taken] = await inbox.take(1)
    with embedded.faults.outage():
        inbox.receiver.dead_letter(taken, {})
    assert texts(await inbox.take(1)) == ["x"]
    assert await harness.admin.topics("public/default") == [topic]


async def test_several_topics_take_turns_and_share_what_is_asked_for(harness: Harness) -> None:
    topics = [harness.topic() for _ in range(3)]
    inbox = await harness.inbox(*topics)
    for topic in topics:
        await harness.fill(topic, *[str(topics.index(topic))] * 12)
    got = [int(text) for _ in range(6) for text in texts(inbox.receiver.receive(1))]
    assert [(after - before) % 3 for before, after in pairwise(got)] == [1] * 5
    assert len(set(texts(inbox.receiver.receive(2)))) == 2
    assert sorted(Counter(texts(inbox.receiver.receive(7))).values()) == [2, 2, 3]
    rest = inbox.receiver.receive(100)
    assert len(rest) == 36 - 6 - 2 - 7


async def test_seek_of_one_topic_to_a_place_before_all_delivers_all_again(harness: Harness) -> None:
    topic = harness.topic()
    await harness.inbox(topic, name="keeper")
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "1", "2")
    await inbox.consume(2)
    await inbox.receiver.seek(WireId(0, 7), GUARD)
    assert await inbox.consume(2) == ["1", "2"]


@pytest.mark.parametrize("freed", ["seek", "dead letter", "commit", "close"])
async def test_what_lets_go_of_records_makes_room_for_what_waits_for_memory(
    embedded: EmbeddedBroker, freed: str
) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    inbox = await harness.inbox(topic, durable=freed != "close")
    sender, outcomes = await harness.sender(topic), Outcomes()
    for text in ("kept", "waits"):
        sender.send(record(text), outcomes)
    [taken] = await inbox.take(1)
    if freed == "seek":
        await inbox.receiver.seek(StartPosition.LATEST, GUARD)
    elif freed == "dead letter":
        inbox.receiver.dead_letter(taken, {})
    elif freed == "commit":
        transaction = await harness.transport.begin(60)
        inbox.receiver.acknowledge([taken], transaction)
        await transaction.commit()
    else:
        await inbox.close()
    await sender.drain(GUARD)
    assert outcomes.errors == [None, None]
    await harness.stop()
