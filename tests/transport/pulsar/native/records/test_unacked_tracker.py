"""``UnackedTracker``: each record of a receiver is here until it is settled, redelivered, or with the broker."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.model.wire import DELIVERY_TIME, OutgoingRecord
from jmsaio.rules.record_life import RecordEvent, RecordState
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.dead_letters import DeadLetters
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.pulsar.native.records import subscription_records
from jmsaio.transport.pulsar.native.records.ack_grouping import HOLD
from jmsaio.transport.pulsar.native.records.subscription_records import SubscriptionRecords
from tests.kit.native_fakes import FakeConsumer, FakeMessage
from tests.kit.records import Outcomes
from tests.kit.unacked import Desk, Letters, batch, whole_batch
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, send

HELD, RETURNED = RecordState.HELD, RecordState.RETURNED


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
    assert desk.tracker.pop(9) == []


async def test_a_subscription_that_was_moved_on_one_partition_keeps_the_records_of_the_others() -> None:
    """Else what is acknowledged later would have no effect, and what was acknowledged be delivered again."""
    desk = Desk(True)
    here = desk.receive_from("t-partition-0")
    held, returned, aside, done = desk.admit(*whole_batch())
    there = desk.receive_from("t-partition-1")
    forgotten = desk.admit(*(FakeMessage(9, index, batch_size=4) for index in range(4)))
    desk.tracker.acknowledge([done, forgotten[0]])
    desk.tracker.give_back([returned, forgotten[1]], 60, counted=True)
    desk.tracker.set_aside([aside, forgotten[2]])
    desk.tracker.clear(lambda topic: topic == "t-partition-1")
    assert desk.tracker.records == [held, returned]
    there.discard()
    assert len(desk.admit(*(FakeMessage(9, index, batch_size=4) for index in range(4)))) == 4
    desk.native_consumer = here
    desk.consumer.acknowledged.clear()
    assert desk.admit(*whole_batch(count=1)) == []
    assert [one.message_id().batch_index() for one in desk.consumer.acknowledged] == [3]
    desk.tracker.acknowledge([held, *forgotten])
    assert desk.tracker.count == 1 + 4


@pytest.mark.parametrize(
    "forget", [lambda desk: desk.tracker.clear(bool), lambda desk: desk.tracker.start_over(desk.native_consumer)]
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
            again = desk.tracker.pop(9)
    assert [(one.record_key, one.redelivery_count) for one in again] == [(records[1].record_key, 1)]


async def test_the_timer_of_an_acknowledged_record_keeps_no_payload() -> None:
    desk = Desk(False, config=ConsumerConfig(ack_timeout=60.0))
    desk.tracker.acknowledge(desk.tracker.deliverable(desk.admit(FakeMessage(0))))
    gc.collect()
    assert [reference() for reference in desk.tracker._timeouts.remove_all()] == [None]


async def test_a_copy_of_what_another_receiver_has_is_kept_back_and_given_back_later() -> None:
    counts = SubscriptionRecords()
    one, other = Desk(True, others=counts), Desk(True, others=counts)
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
    desk.tracker.resume(acknowledged=False)
    assert desk.tracker.acks.last is None
    desk.tracker.resume(acknowledged=True)
    assert desk.tracker.acks.last is not None


@pytest.mark.parametrize(("shared", "count"), [(True, 1), (True, 0), (False, 0)])
async def test_an_entry_that_comes_again(shared: bool, count: int) -> None:
    """Counted by the broker, or after a reconnection, when the count is 0 and the order steps back."""
    desk = Desk(shared)
    acknowledged, held, given_back, gone = desk.admit(*batch())
    desk.tracker.acknowledge([acknowledged])
    desk.tracker.give_back([given_back, gone], 60, counted=True)
    desk.tracker._step(gone, RecordEvent.STOPPED)
    copies = batch(count)
    again = desk.admit(*copies)
    assert [one.record_key for one in again] == [gone.record_key]
    assert desk.consumer.acknowledged == [acknowledged.native, copies[0]]
    desk.tracker.acknowledge([held])
    assert desk.consumer.acknowledged[2:] == [held.native, copies[1]]
    assert desk.states == {given_back: RETURNED, again[0]: HELD}


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
    desk.tracker.acknowledge(records[:1])
    copies = whole_batch()
    records += desk.admit(*copies)
    assert [one.record_key[2] for one in records] == [0, 1, 2, 3]
    desk.tracker.acknowledge(records[1:])
    assert set(await desk.until_acknowledged(7)) == {one.native for one in records} | set(copies)


async def test_what_comes_again_behind_a_new_record_is_marked() -> None:
    """The armed receive holds a new record when the link is lost; behind it comes what was acknowledged."""
    desk = Desk(False)
    desk.tracker.acknowledge(desk.admit(*(FakeMessage(entry) for entry in range(10))))
    records = desk.admit(FakeMessage(10), *(FakeMessage(entry) for entry in range(10)), FakeMessage(11))
    assert [one.record_key[1] for one in records] == [10, *range(10), 11]
    assert [one.redelivery_count for one in records] == [0, *[1] * 10, 0]


@pytest.mark.parametrize("shared", [True, False])
async def test_a_replay_is_delivered_and_marked(shared: bool) -> None:
    """Complete entries come again only when their acknowledgements were lost or somebody moved the subscription."""
    desk = Desk(shared)
    desk.tracker.acknowledge(desk.admit(*whole_batch(0), FakeMessage(1), *whole_batch(2), *whole_batch(3))[:10])
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
        desk.tracker.acknowledge(records)
        assert len(desk.admit(*whole_batch(), *whole_batch())) == 8


@pytest.mark.parametrize("shared", [True, False])
async def test_a_broker_that_lost_its_data_delivers_the_same_ids(shared: bool) -> None:
    """Other records at the same places: all are delivered, and those that were out acknowledge none of them."""
    desk = Desk(shared)
    old = desk.admit(*whole_batch(0), *whole_batch(1), FakeMessage(2))
    desk.tracker.acknowledge(old[:6])
    others = [FakeMessage(entry, index, batch_size=4, published=2) for entry in (0, 1) for index in range(4)]
    new = desk.admit(*others, FakeMessage(2, published=2))
    assert [one.native for one in new[:8]] == others
    assert len(new) == 9
    told = len(desk.consumer.acknowledged)
    desk.tracker.acknowledge(old[6:])
    await anyio.sleep(4 * HOLD)
    assert len(desk.consumer.acknowledged) == told
    desk.tracker.acknowledge(new)
    assert len(desk.admit(FakeMessage(3, published=3))) == 1


async def test_another_record_at_the_place_of_one_that_was_set_aside_is_new() -> None:
    """The broker lost its data: ids begin anew."""
    desk = Desk(True)
    aside = desk.tracker.set_aside(desk.admit(*batch()))
    foreign = FakeMessage(0, 0, 1)
    foreign.published += 1
    assert len(desk.admit(foreign)) == 1
    desk.tracker.give_back(aside, 60, counted=False)
    assert RETURNED not in desk.states.values()


@pytest.mark.parametrize("shared", [True, False])
async def test_an_entry_that_was_read_again(shared: bool) -> None:
    """The broker counts it as acknowledged: nothing of it goes there any more, and what is known comes not twice."""
    desk = Desk(shared)
    acknowledged, held, aside, gone = desk.admit(*batch())
    desk.tracker.acknowledge([acknowledged])
    [place] = desk.tracker.set_aside([aside])
    desk.tracker.give_back([gone], 60, counted=True)
    desk.tracker._step(gone, RecordEvent.STOPPED)
    desk.tracker.redeliver_reread(desk.native_consumer, batch())
    offered, again = desk.tracker.pop(9)
    assert (offered.record_key, offered.redelivery_count) == (aside.record_key, 0)
    assert (again.record_key, again.redelivery_count) == (gone.record_key, 1)
    assert desk.tracker._reread == {held, offered, again}
    desk.tracker.acknowledge([held, again])
    desk.tracker.give_back([place], 60, counted=False)  # another record has its place now
    assert desk.tracker.set_aside([offered]) == [offered]
    desk.tracker.give_back([offered], 60, counted=False)
    desk.tracker._due([offered])
    [another] = desk.tracker.pop(9)
    assert desk.tracker._reread == {another}
    assert (another.payload, another.redelivery_count) == (b"x", 0)
    desk.tracker.acknowledge([another])
    assert desk.tracker.idle and not desk.tracker._reread
    assert desk.consumer.acknowledged == [acknowledged.native] and desk.consumer.returned == []


CHUNKED = ProducerConfig(chunking_enabled=True, batching_enabled=False)
MEGABYTE = 1_000_000


def chunked(last: int, first: int = 0, megabytes: int = 6, ledger: int = 1) -> FakeMessage:
    """A message from one entry to another."""
    return FakeMessage(last, first=(ledger, first), size=megabytes * MEGABYTE)


async def returned(desk: Desk, message: FakeMessage, counted: bool = True) -> list[int] | None:
    """The entries that go back for the last message; None if it is redelivered from here."""
    [record] = desk.admit(message)
    desk.tracker.give_back([record], 0.0, counted=counted)
    with anyio.fail_after(20):
        while True:
            await asyncio.sleep(0.005)
            if desk.consumer.returned:
                return [place.entry_id() for place in desk.consumer.returned]
            if desk.renewed or desk.tracker.pop(1):
                return None


@pytest.mark.parametrize(
    ("between", "message", "entries"),
    [
        ([], chunked(1), [0, 1]),
        ([], chunked(2, megabytes=12), [0, 1, 2]),
        ([FakeMessage(1)], chunked(2), [0, 2]),
        ([FakeMessage(1, 0, batch_size=2), FakeMessage(1, 1, batch_size=2)], chunked(3, megabytes=12), [0, 2, 3]),
        ([], chunked(2), None),  # two chunks in three entries
        ([chunked(2)], chunked(3, 1), None),
        ([], chunked(1, 7, ledger=0), None),
    ],
    ids=["two", "three", "one between", "batch between", "unknown between", "another message", "two ledgers"],
)
async def test_all_chunks_go_back_and_nothing_else(
    between: list[FakeMessage], message: FakeMessage, entries: list[int] | None
) -> None:
    """Nothing does if it is not known: it might be a chunk of a message whose other chunks are in another process."""
    for settled in (None, "acknowledged", "set aside"):
        desk = Desk(True)
        others = desk.admit(*between)
        if settled == "acknowledged" and between and between[0].first is None:
            desk.tracker.acknowledge(others)
        elif settled == "set aside":
            desk.tracker.set_aside(others)
        assert await returned(desk, message) == entries
        desk.tracker.close()


async def test_of_a_rejected_one_whose_chunks_are_not_known_the_broker_gets_everything_back() -> None:
    """Another consumer might select it, so that it is not redelivered from here."""
    desk = Desk(True)
    assert await returned(desk, chunked(2), counted=False) is None
    assert desk.renewed == 1 and desk.tracker.count == 0


async def test_of_one_set_aside_the_chunks_are_known() -> None:
    desk = Desk(True)
    aside = desk.tracker.set_aside(desk.admit(chunked(2, megabytes=12)))
    desk.tracker.give_back(aside, 0.0, counted=False)
    with anyio.fail_after(20):
        while not desk.consumer.returned:
            await asyncio.sleep(0.005)
    assert [place.entry_id() for place in desk.consumer.returned] == [0, 1, 2]


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("failed", SubscriptionType.SHARED),
        ("failed", SubscriptionType.KEY_SHARED),
        ("rejected", SubscriptionType.SHARED),
        ("not in time", SubscriptionType.SHARED),
    ],
)
async def test_one_that_goes_back_comes_again_whole(kit: Kit, way: str, kind: SubscriptionType) -> None:
    """The broker would redeliver the last chunk alone to no one, and nothing else either."""
    options: dict[str, Any] = {"ack_timeout": 1.0} if way == "not in time" else {}
    box = await kit.box(kind, **options)
    await send(await kit.sender(config=CHUNKED), "x" * 11 * MEGABYTE, "a", "b")
    [record] = await box.take(1)
    if way == "failed":
        box.receiver.negative_acknowledge([record], 0.1)
    elif way == "rejected":
        box.receiver.negative_acknowledge(box.receiver.set_aside([record]), 0.1, counted=False)
    again = await box.take(2)
    box.receiver.acknowledge(again)
    again += await box.take(1)
    box.receiver.acknowledge(again[2:])
    found = {(len(one.payload or b""), one.redelivery_count) for one in again}
    assert found == {(11 * MEGABYTE, 0 if way == "rejected" else 1), (1, 0)}
    await box.nothing()
    await box.receiver.settle(10, receipt=True)
    assert kit.transport.admin is not None
    assert (await kit.transport.admin.stats(kit.topic)).subscriptions["sub"].backlog == 0


async def test_a_pattern_returns_all_chunks(kit: Kit) -> None:
    sender = await kit.sender(config=CHUNKED)
    box = await kit.box(pattern=f"{kit.topic}.*")
    await send(sender, "x" * 6 * MEGABYTE)
    box.receiver.negative_acknowledge(await box.take(1), 0.1)
    [again] = await box.take(1)
    assert (len(again.payload or b""), again.redelivery_count) == (6 * MEGABYTE, 1)


@pytest.mark.slow
async def test_chunks_of_two_producers_between_each_other_come_again(kit: Kit, pulsar_broker: TestBroker) -> None:
    """Whose chunk is whose is not known: it is redelivered from here, or the broker gets everything back."""
    admin = kit.transport.admin
    assert admin is not None
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        slow = await open_transport(load(proxy.url, web_service_url=pulsar_broker.web_service_url))
        sender = await Kit(slow, kit.topic).sender(config=CHUNKED)
        proxy.slices(64 * 1024, 0.01)  # nearly a second for a chunk
        sender.send(OutgoingRecord(b"x" * 11 * MEGABYTE, {}), Outcomes())
        while not (await admin.log(kit.topic)).ledgers[-1].entries:
            await asyncio.sleep(0.05)
        await send(await kit.sender(config=CHUNKED), "y" * 11 * MEGABYTE)
        await sender.drain(HANG)
        proxy.slices(None)
        await slow.aclose(10)
    # With more, the receiver opens its consumers again when it sees the size, and the broker can stop in the middle of
    # a message of which it has sent some chunks then.
    box = await kit.box(receiver_queue_size=1)
    held, failed = await box.take(2)
    box.receiver.negative_acknowledge([failed], 0.1)
    [again] = await box.take(1)
    assert (again.message_id, again.payload, again.redelivery_count) == (failed.message_id, failed.payload, 1)
    box.receiver.negative_acknowledge([again], 0.1, counted=False)
    [rejected] = await box.take(1)
    assert (rejected.message_id, rejected.payload, rejected.redelivery_count) == (failed.message_id, failed.payload, 1)
    box.receiver.acknowledge([held, rejected])
    await box.nothing()
    await box.receiver.settle(HANG, receipt=True)
    assert (await admin.stats(kit.topic)).subscriptions["sub"].backlog == 0


def places(records: list[PulsarRecord]) -> list[int]:
    return [record.record_key[2] for record in records]


async def taken(desk: Desk, count: int) -> list[PulsarRecord]:
    """What is redelivered from here, once it is so many."""
    found: list[PulsarRecord] = []
    with anyio.fail_after(20):
        while len(found) < count:
            await anyio.sleep(0.005)
            found += desk.tracker.pop(9)
    return found


async def entries_returned(desk: Desk, count: int) -> list[object]:
    """What went to the broker, once it is so many."""
    with anyio.fail_after(20):
        while len(desk.consumer.returned) < count:
            await anyio.sleep(0.005)
    return desk.consumer.returned


async def test_an_ordered_subscription_redelivers_in_the_order_of_the_records() -> None:
    desk = Desk(False)
    records = desk.admit(*batch())
    desk.tracker.give_back(records[2:], 0.0, counted=True)
    desk.tracker.give_back(records[:2], 0.0, counted=True)
    again = await taken(desk, 4)
    assert places(again) == [0, 1, 2, 3] and desk.consumer.returned == []
    assert {one.redelivery_count for one in again} == {1}
    assert desk.states == dict.fromkeys(again, HELD)
    assert desk.woken > 0


async def test_whoever_is_woken_is_woken_in_a_turn_of_the_loop() -> None:
    """He may receive at once, and records may be redelivered in the middle of another call."""
    desk = Desk(False)
    records = desk.admit(*batch())
    desk.tracker.give_back(records, 60, counted=True)
    desk.tracker._due(records)
    assert desk.woken == 0
    await anyio.lowlevel.checkpoint()
    assert desk.woken == 1


async def test_what_no_application_had_is_not_counted() -> None:
    desk = Desk(False)
    desk.tracker.give_back(desk.admit(*batch()), 0.0, counted=False)
    assert {one.redelivery_count for one in await taken(desk, 4)} == {0}
    assert not desk.tracker._unseen


async def test_a_shared_subscription_gives_each_entry_back_once() -> None:
    desk = Desk(True)
    records = desk.admit(*batch(), *batch(entry=1))
    desk.tracker.give_back(records, 0.0, counted=True)
    assert await entries_returned(desk, 2) == [records[0].native, records[4].native]
    assert desk.tracker.count == 0 and desk.tracker.pop(9) == []


async def test_acknowledgements_reach_the_broker_before_their_entry_goes_back() -> None:
    desk = Desk(True)
    acknowledged, given_back, held, other = desk.admit(*whole_batch())
    desk.tracker.acknowledge([acknowledged])
    desk.tracker.give_back([given_back], 0.0, counted=True)
    assert await entries_returned(desk, 1) == [given_back.native]
    assert desk.consumer.acknowledged == [acknowledged.native]
    copies = whole_batch(count=1)
    [again] = desk.admit(*copies)
    assert again.record_key == given_back.record_key
    assert desk.consumer.acknowledged[1:] == [copies[0]]
    desk.tracker.acknowledge([again, held, other])
    passed = await desk.until_acknowledged(7)  # each by itself, and the copies of those that were out
    assert set(passed[2:]) == {again.native, held.native, other.native, copies[2], copies[3]}


async def test_what_was_set_aside_goes_back_by_its_place() -> None:
    desk = Desk(True)
    aside = desk.tracker.set_aside(desk.admit(FakeMessage(7)))
    desk.tracker.give_back(aside, 0.0, counted=False)
    [place] = await entries_returned(desk, 1)
    assert place == FakeMessage(7).message_id()


async def test_a_delayed_record_waits_here_for_its_time() -> None:
    desk = Desk(False)
    due = str(int(time.time() * 1000) + 100)
    records = desk.admit(FakeMessage(0, values={DELIVERY_TIME: due}), FakeMessage(1))
    assert desk.tracker.deliverable(records) == records[1:]
    assert desk.tracker.pop(9) == []
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
        desk.tracker.start_over(desk.native_consumer)
    with anyio.fail_after(20):
        while not desk.woken:
            await anyio.sleep(0.005)
    assert desk.tracker.room(20_000) == 10_000 and not desk.tracker._unseen


@pytest.mark.parametrize("shared", [True, False])
async def test_a_seek_wakes_nobody_if_no_record_was_delayed(shared: bool) -> None:
    """A receive at this moment could get a record from before the next seek."""
    desk = Desk(shared)
    desk.admit(*batch())
    desk.tracker.clear(bool)
    desk.tracker.start_over(desk.native_consumer)
    await anyio.lowlevel.checkpoint()
    assert desk.woken == 0


@pytest.mark.parametrize("shared", [True, False])
async def test_what_was_read_again_is_redelivered_from_here(shared: bool) -> None:
    """The broker has it no more."""
    desk = Desk(shared)
    desk.tracker.redeliver_reread(desk.native_consumer, batch())
    again = desk.tracker.pop(9)
    desk.tracker.give_back(again, 0.0, counted=True)
    assert places(await taken(desk, 4)) == [0, 1, 2, 3]
    assert desk.consumer.returned == []


async def test_what_was_read_again_comes_at_once_when_the_native_consumers_stop() -> None:
    desk = Desk(True)
    desk.tracker.redeliver_reread(desk.native_consumer, batch())
    desk.tracker.give_back(desk.tracker.pop(2), 60, counted=True)
    desk.tracker.stop(briefly=False)
    assert places(desk.tracker.pop(9)) == [0, 1, 2, 3]


async def test_nothing_is_redelivered_after_the_end() -> None:
    desk = Desk(False)
    records = desk.admit(*batch())
    desk.tracker.give_back(records, 0.0, counted=True)
    desk.tracker.close()
    desk.tracker.redeliver_reread(desk.native_consumer, batch(entry=1))
    await anyio.sleep(0.02)
    assert desk.tracker.pop(9) == [] and desk.woken == 0


def pair(letters: DeadLetters | None = None) -> tuple[Desk, Desk]:
    """Two receivers of one subscription of one transport; the first may have dead letters."""
    others = SubscriptionRecords()
    one = Desk(True, others=others, letters=letters)
    return one, Desk(True, others=others, bridge=one.bridge)


def arrived(desk: Desk, *messages: FakeMessage) -> list[PulsarRecord]:
    """What is delivered of messages that came."""
    return desk.tracker.deliverable(desk.admit(*messages))


def settle(desk: Desk, other: Desk, records: list[PulsarRecord], acknowledged: bool) -> None:
    """Settle records, and have the other receiver check its copies."""
    if acknowledged:
        desk.tracker.acknowledge(records)
    else:
        desk.tracker.give_back(records, 60, counted=True)
        desk.tracker._due(records)
    check_copies(other)


def check_copies(desk: Desk) -> None:
    desk.tracker._check_copies(desk.tracker._elsewhere.remove_all())


def messages(count: int) -> list[FakeMessage]:
    return [FakeMessage(entry, count=count) for entry in range(3)]


def entries(records: list[PulsarRecord]) -> list[int]:
    return [record.record_key[1] for record in records]


@pytest.mark.parametrize("acknowledged", [True, False])
async def test_a_copy_waits_for_the_application_of_the_receiver_that_stopped(acknowledged: bool) -> None:
    """It is acknowledged with the record, or delivered, marked, when that is given back."""
    one, other = pair()
    first, second, third = arrived(one, *messages(0))
    one.tracker.stop(briefly=False)
    copies = messages(0)
    assert arrived(other, *copies) == [] and other.tracker.count == 3
    settle(one, other, [first], acknowledged)
    assert other.consumer.acknowledged == (copies[:1] if acknowledged else [])
    assert entries(other.tracker.pop(9)) == ([] if acknowledged else [0])
    assert [record.redelivery_count for record in other.states] == ([0, 0] if acknowledged else [0, 0, 1])
    settle(one, other, [second, third], acknowledged=True)
    assert set(other.consumer.acknowledged) == set(copies[0 if acknowledged else 1 :])


@pytest.mark.parametrize("way", ["acknowledged and closed", "returned unseen"])
async def test_a_copy_whose_fate_only_the_broker_knows_goes_back_to_it(way: str) -> None:
    """It would be delivered although it was acknowledged, or as redelivered although no application had it."""
    one, other = pair()
    records = arrived(one, *messages(0))
    one.tracker.stop(briefly=False)
    copies = messages(0)
    assert arrived(other, *copies) == []
    if way == "returned unseen":
        one.tracker.give_back(records, 60, counted=False)
        one.tracker._due(records)
    else:
        one.tracker.acknowledge(records)
        one.tracker.close()
        one.tracker.release()
    check_copies(other)
    while len(other.consumer.returned) < 3:
        await anyio.sleep(0.005)
    assert set(other.consumer.returned) == set(copies)
    assert other.tracker.idle and other.tracker.pop(9) == []
    assert {record.redelivery_count for record in arrived(other, *messages(0))} == {0}


async def test_a_copy_is_gone_from_memory_once_it_is_acknowledged() -> None:
    one, other = pair()
    records = arrived(one, *messages(0))
    one.tracker.stop(briefly=False)
    assert arrived(other, *messages(0)) == []
    copies = [weakref.ref(record) for record in other.states]
    settle(one, other, records, acknowledged=True)
    del records
    gc.collect()
    assert [copy() for copy in copies] == [None, None, None]


async def test_what_was_acknowledged_after_the_stop_is_acknowledged_again_where_it_arrives() -> None:
    one, other = pair()
    records = arrived(one, *messages(0))
    one.tracker.stop(briefly=False)
    one.tracker.acknowledge(records)
    copies = messages(0)
    assert arrived(other, *copies) == []
    assert other.consumer.acknowledged == copies and other.tracker.count == 0


async def test_a_receiver_that_never_stopped_settles_for_itself_alone() -> None:
    one, other = pair()
    records = arrived(one, *messages(0))
    one.tracker.stop(briefly=False)
    assert arrived(other, *messages(0)) == []
    other.tracker.acknowledge(records)
    assert other.consumer.acknowledged == []


async def test_a_receiver_that_is_closed_lets_its_records_go_and_marks_them() -> None:
    one, other = pair()
    arrived(one, *messages(0))
    one.tracker.close()
    one.tracker.release()
    assert [record.redelivery_count for record in arrived(other, *messages(0), FakeMessage(9))] == [1, 1, 1, 0]


async def test_closing_lets_the_copies_of_others_go() -> None:
    one, other = pair()
    arrived(one, *messages(0))
    one.tracker.stop(briefly=False)
    assert arrived(other, *messages(0)) == []
    one.tracker.close()
    one.tracker.release()
    check_copies(other)
    again = other.tracker.pop(9)
    assert [(record.record_key[1], record.redelivery_count) for record in again] == [(0, 1), (1, 1), (2, 1)]


async def test_what_no_application_got_is_marked_only_if_it_was_delivered_before() -> None:
    one, other = pair()
    new, old = arrived(one, FakeMessage(0), FakeMessage(1, count=2))
    one.tracker.give_back([new, old], 60, counted=False)
    one.tracker.stop(briefly=False)
    assert [record.redelivery_count for record in arrived(other, FakeMessage(0), FakeMessage(1))] == [0, 1]


async def test_what_the_application_gave_back_before_the_stop_is_marked() -> None:
    one, other = pair()
    one.tracker.give_back(arrived(one, FakeMessage(0)), 60, counted=True)
    one.tracker.stop(briefly=False)
    assert one.tracker.count == 0
    assert [record.redelivery_count for record in arrived(other, FakeMessage(0))] == [1]


async def test_copies_are_kept_through_a_short_stop_and_given_up_in_a_long_one() -> None:
    one, other = pair()
    arrived(one, *messages(0))
    one.tracker.stop(briefly=False)
    assert arrived(other, *messages(0)) == []
    other.tracker.stop(briefly=True)
    assert other.tracker.count == 3
    other.tracker.stop(briefly=False)
    assert other.tracker.count == 0


async def test_a_released_copy_goes_back_when_its_keeper_stops_before_it_is_taken() -> None:
    """Else it would be taken for here when the broker redelivers it, and never be delivered."""
    one, other = pair()
    records = arrived(one, *messages(0))
    one.tracker.stop(briefly=False)
    assert arrived(other, *messages(0)) == []
    settle(one, other, records, acknowledged=False)
    other.tracker.stop(briefly=False)
    assert other.tracker.pop(9) == [] and other.tracker.count == 0
    assert [record.redelivery_count for record in arrived(other, *messages(0))] == [1, 1, 1]


@pytest.mark.parametrize("stored", [True, False])
async def test_a_dead_letter_on_its_way_is_kept_from_others_when_its_receiver_stops(stored: bool) -> None:
    """It is acknowledged there once it is stored, or delivered when it could not be."""
    letters: Any = Letters()
    one, other = pair(letters)
    [record] = arrived(one, FakeMessage(0, count=2))
    one.tracker.give_back([record], 0, counted=True)
    one.tracker.stop(briefly=False)
    copy = FakeMessage(0, count=3)
    assert arrived(other, copy) == []
    letters.ended[0](record, stored)
    check_copies(other)
    assert other.consumer.acknowledged == ([copy] if stored else [])
    if not stored:
        one.tracker.close()
        one.tracker.release()
        check_copies(other)
        assert entries(other.tracker.pop(9)) == [0]


async def test_a_record_set_aside_says_that_it_was_delivered_before() -> None:
    """Whether it is given back, or goes back with the end of the native consumers."""
    one, other = pair()
    aside = one.tracker.set_aside(arrived(one, *messages(2)))
    one.tracker.give_back(aside[:1], 60, counted=False)
    assert [record.redelivery_count for record in one.states] == [2]
    one.tracker.stop(briefly=False)
    one.tracker.give_back(aside, 60, counted=False)
    assert one.tracker.idle
    assert [record.redelivery_count for record in arrived(other, FakeMessage(1), FakeMessage(2))] == [1, 1]


@pytest.mark.parametrize("stored", [True, False])
async def test_a_dead_letter_that_is_being_stored_when_the_subscription_is_moved_replaces_its_record(
    stored: bool,
) -> None:
    """Not both are delivered."""
    letters: Any = Letters()
    desk = Desk(False, letters=letters)
    dying, other = desk.admit(FakeMessage(0), FakeMessage(1))
    desk.tracker.dead_letter(dying, {})
    desk.tracker.clear(bool)
    desk.native_consumer.discard()
    copies = FakeMessage(0), FakeMessage(1)
    assert [one.record_key for one in desk.admit(*copies)] == [other.record_key]
    letters.ended[0](dying, stored)
    assert desk.consumer.acknowledged == ([dying.native, copies[0]] if stored else [])


async def test_a_copy_of_a_record_whose_dead_letter_is_being_stored_is_kept_back() -> None:
    """Its receiver is open: the entry was returned for a neighbour."""
    letters: Any = Letters()
    one, other = pair(letters)
    [record] = arrived(one, FakeMessage(0, count=2))
    one.tracker.give_back([record], 0, counted=True)
    one.tracker._others.entry_returned(1, 0)
    copy = FakeMessage(0, count=3)
    assert arrived(other, copy) == []
    letters.ended[0](record, True)
    check_copies(other)
    assert other.consumer.acknowledged == [copy]


@pytest.mark.parametrize("arrives", ["before", "after"])
async def test_a_dead_letter_of_a_moved_subscription_acknowledges_none_of_its_batch_beside_itself(arrives: str) -> None:
    """Its neighbours were acknowledged before the move, and are held again; it is acknowledged as it arrives again."""
    letters: Any = Letters()
    desk = Desk(True, letters=letters)
    *others, dying = desk.admit(*whole_batch())
    desk.tracker.acknowledge(others)
    desk.acks.flush()
    desk.consumer.acknowledged.clear()
    desk.tracker.dead_letter(dying, {})
    desk.tracker.clear(bool)
    desk.native_consumer.discard()
    if arrives == "after":
        letters.ended[0](dying, True)
    copies = whole_batch()
    assert [one.record_key[2] for one in desk.admit(*copies)] == [0, 1, 2]
    if arrives == "before":
        letters.ended[0](dying, True)
    assert desk.consumer.acknowledged == copies[3:]


async def test_what_arrives_after_a_marked_record_of_its_batch_is_acknowledged_by_itself() -> None:
    """Else the marked one would count as acknowledged, and be lost when it is given back."""
    one, other = pair()
    arrived(one, FakeMessage(0, 0, batch_size=4))
    one.tracker.close()
    one.tracker.release()
    first, *rest = whole_batch()
    [marked] = arrived(other, first)
    others = arrived(other, *rest)
    other.tracker.acknowledge(others)
    other.tracker.give_back([marked], 0.0, counted=True)
    other.tracker._due([marked])
    assert [record.record_key[2] for record in arrived(other, *whole_batch(count=1))] == [0]


@pytest.mark.parametrize("stopped", [False, True])
async def test_what_the_broker_redelivers_uncounted_after_the_application_gave_it_back_is_marked(stopped: bool) -> None:
    """The link was lost before the return reached the broker, or the native consumers were closed at that time."""
    one, other = pair()
    records = arrived(one, *messages(0))
    one.tracker.give_back(records, 60, counted=True)
    if stopped:
        one.tracker.stop(briefly=True)
        one.native_consumer.stop(FakeConsumer())
    one.tracker._due(records)
    again = arrived(other if stopped else one, *messages(0))
    assert [record.redelivery_count for record in again] == [1, 1, 1]


async def test_a_record_that_was_held_for_long_is_known_to_others_when_its_receiver_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscription_records, "REMEMBERED", 2)
    one, other = pair()
    arrived(one, FakeMessage(0))
    one.tracker.acknowledge(arrived(one, *(FakeMessage(entry) for entry in range(1, 9))))
    one.tracker.stop(briefly=False)
    assert arrived(other, FakeMessage(0)) == [] and other.tracker.count == 1
