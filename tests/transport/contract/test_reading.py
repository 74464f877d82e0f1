"""Contract: readers and seek."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jmsaio.errors import InvalidDestinationError
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.transport.base import Reader, StartPosition
from tests.kit.records import record, texts
from tests.kit.virtual_time import wall
from tests.transport.contract.harness import GUARD, QUIET, Harness, Inbox


async def _read_all(reader: Reader) -> list[str]:
    got: list[str] = []
    async with asyncio.timeout(GUARD):
        while not await reader.at_end():
            got += texts(await reader.read(3, GUARD))
    return got


async def _filled(harness: Harness, number: int = 7) -> tuple[str, Inbox]:
    """A topic with the records "0", "1" ..., kept by subscription "keeper"."""
    topic = harness.topic()
    keeper = await harness.inbox(topic, name="keeper", receiver_queue_size=1)
    await harness.fill(topic, *[str(index) for index in range(number)])
    return topic, keeper


async def test_a_reader_reads_from_the_beginning_to_the_end(harness: Harness) -> None:
    topic, _ = await _filled(harness)
    reader = await harness.reader(topic)
    assert await _read_all(reader) == [str(number) for number in range(7)]
    assert await reader.at_end()
    await harness.fill(topic, "later")
    assert not await reader.at_end()
    assert texts(await reader.read(10, GUARD)) == ["later"]
    await reader.aclose(GUARD)
    await reader.aclose(GUARD)


async def test_a_record_that_was_read_tells_its_producer(harness: Harness) -> None:
    topic, _ = await _filled(harness, 0)
    await harness.send(await harness.sender(topic, producer_name="archive"), "x")
    [record] = await (await harness.reader(topic)).read(10, GUARD)
    assert (record.producer_name, record.schema_version) == ("archive", None)


async def test_a_property_is_looked_up_alone_as_among_all_others(harness: Harness) -> None:
    topic, _ = await _filled(harness, 0)
    await harness.fill(topic, record("x", {"a": "1", "b": "", "a_jsmtype": "int"}), record("y", {"JMSExpiration": "5"}))
    received: list[ReceivedRecord] = []
    reader = await harness.reader(topic)
    while len(received) < 2:
        received += await reader.read(10, GUARD)
    assert [received[0].get(name) for name in ("a", "b", "a_jsmtype", "c")] == ["1", "", "int", None]
    assert received[0].properties == {"a": "1", "b": "", "a_jsmtype": "int"}
    assert [each.may_expire for each in received] == [False, True]


async def test_a_reader_of_the_latest_reads_what_comes(harness: Harness) -> None:
    topic, _ = await _filled(harness)
    reader = await harness.reader(topic, StartPosition.LATEST)
    assert await reader.at_end()
    await harness.fill(topic, "new")
    assert texts(await reader.read(10, GUARD)) == ["new"]


async def test_reading_at_the_end_is_over_in_time(harness: Harness) -> None:
    reader = await harness.reader(harness.topic())
    async with asyncio.timeout(GUARD):
        assert await reader.read(10, 0.1) == []


async def test_a_reader_starts_at_a_record(harness: Harness) -> None:
    topic, keeper = await _filled(harness)
    fourth = (await keeper.take(4))[3].message_id
    assert await _read_all(await harness.reader(topic, fourth)) == ["3", "4", "5", "6"]
    assert await _read_all(await harness.reader(topic, fourth, inclusive=False)) == ["4", "5", "6"]


async def _at_two_times(harness: Harness, **producer: Any) -> tuple[str, list[ReceivedRecord]]:
    """A topic with "0", "1", "2" and, some time later, "a", "b"; and its records."""
    topic = harness.topic()
    keeper = await harness.inbox(topic, name="keeper")
    sender = await harness.sender(topic, **producer)
    await harness.send(sender, "0", "1", "2")
    await asyncio.sleep(0.05)
    await harness.send(sender, "a", "b")
    return topic, await keeper.take(5)


@pytest.mark.parametrize("inclusive", [True, False])
async def test_a_reader_starts_at_the_first_record_published_after_a_time(harness: Harness, inclusive: bool) -> None:
    topic, records = await _at_two_times(harness)
    assert records[3].publish_time - records[2].publish_time > 1
    reader = await harness.reader(topic, records[3].publish_time - 1, inclusive)
    assert not await reader.at_end()
    assert await _read_all(reader) == ["a", "b"]
    await harness.fill(topic, "later")
    assert await _read_all(reader) == ["later"]


@pytest.mark.parametrize("batched", [True, False])
async def test_a_reader_starts_at_a_record_published_at_its_time(harness: Harness, batched: bool) -> None:
    """A batch of Pulsar's has one publish time: all of it is read, once."""
    topic, records = await _at_two_times(harness, batching_enabled=batched, batching_max_publish_delay=0.02)
    for first in records:
        expected = [each for each in records if each.publish_time >= first.publish_time]
        assert await _read_all(await harness.reader(topic, first.publish_time)) == texts(expected)


@pytest.mark.parametrize("start", [-1, 0, 1])
async def test_a_time_before_the_first_record_is_the_beginning(harness: Harness, start: int) -> None:
    topic, _ = await _filled(harness)
    reader = await harness.reader(topic, start)
    assert await _read_all(reader) == [str(number) for number in range(7)]
    await harness.fill(topic, "later")
    assert await _read_all(reader) == ["later"]


async def test_a_time_after_the_last_record_is_the_end(harness: Harness) -> None:
    topic, records = await _at_two_times(harness)
    await asyncio.sleep(0.05)
    reader = await harness.reader(topic, records[-1].publish_time + 1)
    assert await reader.at_end()
    assert await reader.read(10, QUIET) == []
    await harness.fill(topic, "later")
    assert await _read_all(reader) == ["later"]


@pytest.mark.parametrize("start", [4_000_000_000_000, 2**63 - 1, 2**70])
async def test_what_is_published_before_a_time_to_come_is_left_out(harness: Harness, start: int) -> None:
    topic, _ = await _at_two_times(harness)
    reader = await harness.reader(topic, start)
    assert await reader.at_end()
    await harness.fill(topic, "early", "early")
    assert await reader.read(10, QUIET) == []
    assert await reader.at_end()


async def test_a_time_in_an_empty_topic_is_its_end(harness: Harness) -> None:
    topic = harness.topic()
    reader = await harness.reader(topic, 1)
    assert await reader.at_end()
    await harness.fill(topic, "first")
    assert await _read_all(reader) == ["first"]


async def test_reading_disturbs_nobody(harness: Harness) -> None:
    topic, keeper = await _filled(harness)
    reader = await harness.reader(topic)
    await _read_all(reader)
    await reader.aclose(GUARD)
    records = await keeper.take(7)
    assert texts(records) == [str(number) for number in range(7)]
    assert {each.redelivery_count for each in records} == {0}
    assert set((await harness.admin.stats(topic)).subscriptions) == {"keeper"}


async def test_two_readers_read_independently(harness: Harness) -> None:
    topic, _ = await _filled(harness, 3)
    first, second = await harness.reader(topic), await harness.reader(topic)
    assert await _read_all(first) == await _read_all(second) == ["0", "1", "2"]


async def test_a_cancelled_read_loses_nothing(harness: Harness) -> None:
    topic, _ = await _filled(harness, 1)
    reader = await harness.reader(topic, StartPosition.LATEST)
    for turns in range(5):
        reading = asyncio.ensure_future(reader.read(10, GUARD))
        for _ in range(turns):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    await harness.fill(topic, "x")
    assert texts(await reader.read(10, GUARD)) == ["x"]


async def test_seek_to_the_earliest_and_the_latest(harness: Harness) -> None:
    topic, _ = await _filled(harness)
    inbox = await harness.inbox(topic)
    await inbox.consume(7)
    await inbox.receiver.seek(StartPosition.EARLIEST, GUARD)
    assert await inbox.consume(7) == [str(number) for number in range(7)]
    await inbox.receiver.seek(StartPosition.EARLIEST, GUARD)
    await inbox.receiver.seek(StartPosition.LATEST, GUARD)
    await harness.fill(topic, "new")
    assert (await inbox.consume(1))[-1:] == ["new"]


async def test_seek_to_a_record(harness: Harness) -> None:
    topic, _ = await _filled(harness)
    inbox = await harness.inbox(topic)
    records = await inbox.take(7)
    inbox.receiver.acknowledge(records)
    await inbox.receiver.seek(records[4].message_id, GUARD)
    assert await inbox.consume(3) == ["4", "5", "6"]


async def test_seek_to_a_time(harness: Harness) -> None:
    topic, _ = await _filled(harness, 3)
    await asyncio.sleep(0.05)
    middle = int(wall() * 1000)
    await asyncio.sleep(0.05)
    await harness.fill(topic, "a", "b")
    inbox = await harness.inbox(topic)
    await inbox.consume(5)
    await inbox.receiver.seek(middle, GUARD)
    assert await inbox.consume(2) == ["a", "b"]


async def test_a_subscription_goes_on_after_a_seek(harness: Harness) -> None:
    topic, _ = await _filled(harness, 3)
    inbox = await harness.inbox(topic)
    await inbox.take(3)
    await inbox.receiver.seek(StartPosition.EARLIEST, GUARD)
    await harness.fill(topic, "3")
    assert await inbox.consume(4) == ["0", "1", "2", "3"]
    await inbox.close()
    assert await (await harness.inbox(topic)).rest() == []


async def test_places_are_ordered(harness: Harness) -> None:
    _, keeper = await _filled(harness)
    places: list[WireId] = [each.message_id for each in await keeper.take(7)]
    assert places == sorted(places)
    assert len(set(places)) == 7


async def _last_read(reader: Reader) -> WireId | None:
    """The place of the last record of a topic that a reader gets."""
    place = None
    while not await reader.at_end():
        for each in await reader.read(3, GUARD):
            place = each.message_id
    await reader.aclose(GUARD)
    return place


async def test_an_empty_topic_has_no_end(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic)
    assert await harness.transport.end(topic) is None


async def test_a_topic_that_did_not_exist_has_no_end_and_can_be_used(harness: Harness) -> None:
    topic = harness.topic()
    assert await harness.transport.end(topic) is None
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "first")
    assert await inbox.consume(1) == ["first"]


async def test_the_end_of_a_topic_is_its_last_record(harness: Harness) -> None:
    topic, _ = await _filled(harness, 3)
    first = await harness.transport.end(topic)
    assert first is not None
    assert first == await _last_read(await harness.reader(topic))
    await harness.fill(topic, "later")
    second = await harness.transport.end(topic)
    assert second is not None and second > first
    assert texts(await (await harness.reader(topic, second)).read(10, GUARD)) == ["later"]
    assert await (await harness.reader(topic, second, inclusive=False)).at_end()


async def test_the_end_of_a_batch_is_its_last_record(harness: Harness) -> None:
    topic, records = await _at_two_times(harness, batching_enabled=True, batching_max_publish_delay=0.02)
    assert await harness.transport.end(topic) == records[-1].message_id


async def test_the_end_of_a_partition_is_told_and_that_of_all_is_refused(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic, 2)
    await harness.inbox(topic, name="keeper")
    with pytest.raises(InvalidDestinationError, match="one by one"):
        await harness.transport.end(topic)
    partition = f"{topic}-partition-1"
    assert await harness.transport.end(partition) is None
    await harness.fill(partition, "x")
    last = await harness.transport.end(partition)
    assert last == await _last_read(await harness.reader(partition))
    assert last is not None and last.partition == 1
    assert await harness.transport.end(f"{topic}-partition-0") is None


async def test_asking_for_the_end_leaves_nothing_behind(harness: Harness) -> None:
    topic, keeper = await _filled(harness)
    await harness.transport.end(topic)
    assert set((await harness.admin.stats(topic)).subscriptions) == {"keeper"}
    assert texts(await keeper.take(7)) == [str(number) for number in range(7)]
