from __future__ import annotations

import pytest

from jmsaio.config import DeadLetterPolicy
from jmsaio.model.topic_names import partition_name
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport.base import StartPosition, SubscriptionType
from jmsaio.transport.memory.broker import policies
from jmsaio.transport.memory.broker.consumer import Consumer
from jmsaio.transport.memory.transaction import MemoryTransaction
from tests.kit.records import texts
from tests.transport.memory.bench import SUBSCRIPTIONS, TOPIC, Bench, acknowledge

FAILOVER, KEY_SHARED = SubscriptionType.FAILOVER, SubscriptionType.KEY_SHARED


def test_round_robin_by_record(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumers = [bench.join(subscription) for _ in range(3)]
    bench.send(*"123456")
    assert sorted(texts(consumer.receive(9)) for consumer in consumers) == [["1", "4"], ["2", "5"], ["3", "6"]]


def test_round_robin_leaves_out_who_has_no_permit(bench: Bench) -> None:
    subscription = bench.subscribe()
    small, large = bench.join(subscription, size=1), bench.join(subscription)
    bench.send(*"12345")
    assert len(small.queue) == 1
    assert len(large.queue) == 4
    small.receive(1)
    bench.send("6", "7")
    assert len(small.queue) == 1


def test_failover_to_the_next_in_the_order_of_connecting(bench: Bench) -> None:
    subscription = bench.subscribe()
    first, second, third = (bench.join(subscription, FAILOVER, consumer_name=name) for name in "cba")
    bench.send("1", "2")
    assert texts(first.receive(1)) == ["1"]
    subscription.remove(first)
    assert (texts(second.receive(9)), third.receive(9)) == (["1", "2"], [])


def test_a_consumer_that_takes_a_partition_over_gets_what_was_not_taken(bench: Bench) -> None:
    topic = f"{TOPIC}-parted"
    bench.broker.create(topic, 1)
    log = bench.broker.logs[partition_name(topic, 0)]
    subscription = bench.broker.subscribe(log, "s", True, StartPosition.EARLIEST)
    second = bench.join(subscription, FAILOVER, consumer_name="b")
    for text in (b"1", b"2"):
        log.append(OutgoingRecord(text, {}), 1, 0, 0.0)
    assert texts(second.receive(1)) == ["1"]
    first = bench.join(subscription, FAILOVER, consumer_name="a")
    [record] = first.receive(9)
    assert (second.receive(9), texts([record]), record.redelivery_count) == ([], ["2"], 0)


def test_failover_spreads_partitions(bench: Bench) -> None:
    topic = f"{TOPIC}-parted"
    bench.broker.create(topic, 2)
    active = []
    for index in range(2):
        log = bench.broker.logs[partition_name(topic, index)]
        subscription = bench.broker.subscribe(log, "s", True, StartPosition.EARLIEST)
        consumers = [bench.join(subscription, FAILOVER, consumer_name=name) for name in "ba"]
        active.append(next(consumer.name for consumer in consumers if is_active(consumer)))
    assert active == ["a", "b"]


def is_active(consumer: Consumer) -> bool:
    """Whether the next record goes to this consumer."""
    before = len(consumer.queue)
    SUBSCRIPTIONS[consumer].log.append(OutgoingRecord(b"", {}), 1, 0, 0.0)
    return len(consumer.queue) > before


def keyed(bench: Bench, count: int, size: int = 1000) -> list[Consumer]:
    subscription = bench.subscribe()
    return [bench.join(subscription, KEY_SHARED, size) for _ in range(count)]


def test_a_key_has_one_consumer_and_keys_spread(bench: Bench) -> None:
    consumers = keyed(bench, 3)
    for number in range(300):
        bench.send(str(number), key=f"key {number % 30}")
    owners: dict[str, set[int]] = {}
    for index, consumer in enumerate(consumers):
        for record in consumer.receive(1000):
            owners.setdefault(record.key or "", set()).add(index)
    assert all(len(each) == 1 for each in owners.values())
    assert {index for each in owners.values() for index in each} == {0, 1, 2}


def test_a_key_in_somebodys_hands_stays_there_when_others_join(bench: Bench) -> None:
    consumers = keyed(bench, 1)
    bench.send(*map(str, range(50)), key="k")
    consumers += keyed(bench, 9)
    bench.send(*map(str, range(50, 100)), key="k")
    assert texts(consumers[0].receive(1000)) == [str(number) for number in range(100)]


def test_a_key_is_free_when_nothing_of_it_is_held(bench: Bench) -> None:
    consumers = keyed(bench, 1)
    bench.send("x", key="k")
    acknowledge(consumers[0], consumers[0].receive(1))
    bench.subscribe().remove(consumers[0])
    other = keyed(bench, 1)[0]
    bench.send("y", key="k")
    assert texts(other.receive(1)) == ["y"]


def test_a_full_consumer_holds_up_its_own_keys_only(bench: Bench) -> None:
    consumers = keyed(bench, 2, size=3)
    keys: dict[int, str | None] = {}
    for number in range(40):
        bench.send("probe", key=f"key {number}")
        for index, consumer in enumerate(consumers):
            for record in consumer.receive(9):
                keys.setdefault(index, record.key)
                acknowledge(consumer, [record])
    for number in range(10):
        bench.send(f"a{number}", key=keys[0])
    bench.send("b", key=keys[1])
    assert texts(consumers[1].receive(9)) == ["b"]
    assert texts(consumers[0].receive(4)) == ["a0", "a1", "a2", "a3"]
    SUBSCRIPTIONS[consumers[0]].remove(consumers[0])
    assert texts(consumers[1].receive(20)) == [f"a{number}" for number in range(10)]


def test_what_is_set_aside_for_full_consumers_is_bounded(bench: Bench) -> None:
    [consumer] = keyed(bench, 1, size=1)
    bench.send(*["x"] * (policies.LOOK_AHEAD + 10), key="k")
    assert len(consumer.parked) == policies.LOOK_AHEAD
    assert len(SUBSCRIPTIONS[consumer].backlog) == 9
    assert len(consumer.receive(policies.LOOK_AHEAD + 10)) == policies.LOOK_AHEAD + 10


def test_records_without_key_go_round(bench: Bench) -> None:
    consumers = keyed(bench, 2)
    bench.send("1", "2")
    assert [len(consumer.queue) for consumer in consumers] == [1, 1]


def test_a_key_stays_with_its_consumer_until_the_last_of_its_records_is_acknowledged(bench: Bench) -> None:
    [owner] = keyed(bench, 1)
    keys = [f"key {number}" for number in range(30)]
    for key in keys:
        bench.send("first", "second", key=key)
    acknowledge(owner, [record for record in owner.receive(1000) if record.payload == b"first"])
    keyed(bench, 9)
    for key in keys:
        bench.send("third", key=key)
    assert texts(owner.receive(1000)) == ["third"] * len(keys)


def test_a_consumer_that_comes_after_another_has_left_gets_its_share(bench: Bench) -> None:
    subscription = bench.subscribe()
    gone, stays = bench.join(subscription), bench.join(subscription)
    subscription.remove(gone)
    comes = bench.join(subscription)
    bench.send(*"1234")
    assert [len(consumer.receive(9)) for consumer in (stays, comes)] == [2, 2]


def test_a_resumed_consumer_takes_its_partition_back_with_what_was_not_taken(bench: Bench) -> None:
    topic = f"{TOPIC}-parted"
    bench.broker.create(topic, 1)
    log = bench.broker.logs[partition_name(topic, 0)]
    subscription = bench.broker.subscribe(log, "s", True, StartPosition.EARLIEST)
    first, second = (bench.join(subscription, FAILOVER, consumer_name=name) for name in "ab")
    subscription.stop(first)
    for text in (b"1", b"2"):
        log.append(OutgoingRecord(text, {}), 1, 0, 0.0)
    assert texts(second.receive(1)) == ["1"]
    subscription.resume(first)
    assert (second.receive(9), texts(first.receive(9))) == ([], ["2"])


def test_resuming_a_consumer_that_runs_changes_nothing(bench: Bench) -> None:
    subscription = bench.subscribe()
    first, second = (bench.join(subscription, FAILOVER) for _ in range(2))
    subscription.resume(first)
    subscription.remove(first)
    bench.send("x")
    assert texts(second.receive(9)) == ["x"]


def test_an_exclusive_consumer_without_prefetch_gets_what_came_back_when_it_asks(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, SubscriptionType.EXCLUSIVE, size=0)
    bench.send("x")
    subscription.give_back(consumer, consumer.receive(1)[0].number, None, counted=True)
    subscription.dispatch()
    assert list(consumer.queue) == []
    assert texts(consumer.receive(1)) == ["x"]


def test_records_without_key_come_to_a_consumer_that_has_room_again(bench: Bench) -> None:
    consumers = keyed(bench, 2, size=1)
    bench.send(*"1234")
    received = [text for _ in range(2) for consumer in consumers for text in texts(consumer.receive(1))]
    assert sorted(received) == list("1234")


def test_a_record_with_a_key_waits_while_there_is_no_consumer(bench: Bench) -> None:
    bench.subscribe().remove(keyed(bench, 1)[0])
    bench.send("x", key="k")
    assert texts(keyed(bench, 1)[0].receive(1)) == ["x"]


def test_keys_are_spread_evenly(bench: Bench) -> None:
    consumers = keyed(bench, 3)
    for number in range(600):
        bench.send("x", key=f"key {number}")
    assert min(len(consumer.receive(1000)) for consumer in consumers) > 120


def test_a_full_look_ahead_holds_up_full_consumers_only(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "LOOK_AHEAD", 3)
    full, free = keyed(bench, 2, size=100)
    full.capacity = 1
    owners: dict[Consumer, str] = {}
    for number in range(40):
        key = f"key {number}"
        bench.send("probe", key=key)
        for consumer in (full, free):
            for record in consumer.receive(9):
                owners[consumer] = key
                acknowledge(consumer, [record])
    bench.send(*"1234", key=owners[full])
    assert len(full.parked) == 3
    bench.send("passes", key=owners[free])
    assert texts(free.receive(9)) == ["passes"]


def test_what_was_parked_with_a_stopped_consumer_is_no_longer_its_own(bench: Bench) -> None:
    subscription = bench.subscribe()
    stopped = bench.join(subscription, KEY_SHARED, 1)
    bench.send("1", "2", key="k")
    subscription.stop(stopped)
    other = bench.join(subscription, KEY_SHARED)
    first, second = other.receive(9)
    acknowledge(other, [first])
    subscription.give_back(other, second.number, bench.clock.steady() + 60, counted=True)
    subscription.resume(stopped)
    for number in range(40):
        bench.send("new", key=f"key {number}")
    taken: list[str] = []
    while records := stopped.receive(1):
        taken += texts(records)
    assert set(taken) == {"new"}


def test_what_was_parked_and_acknowledged_does_not_come_again(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, KEY_SHARED, 1)
    bench.send("1", "2", key="k")
    acknowledge(consumer, [bench.log.records[1]])
    subscription.remove(consumer)
    assert texts(bench.join(subscription, KEY_SHARED).receive(9)) == ["1"]


@pytest.mark.parametrize(
    "end", ["at will", "given back too often", "given back and acknowledged", "rolled back", "committed"]
)
def test_a_key_is_free_however_its_records_are_done_with(bench: Bench, end: str) -> None:
    subscription = bench.subscribe()
    policy = DeadLetterPolicy(max_redeliver_count=1)
    first = bench.join(subscription, KEY_SHARED, dead_letter=policy)
    keys = [f"key {number}" for number in range(30)]
    for key in keys:
        bench.send("x", key=key)
    unit = MemoryTransaction(bench.broker, 60)
    for record in first.receive(100):
        if end == "at will":
            subscription.dead_letter(first, record.number, {})
        elif end in ("rolled back", "committed"):
            unit.acknowledge(subscription, record.number, first.held.pop(record.number))
        else:
            subscription.give_back(first, record.number, None, counted=True)
    if end == "committed":
        unit.commit_now()
    unit.abort_now()
    subscription.dispatch()
    again = first.receive(100)
    if end == "given back too often":
        for record in again:
            subscription.give_back(first, record.number, None, counted=True)
        subscription.dispatch()
    else:
        acknowledge(first, again)
    assert subscription.size == 0
    second = bench.join(subscription, KEY_SHARED)
    for key in keys:
        bench.send("new", key=key)
    assert 0 < len(second.receive(100)) < len(keys)
