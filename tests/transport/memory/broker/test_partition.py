from __future__ import annotations

import attrs
import pytest

from jmsaio.errors import MessageTooLargeError
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.transport.base import Cursor, StartPosition
from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.broker.consumer import Dispatcher, Tail
from jmsaio.transport.memory.broker.partition import (
    MAX_SIZE,
    OVERHEAD,
    LogListener,
    RedeliveredRecord,
    Services,
    weigh,
)
from tests.kit.records import texts
from tests.transport.memory.bench import TOPIC, Bench, FakePort, acknowledge


@pytest.mark.parametrize("properties", [{}, {"region": "EU", "größe": "5"}])
def test_a_record_weighs_the_same_whether_its_characters_are_counted_or_not(properties: dict[str, str]) -> None:
    characters = len("".join([*properties, *properties.values()]))
    record = OutgoingRecord(b"body", properties, "key")
    assert weigh(record) == weigh(attrs.evolve(record, characters=characters)) == 7 + characters + OVERHEAD


def test_without_subscription_nothing_is_kept(bench: Bench) -> None:
    bench.send("x")
    assert (bench.log.records, bench.broker.used, bench.log.next) == ({}, 0, 1)


def test_a_record_stays_until_every_subscription_acknowledged_it(bench: Bench) -> None:
    first, second = (bench.join(bench.subscribe(name)) for name in ("first", "second"))
    bench.send("1", "2")
    acknowledge(first, first.receive(2))
    assert len(bench.log.records) == 2
    acknowledge(second, second.receive(2)[1:])
    assert texts(list(bench.log.records.values())) == ["1"]
    acknowledge(second, list(second.held.values()))
    assert (bench.log.records, bench.broker.used) == ({}, 0)


def test_one_old_record_does_not_keep_the_later_ones(bench: Bench) -> None:
    consumer = bench.join(bench.subscribe())
    bench.send(*map(str, range(100)))
    acknowledge(consumer, consumer.receive(100)[1:])
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
    assert texts(tail.read(10)) == ["1", "2"]
    consumer = bench.join(bench.subscribe())
    records = consumer.receive(10)
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
    subscription.remove(bench.join(subscription))
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
    acknowledge(consumer, consumer.receive(2))
    assert bench.log.last is None


def test_a_producer_s_sequence_ids_only_advance(bench: Bench) -> None:
    numbers = [("a", 0), ("a", 0), ("a", 7), ("b", 3), ("a", 5), ("a", 8)]
    assert [bench.log.note_sequence_id(*each) for each in numbers] == [True, False, True, True, False, True]
    assert bench.log.sequence_ids == {"a": 8, "b": 3}


def test_a_stored_record_is_a_received_one(bench: Bench) -> None:
    bench.subscribe()
    outgoing = OutgoingRecord(b"x", {"a": "b"}, "key", 5)
    stored = bench.log.append(outgoing, 700, 9, 12.5, "producer")
    assert (stored.payload, stored.properties, stored.key, stored.event_time) == (b"x", {"a": "b"}, "key", 5)
    assert (stored.publish_time, stored.sequence_id, stored.size, stored.redelivery_count) == (12500, 9, 700, 0)
    assert (stored.message_id, stored.topic) == (WireId(bench.log.ledger, 0), TOPIC)
    assert (stored.producer_name, stored.schema_version) == ("producer", None)
    assert stored.message_id is stored.message_id
    assert "redelivered 0 times" in repr(stored)


def test_a_redelivered_record_differs_in_its_count(bench: Bench) -> None:
    bench.subscribe()
    stored = bench.log.append(OutgoingRecord(b"x", {}, "key", 5), 700, 9, 12.5, "producer")
    again = RedeliveredRecord(stored, 3)
    same = [
        "payload", "properties", "key", "event_time", "publish_time", "sequence_id", "producer_name", "schema_version",
        "size", "message_id", "topic",
    ]  # fmt: skip
    for name in same:
        assert getattr(again, name) == getattr(stored, name)
    assert (again.redelivery_count, stored.redelivery_count) == (3, 0)


def test_weight_counts_everything() -> None:
    assert weigh(OutgoingRecord(None, {})) == OVERHEAD
    assert weigh(OutgoingRecord(b"12345", {"ab": "cde"}, "key")) == OVERHEAD + 13


@pytest.mark.parametrize(
    "outgoing",
    [
        OutgoingRecord(b"x" * (MAX_SIZE + 1), {}),
        OutgoingRecord(None, {"x" * MAX_SIZE: ""}),
        OutgoingRecord(None, {"": "語" * (MAX_SIZE // 3)}),
        OutgoingRecord(None, {}, "x" * (MAX_SIZE + 1)),
    ],
)
def test_what_is_too_large_is_refused(outgoing: OutgoingRecord) -> None:
    with pytest.raises(MessageTooLargeError, match=str(MAX_SIZE)):
        weigh(outgoing)


def test_the_limit_counts_bytes_not_characters() -> None:
    weigh(OutgoingRecord(b"x" * MAX_SIZE, {}))
    weigh(OutgoingRecord(None, {"": "x" * (MAX_SIZE - 8)}))


def test_a_partition_gets_its_services_from_the_broker_it_lies_in(bench: Bench) -> None:
    services: Services = bench.broker
    assert bench.log.broker is services
    assert isinstance(bench.broker, Broker)


def test_a_subscription_listens_to_its_partition_and_uses_the_brokers_services(bench: Bench) -> None:
    subscription = bench.subscribe()
    listener: LogListener = subscription
    dispatcher: Dispatcher = subscription
    assert bench.log.listeners == [listener]
    assert dispatcher.services is bench.broker
