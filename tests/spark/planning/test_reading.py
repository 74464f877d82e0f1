"""Ranges read from a broker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest

from jmsaio.codec.rows import RawRow
from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.errors import (
    AdminError,
    BrokerUnavailableError,
    DataLossError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.model.destinations import Topic, resolve
from jmsaio.model.wire import MESSAGE_TYPE, OutgoingRecord, ReceivedRecord, WireId
from jmsaio.spark.model.place import Place
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.planning import reading as reading_module
from jmsaio.spark.planning.batch_planning import plan_batch
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.planning.reading import RangeReading
from jmsaio.spark.planning.stream_planning import StreamPlanner
from jmsaio.spark.planning.tolerance import read_losses
from jmsaio.testing import FaultProxy
from jmsaio.transport.administration import StoredEntry
from jmsaio.transport.base import Reader, ReaderOptions, SenderOptions, StartPosition, Transport
from jmsaio.transport.registry import open_transport
from tests.kit.records import Outcomes, rows_of, tell_each
from tests.spark.seam import HANG, Breakable, Seam, source, texts, unload
from tests.support.broker import TestBroker

SEVEN = [f"m{number}" for number in range(7)]


async def plan(seam: Seam, topic: str, max_entries: int = 50_000, **values: Any) -> list[Range]:
    return await plan_batch(seam.transport, *source(topic, max_entries_per_partition=max_entries, **values))


def record(text: str, **properties: str) -> OutgoingRecord:
    return OutgoingRecord(text.encode(), {MESSAGE_TYPE: "text", **properties})


async def next_rows(reading: RangeReading) -> list[RawRow]:
    """The next rows of a range, none behind its end."""
    columns = await reading.next_columns()
    return [] if columns is None else rows_of(columns)


@attrs.define
class Spying:
    """A transport whose readers are counted, may keep records back, and are asked to be closed. Nothing comes of as
    many of the first ones as are ``silent``; the one with the number ``fails`` loses its connection.
    """

    inner: Transport
    starts: list[object] = attrs.field(factory=list)
    queues: list[int] = attrs.field(factory=list)
    open: int = 0
    silent: int = 0
    fails: int | None = None
    keeps_back: Callable[[int, ReceivedRecord], bool] = lambda reader, record: False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def open_reader(self, options: ReaderOptions) -> Reader:
        self.starts.append(options.start)
        self.queues.append(options.config.receiver_queue_size)
        self.open += 1
        return SpyingReader(self, len(self.starts), await self.inner.open_reader(options))


@attrs.define
class SpyingReader:
    """A reader of such a transport."""

    spying: Spying
    number: int
    inner: Reader

    async def read(self, limit: int, timeout: float) -> list[ReceivedRecord]:
        if self.number <= self.spying.silent:
            await asyncio.sleep(timeout)
            return []
        if self.number == self.spying.fails:
            raise BrokerUnavailableError("the connection is lost")
        while records := await self.inner.read(limit, timeout):
            given = [each for each in records if not self.spying.keeps_back(self.number, each)]
            if given or await self.inner.at_end():
                return given
        return []

    async def at_end(self) -> bool:
        return await self.inner.at_end()

    async def aclose(self, timeout: float) -> None:
        self.spying.open -= 1
        await self.inner.aclose(timeout)


def spy(seam: Seam, keeps_back: Callable[[int, ReceivedRecord], bool] = lambda reader, record: False) -> Spying:
    """Let a client go through one."""
    seam.transport = found = Spying(seam.transport, keeps_back=keeps_back)
    return found


async def test_rows_come_in_lists_of_at_most_so_many_rows_or_bytes(seam: Seam) -> None:
    [part] = await plan(seam, await seam.topic(*SEVEN))
    small, short, usual = dict[str, Any](batch_bytes=1), dict[str, Any](batch_rows=3), dict[str, Any]()
    for options, sizes in ((short, [3, 3, 1]), (small, [1] * 7), (usual, [7])):
        async with contextlib.aclosing(seam.reading(part, **options)) as reading:
            lists = [await next_rows(reading) for _ in sizes]
            assert await reading.next_columns() is None
        assert [len(rows) for rows in lists] == sizes
        assert [text for rows in lists for text in texts(rows)] == SEVEN


async def test_batches_are_cut_by_their_index_and_ranges_between_them(seam: Seam) -> None:
    topic = await seam.topic()
    places = await seam.send(topic, *SEVEN, batching_enabled=True, batching_max_publish_delay=0.05)
    first, last = (Place(each.ledger, each.entry, max(each.batch_index, 0)) for each in (places[2], places[5]))
    ranges = await plan(seam, topic, 1, starting_offsets={topic: first}, ending_offsets={topic: last})
    assert await seam.all_texts(ranges) == SEVEN[2:5]
    assert await seam.all_texts(await plan(seam, topic, 1)) == SEVEN


async def test_a_selector_and_publish_times_choose_among_messages(seam: Seam) -> None:
    topic = await seam.topic()
    await seam.send(topic, record("old", region="EU"))
    await asyncio.sleep(0.05)
    await seam.send(topic, record("a", region="EU"), record("b", region="US"))
    await asyncio.sleep(0.05)
    await seam.send(topic, record("new", region="EU"))
    [part] = await plan(seam, topic)
    rows = await seam.rows(part)
    selected = await seam.rows(
        part, selector="region = 'EU'", starting_time=rows[1].publish_time, ending_time=rows[3].publish_time
    )
    assert texts(selected) == ["a"]
    assert texts(await seam.rows(part, selector="region = 'US'")) == ["b"]


async def test_a_message_that_cannot_be_read_is_a_row(seam: Seam) -> None:
    topic = await seam.topic()
    await seam.send(topic, OutgoingRecord(b"\xff", {MESSAGE_TYPE: "text"}))
    [part] = await plan(seam, topic)
    [row] = await seam.rows(part)
    assert (row.text, row.data) == (None, b"\xff")
    assert "no readable text body" in str(row.decode_error)


async def test_what_one_reader_keeps_back_another_brings(seam: Seam) -> None:
    [part] = await plan(seam, await seam.topic(*SEVEN))
    spying = spy(seam, lambda reader, record: reader == 1 and record.message_id.entry in (0, 3, 4))
    assert texts(await seam.rows(part)) == SEVEN
    assert spying.open == 0


async def test_a_message_that_no_reader_gets_is_data_loss(seam: Seam) -> None:
    """Looking for it repeats what was read, and each row comes once."""
    [part] = await plan(seam, await seam.topic(*SEVEN))
    spying = spy(seam, lambda reader, record: record.message_id.entry == 3)
    with pytest.raises(DataLossError, match="although the broker stores them") as caught:
        await seam.rows(part)
    assert caught.value.wanted == str(Place(part.start.ledger, 3))
    assert len(spying.starts) == 2
    assert texts(await seam.rows(part, fail_on_data_loss=False)) == [*SEVEN[:3], *SEVEN[4:]]


@pytest.fixture
def messages(seam: Seam, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The numbers of the entries that the broker calls messages; all others are markers to it."""
    found: set[int] = set()

    async def entry(admin: object, topic: str, message_id: WireId) -> StoredEntry:
        return StoredEntry(0, hidden=message_id.entry not in found)

    monkeypatch.setattr(type(seam.transport.admin), "entry", entry)
    return found


async def test_a_message_is_looked_for_however_many_entries_are_nothing_for_readers(
    seam: Seam, messages: set[int]
) -> None:
    messages.add(51)
    bodies = [f"m{number}" for number in range(60)]
    [part] = await plan(seam, await seam.topic(*bodies))
    spy(
        seam, lambda reader, record: record.message_id.entry % 2 == 1 and (record.message_id.entry != 51 or reader < 10)
    )
    assert texts(await seam.rows(part)) == sorted([*bodies[::2], "m51"], key=bodies.index)


@pytest.mark.usefixtures("messages")
async def test_entries_that_are_nothing_for_readers_are_looked_for_a_few_times_only(seam: Seam) -> None:
    bodies = [f"m{number}" for number in range(60)]
    [part] = await plan(seam, await seam.topic(*bodies))
    spying = spy(seam, lambda reader, record: record.message_id.entry % 2 == 1)
    assert texts(await seam.rows(part)) == bodies[::2]
    assert 9 <= len(spying.starts) <= 11  # two more where a reader is silent at the end


@pytest.mark.usefixtures("messages")
async def test_what_a_new_reader_leaves_out_is_looked_for_once_more(seam: Seam) -> None:
    """Many entries were nothing for readers when messages prove to be small, so that a reader takes more at a time."""
    unwanted, small, large = record("no"), record("small", wanted="y"), record("x" * 9000, wanted="y")
    topic = await seam.topic()
    await seam.send(topic, *[unwanted] * 30, *[small] * 10, *[large] * 20)
    [part] = await plan(seam, topic)
    new: list[int] = []

    def keeps_back(reader: int, record: ReceivedRecord) -> bool:
        if reader > 9 and not new:  # the first one, and eight that looked for what was missing
            new.append(reader)
        entry = record.message_id.entry
        return (entry < 30 and entry % 2 == 1) or (entry == 55 and [reader] == new)

    spy(seam, keeps_back)
    found = await seam.rows(part, batch_bytes=50_000, batch_rows=5, selector="wanted = 'y'")
    assert new
    assert [row.entry for row in found] == list(range(30, 60))


async def test_a_reader_of_which_nothing_comes_is_replaced(seam: Seam) -> None:
    [part] = await plan(seam, await seam.topic(*SEVEN))
    spying = spy(seam)
    spying.silent = 1
    assert texts(await seam.rows(part, read_timeout=0.5)) == SEVEN
    assert (len(spying.starts), spying.open) == (2, 0)


async def test_a_silence_does_not_count_as_a_look_for_what_is_missing_later(seam: Seam) -> None:
    [part] = await plan(seam, await seam.topic(*SEVEN))
    spying = spy(seam, lambda reader, record: reader == 2 and record.message_id.entry == 3)
    spying.silent = 1
    assert texts(await seam.rows(part, read_timeout=0.5)) == SEVEN
    assert len(spying.starts) == 3


async def in_batches(seam: Seam) -> Range:
    """The range of a topic with 40 messages in batches of ten."""
    topic, bodies = await seam.topic(), [f"m{number}" for number in range(40)]
    await seam.send(topic, *bodies, batching_enabled=True, batching_max_messages=10, batching_max_publish_delay=1.0)
    [part] = await plan(seam, topic)
    assert part.entries() == 4
    return part


@pytest.mark.parametrize("index", [0, 4, 9], ids=["first", "middle", "last"])
@pytest.mark.parametrize("entry", [0, 2, 3])
async def test_what_one_reader_leaves_out_of_a_batch_another_brings(pulsar: Seam, entry: int, index: int) -> None:
    part = await in_batches(pulsar)
    spying = spy(pulsar, lambda reader, record: reader == 1 and record.message_id[1::2] == (entry, index))
    assert texts(await pulsar.rows(part)) == [f"m{number}" for number in range(40)]
    assert (len(spying.starts), spying.open) == (2, 0)


async def test_a_hole_that_every_batch_has_is_mended_however_many_there_are(pulsar: Seam) -> None:
    """One late message in each batch: pulsar-client may hand over one before the message that precedes it."""
    topic, bodies = await pulsar.topic(), [f"m{number}" for number in range(60)]
    await pulsar.send(topic, *bodies, batching_enabled=True, batching_max_messages=3, batching_max_publish_delay=1.0)
    [part] = await plan(pulsar, topic)
    spying = spy(pulsar, lambda reader, record: record.message_id[1::2] == (reader - 1, 1))
    assert texts(await pulsar.rows(part)) == bodies
    assert len(spying.starts) == 21


async def test_what_compaction_removed_from_each_batch_costs_no_reader_each(pulsar: Seam) -> None:
    topic, bodies = await pulsar.topic(), [f"m{number}" for number in range(60)]
    await pulsar.send(topic, *bodies, batching_enabled=True, batching_max_messages=3, batching_max_publish_delay=1.0)
    [part] = await plan(pulsar, topic)
    spying = spy(pulsar, lambda reader, record: record.message_id.batch_index == 1)
    left = [body for number, body in enumerate(bodies) if number % 3 != 1]
    assert texts(await pulsar.rows(part, config=ConsumerConfig(read_compacted=True))) == left
    assert len(spying.starts) < 12


@pytest.mark.parametrize("index", [0, 4, 9])
async def test_what_no_reader_gets_of_a_batch_is_data_loss(
    pulsar: Seam, index: int, caplog: pytest.LogCaptureFixture
) -> None:  # fmt: skip
    part = await in_batches(pulsar)
    spy(pulsar, lambda reader, record: record.message_id[1::2] == (2, index))
    with pytest.raises(DataLossError, match="only a part of their batch") as caught:
        await pulsar.rows(part)
    assert caught.value.wanted == str(Place(part.start.ledger, 2, index))
    left = [f"m{number}" for number in range(40) if number != 20 + index]
    async with contextlib.aclosing(pulsar.reading(part, fail_on_data_loss=False)) as reading:
        assert texts(await next_rows(reading)) + texts(await next_rows(reading)) == left
    assert [record.levelname for record in caplog.records if "only a part of their batch" in record.message] == [
        "WARNING"
    ]
    compacted = ConsumerConfig(read_compacted=True)  # there it may be what compaction has removed
    assert texts(await pulsar.rows(part, config=compacted)) == left


@pytest.mark.usefixtures("messages")
async def test_the_end_of_a_range_may_be_nothing_for_readers(seam: Seam) -> None:
    [part] = await plan(seam, await seam.topic(*SEVEN))
    spy(seam, lambda reader, record: record.message_id.entry >= 5)
    assert texts(await seam.rows(part)) == SEVEN[:5]


@pytest.mark.slow  # pyarrow, which notes the loss, is there in the full run only
async def test_a_topic_that_was_deleted_is_data_loss(
    seam: Seam, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:  # fmt: skip
    topic = await seam.topic(*SEVEN)
    [part] = await plan(seam, topic)
    admin = seam.transport.admin
    assert admin is not None
    await admin.delete_topic(topic, force=True)
    with pytest.raises(DataLossError, match="the topic was deleted"):
        await seam.rows(part)
    reading = seam.reading(part, fail_on_data_loss=False, data_loss_folder=str(tmp_path))
    assert await reading.next_columns() is None
    (noted,) = read_losses(str(tmp_path))
    assert noted.startswith(f"{topic}: messages from {part.start} on are lost")
    assert "the topic was deleted" in caplog.text


async def test_a_topic_that_was_made_anew_is_data_loss(seam: Seam) -> None:
    topic = await seam.topic(*SEVEN)
    [part] = await plan(seam, topic)
    admin = seam.transport.admin
    assert admin is not None
    await admin.delete_topic(topic, force=True)
    await admin.create_subscription(topic, "keeper", StartPosition.EARLIEST)
    await seam.send(topic, "another")
    with pytest.raises(DataLossError, match="created again") as caught:
        await seam.rows(part)
    assert caught.value.wanted == str(part.start)
    assert await seam.rows(part, fail_on_data_loss=False) == []


async def test_a_message_that_does_not_come_is_an_error_in_time(seam: Seam) -> None:
    """The broker says that there is more, and never gives it."""
    [part] = await plan(seam, await seam.topic(*SEVEN))
    spying = spy(seam)
    spying.silent = 99
    with pytest.raises(OperationTimeoutError, match="readTimeout"):
        await seam.rows(part, read_timeout=0.2)
    assert spying.open == 0


async def test_closing_or_cancelling_in_the_middle_closes_the_reader(seam: Seam) -> None:
    [part] = await plan(seam, await seam.topic(*SEVEN))
    spying = spy(seam)
    async with contextlib.aclosing(seam.reading(part, batch_rows=2)) as reading:
        assert texts(await next_rows(reading)) == SEVEN[:2]
        assert spying.open == 1
    assert spying.open == 0
    entered = asyncio.Event()

    async def read_slowly() -> None:
        async with contextlib.aclosing(seam.reading(part, batch_rows=2)) as reading:
            await reading.next_columns()
            entered.set()
            await asyncio.sleep(HANG)

    task = asyncio.create_task(read_slowly())
    await entered.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (task.cancelled(), spying.open) == (True, 0)


async def test_large_messages_are_prefetched_in_small_numbers(seam: Seam) -> None:
    """Entries of 100 kB and lists of 1 MB: ten at a time; and small ones in a batch as many as were asked for."""
    bodies = ["x" * 100_000] * 30
    [part] = await plan(seam, await seam.topic(*bodies))
    spying = spy(seam)
    assert await seam.all_texts([part], batch_bytes=1_000_000) == bodies
    assert len(spying.queues) == 1
    assert 9 <= spying.queues[0] <= 10
    assert await seam.all_texts([part], batch_bytes=10) == bodies
    assert spying.queues[-1] == 1


@pytest.mark.parametrize("max_entries", [1, 2, 3, 50])
async def test_a_message_in_chunks_belongs_to_the_range_of_its_last_chunk(pulsar: Seam, max_entries: int) -> None:
    """Wherever ranges are cut, each message comes once: also those whose chunks lie in several ranges."""
    topic = await pulsar.topic("first")
    bodies = [b"first"]
    for number in range(2):
        body = os.urandom(11 * 1024 * 1024)
        await pulsar.send(topic, OutgoingRecord(body, {MESSAGE_TYPE: "bytes"}), chunking_enabled=True)
        await pulsar.send(topic, f"after {number}")
        bodies += [body, f"after {number}".encode()]
    ranges = await plan(pulsar, topic, max_entries)
    assert sum(part.entries() for part in ranges) == 9
    rows = [row for part in ranges for row in await pulsar.rows(part)]
    assert [body_of(row) for row in rows] == bodies


async def test_wherever_the_last_message_is_cut_between_its_chunks_it_comes_once(pulsar: Seam) -> None:
    """Nothing follows it, so that a reader that begins between its chunks is given nothing."""
    topic, body = await pulsar.topic("first"), os.urandom(11 * 1024 * 1024)
    [last] = await pulsar.send(topic, OutgoingRecord(body, {MESSAGE_TYPE: "bytes"}), chunking_enabled=True)
    places = [Place(last.ledger, entry) for entry in range(last.entry + 2)]
    assert len(places) == 5
    cuts = [
        await plan(pulsar, topic, starting_offsets={topic: low}, ending_offsets={topic: high})
        for cut in places[1:-1]
        for low, high in ((places[0], cut), (cut, places[-1]))
    ]
    given = {"url": "pulsar://h:1", "topic": topic, "startingOffsets": "earliest", "maxEntriesPerTrigger": "1"}
    options = attrs.evolve(parse_options(given, Use.READ_STREAM), offset_poll_interval=0.0)
    stream = StreamPlanner(pulsar.transport, resolve(Topic(topic)), options)
    offset, batches = await stream.initial(), list[list[Range]]()
    while (end := await stream.latest(offset, limited=True)) != offset:
        batches.append(await stream.ranges(offset, end))
        offset = end
    assert [sum(part.entries() for part in ranges) for ranges in batches] == [1] * 4

    async def bodies(ranges: list[Range], seam: Seam = pulsar) -> list[bytes | None]:
        return [body_of(row) for part in ranges for row in await seam.rows(part)]

    failing = Spying(pulsar.transport, fails=2)  # the one that begins earlier
    found = await asyncio.gather(*map(bodies, (*cuts, *batches)), bodies(cuts[-1], Seam(failing)))
    before, behind = [b"first"], [body]
    assert found == [*[before, behind] * 3, before, [], [], behind, behind]
    assert len(failing.starts) == 3  # the one that failed was replaced where it began


@pytest.mark.parametrize("followed", [True, False])
async def test_a_message_that_began_long_before_the_cut_comes_once(
    pulsar: Seam, followed: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Many entries of other senders may lie between its chunks: more than a first look goes back."""
    monkeypatch.setattr(reading_module, "_BACK_ENTRIES", (1, 1))
    monkeypatch.setattr(reading_module, "_LONG_SILENCE", 2.0)
    topic, body = await pulsar.topic("first"), os.urandom(16 * 1024 * 1024)
    [last] = await pulsar.send(topic, OutgoingRecord(body, {MESSAGE_TYPE: "bytes"}), chunking_enabled=True)
    after = ["after"] * followed
    await pulsar.send(topic, *after)
    [part] = await plan(pulsar, topic, starting_offsets={topic: Place(last.ledger, last.entry)})
    assert last.entry == 4
    assert [body_of(row) for row in await pulsar.rows(part)] == [body, *map(str.encode, after)]
    caplog.clear()
    monkeypatch.setattr(reading_module, "_FAR_RETRIES", 0)
    if followed:
        assert [body_of(row) for row in await pulsar.rows(part)] == [*map(str.encode, after)]
        assert f"the message that ends at {Place(last.ledger, last.entry)} is left out" in caplog.text


async def test_an_outage_during_a_look_far_back_leaves_no_message_out(
    pulsar: Seam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the question for the last chunk nor the reader that went far back has counted."""
    monkeypatch.setattr(reading_module, "_BACK_ENTRIES", (1, 1))
    monkeypatch.setattr(reading_module, "_FAR_RETRIES", 1)
    monkeypatch.setattr(reading_module, "_QUERIES", 1)
    monkeypatch.setattr(reading_module, "_SILENCE", HANG)  # a slow machine opens no other readers
    topic, body = await pulsar.topic("first"), os.urandom(16 * 1024 * 1024)
    [last] = await pulsar.send(topic, OutgoingRecord(body, {MESSAGE_TYPE: "bytes"}), chunking_enabled=True)
    await pulsar.send(topic, "after")
    [part] = await plan(pulsar, topic, starting_offsets={topic: Place(last.ledger, last.entry)})
    assert pulsar.transport.admin is not None
    kind = type(pulsar.transport.admin)
    ask, refused = kind.entry, [AdminError("no connection"), AdminError("it stops", 503)]

    async def asked(*args: Any) -> StoredEntry:
        if refused:
            raise refused.pop()
        return await ask(*args)

    monkeypatch.setattr(kind, "entry", asked)
    failing = Spying(pulsar.transport, fails=3)  # the one that begins far back
    assert [body_of(row) for row in await Seam(failing).rows(part)] == [body, b"after"]
    assert not refused and len(failing.starts) > 3  # the failed one was replaced


@pytest.mark.parametrize("followed", [True, False])
async def test_a_slow_link_during_a_look_far_back_leaves_no_message_out(
    pulsar: Seam, pulsar_broker: TestBroker, monkeypatch: pytest.MonkeyPatch, followed: bool
) -> None:
    """Each chunk takes longer than the first silence after which another reader is opened."""
    monkeypatch.setattr(reading_module, "_BACK_ENTRIES", (1, 1))
    monkeypatch.setattr(reading_module, "_FAR_RETRIES", 1)
    monkeypatch.setattr(reading_module, "_SILENCE", 0.2)
    monkeypatch.setattr(reading_module, "_LONG_SILENCE", 6.0)
    topic, body = await pulsar.topic("first"), os.urandom(16 * 1024 * 1024)
    [last] = await pulsar.send(topic, OutgoingRecord(body, {MESSAGE_TYPE: "bytes"}), chunking_enabled=True)
    after = ["after"] * followed
    await pulsar.send(topic, *after)
    [part] = await plan(pulsar, topic, starting_offsets={topic: Place(last.ledger, last.entry)})
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        transport = await open_transport(load(proxy.url, web_service_url=pulsar_broker.web_service_url))
        proxy.slices(64 * 1024, 0.015)
        spying = Spying(transport)
        assert [body_of(row) for row in await Seam(spying).rows(part)] == [body, *map(str.encode, after)]
        await transport.aclose(HANG)


async def test_a_message_whose_last_chunk_is_not_stored_yet_is_not_waited_for(
    pulsar: Seam, pulsar_broker: TestBroker
) -> None:
    topic, body = await pulsar.topic("first"), os.urandom(11 * 1024 * 1024)
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        transport = await open_transport(load(proxy.url, web_service_url=pulsar_broker.web_service_url))
        config = ProducerConfig(batching_enabled=False, chunking_enabled=True)
        sender = await transport.open_sender(topic, SenderOptions(config, tell_each))
        proxy.slices(64 * 1024, 0.015)  # a second and more for a chunk
        sender.send(OutgoingRecord(body, {MESSAGE_TYPE: "bytes"}), Outcomes())
        admin = pulsar.transport.admin
        assert admin is not None
        while (await admin.log(topic)).ledgers[-1].entries < 2:
            await asyncio.sleep(0.05)
        proxy.take_down()
        await transport.aclose(1)
    [part] = await plan(pulsar, topic)
    assert part.entries() == 2
    assert [body_of(row) for row in await pulsar.rows(part, read_timeout=0.5)] == [b"first"]


def body_of(row: RawRow) -> bytes | None:
    return row.data if row.text is None else row.text.encode()


async def test_connections_that_break_neither_lose_nor_repeat_rows(pulsar: Seam, pulsar_broker: TestBroker) -> None:
    bodies = [f"m{number}" for number in range(6000)]
    topic = await pulsar.topic()
    await pulsar.send(topic, *bodies[:5000], batching_enabled=True, batching_max_messages=7)
    await pulsar.send(topic, *bodies[5000:])
    chance, found, cuts = random.Random(7), list[str | None](), 0
    config = ConsumerConfig(receiver_queue_size=40)
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        transport = await open_transport(load(proxy.url, web_service_url=pulsar_broker.web_service_url))
        [part] = await plan(Seam(transport), topic)
        async with contextlib.aclosing(Seam(transport).reading(part, batch_rows=100, config=config)) as reading:
            while rows := await next_rows(reading):
                found += texts(rows)
                if cuts < 20 and chance.random() < 0.5:
                    cuts += 1
                    proxy.reset()
        await transport.aclose(HANG)
    assert cuts == 20
    assert found == bodies


async def trimmed(seam: Seam, broker: TestBroker) -> tuple[str, Place]:
    """A topic whose first ledger the broker has deleted, with ``SEVEN`` in it, and the place where it began."""
    topic = await seam.topic()
    [first, *_] = await seam.send(topic, *SEVEN)
    path = f"{broker.web_service_url}/admin/v2/persistent/{topic.partition('://')[2]}"
    await unload(broker, topic)
    await seam.send(topic, "later")
    await unload(broker, topic)
    await seam.send(topic, "last")
    return path, Place(first.ledger, first.entry)


async def test_a_ledger_deleted_since_the_plan_is_data_loss_of_the_ranges_that_it_had(
    pulsar: Seam, pulsar_broker: TestBroker
) -> None:
    path, start = await trimmed(pulsar, pulsar_broker)
    topic = f"persistent://{path.partition('/persistent/')[2]}"
    ranges = await plan(pulsar, topic, 4)
    assert await pulsar.all_texts(ranges) == [*SEVEN, "later", "last"]
    await delete_closed_ledgers(pulsar, path, topic, start)
    with pytest.raises(DataLossError, match="deleted them") as caught:
        await pulsar.rows(ranges[0])
    assert caught.value.wanted == str(start)
    assert (await pulsar.all_texts(ranges, fail_on_data_loss=False))[-1:] == ["last"]
    with pytest.raises(DataLossError) as planned:
        await plan(pulsar, topic, starting_offsets={topic: start})
    assert planned.value.wanted == str(start)
    left = await plan(pulsar, topic, starting_offsets={topic: start}, fail_on_data_loss=False)
    assert (await pulsar.all_texts(left))[-1:] == ["last"]


async def delete_closed_ledgers(seam: Seam, path: str, topic: str, start: Place) -> None:
    """Let a broker delete what is acknowledged, and wait until the first ledger is gone."""
    admin = seam.transport.admin
    assert admin is not None
    async with httpx.AsyncClient(timeout=HANG) as client:
        (await client.delete(f"{path}/truncate")).raise_for_status()
    async with asyncio.timeout(HANG):
        while any(ledger.id == start.ledger for ledger in (await admin.log(topic)).ledgers):
            await asyncio.sleep(0.05)


async def test_a_range_is_read_through_outages_each_message_once(breakable: Breakable) -> None:
    numbers = [str(number) for number in range(60)]
    (span,) = await plan(breakable, await breakable.topic(*numbers))
    config = ConsumerConfig(receiver_queue_size=1)
    found: list[str | None] = []
    async with contextlib.aclosing(breakable.reading(span, batch_rows=10, batch_bytes=1, config=config)) as reading:
        while rows := await next_rows(reading):
            found += texts(rows)
            if len(found) in (1, 30):
                with breakable.outage():
                    more = asyncio.create_task(next_rows(reading))
                    await asyncio.wait([more], timeout=4)
                found += texts(await more)
    assert found == numbers


async def test_a_range_that_begins_in_an_outage_waits_for_its_end(breakable: Breakable) -> None:
    (span,) = await plan(breakable, await breakable.topic(*SEVEN))
    with breakable.outage():
        reading = asyncio.create_task(breakable.rows(span))
        done, _ = await asyncio.wait([reading], timeout=3)
        assert not done
        with pytest.raises(TransportError):
            await breakable.rows(span, outage_timeout=0.0)
    assert texts(await reading) == SEVEN
