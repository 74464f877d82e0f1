"""Records delivered by a receiver that stopped or was closed before they were settled.

The broker sends such records to other receivers at once, without marking them as delivered before. Receivers of the
same transport learn it here: they keep back records still held by an application until those are settled, and mark
returned ones as redelivered. Returned records are known to all transports of the process (``GIVEN_BACK``): the next
connection marks them, too. Each receiver has its own ``Handover``.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable
from functools import partial

import attrs

from jmsaio.model.wire import EntryId
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.pulsar.native.records.ack_grouping import AckGrouping
from jmsaio.transport.pulsar.native.records.received import RETURNED, Unsettled

#: Maximum number of entries stored per subscription, of subscriptions, and of records in total.
ENTRIES = 10_000
SUBSCRIPTIONS = 1000
TOGETHER = 100_000
#: Seconds in which an acknowledged record might still be in the queues of other receivers.
IN_QUEUES = 30.0


@attrs.define(eq=False)
class PriorDelivery:
    """One record delivered to an application.

    Attributes:
        published: publish time; another record might later have the same id.
        held: whether the application can still settle it.
        acknowledged: whether the application did; copies sent to others before are not another delivery.
        since: time of the acknowledgement.
        copies: copies kept back by other receivers, each with a function called when the record is settled: with True
            if it was acknowledged, with False if it was returned.
    """

    published: int
    held: bool
    copies: dict[PulsarRecord, Callable[[bool], None]] = attrs.field(factory=dict)
    acknowledged: bool = False
    since: float = 0.0


@attrs.define(eq=False)
class PriorDeliveries:
    """The deliveries of one transport, by topic and subscription, by entry, by index.

    Attributes:
        given_back: stores returned records, also for other transports; None: they are stored here.
    """

    given_back: PriorDeliveries | None = None
    _deliveries: OrderedDict[tuple[str, str], dict[EntryId, dict[int, PriorDelivery]]] = attrs.field(
        factory=OrderedDict, init=False
    )
    _count: int = attrs.field(default=0, init=False)
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)  # other transports can use other threads

    def __len__(self) -> int:
        return len(self._deliveries) + (0 if self.given_back is None else len(self.given_back))

    def add(self, subscription: str, records: Iterable[PulsarRecord], held: bool) -> None:
        """Store delivered records; ``held``: the application can still settle them.

        Copies of records that are dropped at a limit, or that are no longer held, are released.
        """
        if not held and self.given_back is not None:
            records = list(records)
            self.given_back.add(subscription, records, held)
            _release([self._forget(subscription, one) for one in records if self._delivery(subscription, one)])
            return
        left: list[PriorDelivery] = []
        with self._lock:
            for record in records:
                self._add(subscription, record, held, left)
            while len(self._deliveries) > SUBSCRIPTIONS or self._count > TOGETHER:
                oldest, entries = next(iter(self._deliveries.items()))
                self._drop_first(entries, left)
                if not entries:
                    del self._deliveries[oldest]
        _release(left)

    def _add(self, subscription: str, record: PulsarRecord, held: bool, left: list[PriorDelivery]) -> None:
        entries = self._deliveries.setdefault((record.topic, subscription), {})
        ledger, entry, index = record.record_key
        deliveries = entries.setdefault((ledger, entry), {})
        known, delivery = deliveries.get(index), PriorDelivery(record.publish_time, held)
        if known is None:
            self._count += 1
        elif held and known.published == delivery.published:
            delivery.copies = known.copies  # of a receiver that stops again
        else:
            left.append(known)
        deliveries[index] = delivery
        if len(entries) > ENTRIES:
            self._drop_first(entries, left)

    def _drop_first(self, entries: dict[EntryId, dict[int, PriorDelivery]], left: list[PriorDelivery]) -> None:
        """Remove the oldest entry of a subscription; its deliveries are added to ``left``."""
        dropped = entries.pop(next(iter(entries))).values()
        self._count -= len(dropped)
        left += dropped

    def entries(self, topic: str | None, subscription: str) -> list[Container[EntryId]]:
        """Return containers of a topic's entries with deliveries; empty for a pattern, whose topic is unknown.

        Containers, not copies: other threads might change them at any time, so they must not be iterated over.
        """
        own = self._deliveries.get((topic, subscription)) if topic is not None else None
        shared = [] if self.given_back is None else self.given_back.entries(topic, subscription)
        return [own, *shared] if own else shared

    def find(self, subscription: str, record: PulsarRecord) -> PriorDelivery | None:
        """Return the delivery of a record that arrived, which is marked then, or None.

        A returned one is removed by this call.
        """
        with self._lock:
            delivery = self._delivery(subscription, record)
            if delivery is not None and not delivery.held and not delivery.acknowledged:
                self._forget(subscription, record)
            elif delivery is not None and delivery.acknowledged and time.monotonic() - delivery.since >= IN_QUEUES:
                self._forget(subscription, record)
                delivery = None
        if self.given_back is not None:
            delivery = delivery or self.given_back.find(subscription, record)
        if delivery is not None:
            record.mark_delivered()
        return delivery

    def forget(self, subscription: str, concerned: Callable[[str], bool]) -> None:
        """Remove the deliveries of a subscription that was moved, or of topics whose ids start over.

        Copies are released: in doubt, a record is delivered.
        """
        if self.given_back is not None:
            self.given_back.forget(subscription, concerned)
        with self._lock:
            keys = [key for key in self._deliveries if key[1] == subscription and concerned(key[0])]
            entries = [deliveries for key in keys for deliveries in self._deliveries.pop(key).values()]
            dropped = [delivery for deliveries in entries for delivery in deliveries.values()]
            self._count -= len(dropped)
        _release(dropped)

    def take_copies(self, subscription: str, records: Iterable[PulsarRecord]) -> set[PulsarRecord]:
        """Release and return the copies among a receiver's records; their deliveries stay stored."""
        copies = set()
        for record in records:
            delivery = self._delivery(subscription, record)
            if delivery is not None and delivery.copies.pop(record, None) is not None:
                copies.add(record)
        return copies

    def settled(self, subscription: str, records: Iterable[PulsarRecord], acknowledged: bool) -> None:
        """Settle records of the application; unknown ones are ignored."""
        for record in records:
            delivery = self._delivery(subscription, record)
            if delivery is None or not delivery.held:
                continue
            delivery.held, delivery.acknowledged, delivery.since = False, acknowledged, time.monotonic()
            copies, delivery.copies = delivery.copies, {}
            if not acknowledged and (copies or self.given_back is not None):
                self._forget(subscription, record)
                if not copies and self.given_back is not None:
                    self.given_back.add(subscription, [record], held=False)
            for settled in copies.values():
                settled(acknowledged)

    def _delivery(self, subscription: str, record: PulsarRecord) -> PriorDelivery | None:
        ledger, entry, index = record.record_key
        delivery = self._deliveries.get((record.topic, subscription), {}).get((ledger, entry), {}).get(index)
        return delivery if delivery is not None and delivery.published == record.publish_time else None

    def _forget(self, subscription: str, record: PulsarRecord) -> PriorDelivery:
        entries = self._deliveries[record.topic, subscription]
        ledger, entry, index = record.record_key
        deliveries = entries[ledger, entry]
        delivery = deliveries.pop(index)
        self._count -= 1
        if not deliveries:
            del entries[ledger, entry]
        if not entries:
            del self._deliveries[record.topic, subscription]
        return delivery


def _release(deliveries: Iterable[PriorDelivery]) -> None:
    """Release the copies of forgotten deliveries."""
    for delivery in list(deliveries):
        for settled in list(delivery.copies.values()):
            settled(False)


#: Records returned by the transports of this process.
GIVEN_BACK = PriorDeliveries()


@attrs.define(eq=False)
class Handover:
    """Shares one receiver's knowledge of records with the other receivers of its subscription in this process.

    Args:
        prior: deliveries of stopped receivers, shared by all receivers of a transport.
        unsettled: the receiver's records.
        acks: the receiver's acknowledgements.
        redeliver: called with copies kept back that are to be delivered now.

    Attributes:
        left: whether the application can still settle records that a stop returned to others.
    """

    _prior: PriorDeliveries
    _name: str
    _unsettled: Unsettled
    _acks: AckGrouping
    _redeliver: Callable[[list[PulsarRecord]], None]
    left: bool = attrs.field(default=False, init=False)

    def entries(self, topic: str | None) -> list[Container[EntryId]]:
        """Return containers of a topic's entries with earlier deliveries; see ``PriorDeliveries.entries``."""
        return self._prior.entries(topic, self._name)

    def keep_copy(self, record: PulsarRecord) -> bool:
        """Keep a record back if a stopped receiver's application holds it, or has acknowledged it since.

        A record returned there is marked as redelivered.

        Returns:
            True if it was kept back.
        """
        delivery = self._prior.find(self._name, record) if self._prior else None
        if delivery is None:
            return False
        if not delivery.held and not delivery.acknowledged:
            return False
        self._unsettled.out[record] = RETURNED
        if delivery.acknowledged:
            self._acks.acknowledge((record,), given_back=True)
        else:
            delivery.copies[record] = partial(self._settled_elsewhere, record)
        return True

    def _settled_elsewhere(self, record: PulsarRecord, acknowledged: bool) -> None:
        if acknowledged:
            self._acks.acknowledge((record,), given_back=True)
        elif self._unsettled.out.get(record) is RETURNED:
            self._redeliver([record])

    def stop(self, seen: Iterable[PulsarRecord], unseen: Iterable[PulsarRecord], *, briefly: bool) -> None:
        """Prepare for closing the native consumers, which returns all records to others.

        Args:
            seen: records that the application had and returned.
            unseen: other returned records.
            briefly: the consumers are reopened at once, so copies stay here.
        """
        unsettled = self._unsettled
        self.pass_on(unsettled.remove(unseen))
        self._prior.add(self._name, unsettled.remove(seen), held=False)
        if not briefly:
            self.pass_on(unsettled.drop_aside())
            unsettled.remove(self._prior.take_copies(self._name, unsettled.out))
        # After a long stop, records still marked as returned are being moved to the dead letters, and settled from
        # here.
        kept = [record for record, state in unsettled.out.items() if not (briefly and state is RETURNED)]
        self._prior.add(self._name, kept, held=True)
        self.left = self.left or bool(kept)

    def close(self, unseen: Container[PulsarRecord]) -> None:
        """Release the unsettled records to other receivers, marked as redelivered.

        Args:
            unseen: returned records that no application had.
        """
        out = self._unsettled.out
        copies = self._prior.take_copies(self._name, out)
        own = [record for record in out if record not in copies]
        self.settled(own, acknowledged=False)
        self.pass_on(record for record in own if record in unseen)
        self.pass_on(self._unsettled.drop_aside())
        self._prior.add(self._name, [record for record in own if record not in unseen], held=False)

    def pass_on(self, records: Iterable[PulsarRecord]) -> None:
        """Register returned records not delivered here: those delivered before are marked when redelivered."""
        self._prior.add(self._name, [record for record in records if record.redelivery_count], held=False)

    def settled(self, records: Iterable[object], acknowledged: bool) -> None:
        """Settle records of the application: receivers with copies of them acknowledge or deliver those."""
        if self.left:
            known = [record for record in records if isinstance(record, PulsarRecord)]
            self._prior.settled(self._name, known, acknowledged)

    def forget(self, concerned: Callable[[str], bool]) -> None:
        """Forget deliveries of a subscription moved on some topics, or of topics whose ids start over."""
        self._prior.forget(self._name, concerned)
