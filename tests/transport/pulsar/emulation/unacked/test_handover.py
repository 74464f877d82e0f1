"""``Handover``: what other receivers of the subscription have to know when one stops or is closed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from jmsaio.transport.pulsar.emulation.dead_letters import DeadLetters
from jmsaio.transport.pulsar.emulation.unacked.prior_deliveries import PriorDeliveries
from jmsaio.transport.pulsar.native.record import PulsarRecord
from tests.kit.native_fakes import FakeMessage
from tests.kit.unacked import Desk, Letters


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
