"""``Admission``: what comes again is compared with what is here and what was acknowledged."""

from __future__ import annotations

import anyio
import pytest

from jmsaio.transport.pulsar.native.records.ack_grouping import HOLD
from jmsaio.transport.pulsar.native.records.received import HELD, RETURNED
from tests.kit.native_fakes import FakeMessage
from tests.kit.unacked import Desk, batch, whole_batch


@pytest.mark.parametrize(("shared", "count"), [(True, 1), (True, 0), (False, 0)])
async def test_an_entry_that_comes_again(shared: bool, count: int) -> None:
    """Counted by the broker, or after a reconnection, when the count is 0 and the order steps back."""
    desk = Desk(shared)
    acknowledged, held, given_back, gone = desk.admit(*batch())
    desk.acks.acknowledge([acknowledged])
    desk.unsettled.give_back([given_back, gone])
    assert desk.unsettled.remove([gone]) == [gone]
    copies = batch(count)
    again = desk.admit(*copies)
    assert [one.record_key for one in again] == [gone.record_key]
    assert desk.consumer.acknowledged == [acknowledged.native, copies[0]]
    desk.acks.acknowledge([held])
    assert desk.consumer.acknowledged[2:] == [held.native, copies[1]]
    assert desk.unsettled.out == {given_back: RETURNED, again[0]: HELD}


async def test_new_records_after_the_repeated_ones() -> None:
    desk = Desk(True)
    desk.admit(*batch(entry=0), *batch(entry=1))
    assert desk.admit(*batch(entry=0), *batch(entry=1), FakeMessage(2, 0)) != []
    assert [one.record_key for one in desk.admit(FakeMessage(2, 1), FakeMessage(3, 0))] == [(1, 2, 1), (1, 3, 0)]


async def test_an_entry_that_comes_twice_in_one_look_is_delivered_once() -> None:
    desk = Desk(True)
    desk.admit(FakeMessage(0))
    records = desk.admit(FakeMessage(0), FakeMessage(1), FakeMessage(1))
    assert [one.record_key for one in records] == [(1, 1, -1)]


async def test_a_batch_that_came_again_in_the_middle() -> None:
    """pulsar-client connected anew and dropped what it had: the entry comes from its beginning."""
    desk = Desk(False)
    records = desk.admit(*whole_batch()[:3])
    desk.acks.acknowledge(records[:1])
    copies = whole_batch()
    records += desk.admit(*copies)
    assert [one.record_key[2] for one in records] == [0, 1, 2, 3]
    desk.acks.acknowledge(records[1:])
    assert set(await desk.until_acknowledged(7)) == {one.native for one in records} | set(copies)


async def test_what_comes_again_behind_a_new_record_is_marked() -> None:
    """The armed receive holds a new record when the link is lost; behind it comes what was acknowledged."""
    desk = Desk(False)
    desk.acks.acknowledge(desk.admit(*(FakeMessage(entry) for entry in range(10))))
    records = desk.admit(FakeMessage(10), *(FakeMessage(entry) for entry in range(10)), FakeMessage(11))
    assert [one.record_key[1] for one in records] == [10, *range(10), 11]
    assert [one.redelivery_count for one in records] == [0, *[1] * 10, 0]


@pytest.mark.parametrize("shared", [True, False])
async def test_a_replay_is_delivered_and_marked(shared: bool) -> None:
    """Complete entries come again only when their acknowledgements were lost or somebody moved the subscription."""
    desk = Desk(shared)
    desk.acks.acknowledge(desk.admit(*whole_batch(0), FakeMessage(1), *whole_batch(2), *whole_batch(3))[:10])
    again = desk.admit(*whole_batch(0), FakeMessage(1), *whole_batch(2), *whole_batch(3), FakeMessage(4))
    places = [*((1, 0, index) for index in range(4)), (1, 1, -1), *((1, 2, index) for index in range(4)), (1, 3, 0)]
    assert [one.record_key for one in again] == [*places, (1, 4, -1)]  # the other three are out
    assert all(one.redelivery_count == 1 for one in again[:-1])
    assert again[-1].redelivery_count == 0


@pytest.mark.parametrize("topic", ["non-persistent://public/default/t"])
async def test_ids_that_are_all_the_same(topic: str) -> None:
    desk = Desk(True)
    desk.receive_from(topic)
    for _ in range(3):
        records = desk.admit(FakeMessage(0))
        assert len(records) == 1
        desk.acks.acknowledge(records)
        assert len(desk.admit(*whole_batch(), *whole_batch())) == 8


@pytest.mark.parametrize("shared", [True, False])
async def test_a_broker_that_lost_its_data_delivers_the_same_ids(shared: bool) -> None:
    """Other records at the same places: all are delivered, and those that were out acknowledge none of them."""
    desk = Desk(shared)
    old = desk.admit(*whole_batch(0), *whole_batch(1), FakeMessage(2))
    desk.acks.acknowledge(old[:6])
    others = [FakeMessage(entry, index, batch_size=4, published=2) for entry in (0, 1) for index in range(4)]
    new = desk.admit(*others, FakeMessage(2, published=2))
    assert [one.native for one in new[:8]] == others
    assert len(new) == 9
    told = len(desk.consumer.acknowledged)
    desk.acks.acknowledge(old[6:])
    await anyio.sleep(4 * HOLD)
    assert len(desk.consumer.acknowledged) == told
    desk.acks.acknowledge(new)
    assert len(desk.admit(FakeMessage(3, published=3))) == 1


async def test_another_record_at_the_place_of_one_that_was_set_aside_is_new() -> None:
    """The broker lost its data: ids begin anew."""
    desk = Desk(True)
    aside = desk.unsettled.set_aside(desk.admit(*batch()))
    foreign = FakeMessage(0, 0, 1)
    foreign.published += 1
    assert len(desk.admit(foreign)) == 1
    assert desk.unsettled.give_back(aside) == []


@pytest.mark.parametrize("shared", [True, False])
async def test_an_entry_that_was_read_again(shared: bool) -> None:
    """The broker counts it as acknowledged: nothing of it goes there any more, and what is known comes not twice."""
    desk = Desk(shared)
    unsettled, acks = desk.unsettled, desk.acks
    acknowledged, held, aside, gone = desk.admit(*batch())
    acks.acknowledge([acknowledged])
    [place] = unsettled.set_aside([aside])
    unsettled.give_back([gone])
    unsettled.remove([gone])
    copies = batch()
    [again] = desk.admission.admit_reread(desk.native_consumer, [*copies])
    assert (again.record_key, again.redelivery_count) == (gone.record_key, 1)
    [rested] = unsettled.reread - {held, again}
    assert rested.record_key == aside.record_key
    acks.acknowledge([held])
    acks.acknowledge([again], given_back=True)
    assert desk.consumer.acknowledged == [acknowledged.native]
    unsettled.drop_aside()  # the broker does not have it any more
    assert unsettled.give_back([place]) == [rested]
    [another] = unsettled.redeliver(unsettled.remove([rested]), uncounted=())
    assert unsettled.reread == {another}
    assert (another.payload, another.redelivery_count) == (b"x", 1)
    acks.acknowledge([another], given_back=True)
    assert not unsettled.reread and not unsettled.out and desk.consumer.acknowledged == [acknowledged.native]
