"""``BatchAcker``: acknowledges the records of one stored entry with one call, once all are acknowledged.

The broker stores, sends and removes entries. pulsar-client acknowledges record by record, which costs both sides about
as much as the record itself, so acknowledgements of a batch briefly wait for the rest of it (``AckGrouping``).

Reading an id costs as much. A native consumer's records of one entry are consecutive, so only the ids of the first
and the last available ones are read: if both belong to one entry and their distance matches their indices, all in
between are known.
"""

from __future__ import annotations

from collections.abc import Sequence

import _pulsar

from jmsaio.model.wire import EntryId
from jmsaio.protocol.fields import walk
from jmsaio.transport.pulsar.native.binding.handles import MessageHandle, MessageIdHandle


class BatchAcker:
    """An entry all of whose records so far arrived from one native consumer, in order, starting with the first.

    Attributes:
        published: publish time in milliseconds since the epoch.
        first: serial number of its first record.
        left: number of unacknowledged records, including those not yet received.
        settled: bits of the acknowledged indices.
        parts: its native messages with waiting acknowledgements.
    """

    __slots__ = ("_ids", "_next", "_size", "first", "left", "parts", "published", "settled")

    def __init__(self, ledger: int, entry: int, partition: int, size: int, published: int) -> None:
        self._ids = (ledger, entry, partition)
        self._size = size
        self._next = 0
        self.published = published
        self.first = 0
        self.left = size
        self.settled = 0
        self.parts: list[MessageHandle] = []

    def __repr__(self) -> str:
        return f"<BatchAcker {self._ids[0]}:{self._ids[1]}, {self.left} of {self._size} left>"

    @property
    def entry(self) -> EntryId:
        return self._ids[:2]

    def whole(self) -> MessageIdHandle:
        ledger, entry, partition = self._ids
        whole: MessageIdHandle = _pulsar.MessageId(partition, ledger, entry, -1)
        return whole

    def extend(self, natives: Sequence[MessageHandle], start: int) -> int:
        """Add the messages that continue this entry; return the index after them, ``start`` if there are none."""
        end = min(len(natives), start + self._size - self._next)
        if end == start or not self._is_at(natives[start], self._next):
            return start
        last = self._next + end - 1 - start
        if end - 1 > start and not self._is_at(natives[end - 1], last):
            return start
        self._next = last + 1
        return end

    def _is_at(self, native: MessageHandle, index: int) -> bool:
        message_id = native.message_id()
        ledger, entry, partition = self._ids
        return bool(
            message_id.batch_index() == index
            and message_id.entry_id() == entry
            and message_id.ledger_id() == ledger
            and message_id.partition() == partition
        )


def begin_batch(native: MessageHandle) -> BatchAcker | None:
    """Create the batch that starts with a native message; return None if none does, or for a batch of one."""
    first = native.message_id()
    if first.batch_index() != 0:
        return None
    size = batch_size(first)
    if size <= 1:
        return None
    return BatchAcker(first.ledger_id(), first.entry_id(), first.partition(), size, native.publish_timestamp())


def directly_follows(message_id: MessageIdHandle, last: MessageIdHandle) -> bool:
    """Return whether no message can be stored between ``last`` and ``message_id``, ids of one topic or partition."""
    if message_id.ledger_id() != last.ledger_id():
        return False
    if message_id.entry_id() == last.entry_id():
        return message_id.batch_index() == last.batch_index() + 1
    is_next_entry = message_id.entry_id() == last.entry_id() + 1 and message_id.batch_index() <= 0
    return is_next_entry and last.batch_index() + 1 >= batch_size(last)


#: Tags of ``MessageIdData``: batch size, first chunk of a message; and of the latter, ledger and entry.
_BATCH_SIZE, _FIRST_CHUNK, _LEDGER, _ENTRY = 0x30, 0x3A, 0x08, 0x10


def batch_size(message_id: MessageIdHandle) -> int:
    """Return the batch size of a native id, read from its serialized form; 0 if it is missing."""
    data = message_id.serialize()
    return next((value for tag, value, _ in walk(data, 0, len(data)) if tag == _BATCH_SIZE), 0)


def first_chunk(message_id: MessageIdHandle) -> EntryId | None:
    """Return the entry of a message's first chunk; None if it has no chunks."""
    data = message_id.serialize()
    for tag, start, end in walk(data, 0, len(data)):
        if tag == _FIRST_CHUNK:
            first = {part: value for part, value, _ in walk(data, start, end)}
            return first[_LEDGER], first[_ENTRY]
    return None
