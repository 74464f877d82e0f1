"""Contract: transactions, where a transport has them; `test_capabilities` has the refusal where it has none."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.errors import JMSError, TransactionRolledBackError
from jmsaio.transport.base import StartPosition, SubscriptionType, Transaction
from tests.kit.records import record, texts
from tests.transport.contract.harness import CONTRACTS, GUARD, Harness, params

TRANSACTED = params(name for name, contract in CONTRACTS.items() if contract.TRANSACTIONS)
pytestmark = pytest.mark.parametrize("contract", TRANSACTED, indirect=True)


async def _begin(harness: Harness, timeout: float = 60.0) -> Transaction:
    """A transaction."""
    await harness.transport.ready_for_transactions(GUARD)
    return await harness.transport.begin(timeout)


async def test_sent_records_appear_at_commit(harness: Harness) -> None:
    transaction = await _begin(harness)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, transacted=True)
    await harness.send(sender, "1", "2", transaction=transaction)
    assert await inbox.rest() == []
    await transaction.commit()
    assert await inbox.consume(2) == ["1", "2"]


async def test_sent_records_never_appear_after_abort(harness: Harness) -> None:
    transaction = await _begin(harness)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, transacted=True)
    await harness.send(sender, "undone", transaction=transaction)
    await transaction.abort()
    await harness.fill(topic, "plain")
    assert await inbox.consume(1) == ["plain"]
    assert await inbox.rest() == []


async def test_acknowledgements_hold_from_commit_on(harness: Harness) -> None:
    transaction = await _begin(harness)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "1", "2")
    inbox.receiver.acknowledge(await inbox.take(2), transaction)
    await inbox.receiver.settle(GUARD)
    await transaction.commit()
    await inbox.close()
    assert await (await harness.inbox(topic)).rest() == []


async def test_acknowledgements_are_undone_by_abort(harness: Harness) -> None:
    transaction = await _begin(harness)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "1", "2")
    inbox.receiver.acknowledge(await inbox.take(2), transaction)
    await inbox.receiver.settle(GUARD)
    assert await inbox.rest() == []
    await transaction.abort()
    again = await inbox.take(2)
    assert texts(again) == ["1", "2"]
    assert [each.redelivery_count for each in again] == [1, 1]


async def test_a_closed_consumer_leaves_its_acknowledgements_to_the_transaction(harness: Harness) -> None:
    transaction = await _begin(harness)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "1", "2")
    inbox.receiver.acknowledge((await inbox.take(2))[:1], transaction)
    await inbox.receiver.settle(GUARD)
    await inbox.close()
    other = await harness.inbox(topic)
    assert texts(await other.take(1)) == ["2"]
    assert await other.rest() == []
    await transaction.abort()
    assert texts(await other.take(1)) == ["1"]


async def test_work_on_several_topics_is_one(harness: Harness) -> None:
    transaction = await _begin(harness)
    topics = [harness.topic() for _ in range(3)]
    source = await harness.inbox(topics[0])
    targets = [await harness.inbox(topic) for topic in topics[1:]]
    await harness.fill(topics[0], "in")
    source.receiver.acknowledge(await source.take(1), transaction)
    for topic in topics[1:]:
        await harness.send(await harness.sender(topic, transacted=True), "out", transaction=transaction)
    await transaction.commit()
    assert [await target.consume(1) for target in targets] == [["out"], ["out"]]
    await source.close()
    assert await (await harness.inbox(topics[0])).rest() == []


async def test_two_transactions_can_not_acknowledge_the_same_record(harness: Harness) -> None:
    first, second = await _begin(harness), await _begin(harness)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, transacted=True)
    await harness.fill(topic, "x")
    records = await inbox.take(1)
    inbox.receiver.acknowledge(records, first)
    await harness.send(sender, "by the second", transaction=second)
    inbox.receiver.acknowledge(records, second)
    with pytest.raises(JMSError):
        await inbox.receiver.settle(GUARD)
    await first.commit()
    with pytest.raises(TransactionRolledBackError):
        await second.commit()
    assert await inbox.rest() == []


async def test_a_transaction_ends_with_its_time(harness: Harness) -> None:
    transaction = await _begin(harness, 0.5)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "in")
    inbox.receiver.acknowledge(await inbox.take(1), transaction)
    await harness.send(await harness.sender(topic, transacted=True), "out", transaction=transaction)
    assert await inbox.consume(1) == ["in"]
    with pytest.raises(TransactionRolledBackError):
        await transaction.commit()
    assert await inbox.rest() == []


async def test_plain_records_are_not_part_of_it(harness: Harness) -> None:
    transaction = await _begin(harness)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, transacted=True)
    await harness.send(sender, "inside", transaction=transaction)
    await harness.fill(topic, "plain")
    await transaction.abort()
    assert await inbox.consume(1) == ["plain"]


async def test_a_cancelled_commit_is_all_or_nothing(harness: Harness) -> None:
    for turns in range(4):
        transaction = await _begin(harness)
        topic = harness.topic()
        inbox = await harness.inbox(topic)
        await harness.send(await harness.sender(topic, transacted=True), "1", "2", transaction=transaction)
        committing = asyncio.ensure_future(transaction.commit())
        for _ in range(turns):
            await asyncio.sleep(0)
        committing.cancel()
        await asyncio.gather(committing, return_exceptions=True)
        assert len(await inbox.rest()) in (0, 2)
        await transaction.abort()


async def test_closing_the_client_aborts(harness: Harness) -> None:
    other = await harness.other()
    transaction = await _begin(other)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await other.send(await other.sender(topic, transacted=True), "lost", transaction=transaction)
    await other.stop()
    assert await inbox.rest() == []


async def test_what_an_open_transaction_sent_is_not_readable(harness: Harness) -> None:
    transaction = await _begin(harness)
    topic = harness.topic()
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    [first] = await harness.fill(topic, "before")
    sender = await harness.sender(topic, transacted=True)
    await harness.send(sender, "inside", transaction=transaction)
    assert (await harness.admin.log(topic)).last_readable == first
    await transaction.commit()
    readable = (await harness.admin.log(topic)).last_readable
    assert first is not None
    assert readable is not None
    assert readable > first


@pytest.mark.parametrize("type_", [SubscriptionType.SHARED, SubscriptionType.FAILOVER])
async def test_an_abort_returns_only_its_own_records_of_a_batch(harness: Harness, type_: SubscriptionType) -> None:
    """Pulsar redelivers whole entries, and to a failover subscription everything that is not acknowledged."""
    topic = harness.topic()
    inbox = await harness.inbox(topic, type=type_)
    await harness.fill(topic, "settled", "in", "held")
    await harness.fill(topic, "other")
    settled, inside, held, other = await inbox.take(4)
    inbox.receiver.acknowledge([settled])
    transaction = await _begin(harness)
    inbox.receiver.acknowledge([inside], transaction)
    await inbox.receiver.settle(GUARD)
    await transaction.abort()
    [again] = await inbox.take(1)
    assert (texts([again]), again.redelivery_count) == (["in"], 1)
    assert await inbox.rest() == []
    inbox.receiver.acknowledge([again, held, other])
    await inbox.close()
    assert await (await harness.inbox(topic, type=type_)).rest() == []


async def test_transactions_acknowledge_parts_of_one_batch(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, *"12345")
    records = await inbox.take(5)
    transactions = [await _begin(harness) for _ in range(3)]
    for transaction, some in zip(transactions, (records[:1], records[1:3], records[3:]), strict=True):
        inbox.receiver.acknowledge(some, transaction)
    await inbox.receiver.settle(GUARD)
    await transactions[0].commit()
    await transactions[1].abort()
    again = await inbox.take(2)
    assert texts(again) == ["2", "3"]
    await transactions[2].commit()
    inbox.receiver.acknowledge(again)
    await inbox.close()
    assert await (await harness.inbox(topic)).rest() == []


async def test_delayed_records_appear_after_the_commit(harness: Harness) -> None:
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, transacted=True)
    transaction = await _begin(harness)
    due = round(harness.transport.clock.now() * 1000) + 1000
    await harness.send(sender, record("delayed", deliver_at=due), "at once", transaction=transaction)
    assert await inbox.rest() == []
    await transaction.commit()
    assert await inbox.consume(2) == ["at once", "delayed"]
