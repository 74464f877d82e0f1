"""An entry is read whole, or refused with the reason: never as something else."""

from __future__ import annotations

import sys
import zlib
from typing import Any

import pytest

from jmsaio.errors import ProtocolError
from jmsaio.protocol.batch import Batch
from jmsaio.protocol.chunks import Whole
from jmsaio.protocol.commands import CompressionType
from jmsaio.protocol.framing import Framing
from jmsaio.protocol.messages import send
from jmsaio.protocol.metadata import Metadata, encode_metadata
from jmsaio.transport.pulsar.wire.records.arriving import Arrival, assembled, is_chunk, read_arrival


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
        (b"nonsense", {"compression": 2, "uncompressed_size": 10}, "not compressed with ZLIB"),
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
