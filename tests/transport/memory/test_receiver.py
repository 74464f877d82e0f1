"""What the contract suite can't see: lost connections, zero queues, priorities, conflicts."""

from __future__ import annotations

import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import ConsumerBusyError, NotFoundError, TransactionRolledBackError, TransportError
from jmsaio.model.wire import WireId
from jmsaio.testing import EmbeddedBroker, ManualClock
from jmsaio.transport.base import Position, Subscription, SubscriptionType
from tests.kit.records import Outcomes, record, texts
from tests.transport.contract.harness import GUARD, Harness
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


async def test_the_receiver_queue_is_divided_among_partitions(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic, 4)
    await harness.inbox(topic, name="keeper")
    inbox = await harness.inbox(topic, max_total_receiver_queue_size_across_partitions=8)
    other = await harness.inbox(topic)
    await harness.fill(topic, *map(str, range(80)))
    assert len(await inbox.take(8)) == 8
    await inbox.close()
    assert len(await other.take(80)) == 80


async def test_with_priorities_higher_partitions_get_a_larger_share(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, enable_jms_priority=True)
    topic = harness.topic()
    await harness.admin.create_topic(topic, 3)
    inbox = await harness.inbox(topic, receiver_queue_size=60)
    await harness.inbox(topic, receiver_queue_size=1)
    sizes = [each.consumer.capacity for each in inbox.receiver._attached.values()]  # type: ignore[attr-defined]  # the queue's size can't be seen otherwise
    assert sizes == [10, 20, 30]
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
    inbox = await harness.inbox(pattern=f"{prefix}-.*", position=Position.LATEST)
    await harness.fill(f"{prefix}-a", "1")
    await harness.admin.create_topic(f"{prefix}-b", 2)
    await harness.fill(f"{prefix}-b", "2", "3")
    assert sorted(await inbox.consume(3)) == ["1", "2", "3"]
    await inbox.receiver.unsubscribe(GUARD)
    await inbox.close()
    await harness.admin.create_topic(f"{prefix}-c")
    assert (await harness.admin.stats(f"{prefix}-c")).subscriptions == {}


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
    assert receiver.receive(10) == []
    woken.clear()
    sender, outcomes = await harness.sender(topic), Outcomes()
    for text in "123":
        sender.send(record(text), outcomes)
    await sender.drain(GUARD)
    assert len(woken) == 1
    assert texts(receiver.receive(10)) == ["1", "2", "3"]
    await receiver.aclose(GUARD)


async def test_a_delivery_of_what_is_gone_is_not_counted(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "1")
    taken = await inbox.take(1)
    await harness.admin.delete_subscription(topic, "s", force=True)
    inbox.receiver.count_delivery(taken)
    inbox.receiver.acknowledge(taken)
    inbox.receiver.negative_acknowledge(taken, 0)
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
