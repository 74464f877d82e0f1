"""``NackTracker``: what was given back is redelivered from here in order, or goes to the broker by entries."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from jmsaio.config import ProducerConfig, load
from jmsaio.model.wire import DELIVERY_TIME, OutgoingRecord
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.clock import ManualClock, SystemClock
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.pulsar.native.records.nack_tracker import (
    MOST_BYTES,
    MOST_RECORDS,
    DelayedRecords,
    early_until,
)
from jmsaio.transport.pulsar.native.records.received import HELD
from tests.kit.native_fakes import FakeMessage
from tests.kit.records import Outcomes, Record, UnreadableRecord, record as outgoing, texts
from tests.kit.unacked import Desk, batch, whole_batch
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Box, Kit, send

CHUNKED = ProducerConfig(chunking_enabled=True, batching_enabled=False)
MEGABYTE = 1_000_000


def chunked(last: int, first: int = 0, megabytes: int = 6, ledger: int = 1) -> FakeMessage:
    """A message from one entry to another."""
    return FakeMessage(last, first=(ledger, first), size=megabytes * MEGABYTE)


async def returned(desk: Desk, message: FakeMessage, counted: bool = True) -> list[int] | None:
    """The entries that go back for the last message; None if it is redelivered from here."""
    [record] = desk.admit(message)
    desk.nacks.add(desk.unsettled.give_back([record]), 0.0, counted=counted)
    with anyio.fail_after(20):
        while True:
            await asyncio.sleep(0.005)
            if desk.consumer.returned:
                return [place.entry_id() for place in desk.consumer.returned]
            if desk.renewed or desk.tracker.take(1):
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
            desk.acks.acknowledge(others)
        elif settled == "set aside":
            desk.unsettled.set_aside(others)
        assert await returned(desk, message) == entries
        desk.tracker.close()


async def test_of_a_rejected_one_whose_chunks_are_not_known_the_broker_gets_everything_back() -> None:
    """Another consumer might select it, so that it is not redelivered from here."""
    desk = Desk(True)
    assert await returned(desk, chunked(2), counted=False) is None
    assert desk.renewed == 1 and desk.tracker.count == 0


async def test_of_one_set_aside_the_chunks_are_known() -> None:
    desk = Desk(True)
    aside = desk.unsettled.set_aside(desk.admit(chunked(2, megabytes=12)))
    desk.nacks.add(desk.unsettled.give_back(aside), 0.0, counted=False)
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
            found += desk.tracker.take(9)
    return found


async def returned_nack_tracker(desk: Desk, count: int) -> list[object]:
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
    assert desk.unsettled.out == dict.fromkeys(again, HELD)
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
    assert await returned_nack_tracker(desk, 2) == [records[0].native, records[4].native]
    assert desk.tracker.count == 0 and desk.tracker.take(9) == []


async def test_acknowledgements_reach_the_broker_before_their_entry_goes_back() -> None:
    desk = Desk(True)
    acknowledged, given_back, held, other = desk.admit(*whole_batch())
    desk.acks.acknowledge([acknowledged])
    desk.nacks.add(desk.unsettled.give_back([given_back]), 0.0, counted=True)
    assert await returned_nack_tracker(desk, 1) == [given_back.native]
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
    [place] = await returned_nack_tracker(desk, 1)
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


EXCLUSIVE = SubscriptionType.EXCLUSIVE


def due_at(delivery_time: str | None, size: int = 10, publish_time: int = 500) -> Record:
    properties = {} if delivery_time is None else {DELIVERY_TIME: delivery_time}
    return Record(properties=properties, size=size, publish_time=publish_time)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "pauses" in record.message]


@pytest.mark.parametrize(
    ("record", "until"),
    [
        (due_at("3500"), 3500),
        (due_at("1000"), None),
        (due_at("1001"), 1001),
        (due_at("1200", publish_time=1300), None),  # without delay, by a sender's clock that is ahead of ours
        (due_at(None), None),
        (due_at("tomorrow"), None),  # the application is told when it gets the record
        (UnreadableRecord(publish_time=500), None),
    ],
)
def test_how_early_a_record_came(record: Any, until: int | None) -> None:
    assert early_until(record, 1000) == until


def test_the_early_ones_are_found_with_the_time_that_is_left() -> None:
    late, due = due_at(str(int(time.time() * 1000) + 60_000)), due_at("1")
    records: Any = [due, late]
    found: Any = DelayedRecords("t").early(records)
    assert list(found) == [late]
    assert 55 < found[late] - time.monotonic() <= 61


def test_how_early_a_record_is_says_the_clock_of_the_loop() -> None:
    record, clock = due_at("2000000"), ManualClock(1000)
    delayed: Any = DelayedRecords("t", clock=clock)
    assert delayed.early([record]) == {record: 2000}
    clock.advance(1000)
    assert delayed.early([record]) == {}


def test_equal_times_stay_equal_whatever_pauses_between_two_readings_of_the_clocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the second of two messages with the same delivery time could come first."""
    pauses = itertools.cycle([0.04, 0.0, 0.02])
    monkeypatch.setattr(SystemClock, "now", staticmethod(lambda: time.time() + next(pauses)))
    delayed = DelayedRecords("t")
    when = str(int(time.time() * 1000) + 60_000)
    times = [next(iter(delayed.early([due_at(when)]).values())) for _ in range(10)]  # type: ignore[list-item] # a part
    assert len(set(times)) == 1


def test_delayed_records_are_bounded_by_number_and_by_bytes() -> None:
    delayed = DelayedRecords("")
    assert (delayed.most_records, delayed.most_bytes) == (MOST_RECORDS, MOST_BYTES) == (10_000, 64 * 1024 * 1024)


@pytest.mark.parametrize(("records", "size"), [(6, 5), (100, 10)], ids=["number", "bytes"])
def test_at_the_bound_receiving_pauses_with_one_warning(
    records: int, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    delayed, kept, numbers = DelayedRecords("Topic('t')", records, 60), [], itertools.count()

    def fill(count: int) -> None:
        for _ in range(count):
            assert delayed.room() == records - len(delayed)
            record: Any = due_at(str(next(numbers)), size)
            kept.append(record)
            delayed.keep(record)
        assert len(delayed) == 6 and delayed.room() == delayed.room() == 0

    def release(count: int) -> None:
        delayed.release([kept.pop(0) for _ in range(count)])
        delayed.release([due_at(None)])  # type: ignore[list-item]  # one that was not kept

    fill(6)
    assert len(warnings(caplog)) == 1
    assert f"6 delayed messages of {6 * size} bytes" in warnings(caplog)[0] and "Topic('t')" in warnings(caplog)[0]
    release(2)
    fill(2)  # after a short relief
    assert len(warnings(caplog)) == 1
    release(4)
    fill(4)  # after more than half
    assert len(warnings(caplog)) == 2
    delayed.clear()
    assert len(delayed) == 0
    fill(6)
    assert len(warnings(caplog)) == 3


def waiting(box: Box) -> DelayedRecords:
    """What waits at a consumer for its time."""
    delayed: DelayedRecords | None = box.receiver._unacked._nacks._delayed
    assert delayed is not None
    return delayed


async def send_delayed(kit: Kit, count: int, seconds: float) -> None:
    sender, outcomes = await kit.sender(), Outcomes()
    due = int((time.time() + seconds) * 1000)
    for number in range(count):
        sender.send(outgoing(str(number), properties={DELIVERY_TIME: str(due)}), outcomes)
    sender.send(outgoing("at once"), outcomes)
    await sender.drain(30)


@pytest.mark.broker
async def test_more_are_kept_than_the_receiver_queue_takes_and_none_is_acknowledged(kit: Kit) -> None:
    box = await kit.box(EXCLUSIVE, receiver_queue_size=3)
    await send_delayed(kit, 20, 4)
    assert texts(await box.take(1)) == ["at once"]
    assert len(waiting(box)) == 20
    assert kit.transport.admin is not None
    assert await kit.transport.admin.backlog(kit.topic, "sub") >= 20
    assert texts(await box.take(20)) == [str(number) for number in range(20)]
    assert len(waiting(box)) == 0
    await box.nothing(0.3)


@pytest.mark.broker
async def test_those_that_are_due_come_in_the_order_of_their_times(kit: Kit) -> None:
    """Also where no one takes them for a while."""
    box, sender, outcomes = await kit.box(EXCLUSIVE), await kit.sender(), Outcomes()
    now = int(time.time() * 1000)
    for number, seconds in enumerate([3, 1, 2, 1]):
        sender.send(outgoing(str(number), properties={DELIVERY_TIME: str(now + seconds * 1000)}), outcomes)
    sender.send(outgoing("at once"), outcomes)
    await sender.drain(30)
    assert texts(await box.take(1)) == ["at once"]
    await asyncio.sleep(3.2)
    assert texts(await box.take(4)) == ["1", "3", "2", "0"]


@pytest.mark.broker
async def test_at_the_bound_what_is_behind_waits(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    box = await kit.box(EXCLUSIVE, receiver_queue_size=3)
    waiting(box).most_records = 8
    await send_delayed(kit, 20, 4)
    found = texts(await box.take(21, limit=5))
    assert sorted(found) == sorted([*map(str, range(20)), "at once"])
    assert found.index("at once") >= 8
    assert len(warnings(caplog)) == 1


@pytest.mark.broker
async def test_an_acknowledgement_timeout_does_not_run_while_a_record_waits(kit: Kit) -> None:
    box = await kit.box(EXCLUSIVE, ack_timeout=1.0)
    await send_delayed(kit, 1, 3)
    first = await box.take(1)
    box.receiver.acknowledge(first)
    second = await box.take(1)
    box.receiver.acknowledge(second)
    assert (texts([*first, *second]), second[0].redelivery_count) == (["at once", "0"], 0)
    await box.nothing(1.5)


@pytest.mark.broker
async def test_seeking_forgets_what_waits(kit: Kit) -> None:
    box = await kit.box(EXCLUSIVE)
    await send_delayed(kit, 3, 2)
    assert texts(await box.take(1)) == ["at once"]
    await box.receiver.seek(int(time.time() * 1000) + 60_000, 20)
    assert len(waiting(box)) == 0
    await box.nothing(2.5)


@pytest.mark.broker
async def test_shared_subscriptions_leave_delays_to_the_broker(kit: Kit) -> None:
    assert (await kit.box(SubscriptionType.SHARED)).receiver._unacked._nacks._delayed is None
