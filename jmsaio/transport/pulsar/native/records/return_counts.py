"""``ReturnCounts``: counts the records and entries of one shared subscription returned by this process.

Pulsar counts each redelivery of an entry, for whatever reason: also when a selector rejected a record or its neighbour,
or when prefetched records were returned undelivered. Redeliveries caused by this process are known and subtracted;
those caused by other processes can't be distinguished from failures.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Protocol, TypeVar
from weakref import ReferenceType, WeakSet, WeakValueDictionary, ref

import attrs

from jmsaio.model.wire import EntryId
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord, RecordKey

#: Maximum entries, and records, stored.
REMEMBERED = 50_000

_Counted = TypeVar("_Counted", EntryId, RecordKey)
_Identity = tuple[str, tuple[str, ...], str | None]


class Tracker(Protocol):
    """The part of ``UnackedTracker`` used by other receivers."""

    @property
    def link(self) -> object:
        """Equal for the receivers of one connection to the broker."""

    @property
    def held(self) -> list[PulsarRecord]:
        """Records held by its application."""

    def recognize(
        self, records: list[PulsarRecord], now: float
    ) -> tuple[dict[PulsarRecord, PulsarRecord], list[PulsarRecord]]:
        """Return those of ``records`` that its application holds, each with its own one, and those it acknowledged."""


_all_counts: WeakValueDictionary[tuple[str, _Identity], ReturnCounts] = WeakValueDictionary()
_lock = threading.Lock()  # receivers of one subscription can run in several threads


@attrs.define(eq=False)
class ReturnCounts:
    """Counts shared by all receivers of one subscription in this process.

    Attributes:
        trackers: trackers of those receivers.
    """

    trackers: WeakSet[Tracker] = attrs.field(factory=WeakSet, init=False)
    _entries: OrderedDict[EntryId, int] = attrs.field(factory=OrderedDict, init=False)
    _records: OrderedDict[RecordKey, int] = attrs.field(factory=OrderedDict, init=False)
    #: The receiver of each entry; None if several had it, perhaps each a part of it.
    _takers: OrderedDict[EntryId, ReferenceType[Tracker] | None] = attrs.field(factory=OrderedDict, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)  # receivers can run in several threads

    def __bool__(self) -> bool:
        return bool(self._entries) or len(self.trackers) > 1

    def join(self, tracker: Tracker) -> None:
        """Add a receiver; from the second on, the receiver of each entry is stored."""
        with self._lock:
            present = list(self.trackers)
            self.trackers = WeakSet([*present, tracker])  # a new set: other threads might be reading the old one
        if len(present) == 1:
            self._taken_before(present[0], present[0].held)

    def leave(self, tracker: Tracker) -> None:
        """Remove a closed receiver."""
        with self._lock:
            self.trackers = WeakSet(other for other in self.trackers if other is not tracker)

    def moved(self) -> None:
        """Forget the receivers of entries: the subscription was moved, so they are delivered again to any receiver."""
        with self._lock:
            self._takers.clear()

    def _taken_before(self, own: Tracker, records: list[PulsarRecord]) -> list[PulsarRecord]:
        """Return the records whose entry another receiver had first; the broker resends it after a lost connection."""
        takers, reference, before = self._takers, ref(own), []
        for record in records:
            if record.topic.startswith("non-persistent://"):  # its ids identify nothing
                continue
            entry = record.record_key[:2]
            if takers.setdefault(entry, reference) != reference:
                takers[entry] = None
                before.append(record)
        with self._lock:
            while len(takers) > REMEMBERED:
                takers.popitem(last=False)
        return before

    def entry_returned(self, ledger: int, entry: int) -> None:
        """Count an entry returned to the broker, which will count it, too."""
        _count(self._entries, (ledger, entry))

    def record_failed(self, key: RecordKey) -> None:
        """Count a record that the application had and returned."""
        _count(self._records, key)

    def failures(self, key: RecordKey) -> int:
        """Count the returns of a record by applications of this process."""
        return self._records.get(key, 0)

    def redeliveries(self, key: RecordKey, counted: int) -> int:
        """Count the redeliveries of a record caused by applications of this process, or by other processes.

        Args:
            counted: redeliveries of its entry, as counted by the broker.
        """
        return self.failures(key) + max(0, counted - self._entries.get(key[:2], 0))

    def copies(
        self, own: Tracker, records: list[PulsarRecord], now: float
    ) -> tuple[list[PulsarRecord], list[PulsarRecord]]:
        """Return copies of another receiver's records: those that it holds, and those that it acknowledged.

        An entry returned by one receiver is redelivered whole, to any of them, including records that the application
        holds or that the receiver's queue still contains.

        After a lost connection or an unload, everything unacknowledged is redelivered to any of them, uncounted.
        Records held from a receiver of the same connection are kept back, too; all others are marked as redelivered: an
        acknowledgement might have been lost, and another connection might stay lost.
        """
        others = [unacked for unacked in self.trackers if unacked is not own]
        if not others:
            return [], []
        crossed = {one for one in self._taken_before(own, records) if one.record_key[:2] not in self._entries}
        suspects = [one for one in records if one in crossed or one.record_key[:2] in self._entries]
        held: list[PulsarRecord] = []
        settled: list[PulsarRecord] = []
        for other in others if suspects else ():
            has, acknowledged = other.recognize(suspects, now)
            if other.link is not own.link:
                for record in crossed & has.keys():  # both are delivered, in any order
                    has.pop(record).mark_delivered()
                    acknowledged.append(record)
            held += has
            settled += [record for record in acknowledged if record not in crossed]
            for record in crossed.intersection(acknowledged):
                record.mark_delivered()
        return held, settled


def _count(counts: OrderedDict[_Counted, int], key: _Counted) -> None:
    counts[key] = counts.pop(key, 0) + 1
    if len(counts) > REMEMBERED:
        counts.popitem(last=False)


def return_counts(broker: str, identity: _Identity) -> ReturnCounts:
    """Return the counts of a subscription, shared by all its receivers in this process.

    Args:
        broker: the broker's service URL.
    """
    with _lock:
        found = _all_counts.get((broker, identity))
        if found is None:
            found = _all_counts[broker, identity] = ReturnCounts()
        return found
