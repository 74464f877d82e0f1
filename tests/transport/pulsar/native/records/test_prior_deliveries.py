"""``PriorDeliveries``: what applications have from receivers that stopped."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from jmsaio.transport.pulsar.dead_letters import DeadLetters
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.pulsar.native.records import prior_deliveries
from jmsaio.transport.pulsar.native.records.prior_deliveries import PriorDeliveries
from tests.kit.native_fakes import FakeMessage, FakeNativeConsumer, make_record
from tests.kit.unacked import Desk, Letters


def had(known: PriorDeliveries, topic: str | None, subscription: str) -> set[int]:
    """Which of the first ten entries of ledger 1 have records that were delivered."""
    return {entry for entry in range(10) if any((1, entry) in some for some in known.entries(topic, subscription))}


def test_what_was_given_back_is_told_once() -> None:
    known, record = PriorDeliveries(), make_record(5, 1)
    known.add("s", [record], held=False)
    assert had(known, record.topic, "s") == {5}
    assert known.find("other", record) is None
    delivery = known.find("s", make_record(5, 1))
    assert delivery is not None and not delivery.held
    assert known.find("s", record) is None
    assert len(known) == 0


@pytest.mark.parametrize("acknowledged", [True, False])
def test_copies_wait_until_the_application_settles(acknowledged: bool) -> None:
    known, record, told = PriorDeliveries(), make_record(5), list[bool]()
    known.add("s", [record], held=True)
    for _ in range(2):
        delivery = known.find("s", make_record(5))
        assert delivery is not None and delivery.held
        delivery.copies[make_record(5)] = told.append
    known.settled("s", [make_record(6), record, record], acknowledged)
    assert told == [acknowledged] * 2
    delivery = known.find("s", record)
    assert (delivery is not None and delivery.acknowledged) is acknowledged


def test_what_was_acknowledged_is_known_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker may have sent it to others before; later somebody moved the subscription back."""
    known, record = PriorDeliveries(), make_record(5)
    known.add("s", [record], held=True)
    known.settled("s", [record], acknowledged=True)
    for _ in range(2):
        delivery = known.find("s", make_record(5))
        assert delivery is not None and delivery.acknowledged and not delivery.held
    monkeypatch.setattr(prior_deliveries, "IN_QUEUES", 0.0)
    assert known.find("s", record) is None
    assert len(known) == 0


def test_given_back_without_copies_is_remembered_for_the_next() -> None:
    known, record = PriorDeliveries(), make_record(5)
    known.add("s", [record], held=True)
    known.settled("s", [record], acknowledged=False)
    delivery = known.find("s", record)
    assert delivery is not None and not delivery.held


def test_another_record_at_the_same_place_is_not_known() -> None:
    known, record = PriorDeliveries(), make_record(5)
    known.add("s", [record], held=True)
    other = PulsarRecord(FakeMessage(5, published=99), FakeNativeConsumer(), 1, 0)  # type: ignore[arg-type]  # the part of a native consumer that it needs
    assert known.find("s", other) is None


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prior_deliveries, "ENTRIES", 3)
    monkeypatch.setattr(prior_deliveries, "SUBSCRIPTIONS", 2)
    known, native_consumer = PriorDeliveries(), FakeNativeConsumer()
    for name in "abc":
        known.add(name, [make_record(entry, native_consumer=native_consumer) for entry in range(5)], held=False)
    assert len(known) == 2
    assert [had(known, native_consumer.topic, name) for name in "abc"] == [set(), *[{2, 3, 4}] * 2]
    assert known.entries(None, "c") == []


def test_copies_still_wait_when_the_receiver_stops_once_more() -> None:
    known, record, told = PriorDeliveries(), make_record(5), list[bool]()
    known.add("s", [record], held=True)
    delivery = known.find("s", record)
    assert delivery is not None
    delivery.copies[make_record(5)] = told.append
    known.add("s", [record], held=True)
    assert told == []
    known.settled("s", [record], acknowledged=False)
    assert told == [False]


def test_what_was_moved_is_forgotten() -> None:
    """Copies are let go; settling what was had before says nothing of it any more."""
    known, told = PriorDeliveries(), list[bool]()
    native_consumers = [FakeNativeConsumer("a"), FakeNativeConsumer("b")]
    records = [make_record(5, native_consumer=native_consumer) for native_consumer in native_consumers]
    for name in ("s", "other"):
        known.add(name, records, held=True)
    delivery = known.find("s", records[0])
    assert delivery is not None
    delivery.copies[make_record(5)] = told.append
    known.forget("s", "a".__eq__)
    assert told == [False]
    known.settled("s", records[:1], acknowledged=True)
    assert told == [False]
    left = [
        (name, native_consumer.topic)
        for name in ("s", "other")
        for native_consumer in native_consumers
        if had(known, native_consumer.topic, name)
    ]
    assert left == [("s", "b"), ("other", "a"), ("other", "b")]


@pytest.mark.parametrize("limit", ["ENTRIES", "SUBSCRIPTIONS"])
def test_copies_of_what_is_forgotten_are_let_go(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """Nobody else would ever hand them out."""
    monkeypatch.setattr(prior_deliveries, limit, 1)
    known, record, told = PriorDeliveries(), make_record(5), list[bool]()
    known.add("s", [record], held=True)
    delivery = known.find("s", record)
    assert delivery is not None
    delivery.copies[make_record(5)] = told.append
    known.add("s" if limit == "ENTRIES" else "other", [make_record(6)], held=True)
    assert told == [False]


def test_what_was_given_back_is_known_to_other_transports() -> None:
    """Once; what the application still has, or acknowledged, is not."""
    shared = PriorDeliveries()
    one, other = PriorDeliveries(shared), PriorDeliveries(shared)
    one.add("s", [make_record(5)], held=False)
    one.add("s", [make_record(entry) for entry in (6, 7, 8)], held=True)
    one.settled("s", [make_record(6)], acknowledged=False)
    one.settled("s", [make_record(7)], acknowledged=True)
    records = [make_record(entry) for entry in (5, 6, 7, 8)]
    assert had(other, records[0].topic, "s") == {5, 6} and len(other) == 1
    assert had(one, records[0].topic, "s") == {5, 6, 7, 8}
    assert [other.find("s", record) is not None for record in records] == [True, True, False, False]
    assert [record.delivered for record in records] == [True, True, False, False]
    assert len(shared) == len(other) == 0 and len(one) == 1
    one.add("s", [make_record(9)], held=False)
    other.forget("s", lambda topic: True)
    assert len(shared) == 0


def test_entries_are_looked_up_where_other_threads_change_them() -> None:
    """Nothing is copied, and nothing iterates: that would fail while another connection gives something back."""
    shared = PriorDeliveries()
    one, other = PriorDeliveries(shared), PriorDeliveries(shared)
    one.add("s", [make_record(5)], held=True)
    other.add("s", [make_record(6)], held=False)
    delivered = one.entries(make_record().topic, "s")
    other.add("s", [make_record(7)], held=False)
    assert [any((1, entry) in some for some in delivered) for entry in (5, 6, 7, 8)] == [True, True, True, False]


def test_memory_of_all_subscriptions_together_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By records, however many a batch has; the oldest entries are forgotten first."""
    monkeypatch.setattr(prior_deliveries, "TOGETHER", 10)
    known = PriorDeliveries()
    for name in "abc":
        known.add(name, [make_record(entry, index) for entry in range(2) for index in range(2)], held=False)
    assert had(known, make_record().topic, "a") == {1}
    assert known.find("a", make_record(0, 0)) is None
    for name, entries in (("a", [1]), ("b", [0, 1]), ("c", [0, 1])):
        for entry in entries:
            for index in range(2):
                assert known.find(name, make_record(entry, index)) is not None
    assert (len(known), known._count) == (0, 0)


def pair(letters: DeadLetters | None = None) -> tuple[Desk, Desk]:
    """Two receivers of one subscription of one transport; the first may have dead letters."""
    prior = PriorDeliveries()
    return Desk(True, prior=prior, letters=letters), Desk(True, prior=prior)


def messages(count: int) -> list[FakeMessage]:
    return [FakeMessage(entry, count=count) for entry in range(3)]


def places(records: list[PulsarRecord]) -> list[int]:
    return [record.record_key[1] for record in records]


@pytest.mark.parametrize("acknowledged", [True, False])
async def test_a_copy_waits_for_the_application_of_the_receiver_that_stopped(acknowledged: bool) -> None:
    """It is acknowledged with the record, or delivered, marked, when that is given back."""
    one, other = pair()
    first, second, third = one.admit(*messages(0))
    one.tracker.stop(briefly=False)
    copies = messages(0)
    assert other.admit(*copies) == [] and other.tracker.count == 3
    one.handover.settled([first], acknowledged)
    assert other.consumer.acknowledged == (copies[:1] if acknowledged else [])
    assert places(other.tracker.take(9)) == ([] if acknowledged else [0])
    assert all(record.redelivery_count == 1 for record in other.unsettled.out)
    one.handover.settled([second, third], acknowledged=True)
    assert other.consumer.acknowledged == copies[0 if acknowledged else 1 :]


async def test_a_copy_is_gone_from_memory_once_it_is_acknowledged() -> None:
    one, other = pair()
    records = one.admit(*messages(0))
    one.tracker.stop(briefly=False)
    assert other.admit(*messages(0)) == []
    copies = [weakref.ref(record) for record in other.unsettled.out]
    one.tracker.acknowledge(records)
    gc.collect()
    assert [copy() for copy in copies] == [None, None, None]


async def test_what_was_acknowledged_after_the_stop_is_acknowledged_again_where_it_arrives() -> None:
    one, other = pair()
    records = one.admit(*messages(0))
    one.tracker.stop(briefly=False)
    one.tracker.acknowledge(records)
    copies = messages(0)
    assert other.admit(*copies) == []
    assert other.consumer.acknowledged == copies and other.tracker.count == 0


async def test_a_receiver_that_never_stopped_settles_for_itself_alone() -> None:
    one, other = pair()
    records = one.admit(*messages(0))
    one.tracker.stop(briefly=False)
    assert other.admit(*messages(0)) == []
    other.handover.settled(records, acknowledged=True)
    assert other.consumer.acknowledged == []


async def test_a_receiver_that_is_closed_lets_its_records_go_and_marks_them() -> None:
    one, other = pair()
    one.admit(*messages(0))
    one.tracker.close()
    one.tracker.leave()
    assert [record.redelivery_count for record in other.admit(*messages(0), FakeMessage(9))] == [1, 1, 1, 0]


async def test_closing_lets_the_copies_of_others_go() -> None:
    one, other = pair()
    one.admit(*messages(0))
    one.tracker.stop(briefly=False)
    assert other.admit(*messages(0)) == []
    one.tracker.close()
    one.tracker.leave()
    assert places(other.tracker.take(9)) == [0, 1, 2]


async def test_what_no_application_got_is_marked_only_if_it_was_delivered_before() -> None:
    one, other = pair()
    new, old = one.admit(FakeMessage(0), FakeMessage(1, count=2))
    one.tracker.give_back([new, old], 60, counted=False)
    one.tracker.stop(briefly=False)
    assert [record.redelivery_count for record in other.admit(FakeMessage(0), FakeMessage(1))] == [0, 1]


async def test_what_the_application_gave_back_before_the_stop_is_marked() -> None:
    one, other = pair()
    one.tracker.give_back(one.admit(FakeMessage(0)), 60, counted=True)
    one.tracker.stop(briefly=False)
    assert one.tracker.count == 0
    assert [record.redelivery_count for record in other.admit(FakeMessage(0))] == [1]


async def test_copies_are_kept_through_a_short_stop_and_given_up_in_a_long_one() -> None:
    one, other = pair()
    one.admit(*messages(0))
    one.tracker.stop(briefly=False)
    assert other.admit(*messages(0)) == []
    other.tracker.stop(briefly=True)
    assert other.tracker.count == 3
    other.tracker.stop(briefly=False)
    assert other.tracker.count == 0


async def test_a_released_copy_goes_back_when_its_keeper_stops_before_it_is_taken() -> None:
    """Else it would be taken for here when the broker redelivers it, and never be delivered."""
    one, other = pair()
    records = one.admit(*messages(0))
    one.tracker.stop(briefly=False)
    assert other.admit(*messages(0)) == []
    one.handover.settled(records, acknowledged=False)
    other.tracker.stop(briefly=False)
    assert other.tracker.take(9) == [] and other.tracker.count == 0
    assert [record.redelivery_count for record in other.admit(*messages(0))] == [1, 1, 1]


@pytest.mark.parametrize("stored", [True, False])
async def test_a_dead_letter_on_its_way_is_kept_from_others_when_its_receiver_stops(stored: bool) -> None:
    """It is acknowledged there once it is stored, or delivered when it could not be."""
    letters: Any = Letters()
    one, other = pair(letters)
    [record] = one.admit(FakeMessage(0, count=2))
    one.tracker.give_back([record], 0, counted=True)
    one.tracker.stop(briefly=False)
    copy = FakeMessage(0, count=3)
    assert other.admit(copy) == []
    letters.ended[0](record, stored)
    assert other.consumer.acknowledged == ([copy] if stored else [])
    if not stored:
        one.tracker.close()
        one.tracker.leave()
        assert places(other.tracker.take(9)) == [0]


async def test_a_record_set_aside_says_that_it_was_delivered_before() -> None:
    """Whether it is given back, or goes back with the end of the native consumers."""
    one, other = pair()
    aside = one.tracker.set_aside(one.admit(*messages(2)))
    assert [record.redelivery_count for record in one.unsettled.give_back(aside[:1])] == [2]
    one.tracker.stop(briefly=False)
    assert one.unsettled.give_back(aside) == []
    assert [record.redelivery_count for record in other.admit(FakeMessage(1), FakeMessage(2))] == [1, 1]
