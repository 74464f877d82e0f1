from __future__ import annotations

import asyncio

import pytest

from jmsaio.errors import SendError, TransactionInDoubtError, TransactionRolledBackError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.testing import EmbeddedBroker, ManualClock, embedded_broker
from jmsaio.transport.base import StartPosition, SubscriptionType
from jmsaio.transport.memory.transaction import MemoryTransaction, TransactionState
from tests.kit.records import Outcomes, record, texts
from tests.transport.contract.harness import GUARD
from tests.transport.memory.bench import TOPIC, Bench, acknowledge
from tests.transport.memory.connecting import connect


async def test_a_cancelled_commit_rolls_back(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "first")
    sender, transaction = await harness.sender(topic), await harness.transport.begin(60)
    sender.send(record("second"), Outcomes(), transaction)
    committing = asyncio.ensure_future(transaction.commit())
    await asyncio.sleep(0.01)
    committing.cancel()
    await asyncio.gather(committing, return_exceptions=True)
    contexts: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: contexts.append(context))
    assert await inbox.consume(1) == ["first"]
    assert await inbox.rest(0.05) == []
    assert contexts == []
    with pytest.raises(TransactionRolledBackError):
        await transaction.commit()
    assert await inbox.rest(0.05) == []
    await harness.stop()


async def test_abort_does_not_wait_for_sends(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "first")
    sender, transaction, outcomes = await harness.sender(topic), await harness.transport.begin(60), Outcomes()
    sender.send(record("never"), outcomes, transaction)
    await transaction.abort()
    assert await inbox.consume(1) == ["first"]
    assert await inbox.rest(0.05) == []
    assert "aborted already" in str(outcomes.errors[0])
    await harness.stop()


async def test_a_commit_goes_on_when_a_send_of_its_transaction_waited_too_long(
    embedded: EmbeddedBroker, clock: ManualClock
) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    await harness.inbox(topic)
    await harness.fill(topic, "takes all memory")
    sender, transaction = await harness.sender(topic, send_timeout=5), await harness.transport.begin(60)
    outcomes = Outcomes()
    sender.send(record("fails"), outcomes, transaction)
    committing = asyncio.ensure_future(transaction.commit())
    await asyncio.sleep(0)
    clock.advance(5)
    async with asyncio.timeout(GUARD):
        await committing
    assert [type(error) for error in outcomes.errors] == [SendError]
    await harness.stop()


def test_a_commit_that_waited_on_a_loop_that_has_ended_disturbs_nobody() -> None:
    topic = "persistent://public/default/t"

    async def careless() -> None:
        harness = await connect(broker, memory_limit=1)
        await harness.inbox(topic)
        await harness.fill(topic, "first")
        transaction = await harness.transport.begin(60)
        (await harness.sender(topic)).send(record("second"), Outcomes(), transaction)
        committing = asyncio.ensure_future(transaction.commit())
        await asyncio.sleep(0)
        assert not committing.done()

    async def careful() -> list[str]:
        harness = await connect(broker)
        texts = await (await harness.inbox(topic)).consume(1)
        await harness.stop()
        return texts

    with embedded_broker() as broker:
        asyncio.run(careless())
        assert asyncio.run(careful()) == ["first"]


async def test_a_commit_whose_answer_is_lost_has_happened(embedded: EmbeddedBroker) -> None:
    """One that is rolled back tells so all the same."""
    harness = await connect(embedded)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, transacted=True)
    embedded.faults.lose_commits()
    undone, lost, plain = [await harness.transport.begin(60) for _ in range(3)]
    await undone.abort()
    with pytest.raises(TransactionRolledBackError):
        await undone.commit()
    await harness.send(sender, "1", transaction=lost)
    with pytest.raises(TransactionInDoubtError, match="answer to the commit was lost"):
        await lost.commit()
    await harness.send(sender, "2", transaction=plain)
    await plain.commit()
    assert await inbox.consume(2) == ["1", "2"]
    await harness.stop()


def unit_of(bench: Bench, timeout: float = 60) -> MemoryTransaction:
    return MemoryTransaction(bench.broker, timeout)


def test_sends_take_memory_before_the_commit_and_are_seen_after_it(bench: Bench) -> None:
    consumer = bench.join(bench.subscribe())
    unit = unit_of(bench)
    unit.send(bench.log, OutgoingRecord(b"1", {}), 700, 3, "producer")
    bench.send("plain")
    assert texts(consumer.receive(9)) == ["plain"]
    unit.commit_now()
    [record] = consumer.receive(9)
    assert (texts([record]), record.sequence_id, record.producer_name) == (["1"], 3, "producer")
    acknowledge(consumer, list(consumer.held.values()))
    assert (bench.broker.used, bench.broker.transactions) == (0, set())
    unit.commit_now()
    assert unit.state is TransactionState.COMMITTED


def test_abort_undoes_everything_once(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription)
    bench.send("x")
    [record] = consumer.receive(1)
    unit = unit_of(bench)
    unit.send(bench.log, OutgoingRecord(b"lost", {}), 700, 0)
    assert unit.acknowledge(subscription, record.number, consumer.held.pop(record.number)) is None
    assert unit.acknowledge(subscription, record.number, None) is None
    unit.abort_now()
    unit.abort_now()
    [again] = consumer.receive(9)
    assert (texts([again]), again.redelivery_count) == (["x"], 1)
    assert bench.broker.used == record.size
    with pytest.raises(TransactionRolledBackError, match="aborted before"):
        unit.commit_now()


def test_the_second_transaction_to_acknowledge_fails(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription)
    bench.send("1", "2")
    one, two = consumer.receive(2)
    first, second, third = unit_of(bench), unit_of(bench), unit_of(bench)
    first.acknowledge(subscription, one.number, consumer.held.pop(one.number))
    conflict = second.acknowledge(subscription, one.number, None)
    assert conflict is not None
    assert "another transaction" in conflict.reason
    acknowledge(consumer, [two])
    late = third.acknowledge(subscription, two.number, None)
    assert late is not None
    assert "acknowledged or given back" in late.reason
    first.commit_now()
    for failed in (second, third):
        with pytest.raises(TransactionRolledBackError, match="conflict"):
            failed.commit_now()


def test_a_plain_acknowledgement_of_its_record_has_no_effect(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription)
    bench.send("x")
    [record] = consumer.receive(1)
    unit = unit_of(bench)
    unit.acknowledge(subscription, record.number, consumer.held.pop(record.number))
    with caplog.at_level("DEBUG"):
        for _ in range(2):
            acknowledge(consumer, [record])
    assert [entry.getMessage() for entry in caplog.records] == [
        f"subscription 's' of {TOPIC}: a record is in_transaction, and acknowledged, which has no effect (logged once)"
    ]
    unit.abort_now()
    assert [again.redelivery_count for again in consumer.receive(1)] == [1]


def test_a_deleted_subscription_or_a_seek_takes_its_records_out(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription)
    bench.send("x")
    [record] = consumer.receive(1)
    unit = unit_of(bench)
    unit.acknowledge(subscription, record.number, consumer.held.pop(record.number))
    bench.broker.remove(subscription, None)
    unit.commit_now()
    assert bench.broker.used == 0


def test_its_time_ends(bench: Bench) -> None:
    unit = unit_of(bench, 5)
    bench.clock.advance(5)
    assert unit.state is TransactionState.ABORTED
    with pytest.raises(TransactionRolledBackError, match="its time was over"):
        unit.commit_now()


async def test_a_commit_waits_until_no_send_waits_any_more(bench: Bench) -> None:
    unit = unit_of(bench)
    unit.waiting = 2
    committing = asyncio.ensure_future(unit.commit())
    await asyncio.sleep(0)
    with bench.broker.lock:
        unit.settled_one()
    await asyncio.sleep(0.01)
    assert not committing.done()
    with bench.broker.lock:
        unit.settled_one()
    await asyncio.wait_for(committing, GUARD)
    assert unit.state is TransactionState.COMMITTED


def test_a_key_held_by_a_transaction_is_not_dealt_to_a_consumer_that_left(bench: Bench) -> None:
    subscription = bench.subscribe()
    first = bench.join(subscription, SubscriptionType.KEY_SHARED)
    for text in ("1", "2"):
        bench.send(text, key="k")
    [record, _] = first.receive(2)
    unit = unit_of(bench)
    assert unit.acknowledge(subscription, record.number, first.held.pop(record.number)) is None
    subscription.remove(first)
    second = bench.join(subscription, SubscriptionType.KEY_SHARED)
    assert texts(second.receive(9)) == ["2"]
    unit.abort_now()
    assert texts(second.receive(9)) == ["1"]


def test_a_commit_fails_when_a_topic_that_it_sent_to_was_deleted(bench: Bench) -> None:
    unit = unit_of(bench)
    unit.send(bench.log, OutgoingRecord(b"lost", {}), 700, 0)
    bench.broker.delete(TOPIC, force=False)
    [recreated] = bench.broker.open(TOPIC)
    consumer = bench.join(bench.broker.subscribe(recreated, "s", True, StartPosition.EARLIEST))
    with pytest.raises(TransactionRolledBackError, match=f"topic {TOPIC} was deleted"):
        unit.commit_now()
    assert (consumer.receive(9), bench.broker.used, unit.state) == ([], 0, TransactionState.ABORTED)
