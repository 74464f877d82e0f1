"""``NackTracker``: what was given back is redelivered from here in order, or goes to the broker by entries."""

from __future__ import annotations

import time

import anyio
import anyio.lowlevel
import pytest

from jmsaio.model.wire import DELIVERY_TIME
from jmsaio.transport.pulsar.native.record import PulsarRecord
from tests.kit.native_fakes import FakeMessage
from tests.kit.unacked import Desk, batch, whole_batch


def places(records: list[PulsarRecord]) -> list[int]:
    return [record.record_key[2] for record in records]


async def taken(desk: Desk, count: int) -> list[PulsarRecord]:
    """What is redelivered from here, once it is so many."""
    found: list[PulsarRecord] = []
    with anyio.fail_after(20):
        while len(found) < count:
            await anyio.sleep(0.005)
            found += desk.tracker.take(9)
    return found


async def returned(desk: Desk, count: int) -> list[object]:
    """What went to the broker, once it is so many."""
    with anyio.fail_after(20):
        while len(desk.consumer.returned) < count:
            await anyio.sleep(0.005)
    return desk.consumer.returned


async def test_an_ordered_subscription_redelivers_in_the_order_of_the_records() -> None:
    desk = Desk(False)
    records = desk.admit(*batch())
    desk.nacks.add(desk.unsettled.give_back(records[2:]), 0.0, counted=True)
    desk.nacks.add(desk.unsettled.give_back(records[:2]), 0.0, counted=True)
    again = await taken(desk, 4)
    assert places(again) == [0, 1, 2, 3] and desk.consumer.returned == []
    assert {one.redelivery_count for one in again} == {1}
    assert desk.unsettled.out == dict.fromkeys(again, False)
    assert desk.woken > 0


async def test_whoever_is_woken_is_woken_in_a_turn_of_the_loop() -> None:
    """He may receive at once, and records may be redelivered in the middle of another call."""
    desk = Desk(False)
    desk.nacks.redeliver(desk.unsettled.give_back(desk.admit(*batch())))
    assert desk.woken == 0
    await anyio.lowlevel.checkpoint()
    assert desk.woken == 1


async def test_what_no_application_had_is_not_counted() -> None:
    desk = Desk(False)
    desk.nacks.add(desk.unsettled.give_back(desk.admit(*batch())), 0.0, counted=False)
    assert {one.redelivery_count for one in await taken(desk, 4)} == {0}
    assert not desk.nacks.unseen


async def test_a_shared_subscription_gives_each_entry_back_once() -> None:
    desk = Desk(True)
    records = desk.admit(*batch(), *batch(entry=1))
    desk.nacks.add(desk.unsettled.give_back(records), 0.0, counted=True)
    assert await returned(desk, 2) == [records[0].native, records[4].native]
    assert desk.tracker.count == 0 and desk.tracker.take(9) == []


async def test_acknowledgements_reach_the_broker_before_their_entry_goes_back() -> None:
    desk = Desk(True)
    acknowledged, given_back, held, other = desk.admit(*whole_batch())
    desk.acks.acknowledge([acknowledged])
    desk.nacks.add(desk.unsettled.give_back([given_back]), 0.0, counted=True)
    assert await returned(desk, 1) == [given_back.native]
    assert desk.consumer.acknowledged == [acknowledged.native]
    copies = whole_batch(count=1)
    [again] = desk.admit(*copies)
    assert again.record_key == given_back.record_key
    assert desk.consumer.acknowledged[1:] == [copies[0]]
    desk.acks.acknowledge([again, held, other])
    passed = await desk.until_acknowledged(7)  # each by itself, and the copies of those that were out
    assert set(passed[2:]) == {again.native, held.native, other.native, copies[2], copies[3]}


async def test_what_was_set_aside_goes_back_by_its_place() -> None:
    desk = Desk(True)
    aside = desk.unsettled.set_aside(desk.admit(FakeMessage(7)))
    desk.nacks.add(desk.unsettled.give_back(aside), 0.0, counted=False)
    [place] = await returned(desk, 1)
    assert place == FakeMessage(7).message_id()


async def test_a_delayed_record_waits_here_for_its_time() -> None:
    desk = Desk(False)
    due = str(int(time.time() * 1000) + 100)
    records = desk.admit(FakeMessage(0, values={DELIVERY_TIME: due}), FakeMessage(1))
    assert desk.tracker.deliverable(records) == records[1:]
    assert desk.tracker.take(9) == []
    [late] = await taken(desk, 1)
    assert (late.record_key, late.redelivery_count) == (records[0].record_key, 0)


@pytest.mark.parametrize("forget", ["seek", "ids start over"])
async def test_room_for_delayed_records_wakes_though_none_is_delivered(forget: str) -> None:
    """Receiving may pause for want of room, and then nothing else wakes."""
    desk = Desk(False)
    due = str(int(time.time() * 1000) + 100)
    assert desk.tracker.deliverable(desk.admit(FakeMessage(0, values={DELIVERY_TIME: due}))) == []
    assert desk.tracker.room(20_000) < 10_000
    if forget == "seek":
        desk.tracker.clear(bool)
    else:
        desk.admission.start_over(desk.native_consumer)
    with anyio.fail_after(20):
        while not desk.woken:
            await anyio.sleep(0.005)
    assert desk.tracker.room(20_000) == 10_000 and not desk.nacks.unseen


@pytest.mark.parametrize("shared", [True, False])
async def test_what_was_read_again_is_redelivered_from_here(shared: bool) -> None:
    """The broker has it no more."""
    desk = Desk(shared)
    desk.tracker.redeliver_reread(desk.native_consumer, batch())
    again = desk.tracker.take(9)
    desk.nacks.add(desk.unsettled.give_back(again), 0.0, counted=True)
    assert places(await taken(desk, 4)) == [0, 1, 2, 3]
    assert desk.consumer.returned == []


async def test_what_was_read_again_comes_at_once_when_the_native_consumers_stop() -> None:
    desk = Desk(True)
    desk.tracker.redeliver_reread(desk.native_consumer, batch())
    desk.tracker.give_back(desk.tracker.take(2), 60, counted=True)
    assert desk.nacks.stop() == ([], [])
    assert places(desk.tracker.take(9)) == [0, 1, 2, 3]


async def test_nothing_is_redelivered_after_the_end() -> None:
    desk = Desk(False)
    records = desk.admit(*batch())
    desk.nacks.add(desk.unsettled.give_back(records), 0.0, counted=True)
    desk.nacks.close()
    desk.nacks.retry(records[0], 0.0)
    desk.nacks.redeliver(records)
    await anyio.sleep(0.02)
    assert desk.tracker.take(9) == [] and desk.woken == 0
