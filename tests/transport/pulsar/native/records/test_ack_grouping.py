"""``AckGrouping``, ``Settled``: a batch is acknowledged with one call if possible, and known when it comes again."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from typing import Any

import _pulsar
import anyio
import httpx
import pytest

from jmsaio.errors import ObjectClosedError
from jmsaio.rules.record_life import RecordState
from jmsaio.transport.base import StartPosition, SubscriptionType
from jmsaio.transport.pulsar.native.binding.native_consumer import BatchAcker
from jmsaio.transport.pulsar.native.records import ack_grouping as settled
from jmsaio.transport.pulsar.native.records.ack_grouping import CROSSED, HOLD, Repeat, Settled
from tests.kit.native_fakes import FakeMessage
from tests.kit.records import texts
from tests.kit.unacked import Desk, batch, whole_batch
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import Kit, send

HELD, RETURNED = RecordState.HELD, RecordState.RETURNED
WHOLE = _pulsar.MessageId(-1, 1, 0, -1)


async def test_a_batch_is_acknowledged_with_one_call() -> None:
    desk = Desk(True)
    records = desk.admit(*whole_batch())
    desk.tracker.acknowledge(records[2:])
    desk.tracker.acknowledge([*records[:2], *records])
    assert desk.consumer.acknowledged == [WHOLE]
    await anyio.sleep(4 * HOLD)
    desk.acks.flush()
    assert desk.consumer.acknowledged == [WHOLE]


async def test_a_part_is_reported_soon_and_the_rest_with_the_whole() -> None:
    desk = Desk(True)
    records = desk.admit(*whole_batch())
    desk.tracker.acknowledge(records[:2])
    assert desk.consumer.acknowledged == []
    parts = [records[0].native, records[1].native]
    assert await desk.until_acknowledged(2) == parts
    desk.tracker.acknowledge(records[2:])
    assert desk.consumer.acknowledged == [*parts, WHOLE]


async def test_batches_in_pieces_and_several_at_once() -> None:
    desk = Desk(False)
    messages = [*whole_batch(0), *whole_batch(1), FakeMessage(2), *whole_batch(3)]
    records = [record for start in range(0, 13, 3) for record in desk.admit(*messages[start : start + 3])]
    assert len(records) == 13
    desk.tracker.acknowledge(records[::-1])
    assert desk.consumer.acknowledged == [
        _pulsar.MessageId(-1, 1, 3, -1), records[8].native, _pulsar.MessageId(-1, 1, 1, -1), WHOLE
    ]  # fmt: skip


async def test_a_pattern_acknowledges_by_message() -> None:
    """Its topics are mixed, and pulsar-client finds the topic's consumer by the message."""
    desk = Desk(True)
    desk.native_consumer.topic = None
    records = desk.admit(*whole_batch())
    desk.tracker.acknowledge(records)
    assert desk.consumer.acknowledged == [record.native for record in records]


async def test_the_same_record_again_counts_once_for_its_batch() -> None:
    desk = Desk(False)
    first, *others = desk.admit(*whole_batch())
    desk.tracker.give_back([first], 0.0, counted=True)
    with anyio.fail_after(20):
        while not (taken := desk.tracker.pop(9)):
            await anyio.sleep(0.005)
    desk.tracker.acknowledge([first, *taken, *taken, *others[:2]])
    assert desk.consumer.acknowledged == []
    desk.tracker.acknowledge(others)
    assert desk.consumer.acknowledged == [WHOLE]


async def test_clear_reports_nothing_of_the_old_place() -> None:
    desk = Desk(False)
    desk.tracker.acknowledge(desk.admit(*whole_batch())[:1])
    desk.tracker.clear(bool)
    await anyio.sleep(4 * HOLD)
    assert desk.consumer.acknowledged == []


async def test_a_closed_transport_gets_nothing() -> None:
    desk = Desk(False)
    desk.tracker.acknowledge(desk.admit(*whole_batch())[:1])
    desk.bridge.failure = (ObjectClosedError, "closed")
    await anyio.sleep(4 * HOLD)
    assert desk.consumer.acknowledged == []


async def test_the_time_of_the_last_acknowledgement_is_known() -> None:
    desk, clock = Desk(True), asyncio.get_running_loop().time
    assert desk.acks.last is None
    desk.tracker.acknowledge(desk.admit(*whole_batch())[:1])
    before = clock()
    desk.acks.flush()
    assert desk.acks.last is not None and desk.acks.last >= before


async def test_what_is_acknowledged_keeps_no_payload() -> None:
    """Whether alone, as a batch, or one of a batch that is reported by itself."""
    desk = Desk(True)
    messages = [*whole_batch(0), *(FakeMessage(entry) for entry in range(1, 9)), *whole_batch(9)]
    alive = [weakref.ref(message) for message in messages]
    desk.tracker.acknowledge(desk.admit(*messages)[:-1])
    desk.acks.flush()
    held = messages[-1]
    del messages
    desk.consumer.acknowledged.clear()
    assert [one() for one in alive if one() is not None] == [held]


async def test_a_part_waits_for_the_rest_of_its_batch() -> None:
    desk = Desk(True)
    records = desk.admit(*whole_batch())
    desk.tracker.acknowledge(records[:2])
    await asyncio.sleep(0)
    assert desk.consumer.acknowledged == []
    desk.tracker.acknowledge(records[2:])
    assert desk.consumer.acknowledged == [WHOLE]


async def test_only_what_is_out_is_acknowledged() -> None:
    desk = Desk(True)
    records = desk.admit(*batch())
    desk.tracker.acknowledge([records[0], records[0], "foreign"])
    assert desk.consumer.acknowledged == [records[0].native]
    foreign: Any = "foreign"
    desk.tracker.give_back([records[0], records[2], foreign], 60, counted=True)
    assert desk.states == {records[1]: HELD, records[2]: RETURNED, records[3]: HELD}


async def test_a_late_acknowledgement_of_what_was_given_back_counts() -> None:
    """The message was processed: it is not redelivered."""
    desk = Desk(False)
    [record] = desk.admit(FakeMessage(0))
    desk.tracker.give_back([record], 0.0, counted=True)
    desk.tracker.acknowledge([record])
    assert desk.consumer.acknowledged == [record.native] and desk.tracker.idle
    await anyio.sleep(0.02)
    assert desk.tracker.pop(9) == []


async def test_only_the_place_is_kept_of_what_was_set_aside() -> None:
    """It is known when it comes again, and is given back once."""
    desk = Desk(True)
    records = desk.admit(*batch(), *batch(entry=1))
    aside = desk.tracker.set_aside(records[:4])
    assert aside == [(1, 0, -1, index) for index in range(4)]
    gc.collect()
    assert not any(gc.is_tracked(place) for place in aside), "the garbage collector would look at each of very many"
    assert desk.states == dict.fromkeys(records[4:], HELD)
    desk.tracker.acknowledge(records[:1])
    assert desk.consumer.acknowledged == []
    assert desk.admit(*batch(count=1)) == []
    desk.tracker.give_back([*aside[:2], *aside[:2], records[2], (9, 9, 9, 9)], 60, counted=False)
    turned = [one for one, state in desk.states.items() if state is RETURNED]
    assert [(one.message_id, one.publish_time, one.native is None) for one in turned] == [
        (record.message_id, record.publish_time, True) for record in records[:2]
    ]
    desk.tracker._due(turned)
    assert desk.states == dict.fromkeys(records[4:], HELD)
    assert [one.record_key for one in desk.admit(*batch(count=2))] == [record.record_key for record in records[:2]]
    desk.tracker.clear(bool)
    desk.tracker.give_back(aside, 0.0, counted=False)
    assert desk.tracker.count == 0


async def test_records_that_a_place_does_not_tell_are_kept_themselves() -> None:
    """Those of topics that are not persistent, and those of a pattern."""
    desk = Desk(True)
    desk.native_consumer.persistent = False
    records = desk.admit(*batch())
    assert desk.tracker.set_aside(records) == records
    desk.tracker.give_back(records, 60, counted=False)
    assert desk.states == dict.fromkeys(records, RETURNED)


def acknowledge(known: Settled, entry: int, index: int = -1, size: int = 0, when: float = 0) -> None:
    known.recent.append((FakeMessage(entry, index, batch_size=size).message_id(), 1, when))


def look_up(known: Settled, entry: int, index: int = -1, counted: bool = False, published: int = 1) -> Repeat:
    known.fold()
    return known.look_up((1, entry, index), published, counted, 100.0)


def test_remembers_each_place_of_an_incomplete_batch() -> None:
    known = Settled()
    acknowledge(known, 5, 0, size=5)
    acknowledge(known, 5, 3, size=5)
    expected = [
        Repeat.DUPLICATE,
        Repeat.NOTHING,
        Repeat.NOTHING,
        Repeat.DUPLICATE,
        Repeat.NOTHING,
    ]
    assert [look_up(known, 5, index) for index in range(5)] == expected
    assert look_up(known, 6) is Repeat.NOTHING


@pytest.mark.parametrize("size", [0, 3])
def test_a_complete_entry_is_no_duplicate(size: int) -> None:
    """A message by itself, or a batch of which each record was acknowledged: it is delivered anew, as redelivered."""
    known = Settled()
    for index in range(size):
        acknowledge(known, 5, index, size)
    if size == 0:
        acknowledge(known, 5)
    assert {look_up(known, 5, index) for index in range(size)} <= {Repeat.REDELIVERED}
    assert look_up(known, 5) is Repeat.REDELIVERED


def test_a_return_that_crossed_with_the_acknowledgement_is_a_duplicate_for_a_moment() -> None:
    known = Settled()
    acknowledge(known, 5, when=100 - CROSSED / 2)
    acknowledge(known, 6, when=100 - 2 * CROSSED)
    assert [look_up(known, entry, counted=True) for entry in (5, 6)] == [
        Repeat.DUPLICATE,
        Repeat.REDELIVERED,
    ]
    known.was_moved_back((1, 5, -1))  # it was delivered, so a later redelivery is about that
    assert look_up(known, 5, counted=True) is Repeat.REDELIVERED


@pytest.mark.parametrize(("when", "opened"), [(90.0, 95.0), (80.0, 95.0), (50.0, 60.0)])
def test_what_was_acknowledged_while_no_consumer_was_open_is_a_duplicate(when: float, opened: float) -> None:
    """It could be told only after the broker had sent it again; not so what came before, or is long ago."""
    known = Settled()
    acknowledge(known, 5, when=when)
    known.interruption.closed, known.interruption.opened = opened - 10, opened
    expected = when == 90.0
    assert (look_up(known, 5) is Repeat.DUPLICATE) == expected


def test_open_batches_tell_what_is_acknowledged_of_them() -> None:
    known, batch = Settled(), BatchAcker(1, 5, -1, 4, 1)
    known.begin(batch)
    batch.settled = 0b0101
    assert [look_up(known, 5, index) is Repeat.DUPLICATE for index in range(4)] == [True, False, True, False]
    acknowledge(known, 5, 1, size=4)  # from a copy of the entry
    acknowledge(known, 5, 3, size=4)
    assert [look_up(known, 5, index) for index in range(4)] == [Repeat.REDELIVERED] * 4
    assert not known.open


@pytest.mark.parametrize("kind", ["open", "part", "complete"])
def test_the_same_place_of_another_time_is_another_record(kind: str) -> None:
    known = Settled()
    if kind == "open":
        known.begin(BatchAcker(1, 5, -1, 4, 1))
    else:
        acknowledge(known, 5, 0, size=4 if kind == "part" else 1)
    assert look_up(known, 5, 0, published=2) is Repeat.FOREIGN
    assert look_up(known, 5, 0, published=2, counted=True) is Repeat.FOREIGN


def test_a_broker_that_moved_back_delivers_parts_too_marked() -> None:
    known, batch = Settled(), BatchAcker(1, 6, -1, 4, 1)
    known.begin(batch)
    batch.settled = 1
    acknowledge(known, 5, 0, size=4)
    known.fold()
    known.was_moved_back((1, 4, -1))
    assert [look_up(known, entry, 0) for entry in (5, 6)] == [Repeat.REDELIVERED] * 2
    assert [look_up(known, entry, 1) for entry in (5, 6)] == [Repeat.NOTHING] * 2  # not acknowledged
    acknowledge(known, 5, 0, size=4)
    known.fold()
    assert look_up(known, 5, 0) is Repeat.DUPLICATE


def test_memory_is_bounded_and_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settled, "ENTRIES", 3)
    known = Settled()
    for entry in (1, 2, 3, 1, 4):
        acknowledge(known, entry)
        acknowledge(known, entry + 10, 0, size=2)
        known.begin(BatchAcker(1, entry + 20, -1, 2, 1))
        known.fold()
    assert [look_up(known, entry) is Repeat.REDELIVERED for entry in (1, 2, 3, 4)] == [True, False, True, True]
    assert [look_up(known, entry, 0) is Repeat.DUPLICATE for entry in (11, 12, 13, 14)] == [
        True,
        False,
        True,
        True,
    ]
    assert len(known.open) == 3


async def test_after_forget_no_record_is_known_as_settled() -> None:
    desk = Desk(True)
    known = desk.acks.settled[desk.native_consumer]
    known.begin(BatchAcker(1, 3, -1, 4, 1))
    acknowledge(known, 1)
    known.fold()
    acknowledge(known, 2)
    desk.acks.forget(desk.native_consumer)
    known = desk.acks.settled[desk.native_consumer]
    assert [look_up(known, entry) for entry in (1, 2, 3)] == [Repeat.NOTHING] * 3
    assert not known.open


async def move(broker: TestBroker, method: str, topic: str, tail: str, **content: Any) -> None:
    """A request of an operator's tool."""
    path = topic.replace("://", "/")
    async with httpx.AsyncClient(timeout=60) as http:
        answer = await http.request(method, f"{broker.web_service_url}/admin/v2/{path}{tail}", **content)
        answer.raise_for_status()


@pytest.mark.broker
@pytest.mark.parametrize("type_", [SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE])
async def test_topics_that_are_not_persistent_deliver_all(kit: Kit, type_: SubscriptionType) -> None:
    """Each of their ids is the same."""
    topic = kit.topic.replace("persistent://", "non-persistent://")
    box = await kit.box(type_, topic)
    sender = await kit.sender(topic)
    sent = [f"m{number}" for number in range(50)]
    got = []
    for payload in sent:
        await send(sender, payload)
        received = await box.take(1)
        box.receiver.acknowledge(received)
        got += received
    assert texts(got) == sent
    assert {one.redelivery_count for one in got} == {0}


@pytest.mark.broker
@pytest.mark.parametrize("type_", [SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE])
@pytest.mark.parametrize("together", [True, False])
async def test_a_replay_reaches_a_live_consumer(
    kit: Kit, pulsar_broker: TestBroker, type_: SubscriptionType, together: bool
) -> None:
    """An operator resets the cursor, to the beginning and to the middle: it all comes again, as redelivered."""
    box = await kit.box(type_)
    sender = await kit.sender()
    sent = [f"m{number}" for number in range(20)]
    await send(sender, *sent[:10])
    await anyio.sleep(0.05)
    middle = time.time_ns() // 1_000_000
    await anyio.sleep(0.05)
    if together:
        await send(sender, *sent[10:])
    else:
        for payload in sent[10:]:
            await send(sender, payload)
    box.receiver.acknowledge(await box.take(20))
    await box.receiver.settle(30)
    for start, expected in ((1, sent), (middle, sent[10:])):
        await move(pulsar_broker, "POST", kit.topic, f"/subscription/sub/resetcursor/{start}")
        again = await box.take(len(expected))
        box.receiver.acknowledge(again)
        await box.receiver.settle(30)
        assert texts(again) == expected
        assert {one.redelivery_count for one in again} == {1}
    await send(sender, "new")
    [new] = await box.take(1)
    assert (texts([new]), new.redelivery_count) == (["new"], 0)


@pytest.mark.broker
async def test_a_seek_by_another_client_is_obeyed(kit: Kit) -> None:
    box, other = await kit.box(), await kit.box()
    sender = await kit.sender()
    sent = {f"m{number}" for number in range(10)}
    for payload in sorted(sent):
        await send(sender, payload)
    got: set[str] = set()
    with anyio.fail_after(30):
        while got != sent:
            for one in (box, other):
                records = one.receiver.receive(10)
                one.receiver.acknowledge(records)
                got.update(texts(records))
            await anyio.sleep(0.01)
        await box.receiver.settle(30)
        await other.receiver.settle(30)
        await other.receiver.seek(StartPosition.EARLIEST, 30)
        got.clear()
        while got != sent:
            for one in (box, other):
                got.update(texts(one.receiver.receive(10)))
            await anyio.sleep(0.01)


@pytest.mark.broker
async def test_a_topic_made_anew_while_a_consumer_lives(kit: Kit, pulsar_broker: TestBroker) -> None:
    box = await kit.box(SubscriptionType.SHARED)
    sender = await kit.sender()
    await send(sender, "a", "b", "c")
    box.receiver.acknowledge((await box.take(3))[:2])
    await sender.aclose(30)
    await move(pulsar_broker, "DELETE", kit.topic, "?force=true")
    sender = await kit.sender()
    await send(sender, "d", "e", "f")
    await _until(box, {"d", "e", "f"})


async def _until(box: Any, wanted: set[str]) -> None:
    got: set[str] = set()
    with anyio.fail_after(60):
        while not wanted <= got:
            records = box.receiver.receive(10)
            box.receiver.acknowledge(records)
            got.update(texts(records))
            await anyio.sleep(0.02)
