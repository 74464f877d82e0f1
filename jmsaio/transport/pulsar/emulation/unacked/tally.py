"""``Tally``: counts the records and entries of one shared subscription that this process gave back.

Pulsar counts each redelivery of an entry, for whatever reason: also when a selector rejected a record or its neighbour,
or when prefetched records went back unseen. What this process did itself is known and subtracted; redeliveries that
other processes caused can't be distinguished from failures.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Protocol, TypeVar
from weakref import ReferenceType, WeakSet, WeakValueDictionary, ref

import attrs

from jmsaio.transport.pulsar.native.record import Key, PulsarRecord

#: Entries, and records, remembered.
REMEMBERED = 50_000

_Place = TypeVar("_Place", tuple[int, int], Key)
_Identity = tuple[str, tuple[str, ...], str | None]


class Tracker(Protocol):
    """The part of ``UnackedTracker`` that other receivers ask."""

    @property
    def link(self) -> object:
        """Equal for the receivers of one link to the broker."""

    @property
    def held(self) -> list[PulsarRecord]:
        """What its application has."""

    def recognize(self, records: list[PulsarRecord], now: float) -> tuple[list[PulsarRecord], list[PulsarRecord]]:
        """Those of ``records`` that its application has, and those that it acknowledged."""


_tallies: WeakValueDictionary[tuple[str, _Identity], Tally] = WeakValueDictionary()
_lock = threading.Lock()  # receivers of one subscription may have several threads


@attrs.define(eq=False)
class Tally:
    """Counts for all receivers of one subscription in this process.

    Attributes:
        trackers: of those receivers.
    """

    trackers: WeakSet[Tracker] = attrs.field(factory=WeakSet, init=False)
    _entries: OrderedDict[tuple[int, int], int] = attrs.field(factory=OrderedDict, init=False)
    _records: OrderedDict[Key, int] = attrs.field(factory=OrderedDict, init=False)
    _takers: OrderedDict[tuple[int, int], ReferenceType[Tracker]] = attrs.field(factory=OrderedDict, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)  # receivers may have several threads

    def __bool__(self) -> bool:
        return bool(self._entries) or len(self.trackers) > 1

    def join(self, tracker: Tracker) -> None:
        """One more receiver: from the second on, it is remembered which of them took an entry."""
        with self._lock:
            present = list(self.trackers)
            self.trackers = WeakSet([*present, tracker])  # a new one: other threads may be looking at the old one
        if len(present) == 1:
            self._taken_before(present[0], present[0].held)

    def leave(self, tracker: Tracker) -> None:
        """A receiver is closed."""
        with self._lock:
            self.trackers = WeakSet(other for other in self.trackers if other is not tracker)

    def moved(self) -> None:
        """The subscription was moved: what was taken before is delivered again, to any receiver."""
        with self._lock:
            self._takers.clear()

    def _taken_before(self, own: Tracker, records: list[PulsarRecord]) -> list[PulsarRecord]:
        """The records whose entry another took first: the broker gives it to a second one after a lost link."""
        takers, reference, before = self._takers, ref(own), []
        for record in records:
            if record.topic.startswith("non-persistent://"):  # its ids identify nothing
                continue
            if takers.setdefault(record.place[:2], reference) != reference:
                before.append(record)
        with self._lock:
            while len(takers) > REMEMBERED:
                takers.popitem(last=False)
        return before

    def entry_returned(self, ledger: int, entry: int) -> None:
        """An entry goes back to the broker, which will count that."""
        _count(self._entries, (ledger, entry))

    def record_failed(self, place: Key) -> None:
        """The application had a record and gave it back."""
        _count(self._records, place)

    def failures(self, place: Key) -> int:
        """Number of times that applications of this process gave a record back."""
        return self._records.get(place, 0)

    def redeliveries(self, place: Key, counted: int) -> int:
        """Number of redeliveries of a record that applications of this process, or other processes, caused.

        Args:
            place: the record.
            counted: redeliveries of its entry, as the broker counts.
        """
        return self.failures(place) + max(0, counted - self._entries.get(place[:2], 0))

    def copies(
        self, own: Tracker, records: list[PulsarRecord], now: float
    ) -> tuple[list[PulsarRecord], list[PulsarRecord]]:
        """Copies of what another receiver of this process took: those that it has, and those that it acknowledged.

        An entry that one receiver gives back is redelivered whole, to any of them: also those of its records that the
        application has, or that the receiver's queue still holds.

        After a lost link or an unload everything that is not acknowledged is redelivered to any of them, uncounted.
        What the application has from a receiver of the same link is kept back, too; anything else is marked as
        redelivered: an acknowledgement may have been lost, and another link may stay away.
        """
        others = [unacked for unacked in self.trackers if unacked is not own]
        if not others:
            return [], []
        crossed = {one for one in self._taken_before(own, records) if one.place[:2] not in self._entries}
        suspects = [one for one in records if one in crossed or one.place[:2] in self._entries]
        held: list[PulsarRecord] = []
        settled: list[PulsarRecord] = []
        for other in others if suspects else ():
            has, acknowledged = other.recognize(suspects, now)
            if other.link is not own.link:
                acknowledged += [record for record in has if record in crossed]
                has = [record for record in has if record not in crossed]
            held += has
            settled += [record for record in acknowledged if record not in crossed]
            for record in crossed.intersection(acknowledged):
                record.redelivery_count = max(1, record.redelivery_count)
        return held, settled


def _count(counts: OrderedDict[_Place, int], key: _Place) -> None:
    counts[key] = counts.pop(key, 0) + 1
    if len(counts) > REMEMBERED:
        counts.popitem(last=False)


def tally(broker: str, identity: _Identity) -> Tally:
    """The tally of a subscription, one for all its receivers in this process.

    Args:
        broker: the broker's service URL.
        identity: of the subscription.
    """
    with _lock:
        found = _tallies.get((broker, identity))
        if found is None:
            found = _tallies[broker, identity] = Tally()
        return found
