"""``Tally``: counts the records and entries of one shared subscription that this process gave back.

Pulsar counts each redelivery of an entry, for whatever reason: also when a selector rejected a record or its neighbour,
or when prefetched records went back unseen. What this process did itself is known and subtracted; redeliveries that
other processes caused can't be distinguished from failures.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol, TypeVar
from weakref import WeakSet, WeakValueDictionary

import attrs

from jmsaio.transport.pulsar.native.record import Key, PulsarRecord

#: Entries, and records, remembered.
REMEMBERED = 50_000

_Place = TypeVar("_Place", tuple[int, int], Key)
_Identity = tuple[str, tuple[str, ...], str | None]


class Tracker(Protocol):
    """The part of ``UnackedTracker`` that other receivers ask."""

    def recognize(self, records: list[PulsarRecord], now: float) -> tuple[list[PulsarRecord], list[PulsarRecord]]:
        """Those of ``records`` that its application has, and those that it acknowledged."""


_tallies: WeakValueDictionary[tuple[str, _Identity], Tally] = WeakValueDictionary()


@attrs.define(eq=False)
class Tally:
    """Counts for all receivers of one subscription in this process.

    Attributes:
        trackers: of those receivers.
    """

    trackers: WeakSet[Tracker] = attrs.field(factory=WeakSet, init=False)
    _entries: OrderedDict[tuple[int, int], int] = attrs.field(factory=OrderedDict, init=False)
    _records: OrderedDict[Key, int] = attrs.field(factory=OrderedDict, init=False)

    def __bool__(self) -> bool:
        return bool(self._entries)

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
        """
        others = [unacked for unacked in self.trackers if unacked is not own]
        suspects = [record for record in records if record.place[:2] in self._entries] if others else []
        held: list[PulsarRecord] = []
        settled: list[PulsarRecord] = []
        for other in others if suspects else ():
            theirs = other.recognize(suspects, now)
            held += theirs[0]
            settled += theirs[1]
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
    found = _tallies.get((broker, identity))
    if found is None:
        found = _tallies[broker, identity] = Tally()
    return found
