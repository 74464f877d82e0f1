"""A producer's batches, from their making to their outcome, over any number of connections.

A batch that was written and has no answer might be stored, or not: it is written again on the next connection, with the
same bytes and sequence ids, until it has an answer or its time is over. An error about it then leaves it in doubt. A
message in chunks is one batch of several entries, each with an answer; those that have one are not written again.

An answer names its batch by the sequence id alone, so the ids that are written and not answered must grow. Ids of user
code might not: the broker answers a duplicate before what was sent ahead of it, and two batches might have one id. Such
a batch is held back, with all after it, until what was written before it is answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Generic, TypeVar

import attrs

from jmsaio.errors import ProtocolError

Token = TypeVar("Token")


@attrs.define(eq=False)
class Batch(Generic[Token]):
    """Records that are sent, and answered, together."""

    sequence: int  # of the first record, by which the broker answers
    tokens: list[Token]
    size: int  # bytes counted in the sender's window
    frame: bytes  # the SEND command, whole; of a message in chunks, one for each chunk without a receipt
    deadline: float  # steady time after which it fails, not before that of the batch ahead; infinity: never
    entries: int = 1
    transaction: object = None  # in which it is sent, and which is rolled back instead of writing it a second time
    written: bool = attrs.field(default=False, init=False)  # on the present connection, without an answer
    in_doubt: bool = attrs.field(default=False, init=False)  # it might be stored although no answer says so
    left: int = attrs.field(default=0, init=False)  # entries that have no receipt, while it is written
    duplicate: bool = attrs.field(default=False, init=False)

    def lose(self) -> None:
        """Expect no answer any more to what was written."""
        self.in_doubt |= self.written
        self.written = False

    def drop_answered(self) -> None:
        """Leave out the entries that have a receipt, the first ones."""
        start = 0
        for _ in range(self.entries - self.left):
            start += 4 + int.from_bytes(self.frame[start : start + 4], "big")
        self.frame, self.entries = self.frame[start:], self.left


@attrs.define(eq=False)
class Producing(Generic[Token]):
    """The batches of one producer that have no outcome yet, in the order of sending."""

    connected: bool = attrs.field(default=False, init=False)
    unanswered: int = attrs.field(default=0, init=False)
    _blocked: int = attrs.field(default=0, init=False)  # batches, the last ones, that are held back
    _highest: int = attrs.field(default=-1, init=False)  # the last id written on this connection, until it is answered
    _left: int = attrs.field(default=0, init=False)  # answers to come for that id
    _batches: deque[Batch[Token]] = attrs.field(factory=deque, init=False)

    def add(self, batch: Batch[Token]) -> bytes:
        """Add a batch behind all others; return what to write: nothing without a connection, or if it is held back."""
        self._batches.append(batch)
        if not self.connected:
            return b""
        if self._blocked or batch.sequence <= self._highest:
            self._blocked += 1
            return b""
        return self._write(batch)

    def _write(self, batch: Batch[Token]) -> bytes:
        batch.written = True
        self.unanswered += 1
        self._highest = batch.sequence
        self._left = batch.left = batch.entries
        return batch.frame

    def connect(self) -> list[bytes]:
        """Return the frames to be written now on a new connection: of all batches, in order, up to one held back."""
        self.connected = True
        self._blocked = len(self._batches)
        return self.release()

    def release(self) -> list[bytes]:
        """Return the frames to be written after an answer, in order: of batches that were held back until then."""
        frames: list[bytes] = []
        if self._blocked:
            for batch in list(islice(self._batches, len(self._batches) - self._blocked, None)):
                if batch.sequence <= self._highest:
                    break
                self._blocked -= 1
                frames.append(self._write(batch))
        return frames

    def lose(self) -> list[Batch[Token]]:
        """Disconnect; remove and return what was written and is not written again. The rest stays for the next one."""
        if not self.connected:
            return []
        self.connected = False
        self.unanswered = self._blocked = 0
        self._highest = -1
        batches, self._batches = self._batches, deque()
        ended: list[Batch[Token]] = []
        for batch in batches:
            if batch.written and batch.left < batch.entries:
                batch.drop_answered()
            if batch.written and batch.transaction is not None:
                ended.append(batch)
            else:
                self._batches.append(batch)
            batch.lose()
        return ended

    def receipt(self, sequence: int, duplicate: bool = False) -> Batch[Token] | None:
        """Process a receipt of the broker; then write what ``release`` returns.

        Returns the batch that is stored, removed; None while entries of it have no receipt, or if it has ended before.
        Raises ProtocolError if an earlier batch has no answer. The connection must be closed then.
        """
        return self._answered(sequence, duplicate)

    def refuse(self, sequence: int) -> Batch[Token] | None:
        """Process an error of the broker about a batch. Returns and raises as ``receipt``."""
        return self._answered(sequence, False, refused=True)

    def _answered(self, sequence: int, duplicate: bool, *, refused: bool = False) -> Batch[Token] | None:
        if sequence >= self._highest:
            self._left -= 1
            if self._left <= 0:
                self._highest = -1  # even if that batch's time was over
        first = self._batches[0] if self._batches else None
        if first is None or sequence < first.sequence or not first.written:
            return None
        if sequence > first.sequence:
            raise ProtocolError(f"an answer to sequence id {sequence}, where {first.sequence} is to be answered first")
        first.left -= 1
        first.duplicate |= duplicate
        if first.left and not refused:
            return None
        self._batches.popleft()
        self.unanswered -= 1
        return first

    def has(self, transaction: object) -> bool:
        return any(batch.transaction is transaction for batch in self._batches)

    def withdraw(self, transaction: object) -> list[Batch[Token]]:
        """Remove and return the batches of a transaction that were not written."""
        found = [each for each in self._batches if each.transaction is transaction and not each.written]
        for batch in found:
            self._batches.remove(batch)
            if self.connected:
                self._blocked -= 1
        return found

    def expire(self, now: float) -> Iterator[Batch[Token]]:
        """Remove and yield the batches whose time is over, in order."""
        while self._batches and self._batches[0].deadline <= now:
            yield self._end_first()

    def end(self) -> Iterator[Batch[Token]]:
        """Remove and yield all batches, in order: the producer is closed, or can't continue."""
        while self._batches:
            yield self._end_first()

    @property
    def deadline(self) -> float | None:
        return self._batches[0].deadline if self._batches else None

    def _end_first(self) -> Batch[Token]:
        batch = self._batches.popleft()
        if batch.written:
            self.unanswered -= 1
        elif self.connected:
            self._blocked -= 1
        batch.lose()
        return batch
