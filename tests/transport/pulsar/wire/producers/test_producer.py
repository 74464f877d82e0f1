"""Sends over any number of connections: each record has one outcome, which is true."""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import Any

import attrs
import pytest

from jmsaio.config import ProducerConfig, load
from jmsaio.errors import (
    BrokerUnavailableError,
    JMSError,
    MessageTooLargeError,
    ObjectClosedError,
    SendError,
    SendInDoubtError,
)
from jmsaio.model.wire import WireId
from jmsaio.protocol.batch import split
from jmsaio.protocol.commands import Command, CompressionType
from jmsaio.protocol.compression import expand
from jmsaio.transport.base import Sender, SenderOptions
from jmsaio.transport.pulsar.wire.producers import producer
from jmsaio.transport.pulsar.wire.transport import WireTransport, open_transport
from tests.kit.records import record
from tests.protocol.all_commands import encode_command
from tests.protocol.server_errors import ServerError
from tests.support.broker import TestBroker
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.peer import Fields, Link, Peer, listening

Outcome = tuple[Any, WireId | None, JMSError | None]


async def open_sender(transport: WireTransport, outcomes: list[Outcome], **options: Any) -> Sender:
    def settled(tokens: Any, place: WireId | None, error: JMSError | None) -> None:
        outcomes.extend((token, place, error) for token in tokens)

    topic = options.pop("topic", TOPIC)
    return await transport.open_sender(topic, SenderOptions(ProducerConfig(**options), settled))


def silent(link: Link, fields: Fields) -> bytes:
    return b""


def cut(link: Link, fields: Fields) -> bytes:
    link.cut()
    return b""


async def test_records_of_a_turn_are_a_batch_and_a_lone_one_is_none(peer: Peer, transport: WireTransport) -> None:
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes)
    for number in range(3):
        sender.send(record(str(number)), number)
    await sender.drain(5)
    sender.send(record("alone"), 3)
    await sender.drain(5)
    assert [metadata.num_messages_in_batch for metadata, _ in peer.entries.values()] == [3, None]
    assert [(token, place) for token, place, _ in outcomes] == [
        (0, WireId(1, 0, -1, 0)), (1, WireId(1, 0, -1, 0)), (2, WireId(1, 0, -1, 0)), (3, WireId(1, 1)),
    ]  # fmt: skip
    assert [fields["sequence_id"] for fields in peer.all(Command.SEND)] == [0, 3]


@pytest.mark.parametrize("stored", [False, True])
async def test_what_has_no_receipt_when_the_link_breaks_is_sent_again(
    peer: Peer, transport: WireTransport, stored: bool
) -> None:
    """The same bytes and sequence ids, in order, before what follows."""
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes, batching_enabled=False)

    def lost(link: Link, fields: Fields) -> bytes:
        if stored:
            peer.store(fields)
        link.cut()
        return b""

    peer.script(Command.SEND, lost)
    for number in range(3):
        sender.send(record(str(number)), number)
    await sender.drain(5)
    sent = peer.all(Command.SEND)
    assert [fields["sequence_id"] for fields in sent][-3:] == [0, 1, 2]
    assert sent[0]["payload"] == sent[-3]["payload"] and sent[0]["metadata"] == sent[-3]["metadata"]
    assert [(token, error) for token, _, error in outcomes] == [(0, None), (1, None), (2, None)]
    assert [fields["epoch"] for fields in peer.all(Command.PRODUCER)] == [0, 1]
    assert len({fields["producer_id"] for fields in peer.all(Command.PRODUCER)}) == 1
    assert peer.all(Command.PRODUCER)[1]["producer_name"] == "peer-1"


async def test_each_new_registration_tells_that_the_topic_might_be_new(peer: Peer, transport: WireTransport) -> None:
    """PRODUCER creates a topic that was deleted, without the queue's subscription."""
    changed: list[str] = []
    options = SenderOptions(ProducerConfig(), lambda *_: None, topic_changed=changed.append)
    sender = await transport.open_sender(TOPIC, options)
    assert changed == []
    [opened] = peer.all(Command.PRODUCER)
    peer.links[-1].send(Command.CLOSE_PRODUCER, producer_id=opened["producer_id"], request_id=0)
    await peer.seen(Command.PRODUCER, 2)
    sender.send(record("x"), 0)
    await sender.drain(5)
    assert changed == [TOPIC]


async def test_a_send_without_an_answer_is_in_doubt_and_a_late_receipt_changes_nothing(
    peer: Peer, transport: WireTransport
) -> None:
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes, send_timeout=0.1)
    peer.script(Command.SEND, silent)
    sender.send(record("x"), 0)
    await sender.drain(5)
    [(_, _, error)] = outcomes
    assert isinstance(error, SendInDoubtError)
    peer.links[-1].write(peer.receipt(peer.all(Command.SEND)[0], 0))
    sender.send(record("y"), 1)
    await sender.drain(5)
    assert outcomes[1][2] is None and len(outcomes) == 2


async def test_what_never_left_is_plainly_failed(peer: Peer, transport: WireTransport) -> None:
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes, send_timeout=0.1)
    peer.script(Command.LOOKUP, *[silent] * 5)
    peer.links[-1].cut()
    await peer.seen(Command.LOOKUP, 2)
    sender.send(record("x"), 0)
    await sender.drain(5)
    [(_, _, error)] = outcomes
    assert isinstance(error, SendError) and not isinstance(error, SendInDoubtError)


async def test_a_receipt_above_the_expected_one_ends_the_connection(peer: Peer, transport: WireTransport) -> None:
    """Nothing else tells the fate of the batch before it."""
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes, batching_enabled=False)
    peer.script(Command.SEND, silent)
    sender.send(record("0"), 0)
    sender.send(record("1"), 1)
    await sender.drain(5)
    assert [(token, error) for token, _, error in outcomes] == [(0, None), (1, None)]
    assert len(peer.all(Command.CONNECT)) == 2


async def test_a_drop_while_it_opens_leaves_the_sequence_ids(peer: Peer, transport: WireTransport) -> None:
    """The attempt that succeeds is the second."""
    outcomes: list[Outcome] = []
    peer.script(Command.PRODUCER, cut)
    sender = await open_sender(transport, outcomes, initial_sequence_id=41)
    sender.send(record("1"), 1)
    await sender.drain(5)
    assert outcomes == [(1, WireId(1, 0), None)]
    assert [fields["sequence_id"] for fields in peer.all(Command.SEND)] == [42]


async def test_a_doubled_receipt_is_ignored(peer: Peer, transport: WireTransport) -> None:
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes, batching_enabled=False)
    peer.script(Command.SEND, lambda link, fields: peer.receipt(fields, 0) * 2)
    for number in range(2):
        sender.send(record("x"), number)
        await sender.drain(5)
    assert [token for token, _, _ in outcomes] == [0, 1] and len(peer.all(Command.CONNECT)) == 1


async def test_equal_and_falling_sequence_ids_have_their_own_receipts(peer: Peer, transport: WireTransport) -> None:
    """A record is not written while one with its sequence id, or a higher one, has no answer."""
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes, batching_enabled=False)
    peer.script(Command.SEND, silent)
    for token, sequence in enumerate([5, 5, 3]):
        sender.send(attrs.evolve(record("x"), sequence_id=sequence), token)
    [first] = await peer.seen(Command.SEND)
    assert outcomes == []
    peer.links[-1].write(peer.receipt(first, 10))
    await sender.drain(5)
    assert [fields["sequence_id"] for fields in peer.all(Command.SEND)] == [5, 5, 3]
    assert [(token, error) for token, _, error in outcomes] == [(0, None), (1, None), (2, None)]
    assert len({place for _, place, _ in outcomes}) == 3


async def test_an_error_of_the_broker_is_the_outcome(peer: Peer, transport: WireTransport) -> None:
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes)

    def refuse(link: Link, fields: Fields) -> bytes:
        return encode_command(
            Command.SEND_ERROR, producer_id=fields["producer_id"], sequence_id=fields["sequence_id"],
            error=ServerError.TopicTerminatedError, message="it is over",
        )  # fmt: skip

    peer.script(Command.SEND, refuse)
    sender.send(record("x"), 0)
    await sender.drain(5)
    [(_, _, error)] = outcomes
    assert type(error) is SendError and error.error_code == "TopicTerminated" and "it is over" in str(error)


async def test_after_an_error_that_passes_a_batch_is_sent_again(peer: Peer, transport: WireTransport) -> None:
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes)

    def fail(link: Link, fields: Fields) -> bytes:
        return encode_command(
            Command.SEND_ERROR, producer_id=fields["producer_id"], sequence_id=fields["sequence_id"],
            error=ServerError.PersistenceError, message="no bookies",
        )  # fmt: skip

    peer.script(Command.SEND, fail)
    peer.script(Command.PARTITIONED_METADATA, lambda link, fields: b"")
    [connection] = transport._client.pool.connections
    asked = asyncio.create_task(connection.request("ask", 5, Command.PARTITIONED_METADATA, topic=TOPIC))
    await peer.seen(Command.PARTITIONED_METADATA, 2)
    sender.send(record("x"), 0)
    await sender.drain(5)
    with pytest.raises(BrokerUnavailableError):  # the error of the send is not that of others
        await asked
    assert [fields["sequence_id"] for fields in peer.all(Command.SEND)] == [0, 0]
    assert [(token, error) for token, _, error in outcomes] == [(0, None)]


async def test_a_producer_that_the_broker_closes_is_opened_anew(peer: Peer, transport: WireTransport) -> None:
    """On the broker that takes over, if it is named."""
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes)
    [opened] = peer.all(Command.PRODUCER)
    peer.links[-1].send(
        Command.CLOSE_PRODUCER, producer_id=opened["producer_id"], request_id=0, assigned_broker_service_url=peer.url
    )
    await peer.seen(Command.PRODUCER, 2)
    sender.send(record("x"), 0)
    await sender.drain(5)
    assert outcomes[0][2] is None and len(peer.all(Command.LOOKUP)) == 1


async def test_a_final_error_of_opening_anew_ends_the_sender(peer: Peer, transport: WireTransport) -> None:
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes)
    peer.script(Command.SEND, cut)
    peer.script(
        Command.PRODUCER,
        lambda link, fields: encode_command(
            Command.ERROR, request_id=fields["request_id"], error=ServerError.TopicNotFound, message="gone"
        ),
    )
    sender.send(record("x"), 0)
    await sender.drain(5)
    [(_, _, error)] = outcomes
    assert isinstance(error, SendInDoubtError) and error.error_code == "TopicNotFound"
    assert sender.outdated


async def test_closing_without_an_answer_is_bounded_and_tells_each_record(peer: Peer, transport: WireTransport) -> None:
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes)
    peer.script(Command.SEND, silent)
    peer.script(Command.CLOSE_PRODUCER, silent)
    sender.send(record("x"), 0)
    async with asyncio.timeout(5):
        await sender.aclose(0.1)
    [(_, _, error)] = outcomes
    assert isinstance(error, SendInDoubtError)


async def test_a_message_above_the_brokers_limit_is_refused(peer: Peer, transport: WireTransport) -> None:
    sender = await open_sender(transport, [])
    with pytest.raises(MessageTooLargeError, match="accepts up to"):
        sender.send(record("x" * 100_000), 0)


async def test_a_close_in_the_same_breath_as_the_answer_is_not_overlooked(peer: Peer, transport: WireTransport) -> None:
    def close(link: Link, fields: Fields) -> bytes:
        number = fields["producer_id"]
        return peer.usual(link, Command.PRODUCER, fields) + encode_command(
            Command.CLOSE_PRODUCER, producer_id=number, request_id=0
        )

    peer.script(Command.PRODUCER, close)
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes)
    sender.send(record("x"), 0)
    await sender.drain(5)
    assert outcomes[0][2] is None and len(peer.all(Command.PRODUCER)) == 2


async def test_records_of_an_open_batch_fail_with_their_producer(peer: Peer, transport: WireTransport) -> None:
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes, send_timeout=0)
    peer.script(
        Command.PRODUCER,
        lambda link, fields: encode_command(
            Command.ERROR, request_id=fields["request_id"], error=ServerError.TopicNotFound, message="gone"
        ),
    )
    peer.links[-1].cut()
    while not sender.outdated:
        sender.send(record("x"), len(outcomes)) if not outcomes else None
        await asyncio.sleep(0)
    await sender.drain(5)
    assert outcomes and all(isinstance(error, SendError) for _, _, error in outcomes)


@pytest.mark.parametrize("kind", ["ZLIB", "LZ4", "ZSTD", "SNAPPY"])
async def test_compressed_entries_say_what_they_hold(peer: Peer, transport: WireTransport, kind: str) -> None:
    """What would not become smaller is sent as it is."""
    sender = await open_sender(transport, [], compression_type=kind)
    for records in (["a" * 500, "b" * 500], ["c" * 500], ["short"], [""], ["large" * 40_000]):
        for text in records:
            sender.send(record(text), None)
        await sender.drain(5)
    metadata, payload = peer.entries[0]
    [first, second] = split(expand(metadata.compression, payload, metadata.uncompressed_size), 0, 2)
    assert (first.single.payload_size, second.single.payload_size) == (500, 500)
    alone = [(each, expand(each.compression, data, each.uncompressed_size)) for each, data in peer.entries.values()][1:]
    assert [data for _, data in alone] == [b"c" * 500, b"short", b"", b"large" * 40_000]
    number = CompressionType[kind]
    assert [metadata.compression, *[each.compression for each, _ in alone]] == [number, number, 0, 0, number]


async def test_what_is_too_large_although_compressed_is_refused(peer: Peer, transport: WireTransport) -> None:
    """The records before and after it are sent."""
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes, compression_type="ZLIB")
    sender.send(record("before"), 0)
    with pytest.raises(
        MessageTooLargeError, match=r"a message of 300000 bytes \(\d+ with ZLIB\) .* accepts up to 89760"
    ):
        sender.send(attrs.evolve(record(""), payload=random.Random(1).randbytes(300_000)), 1)
    sender.send(record("after"), 2)
    await sender.drain(5)
    assert [(token, error) for token, _, error in outcomes] == [(0, None), (2, None)]


KEYED = {"batcher_builder": "KEY_BASED"}


def sent_batches(peer: Peer) -> list[tuple[bytes | None, int, int, list[str]]]:
    """The key, the lowest and highest sequence id, and the texts of each entry."""
    found = []
    for metadata, data in peer.entries.values():
        count = metadata.num_messages_in_batch
        texts = [data.decode()] if count is None else [
            data[span.payload : span.stop].decode() for span in split(data, 0, count)
        ]  # fmt: skip
        if count is not None:
            assert {span.single.partition_key for span in split(data, 0, count)} == {metadata.partition_key}
        found.append((metadata.partition_key, metadata.sequence_id, metadata.highest_sequence_id, texts))
    return found


@pytest.mark.parametrize("cuts", [False, True])
async def test_a_batch_has_records_of_one_key(peer: Peer, transport: WireTransport, cuts: bool) -> None:
    """In the order of their first records, with sequence ids that grow, and a receipt each; also when sent again."""
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes, **KEYED)
    if cuts:
        peer.script(Command.SEND, silent, cut)
    for number, key in enumerate(["a", None, "b", "a", None, "a"]):
        sender.send(record(f"{number}", key=key), number)
    await sender.drain(5)
    assert sent_batches(peer) == [
        (b"a", 0, 2, ["0", "3", "5"]), (None, 3, 4, ["1", "4"]), (b"b", 5, 0, ["2"]),
    ]  # fmt: skip
    assert [fields["sequence_id"] for fields in peer.all(Command.SEND)][-3:] == [0, 3, 5]
    assert [(token, place) for token, place, _ in outcomes] == [
        *[(token, WireId(1, 0, -1, 0)) for token in (0, 3, 5)], *[(token, WireId(1, 1, -1, 0)) for token in (1, 4)],
        (2, WireId(1, 2)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "options", [{"batching_max_messages": 3}, {"batching_max_bytes": 60, "batching_max_messages": 0}], ids=str
)
async def test_limits_are_those_of_all_keys_together(
    peer: Peer, transport: WireTransport, options: dict[str, int]
) -> None:
    """What fills a batch leaves at once; a record keeps its place behind those of its key."""
    sender = await open_sender(transport, [], **KEYED, **options)
    for number, key in enumerate("abab"):
        sender.send(record(f"{number}" * 10, key=key), None)
    sender.send(record("later", key="b", deliver_at=9), None)
    await sender.drain(5)
    assert [(key, [text[0] for text in texts]) for key, _, _, texts in sent_batches(peer)] == [
        (b"a", ["0", "2"]), (b"b", ["1"]), (b"b", ["3"]), (b"b", ["l"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"batching_max_messages": 4}, [4, 4, 2]),
        ({"batching_max_messages": -1, "batching_max_bytes": 350}, [3, 3, 3, 1]),
        ({"batching_max_messages": 1}, [1] * 10),
        ({"batching_max_bytes": 99}, [1] * 10),
        ({"batching_max_bytes": 0}, [10]),
    ],
    ids=str,
)
async def test_a_batch_has_no_more_than_its_limits(
    peer: Peer, transport: WireTransport, options: dict[str, int], sizes: list[int]
) -> None:
    sender = await open_sender(transport, [], **options)
    for _ in range(10):
        sender.send(record("x" * 100), None)
    await sender.drain(5)
    assert [metadata.num_messages_in_batch or 1 for metadata, _ in peer.entries.values()] == sizes


async def test_a_batch_is_never_larger_than_the_broker_takes(peer: Peer, transport: WireTransport) -> None:
    """Whatever batchingMaxBytes says; what the records have besides their bodies counts."""
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes, batching_max_bytes=10_000_000, batching_max_messages=0)
    for number in range(12_000):
        sender.send(record("x"), number)
    for number in range(5):
        sender.send(record("y" * 40_000), number)
    await sender.drain(5)
    assert all(error is None for _, _, error in outcomes) and len(outcomes) == 12_005
    assert all(len(payload) <= 100_000 for _, payload in peer.entries.values())


async def test_a_batch_waits_as_long_as_configured(peer: Peer, transport: WireTransport) -> None:
    """Unless it is full, or drained."""
    sender = await open_sender(transport, [], batching_max_publish_delay=60.0, batching_max_messages=3)
    for _ in range(4):
        sender.send(record("x"), None)
        await asyncio.sleep(0.01)
    await peer.seen(Command.SEND)
    assert [metadata.num_messages_in_batch for metadata, _ in peer.entries.values()] == [3]
    await sender.drain(5)
    assert [metadata.num_messages_in_batch for metadata, _ in peer.entries.values()] == [3, None]


async def test_a_batch_grows_until_the_next_answer_while_the_broker_is_busy(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer, "_USUAL_DELAY", 60.0)
    sender = await open_sender(transport, [], batching_max_publish_delay=60.0)
    peer.script(Command.SEND, *[silent] * 8)
    for number in range(8):
        sender.send(record("x"), None)
        await peer.seen(Command.SEND, number + 1)
    for _ in range(2):
        sender.send(record("y"), None)
        await asyncio.sleep(0.01)
    first, *others = peer.all(Command.SEND)
    assert len(others) == 7
    peer.links[-1].write(peer.receipt(first, 0))
    assert (await peer.seen(Command.SEND, 9))[8]["num_messages"] == 2


async def test_a_delayed_record_leaves_alone_and_in_order(peer: Peer, transport: WireTransport) -> None:
    sender = await open_sender(transport, [])
    for number in range(6):
        sender.send(record(str(number), deliver_at=7 if number == 2 else None), None)
    await sender.drain(5)
    assert [
        (metadata.num_messages_in_batch, metadata.deliver_at_time) for metadata, _ in peer.entries.values()
    ] == [(2, None), (None, 7), (3, None)]  # fmt: skip


@pytest.mark.parametrize("lost", [0, 1, 2])
async def test_a_large_message_is_sent_in_chunks_and_those_without_a_receipt_again(
    peer: Peer, transport: WireTransport, lost: int
) -> None:
    """The same bytes and uuid; its place is that of the last chunk."""
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes, batching_enabled=False, chunking_enabled=True, producer_name="me")

    def cut_later(link: Link, fields: Fields) -> bytes:
        asyncio.get_running_loop().call_later(0.05, link.cut)
        return b""

    answered = [lambda link, fields: peer.usual(link, Command.SEND, fields)] * lost
    peer.script(Command.SEND, *answered, cut_later, *[silent] * (3 - lost))
    body = bytes(range(256)) * 1000
    sender.send(record(body, {"n": "v"}, "key"), 0)
    sender.send(record("small"), 1)
    await sender.drain(5)
    sent = peer.all(Command.SEND)
    assert sent[4:] == sent[lost:4]
    assert [(fields["sequence_id"], fields.get("is_chunk", False)) for fields in sent[:4]] == [
        (0, True), (0, True), (0, True), (1, False),
    ]  # fmt: skip
    chunks = [fields["metadata"] for fields in sent[:3]]
    assert [(one.uuid, one.chunk_id, one.num_chunks_from_msg, one.total_chunk_msg_size) for one in chunks] == [
        ("me-0", number, 3, len(body)) for number in range(3)
    ]
    assert {(one.partition_key, one.packed, one.num_messages_in_batch) for one in chunks} == {
        (b"key", b"\n\x06\n\x01n\x12\x01v", None)
    }
    assert b"".join(fields["payload"] for fields in sent[:3]) == body
    assert outcomes == [(0, WireId(1, 2), None), (1, WireId(1, 3), None)]


async def test_compression_comes_before_the_chunks_and_small_messages_need_none(
    peer: Peer, transport: WireTransport
) -> None:
    outcomes: list[Outcome] = []
    options = {"batching_enabled": False, "chunking_enabled": True, "compression_type": "ZLIB"}
    sender = await open_sender(transport, outcomes, **options)
    body = random.Random(1).randbytes(150_000)
    sender.send(record(b"x" * 1_000_000), 0)
    sender.send(record(body), 1)
    await sender.drain(5)
    (first, _), *chunks = peer.entries.values()
    assert first.uuid is None and first.uncompressed_size == 1_000_000
    assert [metadata.uncompressed_size for metadata, _ in chunks] == [len(body)] * 2
    assert b"".join(payload for _, payload in chunks) == body


async def test_chunks_are_as_large_as_asked_for(peer: Peer, transport: WireTransport) -> None:
    options = {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 4}
    sender = await open_sender(transport, [], **options)
    sender.send(record("0123456789"), 0)
    await sender.drain(5)
    assert [payload for _, payload in peer.entries.values()] == [b"0123", b"4567", b"89"]


async def test_one_refused_chunk_fails_the_message_and_no_other(peer: Peer, transport: WireTransport) -> None:
    """The answers to its other chunks are not those of the next message with its sequence id."""
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes, batching_enabled=False, chunking_enabled=True)

    def refuse(link: Link, fields: Fields) -> bytes:
        return encode_command(
            Command.SEND_ERROR, producer_id=fields["producer_id"], sequence_id=fields["sequence_id"],
            error=ServerError.NotAllowedError, message="no",
        )  # fmt: skip

    peer.script(Command.SEND, refuse)
    sender.send(record(b"x" * 250_000, sequence_id=7), 0)
    sender.send(record("next", sequence_id=7), 1)
    await sender.drain(5)
    assert [type(error) for _, _, error in outcomes] == [SendError, type(None)]
    assert peer.entries[len(peer.entries) - 1][1] == b"next"


async def test_only_properties_that_fit_into_a_chunk_are_sent(peer: Peer, transport: WireTransport) -> None:
    sender = await open_sender(transport, [], batching_enabled=False, chunking_enabled=True)
    with pytest.raises(MessageTooLargeError):
        sender.send(record(b"x", {"large": "y" * 100_000}), 0)


async def test_an_exclusive_producer_tells_the_epoch_that_the_topic_gave_it(
    peer: Peer, transport: WireTransport
) -> None:
    """By it the broker refuses one that another has replaced meanwhile, which ends it."""
    outcomes: list[Outcome] = []

    def opened(link: Link, fields: Fields) -> bytes:
        return encode_command(
            Command.PRODUCER_SUCCESS, request_id=fields["request_id"], producer_name="p", topic_epoch=7
        )

    def fenced(link: Link, fields: Fields) -> bytes:
        return encode_command(
            Command.ERROR, request_id=fields["request_id"], error=ServerError.ProducerFenced, message="replaced"
        )

    peer.script(Command.PRODUCER, opened, fenced)
    sender = await open_sender(transport, outcomes, access_mode="Exclusive")
    peer.script(Command.SEND, cut)
    sender.send(record("x"), 0)
    await sender.drain(5)
    assert [fields.get("topic_epoch") for fields in peer.all(Command.PRODUCER)] == [None, 7]
    assert sender.outdated and isinstance(outcomes[0][2], SendInDoubtError)


def queue_up(link: Link, fields: Fields) -> bytes:
    """Answer that a producer has to wait for exclusive access."""
    number = fields["request_id"]
    return encode_command(Command.PRODUCER_SUCCESS, request_id=number, producer_name="p", producer_ready=False)


async def test_a_producer_waits_for_exclusive_access_as_long_as_it_takes(peer: Peer) -> None:
    """The time-outs of openings and requests apply to those that have no answer at all."""
    transport = await open_transport(peer.config(operation_timeout=1.0))
    peer.script(Command.PRODUCER, queue_up, queue_up, *[silent] * 9)
    opening = asyncio.ensure_future(open_sender(transport, [], access_mode="WaitForExclusive"))
    for attempts in (1, 2):
        await peer.seen(Command.PRODUCER, attempts)
        await asyncio.sleep(1.2)
        assert not opening.done()
        peer.links[-1].cut()
    with pytest.raises(BrokerUnavailableError):  # its place in the queue is lost, and the next one is not granted
        await opening
    peer.scripts.clear()
    attempts = len(peer.all(Command.PRODUCER))
    peer.script(Command.PRODUCER, queue_up)
    opening = asyncio.ensure_future(open_sender(transport, [], access_mode="WaitForExclusive"))
    asked = (await peer.seen(Command.PRODUCER, attempts + 1))[-1]
    await asyncio.sleep(1.2)
    peer.links[-1].write(peer.usual(peer.links[-1], Command.PRODUCER, asked))
    sender = await opening
    sender.send(record("x"), 0)
    await sender.drain(5)
    peer.script(Command.PRODUCER, queue_up)
    opening = asyncio.ensure_future(open_sender(transport, [], access_mode="WaitForExclusive"))
    await peer.seen(Command.PRODUCER, attempts + 2)
    await transport.aclose(2)
    with pytest.raises(ObjectClosedError):
        await opening


@pytest.mark.broker
async def test_a_broker_grants_exclusive_access_in_turn(pulsar_broker: TestBroker) -> None:
    """One that waits is refused when another one takes the topic for itself, and else is the next."""
    transport = await open_transport(load(pulsar_broker.url))
    impatient = await open_transport(load(pulsar_broker.url, operation_timeout=3.0))
    topic = f"persistent://public/default/wire-exclusive-{uuid.uuid4().hex}"
    first = await open_sender(transport, [], topic=topic, access_mode="Exclusive")
    fenced = asyncio.ensure_future(open_sender(impatient, [], topic=topic, access_mode="WaitForExclusive"))
    await asyncio.wait({fenced}, timeout=4)
    assert not fenced.done()
    second = await open_sender(transport, [], topic=topic, access_mode="ExclusiveWithFencing")
    with pytest.raises(SendError, match="ProducerFenced"):
        await fenced
    waiting = asyncio.ensure_future(open_sender(impatient, [], topic=topic, access_mode="WaitForExclusive"))
    await asyncio.wait({waiting}, timeout=4)
    assert not waiting.done()
    await second.aclose(5)
    third = await waiting
    third.send(record("x"), 0)
    await third.drain(5)
    await first.aclose(5)
    for each in (impatient, transport):
        await each.aclose(5)


async def test_a_topic_that_moved_to_another_cluster_is_looked_up_there(peer: Peer, transport: WireTransport) -> None:
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes)
    [opened] = peer.all(Command.PRODUCER)
    number = opened["producer_id"]
    async with listening() as other:
        for lost in (0, number):  # the first one is of nobody
            peer.links[-1].send(Command.TOPIC_MIGRATED, resource_id=lost, resource_type=0, broker_service_url=other.url)
        peer.links[-1].send(Command.CLOSE_PRODUCER, producer_id=number, request_id=0)
        await other.seen(Command.PRODUCER)
        sender.send(record("x"), 0)
        await sender.drain(5)
        assert outcomes[0][2] is None and len(other.entries) == 1 and len(other.all(Command.LOOKUP)) == 1
        await sender.aclose(5)


async def test_a_broker_that_takes_over_and_is_unreachable_is_looked_up_instead(
    peer: Peer, transport: WireTransport
) -> None:
    sender = await open_sender(transport, [])
    [opened] = peer.all(Command.PRODUCER)
    peer.links[-1].send(
        Command.CLOSE_PRODUCER, producer_id=opened["producer_id"], request_id=0,
        assigned_broker_service_url="pulsar://nobody:99999999",
    )  # fmt: skip
    await peer.seen(Command.PRODUCER, 2)
    sender.send(record("x"), 0)
    await sender.drain(5)
    assert len(peer.entries) == 1 and len(peer.all(Command.LOOKUP)) == 2


async def test_a_cancelled_close_goes_through(peer: Peer, transport: WireTransport) -> None:
    outcomes: list[Outcome] = []
    sender = await open_sender(transport, outcomes)
    peer.script(Command.SEND, silent)
    sender.send(record("x"), 0)
    closing = asyncio.ensure_future(sender.aclose(5))
    await asyncio.sleep(0.01)
    closing.cancel()
    await peer.seen(Command.CLOSE_PRODUCER)
    assert isinstance(outcomes[0][2], SendInDoubtError)
