"""Messages in chunks: cut for sending, and assembled as they arrive.

Each chunk is an entry of its own, with the message's metadata and sequence id. The place of the message is that of its
last chunk. Chunks of several messages can alternate, and a producer that lost its connection sends a message again from
its first chunk, so that the broker can store chunks twice: both belong to the message, and are settled with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import attrs

from jmsaio.errors import ProtocolError
from jmsaio.model.wire import EntryId
from jmsaio.protocol.metadata import Metadata


def cut(metadata: Metadata, payload: bytes, most: int) -> Iterator[tuple[Metadata, bytes]]:
    """Yield the chunks of a message in order, each with its metadata."""
    size = len(payload)
    for number, start in enumerate(range(0, size, most)):
        chunk = metadata._replace(
            uuid=f"{metadata.producer_name}-{metadata.sequence_id}", num_chunks_from_msg=-(-size // most),
            total_chunk_msg_size=size, chunk_id=number,
        )  # fmt: skip
        yield chunk, payload[start : start + most]


class Whole(NamedTuple):
    """A message whose chunks have all arrived, also those stored twice: ``places`` has them in the order of arrival.

    The last one is the place of the message, which was returned ``returns`` times before it was complete.
    """

    metadata: Metadata
    payload: bytes
    places: list[EntryId]
    returns: int


@attrs.define(eq=False)
class Partial:
    """A message of which chunks have arrived, and others are awaited."""

    key: tuple[str, str]
    since: float  # steady time at which its last new chunk arrived
    places: dict[EntryId, None] = attrs.field(factory=dict, init=False)
    begun: bool = attrs.field(default=False, init=False)  # the broker redelivers no chunk before the first one
    returns: int = attrs.field(default=0, init=False)
    waits: bool = attrs.field(default=False, init=False)  # for being returned by the caller
    _parts: list[bytes] | None = attrs.field(default=None, init=False)
    _size: int = attrs.field(default=0, init=False)

    @property
    def stored(self) -> bool:
        """Whether it can become complete: its chunks so far are kept, without a gap."""
        return self._parts is not None

    def drop(self) -> None:
        """Keep nothing but the places, until the first chunk arrives again."""
        self._parts = None

    def add(self, metadata: Metadata, payload: bytes) -> Whole | None:
        """Add a chunk whose place is added; return the message if it is complete."""
        number, count, total = metadata.chunk_id or 0, metadata.num_chunks_from_msg, metadata.total_chunk_msg_size or 0
        if number == 0:
            self.begun, self._parts, self._size = True, [], 0
        parts = self._parts
        if parts is None or number < len(parts):
            return None
        if number > len(parts):
            self.drop()
            return None
        parts.append(payload)
        self._size += len(payload)
        last = len(parts) == count
        if self._size > total or (last and self._size < total):
            self.drop()
            raise ProtocolError(f"{len(parts)} of {count} chunks have {self._size} bytes, of {total} announced")
        if not last:
            return None
        plain = metadata._replace(uuid=None, num_chunks_from_msg=None, total_chunk_msg_size=None, chunk_id=None)
        return Whole(plain, b"".join(parts), list(self.places), self.returns)


@attrs.define(eq=False)
class Assembly:
    """The incomplete messages of one consumer; the chunks of up to ``most`` are kept (0: no limit)."""

    _most: int
    _partials: dict[tuple[str, str], Partial] = attrs.field(factory=dict, init=False)
    _stored: dict[tuple[str, str], Partial] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._partials)

    def __iter__(self) -> Iterator[Partial]:
        return iter(self._partials.values())

    def add(
        self, place: EntryId, metadata: Metadata, payload: bytes, now: float
    ) -> tuple[Whole | None, Partial, Partial | None]:
        """Add a chunk. Raises ProtocolError, and drops the chunks, if its numbers contradict themselves.

        Returns the message if it is complete; what is known of it, which is forgotten then; and the oldest message if
        its chunks are dropped, because there are too many.
        """
        number, count = metadata.chunk_id, metadata.num_chunks_from_msg or 0
        if metadata.uuid is None or number is None or not 0 <= number < count:
            raise ProtocolError(f"chunk {number} of {count}, of a message with the uuid {metadata.uuid!r:.100}")
        key = metadata.producer_name, metadata.uuid
        partial = self._partials.get(key)
        if partial is None:
            partial = self._partials[key] = Partial(key, now)
        if place in partial.places:
            del partial.places[place]  # the last one to arrive is the message's place
        else:
            partial.since = now
        partial.places[place] = None
        whole = None
        try:
            whole = partial.add(metadata, payload)
        finally:
            if partial.stored and whole is None:
                self._stored.setdefault(key, partial)
            else:
                self._stored.pop(key, None)
            if whole is not None:
                del self._partials[key]
        oldest = None
        if 0 < self._most < len(self._stored):
            oldest = self._stored.pop(next(iter(self._stored)))
            oldest.drop()
        return whole, partial, oldest

    def expire(self, before: float) -> list[Partial]:
        """Remove and return the messages of which nothing new has arrived since ``before``."""
        found = {key: partial for key, partial in self._partials.items() if partial.since <= before}
        for key in found:
            del self._partials[key]
            self._stored.pop(key, None)
        return list(found.values())

    def clear(self) -> None:
        """Forget all: the broker sends the chunks again, or others than these."""
        self._partials.clear()
        self._stored.clear()
