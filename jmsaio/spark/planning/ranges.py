"""A task's work: a range of one partition, and the check that each of its messages is read exactly once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import attrs

from jmsaio.model.wire import EntryId, WireId
from jmsaio.spark.model.place import Place

#: A closed range of entries.
Span = tuple[EntryId, EntryId]
#: Start of any topic.
BEGINNING: Final = Place(0, 0)
_UNBOUND: Final = 2**63
_end: Final = itemgetter(1)  # of a span, or of a pair of places


class EntryRun(NamedTuple):
    """Consecutive entries of a ledger, from ``first`` to before ``stop``."""

    ledger: int
    first: int
    stop: int

    @property
    def entries(self) -> int:
        return self.stop - self.first


@attrs.frozen
class Range:
    """Messages of a topic or partition from ``start`` to before ``end``, read by one task; below 1 kB when pickled."""

    topic: str
    start: Place
    end: Place
    ledgers: tuple[tuple[int, int], ...]  # id and number of entries of each ledger in the range
    acknowledged: tuple[Span, ...] = ()  # left out, in order
    size: int = attrs.field(default=0, eq=False)  # mean bytes of an entry, estimated; 0 if unknown

    @property
    def stop(self) -> EntryId:
        return self.end.ledger, self.end.entry + (self.end.batch > 0)

    def runs(self) -> list[EntryRun]:
        """Return the range's entries without acknowledged ones."""
        found: list[EntryRun] = []
        for ledger, entries in self.ledgers:
            first = self.start.entry if ledger == self.start.ledger else 0
            stop = min(entries, self.stop[1]) if ledger == self.end.ledger else entries
            if self.start.ledger <= ledger <= self.end.ledger and first < stop:
                found += _without(EntryRun(ledger, first, stop), self.acknowledged)
        return found

    def entries(self) -> int:
        return sum(run.entries for run in self.runs())


def _without(run: EntryRun, spans: Sequence[Span]) -> Iterator[EntryRun]:
    ledger, first, stop = run
    for index in range(bisect_left(spans, (ledger, first), key=_end), len(spans)):
        low, high = spans[index]
        if low >= (ledger, stop):
            break
        if low > (ledger, first):
            yield EntryRun(ledger, first, low[1])
        first = high[1] + 1 if high[0] == ledger else stop
    if first < stop:
        yield EntryRun(ledger, first, stop)


@attrs.frozen
class Loss:
    """Stored messages that were to be read, from ``wanted`` to the next existing place, and no longer exist."""

    topic: str
    wanted: Place
    found: Place | None
    reason: str

    def __str__(self) -> str:
        found = "nothing is stored after it" if self.found is None else f"the stored messages begin at {self.found}"
        return f"{self.topic}: messages from {self.wanted} on are lost, {found}: {self.reason}"


@attrs.frozen
class Gap:
    """Entries of a range that were not received, or not completely, up to ``end``, the place received instead."""

    missing: tuple[EntryRun, ...]
    end: Place
    hole: Place | None = None  # the first record missing from a batch that was partly received

    @property
    def start(self) -> Place:
        return Place(self.missing[0].ledger, self.missing[0].first)


@attrs.frozen
class Selected:
    """Result of checking records: how many were used, and the indexes of those received for the first time."""

    wanted: list[int]
    used: int
    gap: Gap | None  # before the next record: call ``accept``, then continue from there


class RangeCheck:
    """Check of a reader's records against a range: drops repeated and outside ones, and detects missing ones.

    A record that was given up and is received later is still returned: on a busy machine, records can overtake others.
    """

    def __init__(self, range: Range) -> None:
        self._range = range
        self._runs = range.runs()
        start = range.start
        self.last = start._replace(batch=start.batch - 1)  # the last record received or given up
        self._size = 0  # number of records in its entry; 0 if unknown
        self._seen: EntryId = (start.ledger, start.entry - 1)  # the last entry received or given up
        self._given_up: list[tuple[Place, Place]] = []  # nothing between the places of a pair was received in time,
        self._late: set[Place] = set()  # except these records, received later
        self.done = range.start >= range.end

    @property
    def place(self) -> Place:
        """Entry where a reader must start to miss nothing; it redelivers the last entry completely."""
        return self.last._replace(batch=0)

    @property
    def is_last(self) -> bool:
        """True if only the rest of the last entry can be missing."""
        return self.done or not self._missing_before(self._range.stop)

    def select(self, ids: Sequence[WireId], size_of: Callable[[int], int] = lambda index: 0) -> Selected:
        """Select the records to read, up to the first gap or the end; ``size_of`` is that of a batch, 0 if unknown."""
        wanted: list[int] = []
        used, gap = 0, None
        while gap is None and not self.done and (used := self._follow(ids, size_of, used, wanted)) < len(ids):
            ledger, entry, _, batch = ids[used]
            size = 1 if batch < 0 else size_of(used)
            gap = self._step(Place(ledger, entry, max(batch, 0)), size, used, wanted)
            used += gap is None and not self.done
        if used and used == len(ids) and 0 < self._size <= self.last.batch + 1 and self.is_last:
            self.done = True
        return Selected(wanted, used, gap)

    def _follow(self, ids: Sequence[WireId], size_of: Callable[[int], int], used: int, wanted: list[int]) -> int:
        """Handle records that directly follow the last one, the usual case; return the index of the first other one."""
        (ledger, number), end = self._seen, self._range.end
        if self._range.acknowledged or self.last[:2] > self._seen or ledger > end.ledger:
            return used
        bound = end.entry if ledger == end.ledger else _UNBOUND
        batch_before, size = (self.last.batch, self._size) if self.last[:2] == self._seen else (-1, 0)
        for index in range(used, len(ids)):
            of, entry, _, batch = ids[index]
            if of != ledger or entry >= bound:
                break
            if entry == number + 1 and batch < 1 and batch_before + 1 >= size:
                number = entry
                if batch:
                    size, batch = 1, 0
                else:
                    size = size_of(index)
            elif entry != number or batch != batch_before + 1:
                break
            batch_before = batch
        else:
            index = len(ids)
        if index > used:
            wanted.extend(range(used, index))
            self._seen, self.last, self._size = (ledger, number), Place(ledger, number, batch_before), size
        return index

    def _step(self, place: Place, size: int, index: int, wanted: list[int]) -> Gap | None:
        here = (place.ledger, place.entry)
        is_next = here == (self._seen[0], self._seen[1] + 1)
        if place <= self.last:
            self._seen = here if is_next else self._seen
            self._size = size if here == self.last[:2] else self._size
            if self._is_late(place):
                wanted.append(index)
            return None
        gap = self._gap(place)
        if gap is not None or place >= self._range.end:
            self.done = gap is None
            return gap
        self.last, self._seen, self._size = place, max(self._seen, here), size
        if not (self._range.acknowledged and _contains(self._range.acknowledged, here)):
            wanted.append(index)
        return None

    def _is_late(self, place: Place) -> bool:
        index = bisect_right(self._given_up, place, key=_end)
        if index == len(self._given_up) or place <= self._given_up[index][0] or place in self._late:
            return False
        self._late.add(place)
        return not _contains(self._range.acknowledged, place[:2])

    def finish(self) -> Gap | None:
        """Return the gap up to the end of the range when no more is received; ``done`` if there is none."""
        gap = self.rest()
        self.done = gap is None
        return gap

    def rest(self) -> Gap | None:
        return self._gap(self._range.end)

    def accept(self, gap: Gap) -> None:
        self._given_up.append((self.last, gap.end))
        ledger, entry = self._range.stop if gap.end >= self._range.end else gap.end[:2]
        self._seen = max(self._seen, (ledger, entry - 1))
        self.last, self._size = gap.end._replace(batch=gap.end.batch - 1), 0

    def _gap(self, place: Place) -> Gap | None:
        is_end = place >= self._range.end
        place = min(place, self._range.end)
        missing = self._missing_before(self._range.stop if is_end else place[:2])
        holes = self._holes(place, is_end)
        missing = sorted(missing + [EntryRun(hole.ledger, hole.entry, hole.entry + 1) for hole in holes])
        return Gap(tuple(missing), place, holes[0] if holes else None) if missing else None

    def _holes(self, place: Place, is_end: bool) -> list[Place]:
        """Return the first records missing before a place, in the last entry and in the place's own."""
        ledger, entry, batch = self.last
        holes = []
        if place[:2] != (ledger, entry):
            holes += [Place(ledger, entry, batch + 1)] * (batch + 1 < self._size)
            holes += [place._replace(batch=0)] * (place.batch > 0 and not is_end)
        elif place.batch > batch + 1 and not (is_end and batch + 1 >= self._size):
            holes.append(Place(ledger, entry, batch + 1))
        return [hole for hole in holes if not _contains(self._range.acknowledged, hole[:2])]

    def _missing_before(self, entry: EntryId) -> list[EntryRun]:
        ledger, number = self._seen
        if entry <= (ledger, number + 1):
            return []
        found = []
        for index in range(max(0, bisect_left(self._runs, (ledger, number + 1)) - 1), len(self._runs)):
            run = self._runs[index]
            first = max(run.first, number + 1) if run.ledger == ledger else run.first
            stop = min(run.stop, entry[1]) if run.ledger == entry[0] else run.stop
            if run.ledger > entry[0]:
                break
            if run.ledger >= ledger and first < stop:
                found.append(EntryRun(run.ledger, first, stop))
        return found


def _contains(spans: Sequence[Span], entry: EntryId) -> bool:
    index = bisect_left(spans, entry, key=_end)
    return index < len(spans) and spans[index][0] <= entry
