"""Contract: what the administration says about a topic's storage."""

from __future__ import annotations

import anyio
import pytest

from jmsaio.errors import AdminError, InvalidDestinationError, NotFoundError
from jmsaio.transport.base import StartPosition, TopicLog
from tests.transport.contract.harness import GUARD, Harness


async def _log(harness: Harness, topic: str) -> TopicLog:
    """A topic's log, once the broker has looked for the transactions of the topic, which it has just loaded."""
    with anyio.fail_after(GUARD):
        while not (log := await harness.admin.log(topic)).is_readable_known:
            await anyio.sleep(0.01)
    return log


async def test_an_empty_topic_has_no_last_entry(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic)
    log = await _log(harness, topic)
    assert (log.last, log.last_readable, log.is_readable_known) == (None, None, True)
    assert sum(ledger.entries for ledger in log.ledgers) == 0


@pytest.mark.parametrize("partition", [-1, 1])
async def test_entries_are_told_by_ledger_up_to_the_last(harness: Harness, partition: int) -> None:
    topic = harness.topic()
    if partition >= 0:
        await harness.admin.create_topic(topic, 2)
        topic = f"{topic}-partition-{partition}"
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    sender = await harness.sender(topic, batching_enabled=False)
    places = await harness.send(sender, *"123")
    log = await _log(harness, topic)
    assert log.last is not None
    assert places[-1] is not None
    assert log.last[:2] == places[-1][:2]
    assert (log.last.partition, log.last_readable) == (partition, log.last)
    ledger = log.ledgers[-1]
    assert (ledger.id, ledger.entries) == (log.last.ledger, log.last.entry + 1)
    assert ledger.bytes > 0
    await harness.send(sender, "4")
    later = await _log(harness, topic)
    assert later.ledgers[-1].entries == 4
    assert later.ledgers[-1].bytes > ledger.bytes
    assert await harness.admin.ledgers(topic) == later.ledgers


async def test_the_last_readable_entry_is_the_end_that_a_reader_is_given(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    await harness.fill(topic, *"123")
    readable, end = (await _log(harness, topic)).last_readable, await harness.transport.end(topic)
    assert readable is not None
    assert end is not None
    assert readable[:2] == end[:2]
    assert readable.batch_index == -1


async def test_a_broker_that_deduplicates_says_so(harness: Harness, deduplicating_namespace: str) -> None:
    topic = f"persistent://{deduplicating_namespace}/log"
    await harness.fill(topic, "1")
    assert (await _log(harness, topic)).deduplication


async def test_a_broker_that_keeps_duplicates_says_so(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_topic(topic)
    assert not (await _log(harness, topic)).deduplication


async def test_only_a_topic_without_partitions_that_exists_has_a_log(harness: Harness) -> None:
    topic = harness.topic()
    with pytest.raises(NotFoundError):
        await harness.admin.log(topic)
    with pytest.raises(NotFoundError):
        await harness.admin.ledgers(topic)
    await harness.admin.create_topic(topic, 2)
    with pytest.raises(InvalidDestinationError, match="partitions"):
        await harness.admin.log(topic)
    with pytest.raises(InvalidDestinationError, match="partitions"):
        await harness.admin.ledgers(topic)


async def test_an_entry_with_a_whole_message_is_complete(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    [place] = await harness.send(await harness.sender(topic, batching_enabled=False), "1")
    assert place is not None
    entry = await harness.admin.entry(topic, place)
    assert entry.is_message and entry.chunks_left is None
    assert abs(entry.publish_time - harness.transport.clock.now() * 1000) < 60_000
    for absent in (place._replace(entry=place.entry + 1), place._replace(entry=2**40)):
        with pytest.raises(AdminError):
            await harness.admin.entry(topic, absent)
    with pytest.raises(NotFoundError):
        await harness.admin.entry(harness.topic(), place)


async def test_the_first_entry_since_a_publish_time_is_found(harness: Harness) -> None:
    topic = harness.topic()
    await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)
    sender = await harness.sender(topic, batching_enabled=False)
    early = await harness.send(sender, *"12")
    await anyio.sleep(0.05)
    time = int(harness.transport.clock.now() * 1000)
    await anyio.sleep(0.05)
    late = await harness.send(sender, *"34")
    first, middle, last = early[0], late[0], late[1]
    assert first is not None and middle is not None and last is not None
    assert (await harness.admin.first_since(topic, time))[:2] == middle[:2]
    for before in (0, -5):
        assert (await harness.admin.first_since(topic, before))[:2] == first[:2]
    for after in (time + 3_600_000, 2**70):
        assert (await harness.admin.first_since(topic, after))[:2] == (last.ledger, last.entry + 1)
    with pytest.raises(NotFoundError):
        await harness.admin.first_since(harness.topic(), time)
    await harness.admin.create_topic(parted := harness.topic(), 2)
    with pytest.raises(AdminError):
        await harness.admin.first_since(parted, time)
