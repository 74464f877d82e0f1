"""``BatchAcker``: acknowledges the records of one stored entry with one call, once all are acknowledged.

The broker stores, sends and removes entries. pulsar-client acknowledges record by record, which costs both sides about
as much as the record itself, so acknowledgements of a batch briefly wait for the rest of it (``AckGrouping``).

Reading an id costs as much. A native consumer's records of one entry are consecutive, so only the ids of the first
and the last available ones are read: if both belong to one entry and their distance matches their indices, all in
between are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata

import _pulsar

from jmsaio.errors import ConfigurationError
from jmsaio.model.wire import EntryId
from jmsaio.transport.pulsar.native.binding import SUPPORTED
from jmsaio.transport.pulsar.native.binding.handles import MessageHandle, MessageIdHandle

#: ``MessageIdData``: ledger 7, entry 300, partition 2, index 5 in a batch of 9.
_SAMPLE = bytes((0x08, 7, 0x10, 0xAC, 0x02, 0x18, 2, 0x20, 5, 0x30, 9))
#: ``MessageIdData``: ledger 7, entry 9, the last chunk of a message whose first one is entry 200 of ledger 6.
_CHUNKED = bytes((0x08, 7, 0x10, 9, 0x3A, 5, 0x08, 6, 0x10, 0xC8, 0x01))


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
        """Ledger and entry."""
        return self._ids[:2]

    def whole(self) -> MessageIdHandle:
        """Return the ``_pulsar.MessageId`` of the whole entry."""
        ledger, entry, partition = self._ids
        whole: MessageIdHandle = _pulsar.MessageId(partition, ledger, entry, -1)
        return whole

    def extend(self, natives: Sequence[MessageHandle], start: int) -> int:
        """Add the messages that continue this entry.

        Returns:
            The index in ``natives`` after the last of them: ``start`` if there are none.
        """
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


def check_message_ids() -> None:
    """Check that this version of pulsar-client writes message ids in the form that this module reads.

    pulsar-client has no accessor for the number of records in a batch, or for the first chunk of a message, so they are
    read from an id's serialized form, which is Pulsar's ``MessageIdData``. Called once for each transport.

    Raises:
        ConfigurationError: it does not; the error names the installed version and the supported ones.
    """
    try:
        one, last = map(_pulsar.MessageId.deserialize, (_SAMPLE, _CHUNKED))
        read = one.ledger_id(), one.entry_id(), one.partition(), one.batch_index(), batch_size(one), first_chunk(last)
    except Exception as error:
        raise _unreadable() from error
    if read != (7, 300, 2, 5, 9, (6, 200)):
        raise _unreadable()


def _unreadable() -> ConfigurationError:
    installed = metadata.version("pulsar-client")
    return ConfigurationError(
        f"pulsar-client {installed} writes message ids in a form that jmsaio can't read; install pulsar-client "
        f"{SUPPORTED}"
    )


def batch_size(message_id: MessageIdHandle) -> int:
    """Return the batch size of a native id: field 6 of ``MessageIdData``; 0 if it is missing."""
    size, _ = _read(message_id.serialize(), 6)
    return size


def first_chunk(message_id: MessageIdHandle) -> EntryId | None:
    """Return the entry of a message's first chunk: field 7 of ``MessageIdData``; None if it has no chunks."""
    data = message_id.serialize()
    length, start = _read(data, 7)
    first = data[start : start + length]
    return (_read(first, 1)[0], _read(first, 2)[0]) if first else None


def _read(data: bytes, field: int) -> tuple[int, int]:
    """Return a field of ``MessageIdData`` that follows numbers: its value or length, and the position after that.

    (0, 0) if it is missing.
    """
    position = 0
    while position < len(data):
        key, position = _number(data, position)
        value, position = _number(data, position)
        if key >> 3 == field:
            return value, position
        if key & 7 != 0:
            break
    return 0, 0


def _number(data: bytes, position: int) -> tuple[int, int]:
    """Return a number of variable length, and the position after it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
