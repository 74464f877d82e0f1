"""``Admission``: creates records of native messages, except those already held or acknowledged.

pulsar-client and the broker return whole entries, so the neighbours of a returned record are redelivered. Records
already out or acknowledged are recognised here and not delivered twice.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

import attrs

from jmsaio.model.wire import EntryId, WireId
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.handles import MessageHandle
from jmsaio.transport.pulsar.native.binding.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord, RecordKey
from jmsaio.transport.pulsar.native.records.ack_grouping import AckGrouping
from jmsaio.transport.pulsar.native.records.prior_deliveries import Handover
from jmsaio.transport.pulsar.native.records.received import HELD, RETURNED, Repeat, Settled, Unsettled, plain_id


@attrs.define(eq=False)
class Admission:
    """Admits the messages of one receiver.

    Args:
        bridge: the event loop.
        counted: whether the broker counts redeliveries, as on shared subscriptions.
        unsettled: the receiver's records, to which admitted ones are added.
        settled: its acknowledged records.
        handover: its knowledge of other receivers' records.
    """

    _bridge: Bridge
    _counted: bool
    _unsettled: Unsettled
    _settled: Settled
    _acks: AckGrouping
    _handover: Handover
    #: Records of the native consumer by key, once a call needs them.
    _held: dict[RecordKey, PulsarRecord] | None = attrs.field(default=None, init=False)

    def admit(self, native_consumer: NativeConsumer, natives: list[MessageHandle], taken: list[PulsarRecord]) -> None:
        """Append the records of native messages to ``taken``, except those already known."""
        out, counted = self._unsettled.out, self._counted
        self._held = None
        delivered = self._handover.entries(native_consumer.topic)
        for together, batch, again in native_consumer.entries(natives):
            count = together[0].redelivery_count() if counted else 0
            concerned = delivered and _is_in(delivered, together[0])
            if again or count or concerned or native_consumer.topic is None:
                self._admit_redelivered(native_consumer, together, again, taken)
                continue
            serial = native_consumer.serial
            if batch is not None and batch.first == 0:
                batch.first = serial + 1
                if native_consumer.persistent:
                    self._settled.begin(batch)
            for native in together:
                serial += 1
                record = PulsarRecord(native, native_consumer, serial, 0, batch)
                out[record] = HELD
                taken.append(record)
            native_consumer.serial = serial
            if self._held is not None:
                self._held.update((record.record_key, record) for record in taken[-len(together) :])
        self._held = None  # records are not kept here

    def _admit_redelivered(
        self, native_consumer: NativeConsumer, natives: list[MessageHandle], again: bool, taken: list[PulsarRecord]
    ) -> None:
        """Append messages that might be redelivered to ``taken``, except those already known.

        Args:
            native_consumer: their native consumer.
            again: the first of them does not follow the earlier ones.
        """
        for native in natives:
            native_consumer.serial += 1
            count = native.redelivery_count() if self._counted else 0
            record = PulsarRecord(native, native_consumer, native_consumer.serial, count)
            if (count or again) and self._is_known(record):
                continue
            if self._handover.keep_copy(record):
                continue
            self._unsettled.out[record] = HELD
            if self._held is not None:
                self._held[record.record_key] = record
            taken.append(record)

    def _is_known(self, record: PulsarRecord) -> bool:
        """Return whether the record is held here, or was acknowledged, which is then repeated.

        Marks it as redelivered if it was delivered before.
        """
        unsettled, settled, native_consumer = self._unsettled, self._settled, record.native_consumer
        key, published = record.record_key, record.publish_time
        if self._held is None:
            self._held = {one.record_key: one for one in unsettled.out if one.native_consumer is native_consumer}
            settled.fold()
        first, aside = self._held.get(key), unsettled.aside_at(record)
        if first is not None and first.publish_time == published:
            # Acknowledged together: without batch-index acknowledgement each copy of an entry is counted separately.
            unsettled.copies.setdefault(first, []).append(record.native)
            return True
        if aside == published:
            return True
        counted = record.redelivery_count > 0
        known = settled.look_up(key, published, counted, self._bridge.loop.time())
        if first is not None or aside is not None or known is Repeat.FOREIGN:
            self.start_over(native_consumer)
            self._held.clear()
        elif known is Repeat.DUPLICATE:
            native_consumer.native.acknowledge_async(record.native, None)
            return True
        elif known is Repeat.REDELIVERED or (not self._counted and native_consumer.is_known(record.native)):
            record.mark_delivered()
            if not counted:
                settled.was_moved_back(key)
        return False

    def admit_reread(self, native_consumer: NativeConsumer, natives: Iterable[MessageHandle]) -> list[PulsarRecord]:
        """Create records of an entry that was read again, marked as returned.

        No record is created if an earlier delivery is still here; but from now on only this process holds it.
        """
        unsettled = self._unsettled
        known = {record.record_key: record for record in unsettled.out if record.native_consumer is native_consumer}
        aside = unsettled.aside.get(native_consumer, {})
        self._settled.fold()
        admitted = []
        for native in natives:
            record = PulsarRecord(native, native_consumer, native_consumer.serial, 1)
            first, published, message_id = known.get(record.record_key), record.publish_time, plain_id(record)
            kept = aside.get(message_id)
            if isinstance(kept, tuple):
                first = aside[message_id] = PulsarRecord.light(native_consumer, WireId(*message_id), *kept)
            elif kept is not None:
                first = kept
            if first is not None and first.publish_time == published:
                first.native = native
                unsettled.reread.add(first)
            elif (
                self._settled.look_up(record.record_key, published, True, self._bridge.loop.time())
                is not Repeat.DUPLICATE
            ):
                unsettled.out[record] = RETURNED
                unsettled.reread.add(record)
                admitted.append(record)
        return admitted

    def start_over(self, native_consumer: NativeConsumer) -> None:
        """Forget everything known of a native consumer whose ids start over."""
        self._unsettled.forget(native_consumer)
        self._acks.forget(native_consumer)
        self._settled.clear()
        native_consumer.forget()
        if native_consumer.topic is not None:
            self._handover.forget(native_consumer.topic.__eq__)


def _is_in(entries: Iterable[Container[EntryId]], native: MessageHandle) -> bool:
    message_id = native.message_id()
    entry = message_id.ledger_id(), message_id.entry_id()
    return any(entry in some for some in entries)
