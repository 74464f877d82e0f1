"""An entry as it arrives: its metadata, its payload as sent, and where the records of a batch are."""

from __future__ import annotations

from typing import Final, NamedTuple

from jmsaio.errors import ProtocolError
from jmsaio.protocol.batch import Span, split
from jmsaio.protocol.compression import expand
from jmsaio.protocol.framing import Frame, entry_of
from jmsaio.protocol.metadata import Metadata, decode_metadata

#: Maximum records of a batch, unless its sender has another limit.
_USUAL: Final = 1000


class Arrival(NamedTuple):
    """A readable entry.

    Attributes:
        metadata: what its records share.
        data: its payload, not compressed.
        spans: where each record of a batch is; None if it is no batch.
    """

    metadata: Metadata
    data: bytes
    spans: list[Span] | None


def read_arrival(frame: Frame) -> Arrival:
    """Read the entry of a MESSAGE.

    Raises:
        ProtocolError: it is damaged; or this transport can't read it: it is encrypted, a chunk, or compressed without
            the library for it.
    """
    parts = entry_of(frame)
    metadata = decode_metadata(parts.data, parts.metadata, parts.payload)
    if metadata.encrypted:
        raise ProtocolError("it is encrypted")
    if (metadata.num_chunks_from_msg or 1) > 1:
        raise ProtocolError("it is a chunk of a message; transport=pulsar-client receives messages in chunks")
    data = expand(metadata.compression, parts.data[parts.payload :], metadata.uncompressed_size)
    count = metadata.num_messages_in_batch
    return Arrival(metadata, data, None if count is None else split(data, 0, count))


def announced(frame: Frame) -> int:
    """Return how many records an entry that can't be read has: as it says, or else the most that are usual."""
    try:
        parts = entry_of(frame, damaged=True)
        count = decode_metadata(parts.data, parts.metadata, parts.payload).num_messages_in_batch
    except ProtocolError:
        return _USUAL
    return min(max(1, count or 1), 100 * _USUAL)
