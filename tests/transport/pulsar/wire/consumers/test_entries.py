"""Messages in chunks are settled as a whole, and incomplete ones stop nothing; a damaged entry harms no other."""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import Iterable
from typing import Any

import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import ProtocolError, TransportError
from jmsaio.model.wire import WireId
from jmsaio.protocol.batch import Batch
from jmsaio.protocol.chunks import Whole, cut
from jmsaio.protocol.commands import Command, CompressionType
from jmsaio.protocol.framing import Framing
from jmsaio.protocol.messages import send
from jmsaio.protocol.metadata import Metadata, encode_metadata
from jmsaio.transport.base import LinkChange, Reader, ReaderOptions, StartPosition, SubscriptionType
from jmsaio.transport.pulsar.wire.consumers import entries as module
from jmsaio.transport.pulsar.wire.consumers.entries import Arrival, assembled, is_chunk, read_arrival
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.kit.records import texts
from tests.protocol.all_commands import encode_command
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.consumers.test_consumer import subscribe
from tests.transport.pulsar.wire.peer import Fields, Link, Peer


def deliver(
    peer: Peer, places: Iterable[int], text: str = "abcdef", *, producer: str = "p", first: int = 0, count: int = 0
) -> None:
    """The chunks of a message, two letters each, at these entries."""
    chunks = list(cut(Metadata(producer, 0, 1), text.encode(), 2))[first:]
    for place, (metadata, payload) in zip(places, chunks, strict=False):
        peer.deliver_entry(place, metadata, payload, count=count)


def entries(commands: list[dict[str, list[dict[str, int]]]], field: str) -> list[list[int]]:
    """The entries that each of these commands names."""
    return [[place["entry_id"] for place in fields[field]] for fields in commands]


async def redelivered(peer: Peer, number: int = 1) -> list[list[int]]:
    return entries(await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES, number), "message_ids")


async def acknowledged(peer: Peer, number: int = 1) -> list[list[int]]:
    return [sorted(each) for each in entries(await peer.seen(Command.ACK, number), "message_id")]


@pytest.mark.parametrize("type_", SubscriptionType)
async def test_it_is_acknowledged_whole_and_its_id_is_that_of_the_last_chunk(
    peer: Peer, transport: WireTransport, type_: SubscriptionType
) -> None:
    """Chunks of two messages alternate, with another message in between; permits come back for each entry."""
    box = await subscribe(transport, type_, receiver_queue_size=2)
    deliver(peer, [0, 2, 5])
    deliver(peer, [1, 3], producer="q", text="ABCD")
    peer.deliver(4, "plain")
    records = await box.take(3)
    assert [(one.message_id, one.payload) for one in records] == [
        (WireId(1, 5), b"abcdef"), (WireId(1, 3), b"ABCD"), (WireId(1, 4), b"plain"),
    ]  # fmt: skip
    box.receiver.acknowledge([records[0], records[1]])
    await box.receiver.settle(5, receipt=True)
    assert await acknowledged(peer) == [[0, 1, 2, 3, 5]]
    await peer.seen(Command.FLOW, 4)
    assert sum(fields["message_permits"] for fields in peer.all(Command.FLOW)) >= 2 + 6 - 1


async def test_it_is_returned_whole_and_comes_again_counted(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport)
    deliver(peer, [0, 1, 2])
    [record] = await box.take(1)
    box.receiver.negative_acknowledge([record], 0.0)
    assert await redelivered(peer) == [[0, 1, 2]]
    deliver(peer, [0, 1, 2], count=1)
    [again] = await box.take(1)
    assert (again.payload, again.redelivery_count) == (b"abcdef", 1)
    await box.receiver.stop(5)
    deliver(peer, [3, 4, 5], text="ABCDEF", producer="q")
    assert await redelivered(peer, 2) == [[0, 1, 2], [3, 4, 5]]


async def test_an_ack_timeout_returns_all_chunks(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport, ack_timeout=0.05)
    deliver(peer, [0, 1, 2])
    await box.take(1)
    assert await redelivered(peer) == [[0, 1, 2]]


async def test_a_lost_link_drops_the_half_assembled_and_recognises_what_is_held(
    peer: Peer, transport: WireTransport
) -> None:
    box = await subscribe(transport)
    deliver(peer, [0, 1, 2])
    [held] = await box.take(1)
    deliver(peer, [3, 4], text="ABCDEF", producer="q")
    await transport.ping(5)
    peer.links[-1].cut()
    await peer.seen(Command.FLOW, 2)
    deliver(peer, [5], text="ABCDEF", producer="q", first=2)  # alone, it is nothing
    deliver(peer, [0, 1, 2], count=1)
    deliver(peer, [3, 4, 5], text="ABCDEF", producer="q")
    assert texts(await box.take(1)) == ["ABCDEF"]
    assert box.receiver.receive(10) == []
    box.receiver.acknowledge([held])
    assert await acknowledged(peer) == [[0, 1, 2]]


async def test_chunks_that_were_stored_twice_are_settled_with_the_message(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport)
    deliver(peer, [0, 1])
    deliver(peer, [2, 3, 4])
    [record] = await box.take(1)
    assert record.payload == b"abcdef"
    box.receiver.acknowledge([record])
    assert await acknowledged(peer) == [[0, 1, 2, 3, 4]]


async def test_too_many_at_once_are_given_back_and_come_again(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a chunk that arrived late, which the broker would redeliver to no one alone."""
    monkeypatch.setattr(module, "_DELAY", 0.01)
    box = await subscribe(transport, max_pending_chunked_message=1)
    deliver(peer, [0, 1])
    deliver(peer, [2], text="ABCD", producer="q")
    assert await redelivered(peer) == [[0, 1]]
    deliver(peer, [4], first=2)
    assert await redelivered(peer, 2) == [[0, 1], [0, 1, 4]]
    deliver(peer, [3], text="ABCD", producer="q", first=1)
    deliver(peer, [0, 1, 4], count=2)
    records = await box.take(2)
    assert [(one.payload, one.redelivery_count) for one in records] == [(b"ABCD", 0), (b"abcdef", 0)]


async def test_too_many_at_once_are_acknowledged_if_that_is_asked_for(peer: Peer, transport: WireTransport) -> None:
    await subscribe(transport, max_pending_chunked_message=1, auto_ack_oldest_chunked_message_on_queue_full=True)
    deliver(peer, [0, 1])
    deliver(peer, [2], producer="q")
    assert await acknowledged(peer) == [[0, 1]]


@pytest.mark.parametrize("damage", [False, True])
async def test_what_stays_incomplete_is_acknowledged_unless_an_entry_could_not_be_read(
    peer: Peer,
    transport: WireTransport,
    damage: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With or without its first chunk; the one that could not be read might be the missing one."""
    box = await subscribe(transport, expire_time_of_incomplete_chunked_message=0.05)
    deliver(peer, [0, 1])
    deliver(peer, [2], producer="q", first=2)
    if damage:
        peer.deliver(3, "damaged", damage=True)
        async with asyncio.timeout(5):
            while caplog.text.count("stays unacknowledged: an entry could not be read") < 2:
                await asyncio.sleep(0.01)
        assert peer.all(Command.ACK) == []
    else:
        assert sorted(await acknowledged(peer, 2)) == [[0, 1], [2]]
    deliver(peer, [7, 8, 9], producer="r")
    assert texts(await box.take(1)) == ["abcdef"]


async def test_the_rest_of_a_message_that_was_given_up_is_a_loss_that_is_reported(
    peer: Peer, transport: WireTransport
) -> None:
    """Its sender might have waited for the broker longer than the consumer did; what it sends whole is delivered."""
    told: list[LinkChange] = []
    transport.link_listeners.add(told.append)
    box = await subscribe(transport, expire_time_of_incomplete_chunked_message=0.05)
    deliver(peer, [0])
    assert await acknowledged(peer) == [[0]]
    deliver(peer, [1, 2], first=1)
    assert await acknowledged(peer, 3) == [[0], [1], [2]]
    assert [change.text.partition(": ")[0] for change in told] == [f"a message in chunks of {TOPIC} is lost"]
    deliver(peer, [3, 4, 5])
    assert texts(await box.take(1)) == ["abcdef"]


async def test_a_damaged_chunk_is_requested_again_with_those_before_it(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport)
    chunks = list(cut(Metadata("p", 0, 1), b"abcdef", 2))
    for place, (metadata, payload) in enumerate(chunks):
        peer.deliver_entry(place, metadata, payload, damage=place == 1)
    assert await redelivered(peer) == [[0, 1, 2]]
    deliver(peer, [0, 1, 2], count=1)
    [record] = await box.take(1)
    assert (record.payload, record.redelivery_count) == (b"abcdef", 0)


async def test_lies_of_a_chunk_harm_no_other_message(
    peer: Peer, transport: WireTransport, caplog: pytest.LogCaptureFixture
) -> None:
    box = await subscribe(transport)
    for place, (number, size) in enumerate([(5, 4), (2, 4), (0, 1)]):
        lie = Metadata("p", 0, 1, uuid="u", chunk_id=number, num_chunks_from_msg=2, total_chunk_msg_size=size)
        peer.deliver_entry(place, lie, b"xx")
    bomb = Metadata("q", 0, 1, compression=2, uncompressed_size=10)
    for place, (metadata, payload) in enumerate(cut(bomb, zlib.compress(b"x" * 100_000), 50)):
        peer.deliver_entry(10 + place, metadata, payload)
    deliver(peer, [7, 8, 9])
    assert texts(await box.take(1)) == ["abcdef"]
    assert caplog.text.count("can't be read") == 4
    assert peer.all(Command.ACK) == [] == peer.all(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)


async def test_a_seek_to_it_begins_at_its_first_chunk(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport)
    deliver(peer, [0, 1, 2])
    [record] = await box.take(1)
    await box.receiver.seek(record.message_id, 5)
    [seek] = peer.all(Command.SEEK)
    assert seek["message_id"]["entry_id"] == 0


async def open_reader(
    peer: Peer, transport: WireTransport, start: WireId | StartPosition | int, inclusive: bool = True
) -> Reader:
    """A reader of a topic with more entries than arrive."""

    def end(link: Link, fields: Fields) -> bytes:
        return encode_command(
            Command.GET_LAST_MESSAGE_ID_RESPONSE, request_id=fields["request_id"],
            last_message_id={"ledger_id": 1, "entry_id": 99},
        )  # fmt: skip

    peer.script(Command.GET_LAST_MESSAGE_ID, *[end] * 50)
    return await transport.open_reader(ReaderOptions(TOPIC, ConsumerConfig(), start, inclusive))


async def starts(peer: Peer, number: int) -> list[int]:
    """The entries at which the reader started, -1 for the beginning."""
    found = [fields["start_message_id"]["entry_id"] for fields in await peer.seen(Command.SUBSCRIBE, number)]
    await peer.seen(Command.FLOW, number)
    return [-1 if entry >= 1 << 63 else entry for entry in found]


async def test_a_reader_finds_the_beginning_of_a_message_before_its_start(peer: Peer, transport: WireTransport) -> None:
    """The message belongs to the place of its last chunk; what lies before the start is left out."""
    reader = await open_reader(peer, transport, WireId(1, 20))
    assert await starts(peer, 1) == [20]
    deliver(peer, [20], first=2)
    assert await starts(peer, 2) == [20, 18]
    peer.deliver(18, "earlier")
    deliver(peer, [19, 20], first=1)
    assert await starts(peer, 3) == [20, 18, 4]
    deliver(peer, [4, 19, 20])
    peer.deliver(21, "later")
    found = await reader.read(1, 5)
    found += await reader.read(1, 5)
    assert [(one.message_id, one.payload) for one in found] == [(WireId(1, 20), b"abcdef"), (WireId(1, 21), b"later")]


async def test_a_reader_leaves_out_a_message_whose_first_chunk_is_gone(
    peer: Peer, transport: WireTransport, caplog: pytest.LogCaptureFixture
) -> None:
    reader = await open_reader(peer, transport, WireId(1, 2), inclusive=False)
    deliver(peer, [5], first=2)
    assert await starts(peer, 2) == [2, 2]
    deliver(peer, [5], first=2)
    assert await starts(peer, 3) == [2, 2, -1]
    deliver(peer, [5], first=2)
    assert await starts(peer, 4) == [2, 2, -1, -1]
    assert [fields["message_publish_time"] for fields in peer.all(Command.SEEK)] == [0]  # first by its time
    deliver(peer, [5], first=2)
    peer.deliver(6, "later")
    assert texts(await reader.read(2, 5)) == ["later"]
    assert "the first of its 3 chunks is not stored" in caplog.text


async def test_a_reader_that_loses_its_link_between_chunks_reads_the_whole_message(
    peer: Peer, transport: WireTransport
) -> None:
    reader = await open_reader(peer, transport, StartPosition.EARLIEST)
    deliver(peer, [0, 1])
    peer.deliver(2, "between")
    assert texts(await reader.read(1, 5)) == ["between"]
    peer.links[-1].cut()
    assert await starts(peer, 2) == [-1, 2]
    peer.deliver(2, "between")
    deliver(peer, [3], first=2)
    assert await starts(peer, 3) == [-1, 2, 1]
    deliver(peer, [1], first=1)
    peer.deliver(2, "between")
    deliver(peer, [3], first=2)
    assert await starts(peer, 4) == [-1, 2, 1, -1]
    deliver(peer, [0, 1])
    peer.deliver(2, "between")
    deliver(peer, [3], first=2)
    [record] = await reader.read(5, 5)
    assert record.payload == b"abcdef"


async def test_a_reader_from_a_time_that_loses_its_link_reads_nothing_earlier(
    peer: Peer, transport: WireTransport
) -> None:
    """The message that was found by its time has arrived, and the application has not read it."""
    reader = await open_reader(peer, transport, 1000)
    peer.deliver(3, "earlier", published=999)
    peer.deliver(4, "found", published=1000)
    await transport.ping(5)
    peer.links[-1].cut()
    assert await starts(peer, 2) == [-1, 3]
    peer.deliver(3, "earlier", published=999)
    peer.deliver(4, "found", published=1000)
    assert texts(await reader.read(1, 5)) == ["found"]


async def test_a_damaged_entry_is_requested_again_and_arrives_unmarked(
    peer: Peer, transport: WireTransport, caplog: pytest.LogCaptureFixture
) -> None:
    """Damage in transit does not repeat itself, and harms no other entry."""
    box = await subscribe(transport, SubscriptionType.EXCLUSIVE)
    peer.deliver(0, "damaged", "with it", damage=True)
    peer.deliver(1, "whole")
    await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    assert "ID:1:0" in caplog.text and "checksum" in caplog.text
    assert peer.all(Command.ACK) == []
    peer.deliver(0, "damaged", "with it", count=1)
    peer.deliver(1, "whole", count=1)
    await transport.ping(5)
    records = await box.take(3)
    assert texts(records) == ["damaged", "with it", "whole"]
    assert [one.redelivery_count for one in records] == [0, 0, 0]


async def test_an_entry_that_stays_damaged_is_reported_once(
    peer: Peer, transport: WireTransport, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AGAIN", (0.0, 0.0))
    reports: list[LinkChange] = []
    transport.link_listeners.add(reports.append)
    box = await subscribe(transport, receiver_queue_size=1)
    for times in range(1, 6):
        peer.deliver(0, "damaged", damage=True)
        if times < 3:
            await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES, times)
    peer.deliver(1, "whole")
    assert texts(await box.take(1)) == ["whole"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert len(reports) == 1
    assert isinstance(reports[0].error, TransportError) and "stays unacknowledged" in reports[0].text
    assert sum(fields["message_permits"] for fields in await peer.seen(Command.FLOW, 7)) == 7, "it still receives"


@pytest.mark.parametrize("metadata", [{"compression": 9}, {"num_messages_in_batch": 2}])
async def test_an_entry_that_can_t_be_read_as_it_was_sent_is_not_requested_again(
    peer: Peer, transport: WireTransport, metadata: dict[str, Any]
) -> None:
    reports: list[LinkChange] = []
    transport.link_listeners.add(reports.append)
    box = await subscribe(transport)
    peer.deliver_entry(0, Metadata("p", 0, 1, **metadata), b"x")
    peer.deliver(1, "whole")
    assert texts(await box.take(1)) == ["whole"]
    assert len(reports) == 1 and "(subscription s, ID:1:0) can't be read" in reports[0].text
    assert not peer.all(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)


def arrival(payload: bytes, **metadata: Any) -> Arrival:
    [frame] = Framing().feed(send(1, 0, encode_metadata(Metadata("p", 0, 1, **metadata)), payload))
    return read_arrival(frame)


def test_an_entry_is_one_record_or_a_batch() -> None:
    assert arrival(b"body")[1:] == (b"body", None)
    batch = Batch()
    batch.add(b"", b"a")
    batch.add(b"", b"b")
    found = arrival(batch.body(), num_messages_in_batch=2)
    assert found.spans is not None
    assert [found.data[span.payload : span.stop] for span in found.spans] == [b"a", b"b"]


def test_a_compressed_payload_is_expanded() -> None:
    body = b"x" * 1000
    kind = CompressionType.ZLIB
    assert arrival(zlib.compress(body), compression=kind, uncompressed_size=1000).data == body


def test_a_chunk_stays_as_it_was_sent_until_the_message_is_whole() -> None:
    sent = Metadata("p", 0, 1, compression=CompressionType.ZLIB, uncompressed_size=4)
    payload = zlib.compress(b"body")
    found = arrival(payload[:3], num_chunks_from_msg=2, compression=CompressionType.ZLIB, uncompressed_size=4)
    assert is_chunk(found.metadata) and found.data == payload[:3]
    assert assembled(Whole(sent, payload, [(1, 0)], 0)) == (sent, b"body", None)


@pytest.mark.parametrize(
    ("payload", "metadata", "words"),
    [
        (
            zlib.compress(b"x" * 10_000_000),
            {"compression": 2, "uncompressed_size": 10},
            "announces 10 bytes, and has more",
        ),
        (zlib.compress(b"xy"), {"compression": 2, "uncompressed_size": 10}, "announces 10 bytes, and has 2"),
        (b"nonsense", {"compression": 2, "uncompressed_size": 10}, "bytes compressed with ZLIB"),
        (b"x", {"compression": 3, "uncompressed_size": 10}, r"ZSTD needs cramjam: pip install 'jmsaio\[compression\]'"),
        (b"x", {"compression": 99}, "compressed with 99"),
        (b"x", {"num_messages_in_batch": 2}, "a batch of 2 messages"),
    ],
)
def test_what_can_not_be_read_says_why(
    payload: bytes, metadata: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(ProtocolError, match=words):
        arrival(payload, **metadata)
