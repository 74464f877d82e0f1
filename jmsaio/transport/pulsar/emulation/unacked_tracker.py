"""``UnackedTracker``: the records of one receiver that are out, on their way back, or acknowledged and not forgotten.

pulsar-client and the broker give back whole entries, so the neighbours of a record that was given back are redelivered.
What is out or acknowledged already is recognised here and not handed out twice.

A batch is acknowledged as a whole with its last record (``BatchAcker``). If that takes too long, what is
acknowledged of it is reported record by record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable
from functools import partial

from jmsaio.model.wire import ReceivedRecord, SetAside, WireId
from jmsaio.transport.pulsar.emulation.unacked.prior_deliveries import PriorDeliveries
from jmsaio.transport.pulsar.emulation.unacked.settled import Known, Settled
from jmsaio.transport.pulsar.native.batch_acker import BatchAcker
from jmsaio.transport.pulsar.native.bridge import Bridge, ignore
from jmsaio.transport.pulsar.native.handles import MessageHandle
from jmsaio.transport.pulsar.native.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.record import Key, PulsarRecord

#: Seconds between looks at batches that wait for their last record: none waits longer than two.
HOLD = 0.015

#: Ledger, entry, partition and index in the batch.
Place = tuple[int, int, int, int]


class UnackedTracker:
    """What one receiver answers for.

    Args:
        bridge: the event loop.
        shared: see below.
        name: the subscription.
        handed: what applications got from receivers that stopped.
        come_back: gets records that were kept aside and are to be handed out now.

    Attributes:
        shared: the subscription's records are given back to the broker, one entry at a time, and the broker counts.
        settled: what was acknowledged.
        out: records not settled, in the order of their delivery: False with the application, True on their way back.
        aside: records that no consumer here wants now, by native consumer and place: not settled, and not in ``out``.
            Their time of publishing and redelivery count; those of an entry that was read again as records.
        reread: records, of those in ``out`` or ``aside``, that the broker counts as acknowledged: they never go back.
        told_at: the loop's time when pulsar-client was last told of an acknowledgement, None before the first.
    """

    def __init__(
        self, bridge: Bridge, shared: bool, name: str = "", handed: PriorDeliveries | None = None,
        come_back: Callable[[list[PulsarRecord]], object] = ignore,
    ) -> None:  # fmt: skip
        self.shared = shared
        self.name = name
        self.handed = PriorDeliveries() if handed is None else handed
        self.come_back = come_back
        self.told_at: float | None = None
        self._bridge = bridge
        self._waiting: dict[BatchAcker, NativeConsumer] = {}  # batches with parts
        self._aged: list[BatchAcker] = []  # those that waited already at the last look
        self._timer: asyncio.TimerHandle | None = None
        self.out: dict[PulsarRecord, bool] = {}
        self.aside: dict[NativeConsumer, dict[Place, tuple[int, int] | PulsarRecord]] = {}
        # What the broker sent again while the record was out.
        self._copies: dict[PulsarRecord, list[MessageHandle]] = {}
        self.settled = Settled()
        self.reread: set[PulsarRecord] = set()

    def admit(self, native_consumer: NativeConsumer, natives: list[MessageHandle], taken: list[PulsarRecord]) -> None:
        """Make records of native messages and put them out, except those that are known already."""
        out, shared = self.out, self.shared
        returned: _Returned | None = None
        handed = self.handed.entries(native_consumer.topic, self.name)
        for together, batch, again in native_consumer.entries(natives):
            count = together[0].redelivery_count() if shared else 0
            concerned = handed and _entry(together[0]) in handed
            if again or count or concerned or native_consumer.topic is None:
                if returned is None:
                    returned = _Returned(self, native_consumer)
                returned.admit(together, again, taken)
                continue
            serial = native_consumer.serial
            if batch is not None and batch.first == 0:
                batch.first = serial + 1
                if native_consumer.persistent:
                    self.settled.begin(batch)
            for native in together:
                serial += 1
                record = PulsarRecord(native, native_consumer, serial, 0, batch)
                out[record] = False
                taken.append(record)
            native_consumer.serial = serial

    def acknowledge(self, records: Iterable[object], waiting: bool = False) -> None:
        """Acknowledge what is out; anything else is ignored.

        Args:
            records: what the application of the seam hands back.
            waiting: records on their way back are meant, not those with the application.
        """
        out, copies, reread = self.out, self._copies, self.reread
        remember, now = self.settled.recent.append, self._bridge.loop.time()
        for record in records:
            if out.get(record, not waiting) is not waiting:  # type: ignore[call-overload]  # foreign ones are not in it
                continue
            assert isinstance(record, PulsarRecord)
            del out[record]
            if reread and record in reread:
                reread.discard(record)
                continue
            batch = record.batch
            if batch is None:
                native, native_consumer = record.native, record.native_consumer
                native_consumer.native.acknowledge_async(native, None)
                if native_consumer.persistent or native_consumer.topic is None:
                    remember((native.message_id(), native.publish_timestamp(), now))
            else:
                batch.left = left = batch.left - 1
                batch.settled |= 1 << record.serial - batch.first
                if left == 0:
                    self._finish(batch, record.native_consumer, now)
                elif batch.parts:
                    batch.parts.append(record.native)
                else:
                    self._wait(batch, record)
            if copies:
                for native in copies.pop(record, ()):
                    record.native_consumer.native.acknowledge_async(native, None)
        self.told_at = now

    def _finish(self, batch: BatchAcker, native_consumer: NativeConsumer, now: float) -> None:
        """All of a batch is acknowledged: one call tells it."""
        self._waiting.pop(batch, None)
        batch.parts = []
        whole = batch.whole()
        native_consumer.native.acknowledge_async(whole, None)
        if self.settled.open.get(batch.entry) is batch:
            del self.settled.open[batch.entry]
            self.settled.recent.append((whole, batch.published, now))

    def _wait(self, batch: BatchAcker, record: PulsarRecord) -> None:
        """The first acknowledgement of a batch waits for the others."""
        batch.parts.append(record.native)
        self._waiting[batch] = record.native_consumer
        if self._timer is None:
            self._timer = self._bridge.loop.call_later(HOLD, self._look)

    def _look(self) -> None:
        """Tell what has waited since the last look."""
        self._timer = None
        if self._bridge.failure is not None:
            return
        self._tell(self._aged)
        self._aged = list(self._waiting)
        if self._aged:
            self._timer = self._bridge.loop.call_later(HOLD, self._look)

    def tell_all(self) -> None:
        """Tell what waits."""
        self._tell(list(self._waiting))
        self._aged = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self, batches: Iterable[BatchAcker]) -> None:
        for batch in batches:
            native_consumer = self._waiting.pop(batch, None)
            if native_consumer is None:  # it was finished meanwhile
                continue
            parts, batch.parts = batch.parts, []
            for native in parts:
                native_consumer.native.acknowledge_async(native, None)
            self.told_at = self._bridge.loop.time()

    def set_aside(self, records: Iterable[ReceivedRecord]) -> list[SetAside]:
        """Keep only the places of records until they are turned back; the records themselves where a place won't do.

        A pattern's consumer is told of records by messages that name their topic, ids of a topic that is not persistent
        tell nothing, and what was read again does not come from the broker any more.
        """
        return [self._set_aside(record) for record in records]

    def _set_aside(self, record: ReceivedRecord) -> SetAside:
        if not isinstance(record, PulsarRecord) or not record.native_consumer.persistent:
            return record
        if record in self.reread or self.out.get(record) is not False:
            return record
        del self.out[record]
        self._copies.pop(record, None)
        place = _place(record)
        self.aside.setdefault(record.native_consumer, {})[place] = record.publish_time, record.redelivery_count
        return place

    def _take_aside(self, place: Place) -> PulsarRecord | None:
        for native_consumer, kept in self.aside.items():
            known = kept.pop(place, None)
            if known is not None:
                return (
                    known
                    if isinstance(known, PulsarRecord)
                    else PulsarRecord.light(native_consumer, WireId(*place), *known)
                )
        return None

    def forget_aside(self) -> None:
        """What was set aside goes back with the end of the native consumers, unless it was read again."""
        self.unseen(
            PulsarRecord.light(native_consumer, WireId(*place), *known)
            for native_consumer, kept in self.aside.items()
            for place, known in kept.items()
            if not isinstance(known, PulsarRecord) and known[1]
        )
        for kept in self.aside.values():
            for place in [place for place, known in kept.items() if not isinstance(known, PulsarRecord)]:
                del kept[place]

    def set_aside_at(self, record: PulsarRecord) -> int | None:
        """When the record was published that was set aside at the place of ``record``; None: none was."""
        known = self.aside.get(record.native_consumer, {}).get(_place(record))
        return known.publish_time if isinstance(known, PulsarRecord) else None if known is None else known[0]

    def turn_back(self, records: Iterable[object]) -> list[PulsarRecord]:
        """Mark records as on their way back; those that are not with the application are left out of the answer."""
        out, turned = self.out, []
        for one in records:
            if isinstance(one, PulsarRecord):
                if out.get(one) is False:
                    turned.append(one)
            elif isinstance(one, tuple):
                record = self._take_aside(one)
                if record is not None:
                    turned.append(record)
        for record in turned:
            out[record] = True
        return turned

    def dismiss(self, records: Iterable[PulsarRecord]) -> list[PulsarRecord]:
        """Answer no longer for records on their way back; those that are not are left out of the answer."""
        dismissed = [record for record in records if self.out.pop(record, False)]
        for record in dismissed:
            self._copies.pop(record, None)
        if dismissed and self.shared:
            self.tell_all()  # the entry goes back as it is known there
        return dismissed

    def clear(self) -> None:
        """Answer for nothing any more: the subscription was moved."""
        self.out.clear()
        self.aside.clear()
        self.reread.clear()
        self._copies.clear()
        self.settled.clear()
        self._waiting.clear()

    def forget(self, native_consumer: NativeConsumer) -> None:
        """The ids of a native consumer start over: what is out of the old ones can't be acknowledged any more."""
        for record in [record for record in self.out if record.native_consumer is native_consumer]:
            del self.out[record]
            self.reread.discard(record)
            self._copies.pop(record, None)
        for known in self.aside.pop(native_consumer, {}).values():
            if isinstance(known, PulsarRecord):
                self.reread.discard(known)
        self._waiting = {batch: owner for batch, owner in self._waiting.items() if owner is not native_consumer}
        self.settled.clear()
        native_consumer.forget()
        if native_consumer.topic is not None:
            self.handed.forget(self.name, native_consumer.topic.__eq__)

    def admit_again(self, native_consumer: NativeConsumer, natives: Iterable[MessageHandle]) -> list[PulsarRecord]:
        """Make records of an entry that was read again, and put them out as on their way back.

        Of what is out already, of an earlier delivery, nothing is made: that only stays here from now on.
        """
        known = {record.place: record for record in self.out if record.native_consumer is native_consumer}
        aside = self.aside.get(native_consumer, {})
        self.settled.fold()
        admitted = []
        for native in natives:
            record = PulsarRecord(native, native_consumer, native_consumer.serial, 1)
            first, published, place = known.get(record.place), record.publish_time, _place(record)
            kept = aside.get(place)
            if isinstance(kept, tuple):
                first = aside[place] = PulsarRecord.light(native_consumer, WireId(*place), *kept)
            elif kept is not None:
                first = kept
            if first is not None and first.publish_time == published:
                first.native = native
                self.reread.add(first)
            elif self.settled.look_up(record.place, published, True, self._bridge.loop.time()) is not Known.DUPLICATE:
                self.out[record] = True
                self.reread.add(record)
                admitted.append(record)
        return admitted

    def again(self, records: Iterable[PulsarRecord], uncounted: Container[PulsarRecord]) -> list[PulsarRecord]:
        """Put dismissed records out as on their way back, for another delivery from here."""
        delivered = []
        for record in records:
            another = record.again(record not in uncounted)
            self.out[another] = True
            if record in self.reread:
                self.reread.discard(record)
                self.reread.add(another)
            delivered.append(another)
        return delivered

    def recognize(self, records: list[PulsarRecord], now: float) -> tuple[list[PulsarRecord], list[PulsarRecord]]:
        """Those of ``records``, of another receiver, that the application has, and those that it acknowledged."""
        out = {(one.place, one.publish_time) for one, back in self.out.items() if not back}
        self.settled.fold()
        held: list[PulsarRecord] = []
        settled: list[PulsarRecord] = []
        for record in records:
            place, published = record.place, record.publish_time
            if (place, published) in out:
                held.append(record)
            elif self.settled.look_up(place, published, True, now) is Known.DUPLICATE:
                settled.append(record)
        return held, settled

    def unseen(self, records: Iterable[PulsarRecord]) -> None:
        """Records go back that no application got from here: those that one had before say so when redelivered."""
        self.handed.add(self.name, [record for record in records if record.redelivery_count], held=False)

    def is_held(self, record: PulsarRecord) -> bool:
        """True when a record stays here: an application has it from a stopped receiver, or acknowledged it since."""
        case = self.handed.find(self.name, record)
        if case is None:
            return False
        record.redelivery_count = max(1, record.redelivery_count)  # for one that was given back
        if not case.held and not case.acknowledged:
            return False
        self.out[record] = True
        if case.acknowledged:
            self.acknowledge((record,), waiting=True)
        else:
            case.copies[record] = partial(self._settled_elsewhere, record)
        return True

    def _settled_elsewhere(self, record: PulsarRecord, acknowledged: bool) -> None:
        if acknowledged:
            self.acknowledge((record,), waiting=True)
        elif self.out.get(record):
            self.come_back([record])

    def add_copy(self, record: PulsarRecord, native: MessageHandle) -> None:
        """The broker sent a record again that is out.

        Acknowledged together: without batch-index acknowledgement each copy of an entry counts for itself.
        """
        self._copies.setdefault(record, []).append(native)


def _place(record: PulsarRecord) -> Place:
    """A plain tuple, see ``SetAside``."""
    ledger, entry, partition, index = record.message_id
    return ledger, entry, partition, index


def _entry(native: MessageHandle) -> tuple[int, int]:
    place = native.message_id()
    return place.ledger_id(), place.entry_id()


class _Returned:
    """Messages that came again, of one native consumer, compared with what its unacked knows."""

    def __init__(self, unacked: UnackedTracker, native_consumer: NativeConsumer) -> None:
        self._unacked = unacked
        self._native_consumer = native_consumer
        self._out: dict[Key, PulsarRecord] | None = None
        self._now = unacked._bridge.loop.time()

    def admit(self, natives: list[MessageHandle], again: bool, taken: list[PulsarRecord]) -> None:
        """Put out what is not known; ``again``: the first of them is not behind what came before."""
        unacked, native_consumer = self._unacked, self._native_consumer
        for native in natives:
            native_consumer.serial += 1
            count = native.redelivery_count() if unacked.shared else 0
            record = PulsarRecord(native, native_consumer, native_consumer.serial, count)
            if (count or again) and self._is_known(record):
                continue
            if len(unacked.handed) and unacked.is_held(record):
                continue
            unacked.out[record] = False
            if self._out is not None:
                self._out[record.place] = record
            taken.append(record)

    def _is_known(self, record: PulsarRecord) -> bool:
        """True when the record is out, or acknowledged and acknowledged again now; marks it when it came before."""
        unacked, native_consumer = self._unacked, self._native_consumer
        place, published = record.place, record.publish_time
        if self._out is None:
            self._out = {one.place: one for one in unacked.out if one.native_consumer is native_consumer}
            unacked.settled.fold()
        first, aside = self._out.get(place), unacked.set_aside_at(record)
        if first is not None and first.publish_time == published:
            unacked.add_copy(first, record.native)
            return True
        if aside == published:
            return True
        counted = record.redelivery_count > 0
        known = unacked.settled.look_up(place, published, counted, self._now)
        if first is not None or aside is not None or known is Known.FOREIGN:
            unacked.forget(native_consumer)
            self._out.clear()
        elif known is Known.DUPLICATE:
            native_consumer.native.acknowledge_async(record.native, None)
            return True
        elif not counted and (
            known is Known.HANDED_OUT or (not unacked.shared and native_consumer.is_known(record.native))
        ):
            record.redelivery_count = 1
            unacked.settled.came_anew(place)
        return False
