"""``AckGrouping``: what is acknowledged reaches pulsar-client, a batch with one call where it can."""

from __future__ import annotations

import asyncio
import weakref

import _pulsar
import anyio

from jmsaio.errors import ObjectClosedError
from jmsaio.transport.pulsar.native.records.ack_grouping import HOLD
from jmsaio.transport.pulsar.native.records.received import HELD
from tests.kit.native_fakes import FakeMessage
from tests.kit.unacked import Desk, batch, whole_batch

WHOLE = _pulsar.MessageId(-1, 1, 0, -1)


async def test_a_batch_is_acknowledged_with_one_call() -> None:
    desk = Desk(True)
    records = desk.admit(*whole_batch())
    desk.acks.acknowledge(records[2:])
    desk.acks.acknowledge([*records[:2], *records])
    assert desk.consumer.acknowledged == [WHOLE]
    await anyio.sleep(4 * HOLD)
    desk.acks.flush()
    assert desk.consumer.acknowledged == [WHOLE]


async def test_a_part_is_reported_soon_and_the_rest_with_the_whole() -> None:
    desk = Desk(True)
    records = desk.admit(*whole_batch())
    desk.acks.acknowledge(records[:2])
    assert desk.consumer.acknowledged == []
    parts = [records[0].native, records[1].native]
    assert await desk.until_acknowledged(2) == parts
    desk.acks.acknowledge(records[2:])
    assert desk.consumer.acknowledged == [*parts, WHOLE]


async def test_batches_in_pieces_and_several_at_once() -> None:
    desk = Desk(False)
    messages = [*whole_batch(0), *whole_batch(1), FakeMessage(2), *whole_batch(3)]
    records = [record for start in range(0, 13, 3) for record in desk.admit(*messages[start : start + 3])]
    assert len(records) == 13
    desk.acks.acknowledge(records[::-1])
    assert desk.consumer.acknowledged == [
        _pulsar.MessageId(-1, 1, 3, -1), records[8].native, _pulsar.MessageId(-1, 1, 1, -1), WHOLE
    ]  # fmt: skip


async def test_a_pattern_acknowledges_by_message() -> None:
    """Its topics are mixed, and pulsar-client finds the topic's consumer by the message."""
    desk = Desk(True)
    desk.native_consumer.topic = None
    records = desk.admit(*whole_batch())
    desk.acks.acknowledge(records)
    assert desk.consumer.acknowledged == [record.native for record in records]


async def test_the_same_record_again_counts_once_for_its_batch() -> None:
    desk = Desk(False)
    first, *others = desk.admit(*whole_batch())
    desk.unsettled.give_back([first])
    desk.unsettled.remove([first])
    again = first.again(counted=True)
    desk.unsettled.out[again] = HELD
    desk.acks.acknowledge([first, again, again, *others[:2]])
    assert desk.consumer.acknowledged == []
    desk.acks.acknowledge(others)
    assert desk.consumer.acknowledged == [WHOLE]


async def test_clear_reports_nothing_of_the_old_place() -> None:
    desk = Desk(False)
    desk.acks.acknowledge(desk.admit(*whole_batch())[:1])
    desk.tracker.clear(bool)
    await anyio.sleep(4 * HOLD)
    assert desk.consumer.acknowledged == []


async def test_a_closed_transport_gets_nothing() -> None:
    desk = Desk(False)
    desk.acks.acknowledge(desk.admit(*whole_batch())[:1])
    desk.bridge.failure = (ObjectClosedError, "closed")
    await anyio.sleep(4 * HOLD)
    assert desk.consumer.acknowledged == []


async def test_the_time_of_the_last_acknowledgement_is_known() -> None:
    desk, clock = Desk(True), asyncio.get_running_loop().time
    assert desk.acks.last is None
    desk.acks.acknowledge(desk.admit(*whole_batch())[:1])
    before = clock()
    desk.acks.flush()
    assert desk.acks.last is not None and desk.acks.last >= before


async def test_what_is_acknowledged_keeps_no_payload() -> None:
    """Whether alone, as a batch, or one of a batch that is reported by itself."""
    desk = Desk(True)
    messages = [*whole_batch(0), *(FakeMessage(entry) for entry in range(1, 9)), *whole_batch(9)]
    alive = [weakref.ref(message) for message in messages]
    desk.acks.acknowledge(desk.admit(*messages)[:-1])
    desk.acks.flush()
    held = messages[-1]
    del messages
    desk.consumer.acknowledged.clear()
    assert [one() for one in alive if one() is not None] == [held]


async def test_a_part_waits_from_one_look_to_the_next_for_the_rest_of_its_batch() -> None:
    desk = Desk(True)
    records = desk.admit(*whole_batch())
    desk.acks.acknowledge(records[:2])
    desk.acks._look()
    assert desk.consumer.acknowledged == []
    desk.acks.acknowledge(records[2:])
    assert desk.consumer.acknowledged == [WHOLE]


async def test_only_what_is_out_is_acknowledged() -> None:
    desk = Desk(True)
    records = desk.admit(*batch())
    desk.acks.acknowledge([records[0], records[0], "foreign"])
    desk.unsettled.give_back(records[1:2])
    desk.acks.acknowledge(records[:2])
    assert desk.consumer.acknowledged == [records[0].native]
    desk.acks.acknowledge(records[1:2], given_back=True)
    assert desk.consumer.acknowledged == [records[0].native, records[1].native]
    assert desk.unsettled.give_back([records[0], records[2], "foreign"]) == [records[2]]
    assert desk.unsettled.remove([records[3], records[2]]) == [records[2]]
