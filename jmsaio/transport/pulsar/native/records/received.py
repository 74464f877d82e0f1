"""The received records of one receiver: unsettled ones, and acknowledged ones that the broker might redeliver.

``Settled`` knows the latter, in limited memory and without payloads.

The broker stores and delivers entries: a message, or a batch. Without batch-index acknowledgement it keeps an entry
until all its records are acknowledged and redelivers it whole, and a negative acknowledgement returns a whole entry. So
an acknowledged record of an incomplete entry is a duplicate when it is redelivered. A complete entry is redelivered for
other reasons: its acknowledgement was lost, or the subscription was moved back. Then its records are delivered, marked
as redelivered. Only if the broker counts can a negative acknowledgement have crossed the acknowledgement: for a moment
they are duplicates, too.

An id does not identify a record forever: a broker that lost its data, or another cluster, reuses the same ids. The
publish time of the entry distinguishes them.
"""

from __future__ import annotations

import enum
import math
import threading
from collections import OrderedDict, deque
from collections.abc import Container, Iterable, Iterator

import attrs

from jmsaio.model.wire import EntryId, PlainWireId, ReceivedRecord, SetAside, WireId
from jmsaio.rules.record_life import RecordState
from jmsaio.transport.pulsar.native.binding.batch_acker import BatchAcker, batch_size
from jmsaio.transport.pulsar.native.binding.handles import MessageHandle, MessageIdHandle
from jmsaio.transport.pulsar.native.binding.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.binding.record import Chunks, PulsarRecord, RecordKey

#: States of the records in ``Unsettled.out``.
HELD, RETURNED = RecordState.HELD, RecordState.RETURNED
#: Publish time, redelivery count and chunks of a record that was set aside.
Aside = tuple[int, int, Chunks | None]


def plain_id(record: PulsarRecord) -> PlainWireId:
    """Return the id of a record as a plain tuple."""
    ledger, entry, partition, index = record.message_id
    return ledger, entry, partition, index


@attrs.define(eq=False)
class Unsettled:
    """The received records of one receiver that are not settled.

    Attributes:
        out: records in the order of their delivery, HELD by the application, or RETURNED and not yet redelivered.
        aside: records set aside, by native consumer and id. They are not in ``out``. For an entry that was read again,
            the records themselves.
        reread: records in ``out`` or ``aside`` that the broker counts as acknowledged: it will never redeliver them.
        copies: messages that the broker sent again while their record was in ``out``.
    """

    out: dict[PulsarRecord, RecordState] = attrs.field(factory=dict, init=False)
    aside: dict[NativeConsumer, dict[PlainWireId, Aside | PulsarRecord]] = attrs.field(factory=dict, init=False)
    reread: set[PulsarRecord] = attrs.field(factory=set, init=False)
    copies: dict[PulsarRecord, list[MessageHandle]] = attrs.field(factory=dict, init=False)

    def give_back(self, records: Iterable[object]) -> list[PulsarRecord]:
        """Mark records as returned. Returns those that were held by the application or set aside."""
        out, found = self.out, []
        for one in records:
            if isinstance(one, PulsarRecord):
                if out.get(one) is HELD:
                    found.append(one)
            elif isinstance(one, tuple):
                record = self._take_aside(one)
                if record is not None:
                    found.append(record)
        for record in found:
            out[record] = RETURNED
        return found

    def remove(self, records: Iterable[PulsarRecord]) -> list[PulsarRecord]:
        """Remove returned records, and return those that were."""
        removed = [record for record in records if self.out.pop(record, None) is RETURNED]
        for record in removed:
            self.copies.pop(record, None)
        return removed

    def redeliver(self, records: Iterable[PulsarRecord], uncounted: Container[PulsarRecord]) -> list[PulsarRecord]:
        """Add removed records again as returned ones, each as a new record for its next delivery from here."""
        delivered = []
        for record in records:
            another = record.again(record not in uncounted)
            self.out[another] = RETURNED
            if record in self.reread:
                self.reread.discard(record)
                self.reread.add(another)
            delivered.append(another)
        return delivered

    def set_aside(self, records: Iterable[ReceivedRecord]) -> list[SetAside]:
        """Keep only the ids of records until they are returned, or the records if an id does not suffice.

        A pattern's consumer settles by messages, which contain their topic; ids of a topic that is not persistent
        identify nothing; and records that were read again are no longer sent by the broker.
        """
        return [self._set_aside(record) for record in records]

    def _set_aside(self, record: ReceivedRecord) -> SetAside:
        if not isinstance(record, PulsarRecord) or not record.native_consumer.persistent:
            return record
        if record in self.reread or self.out.get(record) is not HELD:
            return record
        del self.out[record]
        self.copies.pop(record, None)
        message_id = plain_id(record)
        kept = record.publish_time, record.redelivery_count, record.chunks
        self.aside.setdefault(record.native_consumer, {})[message_id] = kept
        return message_id

    def _take_aside(self, message_id: PlainWireId) -> PulsarRecord | None:
        for native_consumer, kept in self.aside.items():
            known = kept.pop(message_id, None)
            if isinstance(known, PulsarRecord):
                return known
            if known is not None:
                return PulsarRecord.light(native_consumer, WireId(*message_id), *known)
        return None

    def aside_at(self, record: PulsarRecord) -> int | None:
        """Return the publish time of the record set aside with the id of ``record``; None if there is none."""
        known = self.aside.get(record.native_consumer, {}).get(plain_id(record))
        return known.publish_time if isinstance(known, PulsarRecord) else None if known is None else known[0]

    def entries(self, native_consumer: NativeConsumer, after: EntryId) -> Iterator[tuple[EntryId, Chunks | None]]:
        """Yield the later entries of unsettled records, each with the chunks of its message."""
        for record in self.out:
            entry = record.record_key[:2]
            if entry > after and record.native_consumer is native_consumer:
                yield entry, record.chunks
        for (ledger, number, _, _), known in self.aside.get(native_consumer, {}).items():
            if (ledger, number) > after:
                yield (ledger, number), known.chunks if isinstance(known, PulsarRecord) else known[2]

    def drop_aside(self) -> list[PulsarRecord]:
        """Forget records set aside, which are returned with their native consumer, except those read again.

        Returns:
            The forgotten records that were delivered before.
        """
        dropped = []
        for native_consumer, kept in self.aside.items():
            for message_id, known in list(kept.items()):
                if isinstance(known, PulsarRecord):
                    continue
                del kept[message_id]
                if known[1]:
                    dropped.append(PulsarRecord.light(native_consumer, WireId(*message_id), *known))
        return dropped

    def forget(self, native_consumer: NativeConsumer) -> None:
        """Remove the old records of a native consumer whose ids start over: they can't be acknowledged any more."""
        for record in [record for record in self.out if record.native_consumer is native_consumer]:
            del self.out[record]
            self.reread.discard(record)
            self.copies.pop(record, None)
        for known in self.aside.pop(native_consumer, {}).values():
            if isinstance(known, PulsarRecord):
                self.reread.discard(known)

    def clear(self) -> None:
        """Forget everything: the subscription was moved."""
        self.out.clear()
        self.aside.clear()
        self.reread.clear()
        self.copies.clear()


#: Maximum acknowledged records stored before they are evaluated; maximum entries stored of each kind.
ENTRIES = 10_000
#: Seconds in which a negative acknowledgement can have crossed the acknowledgement of the rest.
CROSSED = 5.0
#: Seconds after reopening a consumer in which records acknowledged meanwhile are expected to be redelivered.
REOPENED = 30.0


class Repeat(enum.Enum):
    """Whether a redelivered record was acknowledged here."""

    NOTHING = enum.auto()
    DUPLICATE = enum.auto()  # acknowledged, but not yet when the broker sent it
    REDELIVERED = enum.auto()  # acknowledged, but redelivered
    FOREIGN = enum.auto()  # its id is that of another record


@attrs.define(eq=False)
class Settled:
    """The acknowledged records of one receiver.

    Attributes:
        recent: acknowledgements not yet evaluated: native id, publish time, loop time. An id without an index is that
            of a whole entry.
        open: batches not yet acknowledged as a whole.
        away: loop times of the consumer's last closing and reopening: acknowledgements in between reached the broker
            too late to prevent a redelivery.
    """

    recent: deque[tuple[MessageIdHandle, int, float]] = attrs.field(factory=lambda: deque(maxlen=ENTRIES), init=False)
    open: dict[EntryId, BatchAcker] = attrs.field(factory=dict, init=False)
    away: tuple[float, float] = attrs.field(default=(math.inf, -math.inf), init=False)
    _parts: OrderedDict[EntryId, tuple[int, int]] = attrs.field(factory=OrderedDict, init=False)  # published, bits
    _moved: OrderedDict[EntryId, tuple[int, int]] = attrs.field(factory=OrderedDict, init=False)  # as _parts
    _complete: OrderedDict[EntryId, tuple[int, float]] = attrs.field(factory=OrderedDict, init=False)  # published, when
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)  # used by receivers of other threads

    def begin(self, batch: BatchAcker) -> None:
        """Add a batch that arrived."""
        self.open[batch.entry] = batch
        if len(self.open) > ENTRIES:
            del self.open[next(iter(self.open))]

    def fold(self) -> None:
        """Evaluate recent acknowledgements; call this before ``look_up``."""
        recent = self.recent
        with self._lock:
            while recent:
                message_id, published, when = recent.popleft()
                entry, index = (message_id.ledger_id(), message_id.entry_id()), message_id.batch_index()
                size = batch_size(message_id) if index >= 0 else 1
                if size == 1 or self._fills(entry, index, size, published):
                    self._parts.pop(entry, None)
                    self._complete.pop(entry, None)
                    self._complete[entry] = (published, when)
            for kept in (self._parts, self._moved, self._complete):
                while len(kept) > ENTRIES:
                    kept.popitem(last=False)

    def _fills(self, entry: EntryId, index: int, size: int, published: int) -> bool:
        """Add a record of a batch; return whether the batch is now completely acknowledged."""
        before, bits = self._parts.pop(entry, (published, 0))
        bits = (bits if before == published else 0) | 1 << index
        self._parts[entry] = (published, bits)
        batch = self.open.get(entry)
        if batch is not None and batch.published == published:
            bits |= batch.settled
        if size == 0 or bits != (1 << size) - 1:  # an unknown size is never reached
            return False
        self.open.pop(entry, None)
        return True

    def look_up(self, key: RecordKey, published: int, counted: bool, now: float) -> Repeat:
        """Return whether a redelivered record was acknowledged here; ``counted``: the broker counted the redelivery."""
        ledger, number, index = key
        entry, bits = (ledger, number), 0
        batch = self.open.get(entry)
        if batch is not None:
            if batch.published != published:
                return Repeat.FOREIGN
            bits = batch.settled
        part = self._parts.get(entry)
        if part is not None:
            if part[0] != published:
                return Repeat.FOREIGN
            bits |= part[1]
        if bits >> max(0, index) & 1:
            return Repeat.DUPLICATE
        complete, moved = self._complete.get(entry), self._moved.get(entry)
        if complete is None and moved is not None and moved[0] == published and moved[1] >> max(0, index) & 1:
            return Repeat.REDELIVERED
        if complete is None:
            return Repeat.NOTHING
        before, when = complete
        if before != published:
            return Repeat.FOREIGN
        closed, opened = self.away
        crossed = (counted and now - when < CROSSED) or (closed <= when <= opened and now - opened < REOPENED)
        return Repeat.DUPLICATE if crossed else Repeat.REDELIVERED

    def has(self, entry: EntryId) -> bool:
        """Return whether records of an entry were acknowledged here, or are being: call ``fold`` before."""
        return entry in self._complete or entry in self._parts or entry in self.open

    def was_moved_back(self, key: RecordKey) -> None:
        """Deliver records of incomplete entries again, marked: the broker moved the subscription back."""
        complete = self._complete.get(key[:2])
        if complete is not None:
            self._complete[key[:2]] = (complete[0], -CROSSED)
        parts = [(entry, published, bits) for entry, (published, bits) in self._parts.items()]
        self._parts.clear()
        for batch in self.open.values():
            parts.append((batch.entry, batch.published, batch.settled))
            batch.settled = 0
        for entry, published, bits in parts:
            before = self._moved.pop(entry, (published, 0))
            self._moved[entry] = (published, bits | (before[1] if before[0] == published else 0))

    def clear(self) -> None:
        """Forget everything: the subscription was moved, or the topic was replaced."""
        self.recent.clear()
        self.open.clear()
        self._parts.clear()
        self._moved.clear()
        self._complete.clear()
