"""An entry as it arrives: where its records are, and what happens to one that can't be read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

import attrs

from jmsaio.errors import ProtocolError
from jmsaio.model.packed import Shape
from jmsaio.model.wire import EntryId
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
    """Return whether an entry is one of several chunks of a message."""
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


_log = logging.getLogger(__name__)
#: Seconds after which the broker is asked again for an entry, one after the other.
_AGAIN: Final = (0.1, 1.0, 10.0)
#: Entries of which is known how often they arrived damaged.
_MOST: Final = 1000


@attrs.define(eq=False)
class Damages:
    """The damaged entries of one consumer, which stay unacknowledged: the broker keeps them."""

    _topic: str
    _subscription: str
    _stored: bool
    _report: Callable[[str], object]
    _times: dict[EntryId, int] = attrs.field(factory=dict, init=False)

    def pop(self, key: EntryId) -> int:
        """Return how often an entry arrived damaged that can be read now, and forget it."""
        return self._times.pop(key, 0) if self._times else 0

    def add(self, key: EntryId, error: ProtocolError, as_sent: bool) -> float | None:
        """Count an entry that can't be read.

        Args:
            as_sent: whether it is as its sender made it, so that it arrives no better again.

        Returns the seconds after which it is to be requested again; None: not.
        """
        times = self._times[key] = self._times.get(key, 0) + 1
        if len(self._times) > _MOST:
            del self._times[next(iter(self._times))]
        place = f"{self._topic} (subscription {self._subscription}, ID:{key[0]}:{key[1]})"
        text = f"an entry of {place} can't be read: {error}"
        most = len(_AGAIN) if self._stored and not as_sent else 0
        if times <= most:
            if times == 1:
                _log.warning("%s; it is requested again", text)
            return _AGAIN[times - 1]
        if times == most + 1 or not self._stored:
            kept = "it stays unacknowledged" if self._stored else "the topic does not store it"
            self._report(f"{text}; {kept}; see 'jmsaio guide reliability' for how to look at it")
        return None
