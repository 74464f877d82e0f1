"""``Unsettled``: the records of one receiver that are not settled, and in which state each of them is."""

from __future__ import annotations

from collections.abc import Container, Iterable

import attrs

from jmsaio.model.wire import ReceivedRecord, SetAside, WireId
from jmsaio.transport.pulsar.native.handles import MessageHandle
from jmsaio.transport.pulsar.native.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.record import PulsarRecord

#: Ledger, entry, partition and index in the batch.
PlainId = tuple[int, int, int, int]


def plain_id(record: PulsarRecord) -> PlainId:
    """A plain tuple, see ``SetAside``."""
    ledger, entry, partition, index = record.message_id
    return ledger, entry, partition, index


@attrs.define(eq=False)
class Unsettled:
    """The records that one receiver took and that are not settled.

    Attributes:
        out: in the order of their delivery: False with the application, True given back and not yet redelivered.
        aside: records that no consumer here wants now, by native consumer and place. They are not in ``out``. Time of
            publishing and redelivery count; records of an entry that was read again are kept themselves.
        reread: records in ``out`` or ``aside`` that the broker counts as acknowledged: it will never redeliver them.
        copies: messages that the broker sent again while their record was in ``out``.
    """

    out: dict[PulsarRecord, bool] = attrs.field(factory=dict, init=False)
    aside: dict[NativeConsumer, dict[PlainId, tuple[int, int] | PulsarRecord]] = attrs.field(factory=dict, init=False)
    reread: set[PulsarRecord] = attrs.field(factory=set, init=False)
    copies: dict[PulsarRecord, list[MessageHandle]] = attrs.field(factory=dict, init=False)

    def give_back(self, records: Iterable[object]) -> list[PulsarRecord]:
        """Mark records as given back. Returns those that were with the application or set aside."""
        out, found = self.out, []
        for one in records:
            if isinstance(one, PulsarRecord):
                if out.get(one) is False:
                    found.append(one)
            elif isinstance(one, tuple):
                record = self._take_aside(one)
                if record is not None:
                    found.append(record)
        for record in found:
            out[record] = True
        return found

    def remove(self, records: Iterable[PulsarRecord]) -> list[PulsarRecord]:
        """Forget records that were given back. Returns those that were."""
        removed = [record for record in records if self.out.pop(record, False)]
        for record in removed:
            self.copies.pop(record, None)
        return removed

    def redeliver(self, records: Iterable[PulsarRecord], uncounted: Container[PulsarRecord]) -> list[PulsarRecord]:
        """Put removed records out again as given back, each as a new one for its next delivery from here."""
        delivered = []
        for record in records:
            another = record.again(record not in uncounted)
            self.out[another] = True
            if record in self.reread:
                self.reread.discard(record)
                self.reread.add(another)
            delivered.append(another)
        return delivered

    def set_aside(self, records: Iterable[ReceivedRecord]) -> list[SetAside]:
        """Keep only the places of records until they are given back; the records themselves where a place won't do.

        A pattern's consumer settles by messages, which name their topic; ids of a topic that is not persistent
        identify nothing; and what was read again does not come from the broker any more.
        """
        return [self._set_aside(record) for record in records]

    def _set_aside(self, record: ReceivedRecord) -> SetAside:
        if not isinstance(record, PulsarRecord) or not record.native_consumer.persistent:
            return record
        if record in self.reread or self.out.get(record) is not False:
            return record
        del self.out[record]
        self.copies.pop(record, None)
        place = plain_id(record)
        self.aside.setdefault(record.native_consumer, {})[place] = record.publish_time, record.redelivery_count
        return place

    def _take_aside(self, place: PlainId) -> PulsarRecord | None:
        for native_consumer, kept in self.aside.items():
            known = kept.pop(place, None)
            if isinstance(known, PulsarRecord):
                return known
            if known is not None:
                return PulsarRecord.light(native_consumer, WireId(*place), *known)
        return None

    def aside_at(self, record: PulsarRecord) -> int | None:
        """When the record was published that was set aside at the place of ``record``; None: none was."""
        known = self.aside.get(record.native_consumer, {}).get(plain_id(record))
        return known.publish_time if isinstance(known, PulsarRecord) else None if known is None else known[0]

    def drop_aside(self) -> list[PulsarRecord]:
        """Forget what was set aside, which goes back with its native consumer; not what was read again.

        Returns:
            Those of them that were delivered before.
        """
        dropped = []
        for native_consumer, kept in self.aside.items():
            for place, known in list(kept.items()):
                if isinstance(known, PulsarRecord):
                    continue
                del kept[place]
                if known[1]:
                    dropped.append(PulsarRecord.light(native_consumer, WireId(*place), *known))
        return dropped

    def forget(self, native_consumer: NativeConsumer) -> None:
        """The ids of a native consumer start over: its old records can't be acknowledged any more."""
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
