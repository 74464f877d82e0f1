from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from jmsaio.errors import (
    AdminError,
    BrokerUnavailableError,
    InvalidDestinationError,
    JMSError,
    NotFoundError,
    SendError,
    TransportError,
)
from jmsaio.model.topic_names import topic_pattern
from jmsaio.transport.base import StartPosition
from jmsaio.transport.clock import ManualClock, SystemClock
from jmsaio.transport.memory.broker.broker import Broker, Faults, SendFault, broker_named, forget_broker
from jmsaio.transport.memory.broker.consumer import Tail
from jmsaio.transport.memory.broker.partition import Partition
from tests.kit.records import texts
from tests.transport.memory.bench import TOPIC, Bench, FakePort


class FakeClient:
    def __init__(self, gone: bool = False) -> None:
        self.gone = gone
        self.calls: list[str] = []

    def timer_changed(self) -> None:
        self.calls.append("timer_changed")

    def abandon(self) -> None:
        self.calls.append("abandon")

    def broker_down(self) -> None:
        self.calls.append("down")

    def broker_up(self) -> None:
        self.calls.append("up")


class FakeSender:
    def __init__(self, broker: Broker, limit: int, sizes: list[int]) -> None:
        self.broker, self.limit, self.sizes = broker, limit, sizes
        self.deleted = False

    def admit(self) -> None:
        while self.sizes and self.broker.used < self.limit:
            self.broker.used += self.sizes.pop()
        if self.sizes:
            self.broker.block(self)

    def topic_ended(self, error: JMSError) -> None:
        self.deleted = True


def test_brokers_are_found_by_name_and_outlive_their_clients() -> None:
    first = broker_named("test-a")
    assert broker_named("test-a") is first
    assert broker_named("test-b") is not first
    forget_broker("test-a")
    forget_broker("test-b")
    forget_broker("test-b")
    assert broker_named("test-a") is not first
    forget_broker("test-a")


def test_who_keeps_the_time() -> None:
    assert Broker("x").self_timed
    assert isinstance(Broker("x").clock, SystemClock)
    assert not Broker("x", ManualClock()).self_timed


def test_a_topic_has_its_partitions_and_is_created_once(bench: Bench) -> None:
    broker, parted = bench.broker, f"{TOPIC}-parted"
    assert broker.create(parted, 2)
    assert not broker.create(parted, 3)
    assert not broker.create(TOPIC, 0)
    assert [log.name for log in broker.find(parted)] == [f"{parted}-partition-0", f"{parted}-partition-1"]
    assert [log.partition for log in broker.open(parted)] == [0, 1]
    assert broker.open(f"{parted}-partition-1") == [broker.find(parted)[1]]
    assert broker.open("persistent://t/n/single-partition-7")[0].partition == 7
    with pytest.raises(NotFoundError):
        broker.find("persistent://t/n/none")
    ledgers = [log.ledger for log in broker.logs.values()]
    assert len(set(ledgers)) == len(ledgers)


@pytest.mark.parametrize("topic", ["short", "a/b/c/d/e", "persistent://a", "persistent://a/b", "persistent://a/b/"])
def test_names_that_are_none(bench: Bench, topic: str) -> None:
    with pytest.raises(InvalidDestinationError, match="full topic name"):
        bench.broker.create(topic, 0)


def test_a_negative_number_of_partitions(bench: Bench) -> None:
    with pytest.raises(InvalidDestinationError, match="-1"):
        bench.broker.create("persistent://a/b/c", -1)


def test_a_partition_that_was_a_topic_before_keeps_what_it_has(bench: Bench) -> None:
    [log] = bench.broker.open(f"{TOPIC}-x-partition-1")
    bench.broker.create(f"{TOPIC}-x", 2)
    assert bench.broker.find(f"{TOPIC}-x")[1] is log


def test_patterns_find_topics_and_watch_for_new_ones(bench: Bench) -> None:
    broker = bench.broker
    found: list[str] = []

    class Watcher:
        pattern: re.Pattern[str] = topic_pattern(f"{TOPIC}-.*")

        def discovered(self, topic: str, logs: list[Partition]) -> None:
            found.append(f"{topic} {len(logs)}")

    broker.create(f"{TOPIC}-a", 2)
    broker.create(f"{TOPIC}-b", 0)
    assert {topic: len(logs) for topic, logs in broker.matching(Watcher.pattern).items()} == {
        f"{TOPIC}-a": 2,
        f"{TOPIC}-b": 1,
    }
    broker.watchers.append(Watcher())
    broker.create(f"{TOPIC}-c", 3)
    broker.create(f"{TOPIC}d", 0)
    assert found == [f"{TOPIC}-c 3"]


def test_deleting_a_topic(bench: Bench) -> None:
    broker, log = bench.broker, bench.log
    consumer = bench.join(bench.subscribe())
    port, sender = FakePort(), FakeSender(broker, 0, [])
    Tail(log, port, StartPosition.EARLIEST, True)
    log.senders["p"] = sender
    bench.send("x")
    with pytest.raises(AdminError) as refused:
        broker.delete(TOPIC, force=False)
    assert refused.value.status == 412
    broker.delete(TOPIC, force=True)
    assert (broker.logs, broker.used, sender.deleted) == ({}, 0, True)
    assert isinstance(port.reasons[0], NotFoundError)
    assert isinstance(consumer.port, FakePort)
    assert isinstance(consumer.port.reasons[0], NotFoundError)
    assert broker.open(TOPIC)[0].ledger != log.ledger


def test_memory_that_comes_free_lets_senders_go_on_in_turn(bench: Bench) -> None:
    broker = bench.broker
    broker.used = 100
    small, large = FakeSender(broker, 50, [10, 10]), FakeSender(broker, 200, [150, 10, 100])
    broker.block(small)
    broker.block(large)
    broker.freed()
    assert (small.sizes, large.sizes, broker.used) == ([10, 10], [150, 10], 200)
    broker.used = 40
    broker.freed()
    assert (small.sizes, large.sizes) == ([10], [])
    broker.unblock(small)
    broker.used = 0
    broker.freed()
    assert small.sizes == [10]


def test_clients_come_and_those_whose_loop_is_gone_are_given_up(bench: Bench) -> None:
    gone, client = FakeClient(gone=True), FakeClient()
    bench.broker.connect(gone)
    bench.broker.connect(client)
    assert gone.calls == ["timer_changed", "abandon"]
    bench.broker.timers.add(1.0, lambda argument, token: None)
    assert client.calls == ["timer_changed", "timer_changed"]


def test_timers_run_when_a_client_comes(bench: Bench) -> None:
    ran: list[int] = []
    bench.broker.timers.add(0.0, lambda argument, token: ran.append(argument), 5)
    bench.broker.connect(FakeClient())
    assert ran == [5]


def test_a_broker_that_is_down_refuses_clients_and_tells_those_it_has(bench: Bench) -> None:
    client = FakeClient()
    bench.broker.connect(client)
    bench.broker.take_down()
    assert bench.broker.disturbed
    with pytest.raises(BrokerUnavailableError, match="down"):
        bench.broker.connect(FakeClient())
    bench.broker.bring_up()
    assert not bench.broker.disturbed
    assert client.calls == ["timer_changed", "down", "up"]


def test_two_dead_letters_in_one_topic(bench: Bench) -> None:
    bench.subscribe()
    bench.send("1", "2")
    for record in list(bench.log.records.values()):
        bench.broker.dead_letter(record, "dead", "s")
    [log] = bench.broker.find("persistent://public/default/dead")
    assert texts(list(log.records.values())) == ["1", "2"]
    assert [record.sequence_id for record in log.records.values()] == [0, 0]
    assert [record.properties["ORIGIN_MESSAGE_ID"] for record in log.records.values()] == ["(1,0,-1,-1)", "(1,1,-1,-1)"]


def test_a_topic_that_was_there_keeps_dead_letters_no_longer_than_others(bench: Bench) -> None:
    """Only a topic that is made for dead letters keeps them without a subscription."""
    known_topic, parted_topic, made_topic = (f"{TOPIC}-{name}" for name in ("known", "parted", "made"))
    [known] = bench.broker.open(known_topic)
    bench.broker.create(parted_topic, 2)
    consumer = bench.join(bench.subscribe())
    bench.send("x")
    [record] = consumer.receive(1)
    bench.broker.dead_letter(record, known_topic, "s")
    bench.broker.dead_letter(record, parted_topic, "s")
    bench.broker.dead_letter(record, made_topic, "s")
    keeping = [log.keeps_unread for topic in (known_topic, parted_topic) for log in bench.broker.open(topic)]
    assert (known.keeps_unread, keeping) == (False, [False] * 3)
    assert bench.broker.open(made_topic)[0].keeps_unread


@pytest.mark.parametrize("client", ["sender", "reader", "consumer"])
def test_one_client_of_one_partition_keeps_a_topic_from_being_deleted(bench: Bench, client: str) -> None:
    broker, parted = bench.broker, f"{TOPIC}-parted"
    broker.create(parted, 2)
    log = broker.find(parted)[1]
    if client == "sender":
        log.senders["p"] = FakeSender(broker, 0, [])
    elif client == "reader":
        Tail(log, FakePort(), StartPosition.EARLIEST, True)
    else:
        broker.subscribe(log, "idle", True, StartPosition.EARLIEST)
        bench.join(broker.subscribe(log, "s", True, StartPosition.EARLIEST))
    with pytest.raises(AdminError, match="connected clients"):
        broker.delete(parted, force=False)
    broker.delete(parted, force=True)
    with pytest.raises(NotFoundError):
        broker.find(parted)
    assert broker.create(parted, 3)


def test_a_deleted_topic_leaves_no_dead_letters_that_nobody_took(bench: Bench) -> None:
    bench.log.keeps_unread = True
    bench.send("x")
    bench.broker.delete(TOPIC, force=False)
    assert bench.broker.used == 0


def test_a_topic_with_a_terminated_partition_is_open_to_no_sender(bench: Bench) -> None:
    parted = f"{TOPIC}-parted"
    bench.broker.create(parted, 2)
    bench.broker.terminate(f"{parted}-partition-1")
    with pytest.raises(TransportError, match="terminated"):
        bench.broker.open_to_send(parted)


def test_a_sender_with_a_high_limit_goes_on_although_one_with_a_low_limit_waits_behind_it(bench: Bench) -> None:
    broker = bench.broker
    broker.used = 100
    large, small = FakeSender(broker, 200, [10]), FakeSender(broker, 50, [10])
    broker.block(large)
    broker.block(small)
    broker.freed()
    assert (large.sizes, small.sizes) == ([], [10])
    broker.used = 40
    broker.freed()
    assert small.sizes == []


def test_what_is_due_is_done_before_a_broker_is_reached_again() -> None:
    """Its clients' loops may have had no turn since."""

    class SetByHand:
        seconds = 0.0

        def now(self) -> float:
            return self.seconds

        steady = now

        def watch(self, advanced: Callable[[], None]) -> bool:
            return False

    clock = SetByHand()
    broker, client = Broker("x", clock), FakeClient()
    broker.connect(client)
    broker.timers.add(5.0, lambda argument, token: client.calls.append("due"))
    broker.take_down()
    clock.seconds = 5.0
    broker.bring_up()
    assert client.calls[-3:] == ["down", "due", "up"]


def test_a_fault_of_a_send_is_used_once_and_for_its_topic() -> None:
    faults, error = Faults(), SendError("x")
    faults.sends.extend([SendFault("a", error), SendFault(None, None, stored=True, delay=1.0)])
    assert faults.next_send("b") == SendFault(None, None, stored=True, delay=1.0)
    assert faults.next_send("b") is None
    assert faults.next_send("a") == SendFault("a", error)
    assert faults.next_send("a") is None


def test_lost_answers_to_commits_are_counted() -> None:
    faults = Faults(lost_commits=2)
    assert [faults.loses_commit() for _ in range(3)] == [True, True, False]


def test_lost_acknowledgements_are_counted() -> None:
    faults = Faults(lost_acknowledgements=2)
    assert [faults.loses_acknowledgement() for _ in range(3)] == [True, True, False]
