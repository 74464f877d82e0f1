from __future__ import annotations

from typing import Any, cast

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jmsaio.config import Backoff, DeadLetterPolicy
from jmsaio.errors import ConsumerBusyError
from jmsaio.model.wire import WireId
from jmsaio.rules.record_life import TABLE, RecordEvent, RecordState, advance
from jmsaio.transport.base import StartPosition, SubscriptionType
from jmsaio.transport.memory.broker.consumer import Consumer
from jmsaio.transport.memory.broker.subscription import subscriptions_of
from jmsaio.transport.memory.transaction import MemoryTransaction
from tests.kit.records import texts
from tests.transport.memory.bench import SUBSCRIPTIONS, TOPIC, Bench, FakePort, acknowledge

E, S = RecordEvent, RecordState
EXCLUSIVE, SHARED = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED


def test_a_record_goes_straight_to_the_only_consumer(bench: Bench) -> None:
    consumer = bench.join(bench.subscribe(), size=2)
    bench.send("1", "2", "3")
    port = cast(FakePort, consumer.port)
    assert (texts(list(consumer.queue)), port.notified) == (["1", "2"], 1)
    assert texts(list(SUBSCRIPTIONS[consumer].backlog)) == ["3"]
    assert texts(consumer.receive(1)) == ["1"]
    assert texts(list(consumer.queue)) == ["2", "3"]


def test_a_consumer_that_leaves_gives_back_in_order(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, size=4)
    bench.send(*"123456")
    taken = consumer.receive(2)
    acknowledge(consumer, taken[:1])
    subscription.remove(consumer)
    subscription.remove(consumer)
    again = bench.join(subscription).receive(10)
    assert texts(again) == ["2", "3", "4", "5", "6"]
    assert [record.redelivery_count for record in again] == [1, 0, 0, 0, 0]


def test_given_back_with_delay(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription)
    bench.send("1", "2")
    for record, delay in zip(consumer.receive(2), (20, 10), strict=True):
        subscription.give_back(consumer, record.number, bench.clock.now() + delay, counted=True)
    bench.clock.advance(9.9)
    assert consumer.receive(2) == []
    bench.clock.advance(0.1)
    assert texts(consumer.receive(2)) == ["2"]
    bench.clock.advance(10)
    [record] = consumer.receive(2)
    assert (texts([record]), record.redelivery_count) == (["1"], 1)


def test_an_old_timer_does_not_shorten_a_new_delay(bench: Bench) -> None:
    subscription = bench.subscribe()
    first = bench.join(subscription)
    bench.send("x")
    subscription.give_back(first, first.receive(1)[0].number, bench.clock.now() + 10, counted=True)
    subscription.remove(first)
    second = bench.join(subscription)
    subscription.give_back(second, second.receive(1)[0].number, bench.clock.now() + 60, counted=True)
    bench.clock.advance(30)
    assert second.receive(1) == []
    bench.clock.advance(30)
    assert second.receive(1)[0].redelivery_count == 2


def test_delayed_delivery_on_every_type(bench: Bench) -> None:
    now = int(bench.clock.now() * 1000)
    consumers = [bench.join(bench.subscribe(type_.value), type_) for type_ in SubscriptionType]
    bench.send("late", deliver_at=now + 2000)
    bench.send("soon", deliver_at=now)
    for consumer in consumers:
        assert texts(consumer.receive(10)) == ["soon"]
    bench.clock.advance(2)
    for consumer in consumers:
        assert texts(consumer.receive(10)) == ["late"]


def test_delayed_records_come_in_the_order_of_their_times(bench: Bench) -> None:
    consumer = bench.join(bench.subscribe())
    now = int(bench.clock.now() * 1000)
    for text, delay in (("c", 3000), ("a", 1000), ("b", 2000)):
        bench.send(text, deliver_at=now + delay)
    bench.clock.advance(10)
    assert texts(consumer.receive(10)) == ["a", "b", "c"]


def test_an_acknowledgement_by_another_consumer_counts(bench: Bench) -> None:
    subscription = bench.subscribe()
    first, second = bench.join(subscription), bench.join(subscription)
    bench.send("x")
    [record] = first.receive(1)
    subscription.give_back(first, record.number, None, counted=True)
    subscription.dispatch()
    assert len(first.queue) + len(second.queue) == 1
    acknowledge(first if second.queue else second, [record])
    assert (first.receive(1), second.receive(1), subscription.size) == ([], [], 0)


def test_an_acknowledgement_of_a_waiting_record_counts(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription)
    bench.send("x")
    [record] = consumer.receive(1)
    subscription.give_back(consumer, record.number, bench.clock.now() + 10, counted=True)
    acknowledge(consumer, [record])
    bench.clock.advance(10)
    assert (consumer.receive(1), subscription.size, bench.broker.used, consumer.waiting) == ([], 0, 0, set())
    assert subscription.counts == {}


def test_a_record_given_back_too_often_becomes_a_dead_letter(bench: Bench) -> None:
    policy = DeadLetterPolicy(max_redeliver_count=1, initial_subscription_name="kept")
    subscription = bench.subscribe()
    consumer = bench.join(subscription, dead_letter=policy)
    bench.send("x", key="k", event_time=7)
    for _ in range(2):
        subscription.give_back(consumer, consumer.receive(1)[0].number, None, counted=True)
        subscription.dispatch()
    assert (consumer.receive(1), subscription.size) == ([], 0)
    [letter] = subscriptions_of(bench.broker.logs[f"{TOPIC}-s-DLQ"])["kept"].backlog
    assert (texts([letter]), letter.key, letter.event_time) == (["x"], "k", 7)
    assert letter.properties["REAL_TOPIC"] == TOPIC


def test_dead_letters_wait_for_somebody_to_look(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, dead_letter=DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic="dead"))
    bench.send("x")
    for _ in range(2):
        subscription.give_back(consumer, consumer.receive(1)[0].number, None, counted=True)
        subscription.dispatch()
    log = bench.broker.logs["persistent://public/default/dead"]
    assert texts(bench.join(bench.broker.subscribe(log, "s", True, StartPosition.EARLIEST)).receive(1)) == ["x"]


def test_dead_letters_of_an_exclusive_subscription(bench: Bench) -> None:
    """A policy means the same on every kind of subscription."""
    policy = DeadLetterPolicy(max_redeliver_count=1, initial_subscription_name="kept")
    subscription = bench.subscribe()
    consumer = bench.join(subscription, EXCLUSIVE, dead_letter=policy)
    bench.send("x")
    for count in range(2):
        [record] = consumer.receive(1)
        assert record.redelivery_count == count
        subscription.give_back(consumer, record.number, None, counted=True)
        subscription.dispatch()
    assert (consumer.receive(1), subscription.size) == ([], 0)
    assert texts(subscriptions_of(bench.broker.logs[f"{TOPIC}-s-DLQ"])["kept"].backlog) == ["x"]


def test_what_is_pending_is_told_in_the_order_of_sending(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription)
    bench.send(*map(str, range(20)))
    taken = consumer.receive(20)
    acknowledge(consumer, [record for record in taken if record.number not in (1, 8, 17)])
    assert subscription.pending() == [1, 8, 17]


@pytest.mark.parametrize("kind", [EXCLUSIVE, SubscriptionType.SHARED])
def test_a_new_record_comes_after_one_that_was_given_back(bench: Bench, kind: SubscriptionType) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, kind)
    bench.send("1")
    subscription.give_back(consumer, consumer.receive(1)[0].number, None, counted=True)
    bench.send("2")
    assert texts(consumer.receive(2)) == ["1", "2"]


def test_a_key_is_free_for_a_new_consumer_once_its_records_are_acknowledged(bench: Bench) -> None:
    subscription, keys = bench.subscribe(), "abcdefghijklmnop"
    first = bench.join(subscription, SubscriptionType.KEY_SHARED)
    for key in keys:
        bench.send("held" if key in "abcdefgh" else "acknowledged", key=key)
    acknowledge(first, [record for record in first.receive(100) if record.payload == b"acknowledged"])
    second = bench.join(subscription, SubscriptionType.KEY_SHARED)
    for key in keys:
        bench.send("new", key=key)
    moved = {record.key for record in second.receive(100)}
    assert moved
    assert moved <= set("ijklmnop")


def test_a_record_not_acknowledged_in_time_is_redelivered_and_counted(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, ack_timeout=10)
    bench.send("1", "2")
    taken = consumer.receive(2)
    acknowledge(consumer, taken[:1])
    bench.clock.advance(9)
    assert consumer.receive(2) == []
    bench.clock.advance(1)
    [again] = consumer.receive(2)
    assert (texts([again]), again.redelivery_count) == (["2"], 1)
    bench.clock.advance(9)
    acknowledge(consumer, [again])
    bench.clock.advance(9)
    assert (consumer.receive(2), subscription.size) == ([], 0)


def test_records_taken_one_after_another_are_overdue_one_after_another(bench: Bench) -> None:
    consumer = bench.join(bench.subscribe(), ack_timeout=10)
    bench.send("1", "2")
    consumer.receive(1)
    bench.clock.advance(5)
    consumer.receive(1)
    bench.clock.advance(5)
    assert texts(consumer.receive(2)) == ["1"]
    bench.clock.advance(5)
    assert texts(consumer.receive(2)) == ["2"]


def test_ack_timeout_with_a_growing_delay(bench: Bench) -> None:
    backoff = Backoff(min_delay=1, max_delay=100, multiplier=10)
    consumer = bench.join(bench.subscribe(), ack_timeout=10, ack_timeout_backoff=backoff)
    bench.send("x")
    consumer.receive(1)
    bench.clock.advance(10)
    assert consumer.receive(1) == []
    bench.clock.advance(1)
    assert len(consumer.receive(1)) == 1
    bench.clock.advance(10)
    bench.clock.advance(9)
    assert consumer.receive(1) == []
    bench.clock.advance(1)
    assert len(consumer.receive(1)) == 1


def test_what_is_settled_in_time_takes_no_memory(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, ack_timeout=10)
    for _ in range(500):
        bench.send("x")
        acknowledge(consumer, consumer.receive(1))
        bench.send("y")
        [record] = consumer.receive(1)
        subscription.give_back(consumer, record.number, bench.clock.now() + 3600, counted=True)
        acknowledge(consumer, [record])
        bench.send("z")
        subscription.dead_letter(consumer, consumer.receive(1)[0].number, {})
        MemoryTransaction(bench.broker, 60).commit_now()
    assert len(consumer.ack_deadlines) == 0
    assert len(bench.broker.timers) < 150


def test_a_record_in_the_queue_is_not_overdue(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, ack_timeout=10)
    bench.send("x")
    subscription.give_back(consumer, consumer.receive(1)[0].number, None, counted=True)
    subscription.dispatch()
    bench.clock.advance(20)
    [record] = consumer.receive(2)
    assert record.redelivery_count == 1


def test_types_that_do_not_fit(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription)
    with pytest.raises(ConsumerBusyError, match="Shared consumer"):
        bench.join(subscription, SubscriptionType.KEY_SHARED)
    subscription.remove(consumer)
    bench.join(subscription, EXCLUSIVE)
    with pytest.raises(ConsumerBusyError, match="Exclusive consumer"):
        bench.join(subscription, EXCLUSIVE)


def test_seek_delivers_anew(bench: Bench) -> None:
    subscription, keeper = bench.subscribe(), bench.subscribe("keeper")
    consumer = bench.join(subscription, size=3)
    bench.send(*"12345")
    acknowledge(consumer, consumer.receive(2))
    subscription.seek(WireId(bench.log.ledger, 1))
    assert texts(consumer.receive(10)) == ["2", "3", "4", "5"]
    subscription.seek(StartPosition.LATEST)
    assert (consumer.receive(10), subscription.size, keeper.size) == ([], 0, 5)
    subscription.seek(StartPosition.EARLIEST)
    acknowledge(consumer, consumer.receive(10))
    assert [record.references for record in bench.log.records.values()] == [1] * 5


def test_a_subscription_that_is_not_durable_goes_with_its_last_consumer(bench: Bench) -> None:
    subscription = bench.broker.subscribe(bench.log, "nd", False, StartPosition.LATEST)
    first, second = bench.join(subscription), bench.join(subscription)
    bench.send("x")
    subscription.remove(first)
    assert "nd" in subscriptions_of(bench.log)
    subscription.remove(second)
    assert (subscriptions_of(bench.log), bench.broker.used) == ({}, 0)


def test_what_is_not_acknowledged_counts_wherever_it_is(bench: Bench) -> None:
    """In the backlog, with a consumer, given back, or acknowledged in a transaction that is open."""
    subscription = bench.subscribe()
    consumer = bench.join(subscription, size=1)
    bench.send(*"abcdef")
    in_transaction, given_back, _, acknowledged = consumer.receive(4)
    unit = MemoryTransaction(bench.broker, 60)
    unit.acknowledge(subscription, in_transaction.number, consumer.held.pop(in_transaction.number))
    subscription.give_back(consumer, given_back.number, bench.clock.steady() + 60, counted=True)
    acknowledge(consumer, [acknowledged])
    assert (subscription.pending(), subscription.size) == ([0, 1, 2, 4, 5], 5)
    subscription.seek(StartPosition.EARLIEST)
    assert (subscription.pending(), subscription.size) == ([0, 1, 2, 4, 5], 5)
    again = [record for _ in range(5) for record in consumer.receive(1)]
    assert [record.redelivery_count for record in again] == [0] * 5
    unit.commit_now()
    bench.broker.remove(subscription, None)
    assert bench.broker.used == 0


def test_seek_serves_all_consumers_but_those_that_were_stopped(bench: Bench) -> None:
    subscription = bench.subscribe()
    bench.subscribe("keeper")
    one, two, stopped = (bench.join(subscription) for _ in range(3))
    subscription.stop(stopped)
    bench.send(*"1234")
    subscription.seek(StartPosition.EARLIEST)
    assert [len(consumer.receive(9)) for consumer in (one, two, stopped)] == [2, 2, 0]
    subscription.resume(stopped)
    bench.send(*"567")
    assert [len(consumer.receive(9)) for consumer in (one, two, stopped)] == [1, 1, 1]


def test_an_acknowledgement_by_another_consumer_makes_room(bench: Bench) -> None:
    subscription = bench.subscribe()
    first, second = bench.join(subscription, size=1), bench.join(subscription, size=1)
    bench.send(*"123")
    assert texts([*first.queue, *second.queue]) == ["1", "2"]
    acknowledge(first, [bench.log.records[1]])
    assert texts(second.queue) == ["3"]


def test_what_a_stopped_consumer_did_not_take_goes_to_others_at_once(bench: Bench) -> None:
    subscription = bench.subscribe()
    first, second = bench.join(subscription), bench.join(subscription)
    bench.send("1", "2")
    subscription.stop(first)
    assert sorted(texts(second.receive(9))) == ["1", "2"]


def test_an_exclusive_consumer_gets_what_it_gave_back_before_what_fills_its_queue(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, EXCLUSIVE, size=2)
    bench.send(*"1234")
    subscription.give_back(consumer, consumer.receive(1)[0].number, None, counted=True)
    subscription.dispatch()
    assert texts(consumer.receive(9)) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("late", ["acknowledged", "given back"])
def test_what_waits_for_redelivery_after_its_timeout_is_not_delivered_twice(bench: Bench, late: str) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, ack_timeout=10)
    bench.send("x")
    [record] = consumer.receive(1)
    bench.clock.advance(10)
    if late == "acknowledged":
        acknowledge(consumer, [record])
        assert (consumer.receive(9), subscription.size, bench.broker.used) == ([], 0, 0)
    else:
        subscription.give_back(consumer, record.number, None, counted=True)
        subscription.dispatch()
        assert [again.redelivery_count for again in consumer.receive(9)] == [1]


def test_what_was_set_aside_has_no_timeout_and_no_failure_when_its_consumer_leaves(bench: Bench) -> None:
    subscription = bench.subscribe()
    consumer = bench.join(subscription, ack_timeout=10)
    bench.send("x")
    [record] = consumer.receive(1)
    subscription.pass_event(consumer, record.number, E.SET_ASIDE)
    bench.clock.advance(60)
    assert (consumer.receive(1), consumer.unsettled) == ([], 1)
    subscription.remove(consumer)
    assert [again.redelivery_count for again in bench.join(subscription).receive(1)] == [0]


def reachable(state: RecordState) -> set[RecordState]:
    """The states into which the broker moves a record by itself: it sends it, its delay ends, its consumer changes."""
    found = {state}
    for event in (E.STOPPED, E.DUE, E.ARRIVED) * 2:
        found |= {TABLE[each, event].state for each in found}
    return found


class Machine(RuleBasedStateMachine):
    """Any order of calls: each record is in one place, the one that the table names, memory is exact, nothing is lost
    and nothing is delivered twice without having been given back."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.subscription = self.bench.subscribe()
        self.keeper = self.bench.subscribe("keeper")
        self.consumers: list[Consumer] = []
        self.counts: dict[int, int] = {}
        self.states: dict[int, RecordState] = {}
        self.units: list[MemoryTransaction] = []
        self.type = SHARED
        self.sent = 0

    @rule(key=st.sampled_from([None, "a", "b", "c"]), delay=st.sampled_from([0, 0, 0, 5]))
    def send(self, key: str | None, delay: int) -> None:
        due = None if delay == 0 else int((self.bench.clock.now() + delay) * 1000)
        self.bench.send(str(self.sent), key=key, deliver_at=due)
        self.states[self.sent] = S.RETURNED if delay else S.UNKNOWN  # it waits with those returned with a delay
        self.sent += 1

    @rule(type_=st.sampled_from(list(SubscriptionType)), size=st.integers(1, 4))
    def join(self, type_: SubscriptionType, size: int) -> None:
        if not self.consumers:
            self.type = type_
        if self.consumers and self.type is EXCLUSIVE:
            return
        consumer = self.bench.join(self.subscription, self.type, size)
        self.consumers.append(consumer)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), limit=st.integers(1, 5))
    def take(self, data: st.DataObject, limit: int) -> None:
        consumer = data.draw(st.sampled_from(self.consumers))
        records = consumer.receive(limit)
        cast(FakePort, consumer.port).armed = len(records) < limit
        for record in records:
            assert record.redelivery_count == self.counts.get(record.number, 0)
            assert S.QUEUED in reachable(self.states[record.number])  # it can have been sent in this call
            self.states[record.number] = advance(S.QUEUED, E.HANDED_OUT).state

    def pass_event(self, number: int, event: RecordEvent) -> None:
        """Note what the table says; an acknowledged record is gone."""
        step = advance(self.states[number], event)
        self.states[number] = step.state
        if step.counted:
            self.counts[number] = self.counts.get(number, 0) + 1
        if step.state in (S.ACKED, S.SETTLED):
            del self.states[number]

    def _some(self, data: st.DataObject) -> tuple[Consumer, int] | None:
        pairs = [(consumer, number) for consumer in self.consumers for number in [*consumer.held, *consumer.aside]]
        return data.draw(st.sampled_from(pairs)) if pairs else None

    @precondition(lambda self: self.consumers and self.states)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        """Also late: by an earlier delivery, of a record that can be anywhere now."""
        number = data.draw(st.sampled_from(sorted(self.states)))
        acknowledge(data.draw(st.sampled_from(self.consumers)), [self.bench.log.records[number]])
        self.pass_event(number, E.ACKNOWLEDGED)

    @rule(data=st.data())
    def set_aside(self, data: st.DataObject) -> None:
        some = self._some(data)
        if some is not None:
            self.subscription.pass_event(*some, E.SET_ASIDE)
            self.pass_event(some[1], E.SET_ASIDE)

    @rule(data=st.data(), delay=st.sampled_from([None, 3]), counted=st.booleans())
    def give_back(self, data: st.DataObject, delay: int | None, counted: bool) -> None:
        some = self._some(data)
        if some is not None:
            due = None if delay is None else self.bench.clock.now() + delay
            self.pass_event(some[1], E.RETURNED if counted else E.RETURNED_UNSEEN)
            self.subscription.give_back(*some, due, counted)
            self.subscription.dispatch()

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        consumer = data.draw(st.sampled_from(self.consumers))
        self.consumers.remove(consumer)
        for number in [*consumer.held, *consumer.aside]:
            self.pass_event(number, E.CLOSED)
        self.subscription.remove(consumer)

    @rule(data=st.data())
    def acknowledge_in_transaction(self, data: st.DataObject) -> None:
        some = self._some(data)
        if some is not None and some[1] in some[0].held:
            if len(self.units) < 2:
                self.units.append(MemoryTransaction(self.bench.broker, 3600))
            unit = data.draw(st.sampled_from(self.units))
            assert unit.acknowledge(self.subscription, some[1], some[0].held.pop(some[1])) is None
            self.pass_event(some[1], E.ACKNOWLEDGED_IN)

    @precondition(lambda self: self.units)
    @rule(data=st.data(), commit=st.booleans())
    def end(self, data: st.DataObject, commit: bool) -> None:
        unit = data.draw(st.sampled_from(self.units))
        self.units.remove(unit)
        for _, number in unit.acknowledged:
            self.pass_event(number, E.COMMITTED if commit else E.ABORTED)
        if commit:
            unit.commit_now()
        else:
            unit.abort_now()

    @rule(seconds=st.integers(0, 6))
    def wait(self, seconds: int) -> None:
        self.bench.clock.advance(seconds)

    @rule()
    def seek(self) -> None:
        self.subscription.seek(StartPosition.EARLIEST)
        self.states = dict.fromkeys(self.bench.log.records, S.UNKNOWN)
        self.counts.clear()

    @invariant()
    def each_record_is_in_one_place(self) -> None:
        found = [(record.number, S.UNKNOWN) for record in self.subscription.backlog]
        found += [(number, self.subscription.returned.state(number)) for number in self.subscription.returned.records]
        found += [(number, S.IN_TRANSACTION) for number in self.subscription.in_transaction]
        for consumer in self.consumers:
            found += [(record.number, S.QUEUED) for record in consumer.queue]
            found += [(number, S.HELD) for number in consumer.held] + [(number, S.ASIDE) for number in consumer.aside]
        assert sorted(number for number, _ in found) == sorted(self.states) == self.subscription.pending()
        assert self.subscription.size == len(self.states)
        for number, state in found:
            assert state in reachable(self.states[number])
            self.states[number] = state

    @invariant()
    def memory_is_exact(self) -> None:
        records = self.bench.log.records.values()
        assert self.bench.broker.used == sum(record.size for record in records)
        for record in records:
            assert record.references == 1 + (record.number in self.states)

    @invariant()
    def nobody_waits_without_need(self) -> None:
        if self.type is SubscriptionType.KEY_SHARED or not self.consumers:
            return
        active = [self.consumers[0]] if self.type is not SHARED else self.consumers
        if any(len(consumer.queue) < consumer.capacity for consumer in active):
            assert not self.subscription.backlog

    @invariant()
    def what_waits_in_a_queue_has_been_announced(self) -> None:
        assert not any(consumer.queue and consumer.port.armed for consumer in self.consumers)

    def teardown(self) -> None:
        for unit in self.units:
            unit.abort_now()
        for consumer in list(self.consumers):
            self.subscription.remove(consumer)
        self.bench.clock.advance(10)
        assert {record.number for record in self.bench.join(self.subscription, size=1000).receive(1000)} == set(
            self.states
        )


TestMachine: Any = Machine.TestCase  # unittest does not declare pytest's marks
TestMachine.pytestmark = [pytest.mark.slow]
TestMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
