"""``UnackedTracker``: each record that a receiver took is here until it is settled."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.pulsar.native.records.return_counts import ReturnCounts
from tests.kit.native_fakes import FakeMessage
from tests.kit.unacked import Desk, Letters, batch


async def test_a_record_is_counted_until_it_is_settled() -> None:
    desk = Desk(False)
    first, second, third, fourth = desk.admit(*batch())
    assert desk.tracker.count == 4 and desk.tracker.any_delivered
    desk.tracker.acknowledge([first, second])
    desk.tracker.give_back([third, fourth], 60, counted=True)
    assert desk.tracker.count == 2 and not desk.tracker.any_delivered


async def test_a_moved_subscription_forgets_its_records() -> None:
    desk = Desk(False)
    records = desk.admit(*batch())
    desk.tracker.acknowledge(records[:2])
    desk.tracker.give_back(records[2:3], 0.0, counted=True)
    desk.tracker.clear(bool)
    desk.native_consumer.discard()
    assert len(desk.admit(*batch())) == 4
    await anyio.sleep(0.02)
    assert desk.tracker.take(9) == []


@pytest.mark.parametrize(
    "forget", [lambda desk: desk.tracker.clear(bool), lambda desk: desk.admission.start_over(desk.native_consumer)]
)
async def test_what_was_read_again_is_forgotten(forget: Callable[[Desk], None]) -> None:
    """The subscription was moved, or is another one."""
    desk = Desk(True)
    desk.tracker.redeliver_reread(desk.native_consumer, batch())
    assert desk.tracker.unsettled_of(1, 0) == 4
    forget(desk)
    assert desk.tracker.unsettled_of(1, 0) == desk.tracker.count == 0


async def test_one_more_delivery_counts_for_what_the_application_has() -> None:
    desk = Desk(False)
    first, second, *_ = desk.admit(*batch())
    desk.tracker.give_back([second], 60, counted=True)
    foreign: Any = "foreign"
    desk.tracker.count_delivery([first, first, second, foreign])
    assert (first.redelivery_count, second.redelivery_count) == (2, 0)


async def test_a_dead_letter_is_acknowledged_once_it_is_stored_or_redelivered() -> None:
    letters: Any = Letters()
    desk = Desk(True, letters=letters)
    first, second = desk.admit(FakeMessage(0, count=2), FakeMessage(1, count=1))
    desk.tracker.give_back([first, second], 60, counted=True)
    assert letters.put_in == [(first, 3)]
    letters.ended[0](first, True)
    assert desk.consumer.acknowledged == [first.native]
    desk.tracker.give_back([second], 60, counted=True)  # it is given back already
    assert letters.put_in == [(first, 3)]


async def test_what_came_too_often_is_not_delivered() -> None:
    letters: Any = Letters()
    desk = Desk(True, letters=letters)
    records = desk.admit(FakeMessage(0, count=3), FakeMessage(1, count=2))
    assert desk.tracker.deliverable(records) == records[1:]
    assert letters.put_in == [(records[0], 3)]


async def test_without_a_policy_a_dead_letter_is_acknowledged() -> None:
    desk = Desk(True)
    [record] = desk.admit(FakeMessage(0))
    desk.tracker.dead_letter(record, {})
    assert desk.consumer.acknowledged == [record.native]


async def test_a_record_that_is_not_acknowledged_in_time_is_redelivered() -> None:
    desk = Desk(False, config=ConsumerConfig(ack_timeout=0.01))
    records = desk.tracker.deliverable(desk.admit(FakeMessage(0), FakeMessage(1)))
    desk.tracker.acknowledge(records[:1])
    again: list[PulsarRecord] = []
    with anyio.fail_after(20):
        while not again:
            await anyio.sleep(0.005)
            again = desk.tracker.take(9)
    assert [(one.record_key, one.redelivery_count) for one in again] == [(records[1].record_key, 1)]


async def test_the_timer_of_an_acknowledged_record_keeps_no_payload() -> None:
    desk = Desk(False, config=ConsumerConfig(ack_timeout=60.0))
    desk.tracker.acknowledge(desk.tracker.deliverable(desk.admit(FakeMessage(0))))
    gc.collect()
    assert [reference() for reference in desk.tracker._timeouts.take_all()] == [None]


async def test_a_copy_of_what_another_receiver_has_is_kept_back_and_given_back_later() -> None:
    counts = ReturnCounts()
    one, other = Desk(True, return_counts=counts), Desk(True, return_counts=counts)
    one.admit(*batch())
    counts.entry_returned(1, 0)
    copies = other.admit(*batch(count=1))
    assert other.tracker.deliverable(copies) == []
    assert other.tracker.count == 4 and not other.tracker.any_delivered


async def test_the_last_acknowledgement_is_known_until_it_is_sent() -> None:
    desk = Desk(True)
    assert desk.tracker.acks.last is None
    desk.tracker.acknowledge(desk.admit(FakeMessage(0)))
    last = desk.tracker.acks.last
    assert last is not None
    desk.tracker.acks.sent(last - 1)
    assert desk.tracker.acks.last == last
    desk.tracker.acks.sent(last)
    assert desk.tracker.acks.last is None


async def test_a_reopened_consumer_that_passed_acknowledgements_on_has_them_to_send() -> None:
    desk = Desk(True)
    desk.tracker.resume(0.0, acknowledged=False)
    assert desk.tracker.acks.last is None
    desk.tracker.resume(0.0, acknowledged=True)
    assert desk.tracker.acks.last is not None
