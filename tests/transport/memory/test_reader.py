from __future__ import annotations

import asyncio

import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import InvalidDestinationError, NotFoundError, ObjectClosedError
from jmsaio.testing import EmbeddedBroker
from jmsaio.transport.base import ReaderOptions, StartPosition
from jmsaio.transport.memory.broker.broker import broker_named
from jmsaio.transport.memory.reader import MemoryReader
from tests.kit.records import Outcomes, record, texts
from tests.transport.contract.harness import GUARD, Harness
from tests.transport.memory.connecting import CountingLink, connect


async def test_a_topic_with_partitions_is_refused(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic, 2)
    with pytest.raises(InvalidDestinationError, match="one by one"):
        await harness.reader(topic)
    await harness.reader(f"{topic}-partition-1")


async def test_what_is_not_read_stays_in_memory(embedded: EmbeddedBroker, harness: Harness) -> None:
    topic = harness.topic()
    reader = await harness.reader(topic)
    await harness.fill(topic, "1", "2")
    assert embedded.used > 0
    assert texts(await reader.read(1, GUARD)) == ["1"]
    await reader.aclose(GUARD)
    assert embedded.used == 0


async def test_closing_a_reader_makes_room_for_what_waits_for_memory(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    reader = await harness.reader(topic)
    sender, outcomes = await harness.sender(topic), Outcomes()
    for text in ("kept for the reader", "waits"):
        sender.send(record(text), outcomes)
    await asyncio.sleep(0)
    assert outcomes.errors == [None]
    await reader.aclose(GUARD)
    await sender.drain(GUARD)
    assert outcomes.errors == [None, None]
    await harness.stop()


async def test_a_read_that_waits_ends_with_the_reader_or_the_topic(harness: Harness) -> None:
    topic = harness.topic()
    closed, deleted = await harness.reader(topic), await harness.reader(topic)
    reading = [asyncio.ensure_future(reader.read(1, GUARD)) for reader in (closed, deleted)]
    await asyncio.sleep(0.01)
    await closed.aclose(GUARD)
    with pytest.raises(ObjectClosedError):
        await reading[0]
    await harness.admin.delete_topic(topic, force=True)
    with pytest.raises(NotFoundError):
        await reading[1]


async def test_an_outage_is_waited_for(embedded: EmbeddedBroker, harness: Harness) -> None:
    topic = harness.topic()
    reader = await harness.reader(topic)
    await harness.fill(topic, "1")
    with embedded.faults.outage():
        reading = asyncio.ensure_future(reader.read(1, GUARD))
        await asyncio.sleep(0.01)
        assert not reading.done()
    assert texts(await reading) == ["1"]


async def test_reading_a_long_topic_leaves_the_loop_to_others(harness: Harness) -> None:
    topic = harness.topic()
    reader = await harness.reader(topic, StartPosition.LATEST)
    await harness.fill(topic, *map(str, range(100)))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(others())
    while not await reader.at_end():
        await reader.read(1, GUARD)
    task.cancel()
    assert turns >= 99


async def test_reading_makes_room_for_what_waits_for_memory(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    reader = await harness.reader(topic)
    sender, outcomes = await harness.sender(topic), Outcomes()
    for text in ("first", "waits"):
        sender.send(record(text), outcomes)
    assert texts(await reader.read(1, GUARD)) == ["first"]
    await sender.drain(GUARD)
    assert outcomes.errors == [None, None]
    await harness.stop()


async def test_a_read_at_the_end_goes_on_over_an_outage(embedded: EmbeddedBroker, harness: Harness) -> None:
    topic = harness.topic()
    reader = await harness.reader(topic)
    reading = asyncio.ensure_future(reader.read(1, GUARD))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with embedded.faults.outage():
        pass
    for _ in range(5):
        await asyncio.sleep(0)
    assert not reading.done()
    await harness.fill(topic, "x")
    assert texts(await reading) == ["x"]


async def test_records_that_come_at_once_are_announced_once(harness: Harness) -> None:
    topic = harness.topic()
    link = CountingLink(broker_named(harness.configuration.broker_name), asyncio.get_running_loop())
    reader = MemoryReader(link, ReaderOptions(topic, ConsumerConfig(), StartPosition.EARLIEST, True))
    assert await reader.read(1, 0.01) == []
    link.deferred = 0
    await harness.fill(topic, "1", "2", "3")
    assert link.deferred == 1
    await reader.aclose(GUARD)
