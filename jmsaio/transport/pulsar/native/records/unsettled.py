"""``Unsettled``: the unsettled records of one receiver, and their states."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

import attrs

from jmsaio.model.wire import EntryId, PlainWireId, ReceivedRecord, SetAside, WireId
from jmsaio.rules.record_life import RecordState
from jmsaio.transport.pulsar.native.binding.handles import MessageHandle
from jmsaio.transport.pulsar.native.binding.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.binding.record import Chunks, PulsarRecord

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
