"""An entry as it arrives: its metadata, its payload, and where the records of a batch are."""

from __future__ import annotations

from typing import Final, NamedTuple

from jmsaio.errors import ProtocolError
from jmsaio.model.packed import Shape
from jmsaio.protocol.batch import Span, split
from jmsaio.protocol.chunks import Whole
from jmsaio.protocol.compression import expand
from jmsaio.protocol.framing import Frame, entry_of
from jmsaio.protocol.metadata import Metadata, decode_metadata

#: Maximum records of a batch, unless its sender has another limit.
_USUAL: Final = 1000


class Arrival(NamedTuple):
    """A readable entry."""

    metadata: Metadata
    data: bytes  # its payload, not compressed; of a chunk as it was sent
    spans: list[Span] | None  # where each record of a batch is; None if it is no batch


def is_chunk(metadata: Metadata) -> bool:
    return (metadata.num_chunks_from_msg or 1) > 1


def assembled(whole: Whole) -> Arrival:
    """Read a message whose chunks have arrived. Raises ProtocolError if its compression is damaged, or unknown."""
    metadata = whole.metadata
    return Arrival(metadata, expand(metadata.compression, whole.payload, metadata.uncompressed_size), None)


def read_arrival(frame: Frame, shapes: dict[int, Shape] | None = None) -> Arrival:
    """Read the entry of a MESSAGE; ``shapes`` as for ``split``.

    Raises ProtocolError if it is damaged, encrypted, or compressed without the library for it.
    """
    parts = entry_of(frame)
    metadata = decode_metadata(parts.data, parts.metadata, parts.payload)
    if metadata.encrypted:
        raise ProtocolError("it is encrypted")
    data = parts.data[parts.payload :]
    if is_chunk(metadata):
        return Arrival(metadata, data, None)
    data = expand(metadata.compression, data, metadata.uncompressed_size)
    count = metadata.num_messages_in_batch
    return Arrival(metadata, data, None if count is None else split(data, 0, count, shapes))


def is_as_sent(frame: Frame) -> bool:
    """Return whether an entry that can't be read matches its checksum, so that it arrives no better again."""
    try:
        entry_of(frame)
    except ProtocolError:
        return False
    return True


def announced(frame: Frame) -> int:
    """Return how many records an entry that can't be read has: as it says, or else the most that are usual."""
    try:
        parts = entry_of(frame, damaged=True)
        count = decode_metadata(parts.data, parts.metadata, parts.payload).num_messages_in_batch
    except ProtocolError:
        return _USUAL
    return min(max(1, count or 1), 100 * _USUAL)
