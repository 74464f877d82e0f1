"""``UnackedTracker``: what comes again is compared with what is out and what was acknowledged."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable

import _pulsar
import anyio
import pytest

from jmsaio.errors import ObjectClosedError
from jmsaio.transport.pulsar.emulation.unacked_tracker import HOLD, UnackedTracker
from jmsaio.transport.pulsar.native.bridge import Bridge
from jmsaio.transport.pulsar.native.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.record import PulsarRecord
from tests.kit.native_fakes import FakeConsumer, FakeMessage


class Desk:
    def __init__(self, shared: bool) -> None:
        self.consumer = consumer = FakeConsumer()
        self.native_consumer = NativeConsumer(
            Bridge(), consumer, consumer.receive_async, consumer.receive, "t", "r", lambda: None
        )
        self.unacked = UnackedTracker(self.native_consumer._bridge, shared)

    def admit(self, *messages: FakeMessage) -> list[PulsarRecord]:
        taken: list[PulsarRecord] = []
        self.unacked.admit(self.native_consumer, list(messages), taken)
        return taken


def batch(count: int = 0, entry: int = 0) -> list[FakeMessage]:
    """Four records of one entry whose number of records is not told: each is acknowledged by itself."""
    return [FakeMessage(entry, index, count, b"x") for index in range(4)]


def whole_batch(entry: int = 0, count: int = 0) -> list[FakeMessage]:
    return [FakeMessage(entry, index, count, batch_size=4) for index in range(4)]


@pytest.mark.parametrize(("shared", "count"), [(True, 1), (True, 0), (False, 0)])
async def test_an_entry_that_comes_again(shared: bool, count: int) -> None:
    """Counted by the broker, or after a reconnection, when the count is 0 and the order steps back."""
    desk = Desk(shared)
    acknowledged, held, given_back, gone = desk.admit(*batch())
    desk.unacked.acknowledge([acknowledged])
    desk.unacked.turn_back([given_back, gone])
    assert desk.unacked.dismiss([gone]) == [gone]
    copies = batch(count)
    again = desk.admit(*copies)
    assert [one.place for one in again] == [gone.place]
    assert desk.consumer.acknowledged == [acknowledged.native, copies[0]]
    desk.unacked.acknowledge([held])
    assert desk.consumer.acknowledged[2:] == [held.native, copies[1]]
    assert desk.unacked.out == {given_back: True, again[0]: False}


async def test_only_what_is_out_is_acknowledged() -> None:
    desk = Desk(True)
    records = desk.admit(*batch())
    desk.unacked.acknowledge([records[0], records[0], "foreign"])
    desk.unacked.turn_back(records[1:2])
    desk.unacked.acknowledge(records[:2])
    assert desk.consumer.acknowledged == [records[0].native]
    desk.unacked.acknowledge(records[1:2], waiting=True)
    assert desk.consumer.acknowledged == [records[0].native, records[1].native]
    assert desk.unacked.turn_back([records[0], records[2], "foreign"]) == [records[2]]
    assert desk.unacked.dismiss([records[3], records[2]]) == [records[2]]


async def test_new_records_after_the_repeated_ones() -> None:
    desk = Desk(True)
    desk.admit(*batch(entry=0), *batch(entry=1))
    assert desk.admit(*batch(entry=0), *batch(entry=1), FakeMessage(2, 0)) != []
    assert [one.place for one in desk.admit(FakeMessage(2, 1), FakeMessage(3, 0))] == [(1, 2, 1), (1, 3, 0)]


async def test_after_clear_acknowledged_records_are_admitted_again() -> None:
    desk = Desk(False)
    records = desk.admit(*batch())
    desk.unacked.acknowledge(records[:2])
    desk.unacked.clear()
    desk.native_consumer.discard()
    assert len(desk.admit(*batch())) == 4


WHOLE = _pulsar.MessageId(-1, 1, 0, -1)


async def until_told(desk: Desk, count: int) -> list[object]:
    with anyio.fail_after(20):
        while len(desk.consumer.acknowledged) < count:
            await anyio.sleep(0.005)
    return desk.consumer.acknowledged


async def test_a_batch_is_acknowledged_with_one_call() -> None:
    desk = Desk(True)
    records = desk.admit(*whole_batch())
    desk.unacked.acknowledge(records[2:])
    desk.unacked.acknowledge([*records[:2], *records])
    assert desk.consumer.acknowledged == [WHOLE]
    await anyio.sleep(4 * HOLD)
    desk.unacked.tell_all()
    assert desk.consumer.acknowledged == [WHOLE]


async def test_a_part_is_told_soon_and_the_rest_with_the_whole() -> None:
    desk = Desk(True)
    records = desk.admit(*whole_batch())
    desk.unacked.acknowledge(records[:2])
    assert desk.consumer.acknowledged == []
    parts = [records[0].native, records[1].native]
    assert await until_told(desk, 2) == parts
    desk.unacked.acknowledge(records[2:])
    assert desk.consumer.acknowledged == [*parts, WHOLE]


async def test_batches_in_pieces_and_several_at_once() -> None:
    desk = Desk(False)
    messages = [*whole_batch(0), *whole_batch(1), FakeMessage(2), *whole_batch(3)]
    records = [record for start in range(0, 13, 3) for record in desk.admit(*messages[start : start + 3])]
    assert len(records) == 13
    desk.unacked.acknowledge(records[::-1])
    assert desk.consumer.acknowledged == [
        _pulsar.MessageId(-1, 1, 3, -1), records[8].native, _pulsar.MessageId(-1, 1, 1, -1), WHOLE
    ]  # fmt: skip


async def test_what_waits_is_told_before_an_entry_goes_back() -> None:
    desk = Desk(True)
    acknowledged, given_back, held, other = desk.admit(*whole_batch())
    desk.unacked.acknowledge([acknowledged])
    desk.unacked.turn_back([given_back])
    assert desk.consumer.acknowledged == []
    desk.unacked.dismiss([given_back])
    assert desk.consumer.acknowledged == [acknowledged.native]
    copies = whole_batch(count=1)
    [again] = desk.admit(*copies)
    assert again.place == given_back.place
    assert desk.consumer.acknowledged[1:] == [copies[0]]
    desk.unacked.acknowledge([again, held, other])
    told = await until_told(desk, 7)  # each by itself, and the copies of those that were out
    assert set(told[2:]) == {again.native, held.native, other.native, copies[2], copies[3]}


async def test_a_batch_that_came_again_in_the_middle() -> None:
    """pulsar-client connected anew and dropped what it had: the entry comes from its beginning."""
    desk = Desk(False)
    records = desk.admit(*whole_batch()[:3])
    desk.unacked.acknowledge(records[:1])
    copies = whole_batch()
    records += desk.admit(*copies)
    assert [one.place[2] for one in records] == [0, 1, 2, 3]
    desk.unacked.acknowledge(records[1:])
    assert set(await until_told(desk, 7)) == {one.native for one in records} | set(copies)


async def test_a_pattern_acknowledges_by_message() -> None:
    """Its topics are mixed, and pulsar-client finds the topic's consumer by the message."""
    desk = Desk(True)
    desk.native_consumer.topic = None
    records = desk.admit(*whole_batch())
    desk.unacked.acknowledge(records)
    assert desk.consumer.acknowledged == [record.native for record in records]


async def test_the_same_record_again_counts_once_for_its_batch() -> None:
    desk = Desk(False)
    first, *others = desk.admit(*whole_batch())
    desk.unacked.turn_back([first])
    desk.unacked.dismiss([first])
    again = first.again(counted=True)
    desk.unacked.out[again] = False
    desk.unacked.acknowledge([first, again, again, *others[:2]])
    assert desk.consumer.acknowledged == []
    desk.unacked.acknowledge(others)
    assert desk.consumer.acknowledged == [WHOLE]


async def test_clear_tells_nothing_of_the_old_place() -> None:
    desk = Desk(False)
    desk.unacked.acknowledge(desk.admit(*whole_batch())[:1])
    desk.unacked.clear()
    await anyio.sleep(4 * HOLD)
    assert desk.consumer.acknowledged == []


async def test_a_closed_transport_is_told_nothing() -> None:
    desk = Desk(False)
    desk.unacked.acknowledge(desk.admit(*whole_batch())[:1])
    desk.native_consumer._bridge.failure = (ObjectClosedError, "closed")
    await anyio.sleep(4 * HOLD)
    assert desk.consumer.acknowledged == []


async def test_the_time_when_the_broker_was_last_told_is_noted() -> None:
    desk, clock = Desk(True), asyncio.get_running_loop().time
    assert desk.unacked.told_at is None
    desk.unacked.acknowledge(desk.admit(*whole_batch())[:1])
    before = clock()
    desk.unacked.tell_all()
    assert desk.unacked.told_at is not None and desk.unacked.told_at >= before


async def test_what_comes_again_behind_a_new_record_is_marked() -> None:
    """The armed receive holds a new record when the link is lost; behind it comes what was acknowledged."""
    desk = Desk(False)
    desk.unacked.acknowledge(desk.admit(*(FakeMessage(entry) for entry in range(10))))
    records = desk.admit(FakeMessage(10), *(FakeMessage(entry) for entry in range(10)), FakeMessage(11))
    assert [one.place[1] for one in records] == [10, *range(10), 11]
    assert [one.redelivery_count for one in records] == [0, *[1] * 10, 0]


@pytest.mark.parametrize("shared", [True, False])
async def test_a_replay_is_delivered_and_marked(shared: bool) -> None:
    """Complete entries come again only when their acknowledgements were lost or somebody moved the subscription."""
    desk = Desk(shared)
    desk.unacked.acknowledge(desk.admit(*whole_batch(0), FakeMessage(1), *whole_batch(2), *whole_batch(3))[:10])
    again = desk.admit(*whole_batch(0), FakeMessage(1), *whole_batch(2), *whole_batch(3), FakeMessage(4))
    places = [*((1, 0, index) for index in range(4)), (1, 1, -1), *((1, 2, index) for index in range(4)), (1, 3, 0)]
    assert [one.place for one in again] == [*places, (1, 4, -1)]  # the other three are out
    assert all(one.redelivery_count == 1 for one in again[:9])
    assert again[-1].redelivery_count == 0


@pytest.mark.parametrize("topic", ["non-persistent://public/default/t"])
async def test_ids_that_are_all_the_same(topic: str) -> None:
    desk = Desk(True)
    native = desk.consumer
    desk.native_consumer = NativeConsumer(
        desk.native_consumer._bridge, native, native.receive_async, native.receive, topic, "r", lambda: None
    )
    for _ in range(3):
        records = desk.admit(FakeMessage(0))
        assert len(records) == 1
        desk.unacked.acknowledge(records)
        assert len(desk.admit(*whole_batch(), *whole_batch())) == 8


@pytest.mark.parametrize("shared", [True, False])
async def test_a_broker_that_lost_its_data_delivers_the_same_ids(shared: bool) -> None:
    """Other records at the same places: all are delivered, and those that were out acknowledge none of them."""
    desk = Desk(shared)
    old = desk.admit(*whole_batch(0), *whole_batch(1), FakeMessage(2))
    desk.unacked.acknowledge(old[:6])
    others = [FakeMessage(entry, index, batch_size=4, published=2) for entry in (0, 1) for index in range(4)]
    new = desk.admit(*others, FakeMessage(2, published=2))
    assert [one.native for one in new[:8]] == others
    assert len(new) == 9
    told = len(desk.consumer.acknowledged)
    desk.unacked.acknowledge(old[6:])
    await anyio.sleep(4 * HOLD)
    assert len(desk.consumer.acknowledged) == told
    desk.unacked.acknowledge(new)
    assert len(desk.admit(FakeMessage(3, published=3))) == 1


async def test_what_is_acknowledged_keeps_no_payload() -> None:
    """Whether alone, as a batch, or one of a batch that is told by itself."""
    desk = Desk(True)
    messages = [*whole_batch(0), *(FakeMessage(entry) for entry in range(1, 9)), *whole_batch(9)]
    alive = [weakref.ref(message) for message in messages]
    desk.unacked.acknowledge(desk.admit(*messages)[:-1])
    desk.unacked.tell_all()
    held = messages[-1]
    del messages
    desk.consumer.acknowledged.clear()
    assert [one() for one in alive if one() is not None] == [held]


async def test_only_the_place_is_kept_of_what_was_set_aside() -> None:
    """It is known when it comes again, and is given back once."""
    desk = Desk(True)
    records = desk.admit(*batch(), *batch(entry=1))
    aside = desk.unacked.set_aside(records[:4])
    assert aside == [(1, 0, -1, index) for index in range(4)]
    gc.collect()
    assert not any(gc.is_tracked(place) for place in aside), "the garbage collector would look at each of very many"
    assert desk.unacked.out == dict.fromkeys(records[4:], False)
    desk.unacked.acknowledge(records[:1])
    assert desk.consumer.acknowledged == []
    assert desk.admit(*batch(count=1)) == []
    turned = desk.unacked.turn_back([*aside[:2], *aside[:2], records[2], (9, 9, 9, 9)])
    assert [(one.message_id, one.publish_time, one.native is None) for one in turned] == [
        (record.message_id, record.publish_time, True) for record in records[:2]
    ]
    assert desk.unacked.dismiss(turned) == turned
    assert [one.place for one in desk.admit(*batch(count=2))] == [record.place for record in records[:2]]
    desk.unacked.clear()
    assert desk.unacked.turn_back(aside) == []


async def test_what_was_set_aside_says_that_it_was_delivered_before() -> None:
    """It goes back, or the end of the native consumers gives it back."""
    desk = Desk(True)
    records = desk.admit(*batch(count=2))
    aside = desk.unacked.set_aside(records)
    assert [one.redelivery_count for one in desk.unacked.turn_back(aside[:2])] == [2, 2]
    desk.unacked.forget_aside()
    assert desk.unacked.turn_back(aside) == []
    found = [desk.unacked.handed.find(desk.unacked.name, record) is not None for record in records]
    assert found == [False, False, True, True]


async def test_another_record_at_the_place_of_one_that_was_set_aside_is_new() -> None:
    """The broker lost its data: ids begin anew."""
    desk = Desk(True)
    aside = desk.unacked.set_aside(desk.admit(*batch()))
    foreign = FakeMessage(0, 0, 1)
    foreign.published += 1
    assert len(desk.admit(foreign)) == 1
    assert desk.unacked.turn_back(aside) == []


async def test_records_that_a_place_does_not_tell_are_kept_themselves() -> None:
    """Those of topics that are not persistent, and those of a pattern."""
    desk = Desk(True)
    desk.native_consumer.persistent = False
    records = desk.admit(*batch())
    assert desk.unacked.set_aside(records) == records
    assert desk.unacked.turn_back(records) == records


@pytest.mark.parametrize("shared", [True, False])
async def test_an_entry_that_was_read_again(shared: bool) -> None:
    """The broker counts it as acknowledged: nothing of it goes there any more, and what is known comes not twice."""
    desk = Desk(shared)
    unacked = desk.unacked
    acknowledged, held, aside, gone = desk.admit(*batch())
    unacked.acknowledge([acknowledged])
    [place] = unacked.set_aside([aside])
    unacked.turn_back([gone])
    unacked.dismiss([gone])
    copies = batch()
    [again] = unacked.admit_again(desk.native_consumer, copies)
    assert (again.place, again.redelivery_count) == (gone.place, 1)
    [rested] = unacked.reread - {held, again}
    assert rested.place == aside.place
    unacked.acknowledge([held])
    unacked.acknowledge([again], waiting=True)
    assert desk.consumer.acknowledged == [acknowledged.native]
    unacked.forget_aside()  # the broker does not have it any more
    assert unacked.turn_back([place]) == [rested]
    [another] = unacked.again(unacked.dismiss([rested]), uncounted=())
    assert unacked.reread == {another}
    assert (another.payload, another.redelivery_count) == (b"x", 1)
    unacked.acknowledge([another], waiting=True)
    assert not unacked.reread and not unacked.out and desk.consumer.acknowledged == [acknowledged.native]


@pytest.mark.parametrize(
    "forget", [UnackedTracker.clear, lambda unacked: unacked.forget(next(iter(unacked.out)).native_consumer)]
)
async def test_what_was_read_again_is_forgotten(forget: Callable[[UnackedTracker], None]) -> None:
    """The subscription was moved, or is another one."""
    desk = Desk(True)
    assert len(desk.unacked.admit_again(desk.native_consumer, batch())) == 4
    forget(desk.unacked)
    assert not desk.unacked.reread and not desk.unacked.out


async def test_a_part_waits_from_one_look_to_the_next_for_the_rest_of_its_batch() -> None:
    desk = Desk(True)
    records = desk.admit(*whole_batch())
    desk.unacked.acknowledge(records[:2])
    desk.unacked._look()
    assert desk.consumer.acknowledged == []
    desk.unacked.acknowledge(records[2:])
    assert desk.consumer.acknowledged == [WHOLE]
