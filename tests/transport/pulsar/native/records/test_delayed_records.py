"""``DelayedRecords``: records that wait in the client for their delivery times are limited."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import pytest

from jmsaio.model.wire import DELIVERY_TIME
from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.clock import ManualClock, SystemClock
from jmsaio.transport.pulsar.native.records.delayed_records import (
    MOST_BYTES,
    MOST_RECORDS,
    DelayedRecords,
)
from tests.kit.records import Outcomes, Record, UnreadableRecord, record as outgoing, texts
from tests.transport.pulsar.conftest import Box, Kit

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
    assert DelayedRecords("t", clock=ManualClock(1)).due(record) == (None if until is None else until / 1000)


def test_the_early_ones_are_found_with_the_time_that_is_left() -> None:
    late: Any = due_at(str(int(time.time() * 1000) + 60_000))
    past: Any = due_at("1")
    delayed = DelayedRecords("t")
    found = delayed.due(late)
    assert delayed.due(past) is None and found is not None
    assert 55 < found - time.monotonic() <= 61


def test_how_early_a_record_is_says_the_clock_of_the_loop() -> None:
    record, clock = due_at("2000000"), ManualClock(1000)
    delayed: Any = DelayedRecords("t", clock=clock)
    assert delayed.due(record) == 2000
    clock.advance(1000)
    assert delayed.due(record) is None


def test_equal_times_stay_equal_whatever_pauses_between_two_readings_of_the_clocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the second of two messages with the same delivery time could come first."""
    pauses = itertools.cycle([0.04, 0.0, 0.02])
    monkeypatch.setattr(SystemClock, "now", staticmethod(lambda: time.time() + next(pauses)))
    delayed = DelayedRecords("t")
    when = str(int(time.time() * 1000) + 60_000)
    record: Any = due_at(when)
    times = [delayed.due(record) for _ in range(10)]
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
            assert delayed.room() == records - delayed.count
            record: Any = due_at(str(next(numbers)), size)
            kept.append(record)
            delayed.add(record)
        assert delayed.count == 6 and delayed.room() == delayed.room() == 0

    def release(count: int) -> None:
        for _ in range(count):
            delayed.remove(kept.pop(0))

    fill(6)
    assert len(warnings(caplog)) == 1
    assert f"6 delayed messages of {6 * size} bytes" in warnings(caplog)[0] and "Topic('t')" in warnings(caplog)[0]
    release(2)
    fill(2)  # after a short relief
    assert len(warnings(caplog)) == 1
    release(4)
    fill(4)  # after more than half
    assert len(warnings(caplog)) == 2
    release(6)
    assert delayed.count == 0
    fill(6)
    assert len(warnings(caplog)) == 3


def waiting(box: Box) -> DelayedRecords:
    """What waits at a consumer for its time."""
    delayed: DelayedRecords | None = box.receiver._unacked._delayed
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
    assert waiting(box).count == 20
    assert kit.transport.admin is not None
    assert await kit.transport.admin.backlog(kit.topic, "sub") >= 20
    assert texts(await box.take(20)) == [str(number) for number in range(20)]
    assert waiting(box).count == 0
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
    assert waiting(box).count == 0
    await box.nothing(2.5)


@pytest.mark.broker
async def test_shared_subscriptions_leave_delays_to_the_broker(kit: Kit) -> None:
    assert (await kit.box(SubscriptionType.SHARED)).receiver._unacked._delayed is None
