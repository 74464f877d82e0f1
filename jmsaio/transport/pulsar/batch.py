"""``Batch``: the records of one stored entry, told as one when the last of them is acknowledged.

The broker stores, sends and forgets entries. pulsar-client takes acknowledgements record by record, which costs both
sides about as much as the record itself, so those of a batch wait a moment for the rest of it (``Custody``).

An id costs as much, too. A feed's records of one entry come one after another, so only the first and the last of those
that are here are asked: when both belong to one entry and lie as far apart as their indices, all between are known.
"""

from __future__ import annotations

from typing import Any

import _pulsar


class Batch:
    """One entry of which every record so far came from one feed, in order and from the first on.

    Attributes:
        left: records that are not acknowledged; those that did not come yet count.
        parts: native messages of it that are acknowledged and not told.
    """

    __slots__ = ("_next", "_place", "_size", "left", "parts")

    def __init__(self, ledger: int, entry: int, partition: int, size: int) -> None:
        self._place = (ledger, entry, partition)
        self._size = size
        self._next = 0
        self.left = size
        self.parts: list[Any] = []

    def __repr__(self) -> str:
        return f"<Batch {self._place[0]}:{self._place[1]}, {self.left} of {self._size} left>"

    def whole(self) -> Any:
        """``_pulsar.MessageId`` of the entry as a whole."""
        ledger, entry, partition = self._place
        return _pulsar.MessageId(partition, ledger, entry, -1)

    def extend(self, natives: list[Any], start: int) -> int:
        """Take what goes on with it.

        Returns:
            Where that ends in ``natives``: ``start`` when nothing does.
        """
        end = min(len(natives), start + self._size - self._next)
        if end == start or not self._is_at(natives[start], self._next):
            return start
        last = self._next + end - 1 - start
        if end - 1 > start and not self._is_at(natives[end - 1], last):
            return start
        self._next = last + 1
        return end

    def _is_at(self, native: Any, index: int) -> bool:
        place = native.message_id()
        ledger, entry, partition = self._place
        return bool(
            place.batch_index() == index
            and place.entry_id() == entry
            and place.ledger_id() == ledger
            and place.partition() == partition
        )


def begin_batch(native: Any) -> Batch | None:
    """The batch whose first record a native message is; None for any other message, and for a batch of one."""
    place = native.message_id()
    if place.batch_index() != 0:
        return None
    size = _batch_size(place.serialize())
    return Batch(place.ledger_id(), place.entry_id(), place.partition(), size) if size > 1 else None


def _batch_size(data: bytes) -> int:
    """Field 6 of Pulsar's ``MessageIdData``; 0 where there is none. Only numbers stand before it."""
    position = 0
    while position < len(data):
        key, position = _number(data, position)
        if key & 7 != 0:
            break
        value, position = _number(data, position)
        if key >> 3 == 6:
            return value
    return 0


def _number(data: bytes, position: int) -> tuple[int, int]:
    """A number of variable length, and the position behind it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
