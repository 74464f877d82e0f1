"""A task's work: a range of one partition, and the check that it comes whole and once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import attrs

from jmsaio.model.wire import WireId
from jmsaio.spark.model.places import Place

#: An entry: ledger and number in it.
Entry = tuple[int, int]
#: A closed range of entries.
Span = tuple[Entry, Entry]
#: The start of any topic, where its oldest ledger is not known.
BEGINNING: Final = Place(0, 0)
_UNBOUND: Final = 2**63


class Run(NamedTuple):
    """Consecutive entries of a ledger: ``first`` up to, not including, ``stop``."""

    ledger: int
    first: int
    stop: int


@attrs.frozen
class Range:
    """Messages of one topic from ``start`` up to ``end``: what one task reads. Strings and numbers only.

    Pickled it is below 1 kB, unless it spans very many ledgers or acknowledged spans.

    Attributes:
        topic: full name of a topic without partitions, or of one partition.
        start: the first message wanted.
        end: the first message not wanted.
        ledgers: id and number of entries of each ledger that it touches; empty where they are not known.
        acknowledged: spans of entries to be left out, in their order.
    """

    topic: str
    start: Place
    end: Place
    ledgers: tuple[tuple[int, int], ...] = ()
    acknowledged: tuple[Span, ...] = ()

    @property
    def stop(self) -> Entry:
        """The first entry of which nothing is wanted."""
        return self.end.ledger, self.end.entry + (self.end.batch > 0)

    def runs(self) -> list[Run]:
        """Its entries without acknowledged ones, in their order.

        Where the ledgers are not known: the entries in the ledger of its end that must be there.
        """
        ledgers = self.ledgers or ((self.end.ledger, self.stop[1]),)
        found: list[Run] = []
        for ledger, entries in ledgers:
            first = self.start.entry if ledger == self.start.ledger else 0
            stop = min(entries, self.stop[1]) if ledger == self.end.ledger else entries
            if self.start.ledger <= ledger <= self.end.ledger and first < stop:
                found += _without(Run(ledger, first, stop), self.acknowledged)
        return found

    def entries(self) -> int:
        """How many entries it has without acknowledged ones; where the ledgers are not known, at least how many."""
        return sum(run.stop - run.first for run in self.runs())


def _without(run: Run, spans: Sequence[Span]) -> Iterator[Run]:
    """What is left of a run without some spans, which are in their order."""
    ledger, first, stop = run
    for index in range(bisect_left(spans, (ledger, first), key=_last), len(spans)):
        low, high = spans[index]
        if low >= (ledger, stop):
            break
        if low > (ledger, first):
            yield Run(ledger, first, low[1])
        first = high[1] + 1 if high[0] == ledger else stop
    if first < stop:
        yield Run(ledger, first, stop)


def _last(span: Span) -> Entry:
    return span[1]


@attrs.frozen
class Loss:
    """Stored messages that were to be read and are gone.

    Attributes:
        topic: full name of the topic, or of the partition.
        wanted: the first of them.
        found: the first place that is there instead, or None.
        reason: what is known of it, as a sentence without its end.
    """

    topic: str
    wanted: Place
    found: Place | None
    reason: str

    def __str__(self) -> str:
        """Topic, place wanted, place found and reason, in one sentence."""
        found = "nothing is stored behind it" if self.found is None else f"what is there begins at {self.found}"
        return f"{self.topic}: messages from {self.wanted} on are lost, {found}: {self.reason}"


@attrs.frozen
class Gap:
    """Entries of a range that did not come, or not in whole.

    Attributes:
        missing: them, in their order.
        end: the place that came instead, or the end of the range.
        hole: the first record missing from a batch of which others came; None where only whole entries are missing.
    """

    missing: tuple[Run, ...]
    end: Place
    hole: Place | None = None

    @property
    def start(self) -> Place:
        """The first of them."""
        return Place(self.missing[0].ledger, self.missing[0].first)


@attrs.frozen
class Taken:
    """What a check says about some records.

    Attributes:
        wanted: indexes of those that are part of the range and come for the first time, in their order.
        used: how many of them were looked at.
        gap: what is missing before the next one; None where nothing is. Once ``accept`` was called, go on from there.
    """

    wanted: list[int]
    used: int
    gap: Gap | None


class RangeCheck:
    """Follows the records of a reader through a range: drops repeated and unwanted ones, and finds what is missing.

    A record that comes after it was given up is wanted all the same: on a busy machine one may overtake another.

    Args:
        range: what is read.

    Attributes:
        done: nothing more of the range is to come.
    """

    def __init__(self, range: Range) -> None:
        self._range = range
        self._runs = range.runs()
        self._is_known = bool(range.ledgers)
        start = range.start
        self._last: tuple[int, int, int] = (
            start.ledger,
            start.entry,
            start.batch - 1,
        )  # the last record that is not wanted any more
        self._size = 0  # how many records its entry has, 0 as long as that is not known
        self._seen: Entry = (start.ledger, start.entry - 1)  # the last entry that has come, or is not waited for
        self._given_up: list[tuple[Place, Place]] = []  # of what lies between the two of a pair, nothing came in time,
        self._late: set[Place] = set()  # but these records came later
        self.done = range.start >= range.end

    @property
    def place(self) -> Place:
        """Where a reader has to start, so that nothing is left out: the whole of the last entry comes again."""
        return Place(self._last[0], self._last[1])

    @property
    def last(self) -> Place:
        """The last record that is not waited for any more; before the first, the one before the start."""
        return Place(*self._last)

    @property
    def is_last(self) -> bool:
        """At most the rest of the last entry is still to come. Not known before its ledger where ledgers are not."""
        if not self._is_known and self._seen[0] < self._range.end.ledger:
            return self.done
        return self.done or not self._missing_before(self._range.stop)

    def take(self, ids: Sequence[WireId], size_of: Callable[[int], int] = lambda index: 0) -> Taken:
        """Which of the records with these ids are wanted, up to the first gap or the end of the range.

        Args:
            ids: of the records, in the order in which they came.
            size_of: gives the number of records in the batch of the one with an index; 0 where it is not known.
        """
        wanted: list[int] = []
        used, gap = 0, None
        while gap is None and not self.done and (used := self._follow(ids, size_of, used, wanted)) < len(ids):
            ledger, entry, _, batch = ids[used]
            size = 1 if batch < 0 else size_of(used)
            gap = self._step(Place(ledger, entry, max(batch, 0)), size, used, wanted)
            used += gap is None and not self.done
        if used and used == len(ids) and 0 < self._size <= self._last[2] + 1 and self.is_last:
            self.done = True
        return Taken(wanted, used, gap)

    def _follow(self, ids: Sequence[WireId], size_of: Callable[[int], int], used: int, wanted: list[int]) -> int:
        """Take the records that follow the last one at once, as most do; the index of the first that does not."""
        (ledger, number), end = self._seen, self._range.end
        if self._range.acknowledged or self._last[:2] > self._seen or ledger > end.ledger:
            return used
        bound = end.entry if ledger == end.ledger else _UNBOUND
        batch_before, size = (self._last[2], self._size) if self._last[:2] == self._seen else (-1, 0)
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
            self._seen, self._last, self._size = (ledger, number), (ledger, number, batch_before), size
        return index

    def _step(self, place: Place, size: int, index: int, wanted: list[int]) -> Gap | None:
        """Take any record, drop it, end with it, or find what is missing before it."""
        here = (place.ledger, place.entry)
        is_next = here == (self._seen[0], self._seen[1] + 1)
        if place <= self._last:
            self._seen = here if is_next else self._seen
            self._size = size if here == self._last[:2] else self._size
            if self._is_late(place):
                wanted.append(index)
            return None
        gap = self._gap(place)
        if gap is not None or place >= self._range.end:
            self.done = gap is None
            return gap
        self._last, self._seen, self._size = place, max(self._seen, here), size
        if not (self._range.acknowledged and _holds(self._range.acknowledged, here)):
            wanted.append(index)
        return None

    def _is_late(self, place: Place) -> bool:
        """Whether a record was given up and comes for the first time."""
        index = bisect_right(self._given_up, place, key=_end)
        if index == len(self._given_up) or place <= self._given_up[index][0] or place in self._late:
            return False
        self._late.add(place)
        return not _holds(self._range.acknowledged, place[:2])

    def finish(self) -> Gap | None:
        """What of the range has not come, when nothing more comes. It is done where that is nothing."""
        gap = self.rest()
        self.done = gap is None
        return gap

    def rest(self) -> Gap | None:
        """What of the range has not come so far."""
        return self._gap(self._range.end)

    def accept(self, gap: Gap) -> None:
        """What is missing in a gap is not waited for any more."""
        self._given_up.append((self.last, gap.end))
        ledger, entry = self._range.stop if gap.end >= self._range.end else gap.end[:2]
        self._seen = max(self._seen, (ledger, entry - 1))
        self._last, self._size = gap.end._replace(batch=gap.end.batch - 1), 0

    def _gap(self, place: Place) -> Gap | None:
        """What is missing before a place."""
        is_end = place >= self._range.end
        place = min(place, self._range.end)
        missing = self._missing_before(self._range.stop if is_end else place[:2])
        holes = self._holes(place, is_end)
        missing = sorted(missing + [Run(hole.ledger, hole.entry, hole.entry + 1) for hole in holes])
        return Gap(tuple(missing), place, holes[0] if holes else None) if missing else None

    def _holes(self, place: Place, is_end: bool) -> list[Place]:
        """The first records missing before a place of the last entry and of that of the place, where others came."""
        ledger, entry, batch = self._last
        holes = []
        if place[:2] != (ledger, entry):
            holes += [Place(ledger, entry, batch + 1)] * (batch + 1 < self._size)
            holes += [place._replace(batch=0)] * (place.batch > 0 and not is_end)
        elif place.batch > batch + 1 and not (is_end and batch + 1 >= self._size):
            holes.append(Place(ledger, entry, batch + 1))
        return [hole for hole in holes if not _holds(self._range.acknowledged, hole[:2])]

    def _missing_before(self, entry: Entry) -> list[Run]:
        """The entries behind the last seen, up to, not including, ``entry``."""
        ledger, number = self._seen
        if entry <= (ledger, number + 1):
            return []
        if not self._is_known:
            run = Run(entry[0], number + 1 if entry[0] == ledger else 0, entry[1])
            return [run] if run.first < run.stop else []
        found = []
        for index in range(max(0, bisect_left(self._runs, (ledger, number + 1)) - 1), len(self._runs)):
            run = self._runs[index]
            first = max(run.first, number + 1) if run.ledger == ledger else run.first
            stop = min(run.stop, entry[1]) if run.ledger == entry[0] else run.stop
            if run.ledger > entry[0]:
                break
            if run.ledger >= ledger and first < stop:
                found.append(Run(run.ledger, first, stop))
        return found


def _end(pair: tuple[Place, Place]) -> Place:
    return pair[1]


def _holds(spans: Sequence[Span], entry: Entry) -> bool:
    """Whether an entry lies in one of some spans, which are in their order."""
    index = bisect_left(spans, entry, key=_last)
    return index < len(spans) and spans[index][0] <= entry
