from __future__ import annotations

from typing import cast

import attrs
import pytest

from jmsaio.transport.base import StartPosition, SubscriptionType
from jmsaio.transport.memory.broker.consumer import Tail, tails_of
from jmsaio.transport.memory.broker.partition import StoredRecord, weigh
from tests.kit.records import record, texts
from tests.transport.memory.bench import START, Bench, FakePort, acknowledge


def test_taking_more_than_the_queue_holds(bench: Bench) -> None:
    consumer = bench.join(bench.subscribe(), size=3)
    bench.send(*"12345678")
    assert texts(consumer.receive(7)) == list("1234567")
    assert texts(list(consumer.queue)) == ["8"]
    assert set(consumer.held) == set(range(7))


@pytest.mark.parametrize("kind", [SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED])
def test_a_consumer_holds_no_more_than_its_receiver_queue(bench: Bench, kind: SubscriptionType) -> None:
    consumer = bench.join(bench.subscribe(), kind, size=3)
    bench.send(*"12345678")
    assert texts(consumer.receive(1)) == ["1"]
    assert texts(list(consumer.queue)) == ["2", "3", "4"]


def test_without_prefetch_a_record_comes_when_asked_for(bench: Bench) -> None:
    subscription = bench.subscribe()
    first, second = bench.join(subscription, size=0), bench.join(subscription, size=0)
    bench.send("1", "2", "3")
    assert (list(first.queue), list(second.queue)) == ([], [])
    assert texts(second.receive(10)) == ["1"]
    assert second.receive(0) == []
    assert texts(first.receive(10)) == ["2"]
    assert texts(first.receive(10)) == ["3"]
    assert first.receive(10) == []
    bench.send("4", "5")
    assert cast(FakePort, first.port).notified == 1
    assert texts(first.receive(10)) == ["4"]
    assert texts(list(subscription.backlog)) == ["5"]


def test_names_for_the_order_of_failover(bench: Bench) -> None:
    subscription = bench.subscribe()
    assert bench.join(subscription, consumer_name="mine").name == "mine"
    names = [bench.join(subscription).name for _ in range(3)]
    assert names == sorted(names)


@attrs.define(eq=False)
class CountedRecord:
    """A record that counts how often its number is looked at."""

    place: int
    reads: list[int]

    @property
    def number(self) -> int:
        self.reads.append(self.place)
        return self.place


def test_queueing_many_records_in_order_looks_at_few_of_them(bench: Bench) -> None:
    consumer = bench.join(bench.subscribe())
    reads: list[int] = []
    for place in [5000, *range(0, 2000, 2), *range(1, 2000, 2)]:
        consumer.queue_in_order(cast(StoredRecord, CountedRecord(place, reads)))
    assert len(reads) < 2001 * 20
    assert [record.number for record in consumer.queue] == [*range(2000), 5000]


def test_a_consumer_is_not_notified_when_it_took_all_there_is(bench: Bench) -> None:
    consumer = bench.join(bench.subscribe())
    bench.send("1")
    port = cast(FakePort, consumer.port)
    port.armed = True
    assert texts(consumer.receive(1)) == ["1"]
    assert port.notified == 1


def test_a_record_that_was_asked_for_is_overdue_like_others(bench: Bench) -> None:
    consumer = bench.join(bench.subscribe(), size=0, ack_timeout=10)
    bench.send("x")
    consumer.receive(1)
    bench.clock.advance(10)
    [again] = consumer.receive(1)
    assert (texts([again]), again.redelivery_count) == (["x"], 1)


def test_a_record_is_overdue_also_behind_one_that_was_acknowledged(bench: Bench) -> None:
    consumer = bench.join(bench.subscribe(), ack_timeout=10)
    bench.send("1", "2", "3")
    first, _ = consumer.receive(2)
    acknowledge(consumer, [first])
    bench.clock.advance(5)
    consumer.receive(1)
    bench.clock.advance(5)
    assert texts(consumer.receive(9)) == ["2"]
    bench.clock.advance(5)
    assert texts(consumer.receive(9)) == ["3"]


def test_records_of_a_long_log_are_overdue_in_time(bench: Bench) -> None:
    """Their numbers are above any time of this clock."""
    bench.log.next = 2 * int(START)
    consumer = bench.join(bench.subscribe(), ack_timeout=10)
    bench.send("1", "2")
    consumer.receive(1)
    bench.clock.advance(5)
    consumer.receive(1)
    bench.clock.advance(5)
    assert texts(consumer.receive(9)) == ["1"]
    bench.clock.advance(5)
    assert texts(consumer.receive(9)) == ["2"]


def test_a_record_that_is_taken_again_has_its_whole_time_again(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, ack_timeout=10)
    bench.send("x")
    subscription.give_back(consumer, consumer.receive(1)[0].number, None, counted=True)
    subscription.dispatch()
    bench.clock.advance(5)
    consumer.receive(1)
    bench.clock.advance(9)
    assert consumer.receive(1) == []
    bench.clock.advance(1)
    assert consumer.receive(1)[0].redelivery_count == 2


def test_a_stopped_consumer_that_asks_without_prefetch_gets_its_record_when_it_is_resumed(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, size=0)
    bench.send("x")
    subscription.stop(consumer)
    assert consumer.receive(1) == []
    subscription.resume(consumer)
    assert cast(FakePort, consumer.port).notified == 1
    assert texts(consumer.receive(1)) == ["x"]


def test_a_tail_reads_what_is_there_and_what_comes(bench: Bench) -> None:
    bench.subscribe()
    bench.send("1")
    port = FakePort()
    tail = Tail(bench.log, port, StartPosition.EARLIEST, True)
    bench.send("2", deliver_at=int(bench.clock.now() * 1000) + 60_000)
    assert port.notified == 1
    assert texts(tail.read(1)) == ["1"]
    assert texts(tail.read(5)) == ["2"]
    assert tails_of(bench.log) == [tail]
    bench.send("3")
    assert port.notified == 1
    tail.close()
    assert tails_of(bench.log) == []
    assert [record.references for record in bench.log.records.values()] == [1, 1, 1]


def send_at(bench: Bench, text: str, moment: float) -> None:
    """Store a record when the clock shows ``moment``, in seconds: it may have been set back."""
    outgoing = record(text)
    bench.log.append(outgoing, weigh(outgoing), 0, moment)


def test_a_tail_from_a_time_to_come_begins_with_the_first_record_at_that_time(bench: Bench) -> None:
    port = FakePort()
    tail = Tail(bench.log, port, 2_000_000, True)
    send_at(bench, "too early", 1999)
    assert port.notified == 0
    assert bench.broker.used == 0
    send_at(bench, "1", 2000)
    send_at(bench, "2", 1990)
    assert texts(tail.read(5)) == ["1", "2"]


def test_a_tail_from_a_time_takes_all_behind_the_first_record(bench: Bench) -> None:
    bench.subscribe()
    for text, moment in (("too early", 1999), ("1", 2000), ("2", 1990)):
        send_at(bench, text, moment)
    tail = Tail(bench.log, FakePort(), 2_000_000, True)
    send_at(bench, "3", 1990)
    assert texts(tail.read(5)) == ["1", "2", "3"]
