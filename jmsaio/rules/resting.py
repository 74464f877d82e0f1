"""Decides when records that no consumer of this process selects are returned to the broker, on a shared subscription.

They rest unacknowledged in the client and are returned in bundles, so that other consumers receive them:

* soon at first and then less and less often, because a record that keeps returning is selected by no one;
* within one budget, which grows with time and with each record that did not return, because another consumer took it.
  Thus many records that only return cost little, and never delay new ones for long;
* starting with the records returned least often, the newest of them first.

Brokers redeliver whole entries (batches), so records of one entry are returned together.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Hashable

import attrs

from jmsaio.model.wire import EntryId, SetAside

#: Maximum number of records in a bundle, unless its last entry has more.
BUNDLE = 256
#: First and longest delay in seconds, and growth with each turn: by chance a record can be redelivered to the wrong
#: consumer several times in a row, and doubling would soon keep it from the right one for half a minute.
FIRST, LONGEST, GROWTH = 0.1, 60.0, 1.3
#: Number of records that can be returned at once, and in each second after that.
BURST, RATE = 2_000.0, 200.0
#: Seconds after which a record that did not return counts as taken by another consumer, and the credit for each.
GONE, GAIN = 2.0, 2.0
#: Maximum number of returned entries that are remembered.
REMEMBERED = 50_000


@attrs.define(eq=False)
class Bundle:
    """Records that are returned together, after ``turns`` earlier returns.

    Attributes:
        until: time after which no further entry is added.
        entry: ledger and number of the last record's entry.
        resting: False once it was removed.
    """

    owner: Hashable
    turns: int
    until: float
    records: list[SetAside] = attrs.field(factory=list)
    entry: EntryId | None = None
    resting: bool = True


@attrs.frozen
class _Return:
    """A returned entry: its turns, the time, its records, and whether it was counted as taken by others."""

    turns: int
    when: float
    size: int
    gone: bool = False


@attrs.define(eq=False)
class Resting:
    """The resting records of one subscription. Times are seconds of one clock.

    Attributes:
        full: owners whose receiving pauses; meanwhile records that do not return don't count as taken by others.
    """

    full: set[Hashable] = attrs.field(factory=set, init=False)
    _open: dict[tuple[Hashable, int], Bundle] = attrs.field(factory=dict, init=False)
    _last: dict[Hashable, Bundle] = attrs.field(factory=dict, init=False)
    _heap: list[tuple[float, int, Bundle]] = attrs.field(factory=list, init=False)
    _ready: dict[int, list[Bundle]] = attrs.field(factory=dict, init=False)
    _hastened: list[Bundle] = attrs.field(factory=list, init=False)
    _counts: dict[Hashable, int] = attrs.field(factory=dict, init=False)
    _returned: OrderedDict[EntryId, _Return] = attrs.field(factory=OrderedDict, init=False)
    _pending: list[tuple[float, EntryId]] = attrs.field(factory=list, init=False)  # a heap
    _number: int = attrs.field(default=0, init=False)
    _budget: float = attrs.field(default=BURST, init=False)
    _filled: float | None = attrs.field(default=None, init=False)

    def count(self, owner: Hashable) -> int:
        """Return the number of resting records of ``owner``."""
        return self._counts.get(owner, 0)

    def add(self, owner: Hashable, record: SetAside, now: float) -> bool:
        """Let a record rest; return True if that might change ``wait``."""
        self._counts[owner] = self._counts.get(owner, 0) + 1
        entry = _entry_id(record)
        last = self._last.get(owner)
        if last is not None and last.entry == entry and last.resting:
            last.records.append(record)
            return False
        turns = self._times_returned(entry)
        bundle = self._open.get((owner, turns))
        if bundle is not None and (len(bundle.records) >= BUNDLE or now > bundle.until):
            bundle = None
        new = bundle is None
        if bundle is None:
            bundle = self._begin(owner, turns, entry, now)
        bundle.records.append(record)
        bundle.entry = entry
        self._last[owner] = bundle
        return new

    def _times_returned(self, entry: EntryId) -> int:
        """Return how often the entry of a record that has arrived was returned before."""
        known = self._returned.pop(entry, None)
        if known is None:
            return 0
        if known.gone:  # no one else took it: it was only slow
            self._budget -= GAIN * known.size
        return known.turns

    def _begin(self, owner: Hashable, turns: int, entry: EntryId, now: float) -> Bundle:
        spread = (entry[1] * 0x9E3779B1 + turns * 0xC2B2AE35) % 1024 / 2048
        delay = min(LONGEST, FIRST * GROWTH ** min(turns, 32) * (1 + spread))
        bundle = self._open[owner, turns] = Bundle(owner, turns, now + delay / 8)
        self._number += 1
        heapq.heappush(self._heap, (now + delay, self._number, bundle))
        return bundle

    def hasten(self, owner: Hashable | None = None) -> None:
        """Schedule all records, or all of ``owner``, to be returned next, whatever the budget."""
        bundles = [bundle for _, _, bundle in sorted(self._heap, key=lambda entry: entry[1])]
        bundles += [bundle for ready in self._ready.values() for bundle in ready]
        chosen = {bundle for bundle in bundles if owner is None or bundle.owner == owner}
        self._hastened.extend(bundle for bundle in bundles if bundle in chosen)
        self._heap = [entry for entry in self._heap if entry[2] not in chosen]
        heapq.heapify(self._heap)
        for turns, ready in list(self._ready.items()):
            self._ready[turns] = [bundle for bundle in ready if bundle not in chosen]
            if not self._ready[turns]:
                del self._ready[turns]

    def pop(self, now: float) -> Bundle | None:
        """Remove and return the next bundle to be returned, or None."""
        self._refill(now)
        if self._hastened:
            return self._remove(self._hastened.pop(0), now)
        heap, ready = self._heap, self._ready
        while heap and heap[0][0] <= now:
            bundle = heapq.heappop(heap)[2]
            ready.setdefault(bundle.turns, []).append(bundle)
        if not ready or self._budget <= 0:
            return None
        turns = min(ready)
        bundle = ready[turns].pop()
        if not ready[turns]:
            del ready[turns]
        self._budget -= len(bundle.records)
        return self._remove(bundle, now)

    def pop_hastened(self, owner: Hashable, now: float) -> Bundle | None:
        """Remove and return the next bundle of ``owner`` after ``hasten``, or None."""
        for bundle in self._hastened:
            if bundle.owner == owner:
                self._hastened.remove(bundle)
                return self._remove(bundle, now)
        return None

    def wait(self, now: float) -> float | None:
        """Return the seconds until ``pop`` returns a bundle again, or None if nothing rests."""
        if self._hastened:
            return 0.0
        budget = 0.0 if self._budget > 0 else (1 - self._budget) / RATE
        if self._ready:
            return budget
        return max(budget, self._heap[0][0] - now) if self._heap else None

    def _remove(self, bundle: Bundle, now: float) -> Bundle:
        bundle.resting = False
        owner = bundle.owner
        if self._open.get((owner, bundle.turns)) is bundle:
            del self._open[owner, bundle.turns]
        self._counts[owner] -= len(bundle.records)
        if not self._counts[owner]:
            del self._counts[owner]
            self._last.pop(owner, None)
        sizes: dict[EntryId, int] = {}
        for record in bundle.records:
            entry = _entry_id(record)
            sizes[entry] = sizes.get(entry, 0) + 1
        for entry, size in sizes.items():
            self._returned[entry] = _Return(bundle.turns + 1, now, size)
            heapq.heappush(self._pending, (now, entry))
        while len(self._returned) > REMEMBERED:
            self._returned.popitem(last=False)
        return bundle

    def _refill(self, now: float) -> None:
        """Let the budget grow with time and with the records that others took."""
        if self._filled is not None:
            self._budget += (now - self._filled) * RATE
        self._filled = now
        pending, returned = self._pending, self._returned
        while pending and pending[0][0] <= now - GONE:
            when, entry = heapq.heappop(pending)
            known = returned.get(entry)
            if not self.full and known is not None and known.when == when:
                returned[entry] = attrs.evolve(known, gone=True)
                self._budget += GAIN * known.size
        self._budget = max(-BURST, min(BURST, self._budget))


def _entry_id(record: SetAside) -> EntryId:
    message_id = record if isinstance(record, tuple) else record.message_id
    return message_id[0], message_id[1]
