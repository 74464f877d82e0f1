"""Records that an application got from a receiver that stopped or was closed before they were settled.

The broker gives such records to other receivers at once, without saying that they were delivered before. Receivers of
the same transport learn it here: they keep back what the application still has until it is settled, and mark what was
given back as redelivered. What was given back is known to all transports of the process (``GIVEN_BACK``): the next
connection marks it, too.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable
from weakref import WeakSet

import attrs

from jmsaio.transport.pulsar.native.record import PulsarRecord

#: Maximum numbers of entries remembered for each subscription, of subscriptions, and of records of all together.
ENTRIES = 10_000
SUBSCRIPTIONS = 1000
TOGETHER = 100_000
#: Seconds in which a record that was acknowledged may be with other receivers, unseen in their queues.
CROSSING = 30.0
#: Identifies an entry in a cluster: ledger, entry.
Entry = tuple[int, int]


@attrs.define(eq=False)
class PriorDelivery:
    """One record that an application got.

    Attributes:
        published: when it was published; another record may come to the same place.
        held: the application may still settle it.
        acknowledged: the application did; what the broker sent to others before is not another delivery.
        since: time at which it did.
        copies: copies that other receivers got and keep back, each with a function that is called when the record was
            settled: with True if it was acknowledged, with False if it was given back.
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
        given_back: keeps what was given back, for other transports, too; None: that is kept here.
        marked: records that were recognised here when they came, whatever the broker's count says.
    """

    given_back: PriorDeliveries | None = None
    marked: WeakSet[PulsarRecord] = attrs.field(factory=WeakSet, init=False)
    _deliveries: OrderedDict[tuple[str, str], dict[Entry, dict[int, PriorDelivery]]] = attrs.field(
        factory=OrderedDict, init=False
    )
    _count: int = attrs.field(default=0, init=False)
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)  # other transports may have other threads

    def __len__(self) -> int:
        return len(self._deliveries) + (0 if self.given_back is None else len(self.given_back))

    def add(self, subscription: str, records: Iterable[PulsarRecord], held: bool) -> None:
        """An application got records; ``held``: it may still settle them.

        Copies of records that are forgotten for want of room, or that are not held any more, are released.
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
        ledger, entry, index = record.place
        deliveries = entries.setdefault((ledger, entry), {})
        known, delivery = deliveries.get(index), PriorDelivery(record.publish_time, held)
        if known is None:
            self._count += 1
        elif held and known.published == delivery.published:
            delivery.copies = known.copies  # of a receiver that stops once more
        else:
            left.append(known)
        deliveries[index] = delivery
        if len(entries) > ENTRIES:
            self._drop_first(entries, left)

    def _drop_first(self, entries: dict[Entry, dict[int, PriorDelivery]], left: list[PriorDelivery]) -> None:
        """Forget the oldest entry of a subscription; its deliveries go to ``left``."""
        dropped = entries.pop(next(iter(entries))).values()
        self._count -= len(dropped)
        left += dropped

    def entries(self, topic: str | None, subscription: str) -> list[Container[Entry]]:
        """What has the entries of a topic of which records were delivered; empty for a pattern, whose topic is unknown.

        Containers, not copies: other threads may change them at any time, so nothing may iterate over them.
        """
        own = self._deliveries.get((topic, subscription)) if topic is not None else None
        shared = [] if self.given_back is None else self.given_back.entries(topic, subscription)
        return [own, *shared] if own else shared

    def find(self, subscription: str, record: PulsarRecord) -> PriorDelivery | None:
        """The delivery of a record that came, or None. One that was given back is forgotten with this call."""
        with self._lock:
            delivery = self._delivery(subscription, record)
            if delivery is not None and not delivery.held and not delivery.acknowledged:
                self._forget(subscription, record)
            elif delivery is not None and delivery.acknowledged and time.monotonic() - delivery.since >= CROSSING:
                self._forget(subscription, record)
                delivery = None
        if self.given_back is not None:
            delivery = delivery or self.given_back.find(subscription, record)
        if delivery is not None:
            self.marked.add(record)
        return delivery

    def forget(self, subscription: str, concerned: Callable[[str], bool]) -> None:
        """A subscription was moved, or the ids of a topic start over: forget its deliveries.

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
        """Those of a receiver's records that are copies. The receiver stops keeping them back; the deliveries stay."""
        copies = set()
        for record in records:
            delivery = self._delivery(subscription, record)
            if delivery is not None and delivery.copies.pop(record, None) is not None:
                copies.add(record)
        return copies

    def settled(self, subscription: str, records: Iterable[PulsarRecord], acknowledged: bool) -> None:
        """The application settled records; unknown ones are left out."""
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
        ledger, entry, index = record.place
        delivery = self._deliveries.get((record.topic, subscription), {}).get((ledger, entry), {}).get(index)
        return delivery if delivery is not None and delivery.published == record.publish_time else None

    def _forget(self, subscription: str, record: PulsarRecord) -> PriorDelivery:
        entries = self._deliveries[record.topic, subscription]
        ledger, entry, index = record.place
        deliveries = entries[ledger, entry]
        delivery = deliveries.pop(index)
        self._count -= 1
        if not deliveries:
            del entries[ledger, entry]
        if not entries:
            del self._deliveries[record.topic, subscription]
        return delivery


def _release(deliveries: Iterable[PriorDelivery]) -> None:
    """Have the copies of forgotten deliveries delivered."""
    for delivery in list(deliveries):
        for settled in list(delivery.copies.values()):
            settled(False)


#: What the transports of this process gave back.
GIVEN_BACK = PriorDeliveries()
