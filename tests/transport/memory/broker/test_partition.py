from __future__ import annotations

from jmsaio.model.wire import WireId
from jmsaio.transport.base import Cursor, StartPosition
from jmsaio.transport.memory.broker.tail import Tail
from tests.kit.records import texts
from tests.transport.memory.bench import Bench, FakePort, acknowledge


def test_without_subscription_nothing_is_kept(bench: Bench) -> None:
    bench.send("x")
    assert (bench.log.records, bench.broker.used, bench.log.next) == ({}, 0, 1)


def test_a_record_stays_until_every_subscription_acknowledged_it(bench: Bench) -> None:
    first, second = (bench.join(bench.subscribe(name)) for name in ("first", "second"))
    bench.send("1", "2")
    acknowledge(first, first.take(2))
    assert len(bench.log.records) == 2
    acknowledge(second, second.take(2)[1:])
    assert texts(list(bench.log.records.values())) == ["1"]
    acknowledge(second, list(second.held.values()))
    assert (bench.log.records, bench.broker.used) == ({}, 0)


def test_one_old_record_does_not_keep_the_later_ones(bench: Bench) -> None:
    consumer = bench.join(bench.subscribe())
    bench.send(*map(str, range(100)))
    acknowledge(consumer, consumer.take(100)[1:])
    assert len(bench.log.records) == 1


def test_deleting_a_subscription_lets_its_records_go(bench: Bench) -> None:
    subscription = bench.subscribe()
    bench.send("1", "2")
    bench.broker.remove(subscription, None)
    assert (bench.log.records, bench.broker.used, bench.log.listeners) == ({}, 0, [])


def test_dead_letters_are_kept_until_there_is_a_subscription(bench: Bench) -> None:
    bench.log.keeps_unread = True
    bench.send("1", "2")
    tail = Tail(bench.log, FakePort(), StartPosition.EARLIEST, True)
    assert texts(tail.take(10)) == ["1", "2"]
    consumer = bench.join(bench.subscribe())
    records = consumer.take(10)
    assert texts(records) == ["1", "2"]
    assert bench.broker.used == sum(record.size for record in records)
    acknowledge(consumer, records)
    assert bench.broker.used == 0


def test_dead_letters_that_the_first_subscription_does_not_want_are_dropped(bench: Bench) -> None:
    bench.log.keeps_unread = True
    bench.send("1")
    bench.subscribe(position=StartPosition.LATEST)
    assert bench.broker.used == 0


def test_records_after_a_position_an_id_or_a_time(bench: Bench) -> None:
    bench.subscribe()
    bench.send("1")
    bench.clock.advance(1)
    bench.send("2", "3")
    log = bench.log
    assert texts(log.after(StartPosition.EARLIEST)) == ["1", "2", "3"]
    assert texts(log.after(StartPosition.LATEST)) == []
    assert texts(log.after(WireId(log.ledger, 1))) == ["2", "3"]
    assert texts(log.after(WireId(log.ledger, 1), inclusive=False)) == ["3"]
    assert texts(log.after(WireId(log.ledger - 1, 99))) == ["1", "2", "3"]
    assert texts(log.after(WireId(log.ledger + 1, 0))) == []
    assert texts(log.after(int(bench.clock.now() * 1000))) == ["2", "3"]


def test_a_cursor_has_the_acknowledged_ranges(bench: Bench) -> None:
    log = bench.log
    assert log.cursor([]) == Cursor(None)
    bench.subscribe()
    bench.send(*"abcdef")
    ledger = log.ledger
    last = WireId(ledger, 5)
    assert log.cursor([0, 1, 2, 3, 4, 5]) == Cursor(None, last=last)
    assert log.cursor([]) == Cursor(last, last=last)
    gaps = (((ledger, 3), (ledger, 3)), ((ledger, 5), (ledger, 5)))
    assert log.cursor([2, 4]) == Cursor(WireId(ledger, 1), gaps, last)


def test_a_subscription_that_was_deleted_twice_leaves_once(bench: Bench) -> None:
    subscription = bench.broker.subscribe(bench.log, "nd", False, StartPosition.LATEST)
    subscription.leave(bench.join(subscription))
    bench.broker.remove(subscription, None)
    assert bench.log.subscribed == 0


def test_the_last_message_id_is_that_of_the_last_record_kept(bench: Bench) -> None:
    assert bench.log.last is None
    bench.send("not kept")
    assert bench.log.last is None
    subscription = bench.subscribe()
    bench.send("1", "2")
    assert bench.log.last == WireId(bench.log.ledger, 2)
    consumer = bench.join(subscription)
    acknowledge(consumer, consumer.take(2))
    assert bench.log.last is None


def test_a_producer_s_sequence_ids_only_advance(bench: Bench) -> None:
    numbers = [("a", 0), ("a", 0), ("a", 7), ("b", 3), ("a", 5), ("a", 8)]
    assert [bench.log.note_sequence_id(*each) for each in numbers] == [True, False, True, True, False, True]
    assert bench.log.sequence_ids == {"a": 8, "b": 3}
