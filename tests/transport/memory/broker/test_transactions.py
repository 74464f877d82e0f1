from __future__ import annotations

import pytest

from jmsaio.errors import TransactionRolledBackError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport.base import StartPosition, SubscriptionType
from jmsaio.transport.memory.broker.transactions import TransactionState, Unit
from tests.kit.records import texts
from tests.transport.memory.bench import TOPIC, Bench, acknowledge


def unit_of(bench: Bench, timeout: float = 60) -> Unit:
    return Unit(bench.broker, timeout)


def test_sends_take_memory_before_the_commit_and_are_seen_after_it(bench: Bench) -> None:
    consumer = bench.join(bench.subscribe())
    unit = unit_of(bench)
    unit.send(bench.log, OutgoingRecord(b"1", {}), 700, 3, "producer")
    bench.send("plain")
    assert texts(consumer.take(9)) == ["plain"]
    unit.commit()
    [record] = consumer.take(9)
    assert (texts([record]), record.sequence_id, record.producer_name) == (["1"], 3, "producer")
    acknowledge(consumer, list(consumer.held.values()))
    assert (bench.broker.used, bench.broker.units) == (0, set())
    unit.commit()
    assert unit.state is TransactionState.COMMITTED


def test_abort_undoes_everything_once(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription)
    bench.send("x")
    [record] = consumer.take(1)
    unit = unit_of(bench)
    unit.send(bench.log, OutgoingRecord(b"lost", {}), 700, 0)
    assert unit.acknowledge(subscription, record.number, consumer.held.pop(record.number)) is None
    assert unit.acknowledge(subscription, record.number, None) is None
    unit.abort()
    unit.abort()
    [again] = consumer.take(9)
    assert (texts([again]), again.redelivery_count) == (["x"], 1)
    assert bench.broker.used == record.size
    with pytest.raises(TransactionRolledBackError, match="aborted before"):
        unit.commit()


def test_the_second_transaction_to_acknowledge_fails(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription)
    bench.send("1", "2")
    one, two = consumer.take(2)
    first, second, third = unit_of(bench), unit_of(bench), unit_of(bench)
    first.acknowledge(subscription, one.number, consumer.held.pop(one.number))
    conflict = second.acknowledge(subscription, one.number, None)
    assert conflict is not None
    assert "another transaction" in conflict.reason
    acknowledge(consumer, [two])
    late = third.acknowledge(subscription, two.number, None)
    assert late is not None
    assert "acknowledged or given back" in late.reason
    first.commit()
    for failed in (second, third):
        with pytest.raises(TransactionRolledBackError, match="conflict"):
            failed.commit()


def test_a_plain_acknowledgement_wins(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription)
    bench.send("x")
    [record] = consumer.take(1)
    unit = unit_of(bench)
    unit.acknowledge(subscription, record.number, consumer.held.pop(record.number))
    acknowledge(consumer, [record])
    unit.abort()
    assert (consumer.take(1), subscription.size, bench.broker.used) == ([], 0, 0)


def test_a_deleted_subscription_or_a_seek_takes_its_records_out(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription)
    bench.send("x")
    [record] = consumer.take(1)
    unit = unit_of(bench)
    unit.acknowledge(subscription, record.number, consumer.held.pop(record.number))
    bench.broker.remove(subscription, None)
    unit.commit()
    assert bench.broker.used == 0


def test_its_time_ends(bench: Bench) -> None:
    unit = unit_of(bench, 5)
    bench.clock.advance(5)
    assert unit.state is TransactionState.ABORTED
    with pytest.raises(TransactionRolledBackError, match="its time was over"):
        unit.commit()


def test_sends_that_wait_are_announced_when_none_waits_any_more(bench: Bench) -> None:
    unit, notified = unit_of(bench), []
    unit.waiting = 2
    unit.notify = lambda: notified.append(unit.waiting)
    unit.settled_one()
    assert notified == []
    unit.settled_one()
    assert notified == [0]


def test_a_key_held_by_a_transaction_is_not_dealt_to_a_consumer_that_left(bench: Bench) -> None:
    subscription = bench.subscribe()
    first = bench.join(subscription, SubscriptionType.KEY_SHARED)
    for text in ("1", "2"):
        bench.send(text, key="k")
    [record, _] = first.take(2)
    unit = unit_of(bench)
    assert unit.acknowledge(subscription, record.number, first.held.pop(record.number)) is None
    subscription.leave(first)
    second = bench.join(subscription, SubscriptionType.KEY_SHARED)
    assert texts(second.take(9)) == ["2"]
    unit.abort()
    assert texts(second.take(9)) == ["1"]


def test_a_commit_fails_when_a_topic_that_it_sent_to_was_deleted(bench: Bench) -> None:
    unit = unit_of(bench)
    unit.send(bench.log, OutgoingRecord(b"lost", {}), 700, 0)
    bench.broker.delete(TOPIC, force=False)
    [recreated] = bench.broker.open(TOPIC)
    consumer = bench.join(bench.broker.subscribe(recreated, "s", True, StartPosition.EARLIEST))
    with pytest.raises(TransactionRolledBackError, match=f"topic {TOPIC} was deleted"):
        unit.commit()
    assert (consumer.take(9), bench.broker.used, unit.state) == ([], 0, TransactionState.ABORTED)
