"""What a topic stores and what a user wants of it, cut into ranges for tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from jmsaio.model.wire import WireId
from jmsaio.spark.model.places import Place
from jmsaio.spark.planning.ranges import BEGINNING, Loss, Range, Run
from jmsaio.transport.administration import Cursor, Ledger, TopicLog

#: Why a place may not be there any more.
_TRIMMED: Final = "the broker has deleted them, or the topic was deleted and made anew"
_BEHIND: Final = "the position lies behind the end of the topic, which may have been deleted and made anew"


@attrs.frozen
class Limits:
    """How much a task reads.

    Attributes:
        min_partitions: ranges for all topics together at least, if there are as many entries; None: any number.
        max_entries: entries of a range at most.
    """

    min_partitions: int | None = None
    max_entries: int = 50_000


@attrs.frozen
class Stored:
    """What a topic without partitions, or one partition, stores for readers.

    Attributes:
        ledgers: oldest first; empty where they are not known, and where the topic has none yet.
        end: behind the last entry that readers are given; None where the topic never had one.
        kept: nothing from this place on was ever deleted; None where that is not known.
    """

    ledgers: tuple[Ledger, ...]
    end: Place | None
    kept: Place | None = None

    @property
    def first(self) -> Place:
        """Where the oldest message is, or may be."""
        return self.normal(BEGINNING)

    @property
    def is_unused(self) -> bool:
        """Nothing is stored, and nothing shows that anything ever was: the topic has no place to begin at yet."""
        return self.end is None or bool(self.ledgers and self.kept is None and not any(one[1] for one in self.entries))

    def normal(self, place: Place) -> Place:
        """The one form of a place: before an entry that is stored, else at the end of the newest ledger.

        The end of a ledger, the start of the next one and any place in an empty ledger between them are one place: the
        start of the next ledger that has entries. It stays valid when the ledgers before are deleted. In this form
        places of one topic compare as their messages are ordered, and equal places are equal. A place is what it is
        where the ledgers are not known.
        """
        for ledger in self.ledgers:
            if ledger.id == place.ledger and place.entry < ledger.entries:
                return place
            if ledger.id > place.ledger and ledger.entries:
                return Place(ledger.id, 0)
        return Place(self.ledgers[-1].id, self.ledgers[-1].entries) if self.ledgers else place

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """Id and number of entries of each ledger."""
        return tuple((ledger.id, ledger.entries) for ledger in self.ledgers)

    @property
    def mean_size(self) -> int | None:
        """Mean bytes of an entry; None where they are not known."""
        entries = sum(ledger.entries for ledger in self.ledgers if ledger.bytes)
        return sum(ledger.bytes for ledger in self.ledgers) // entries if entries else None

    def before(self, place: Place, entries: int) -> Place:
        """The place as many entries before ``place``, or the start; that of its ledger, where others are not known."""
        if not self.ledgers:
            return Place(place.ledger, max(0, place.entry - entries))
        for ledger in reversed(self.ledgers):
            if ledger.id > place.ledger:
                continue
            number = min(place.entry, ledger.entries) if ledger.id == place.ledger else ledger.entries
            if entries <= number:
                return Place(ledger.id, number - entries)
            entries -= number
        return min(self.first, place)


def stored(log: TopicLog | None, last: WireId | None) -> Stored:
    """What a topic stores.

    Args:
        log: as its administration says; None without.
        last: what ``Transport.end`` says; asked for only where ``log`` doesn't know the last readable entry.
    """
    ledgers = () if log is None else log.ledgers
    if log is not None and log.is_readable_known:
        last = log.last_readable
    if log is None or not ledgers:
        return Stored((), None if last is None else Place(last.ledger, last.entry + 1))
    mark = log.kept_after
    one = Stored(ledgers, None, None if mark is None else Place(mark.ledger, mark.entry + 1))
    if last is not None:  # the topic may have grown since: the end of what is known then
        end = Place(last.ledger, last.entry + 1)
    elif log.last is None:  # all that was there is gone, not waiting for a transaction
        end = Place(ledgers[-1].id, ledgers[-1].entries)
    else:
        end = BEGINNING
    return attrs.evolve(one, end=one.normal(end))


def locate(topic: str, place: Place, store: Stored) -> tuple[Place, Loss | None]:
    """Where a place that was given or remembered is now, in its normal form; and what was lost, if it is not there.

    The broker deletes from the oldest ledger on, and not what a durable subscription has not acknowledged: a ledger
    that is gone from between others, or from behind the place that such a subscription has reached, was empty.
    """
    if not store.ledgers or store.end is None or place == BEGINNING:
        return store.normal(place), None
    last = store.ledgers[-1]
    if place.ledger < store.ledgers[0].id and (store.kept is None or place < store.kept):
        return store.first, Loss(topic, place, store.first, _TRIMMED)
    if place.ledger > last.id or (place.ledger == last.id and place.entry > last.entries):
        return store.end, Loss(topic, place, store.end, _BEHIND)
    return store.normal(place), None


def beyond(topic: str, place: Place, store: Stored, reason: str) -> Loss | None:
    """What is missing where reading is to end at a located place, but readers are not given as much.

    Args:
        topic: full name of a topic without partitions, or of one partition.
        place: as ``locate`` returned it.
        store: what the topic stores.
        reason: of the loss.
    """
    if store.end is not None and place <= store.end:
        return None
    return Loss(topic, store.end or place, None, reason)


def whole(topic: str, store: Stored, start: Place, end: Place | None = None) -> Range | None:
    """All that readers are given from ``start`` on, up to ``end``; None where that is nothing."""
    if store.end is None:
        return None
    end = store.end if end is None else min(end, store.end)
    if start >= end:
        return None
    return _clipped(Range(topic, start, end, store.entries))


def weigh(range: Range, ledgers: Iterable[Ledger]) -> int:
    """About how many bytes the entries of a range have, by the mean size of those of each ledger.

    Args:
        range: one whose entries are looked up.
        ledgers: of its topic; entries of others do not count.
    """
    known = {ledger.id: ledger for ledger in ledgers if ledger.entries}
    sizes = [
        known[run.ledger].bytes * _length(run) / known[run.ledger].entries
        for run in range.runs()
        if run.ledger in known
    ]
    return round(sum(sizes))


def pending(range: Range, cursor: Cursor) -> Range | None:
    """What of a range a subscription has not acknowledged, by whole entries; None where that is nothing."""
    mark = cursor.mark_delete
    start = range.start if mark is None else max(range.start, Place(mark.ledger, mark.entry + 1))
    if start >= range.end:
        return None
    left = _clipped(attrs.evolve(range, start=start, acknowledged=cursor.deleted))
    return left if not left.ledgers or left.entries() else None


def _clipped(range: Range) -> Range:
    """The same range without ledgers and spans that it does not touch."""
    ledgers = tuple(one for one in range.ledgers if range.start.ledger <= one[0] <= range.end.ledger)
    low, high = (range.start.ledger, range.start.entry), range.stop
    spans = tuple(span for span in range.acknowledged if span[1] >= low and span[0] < high)
    return attrs.evolve(range, ledgers=ledgers, acknowledged=spans)


def split(ranges: Sequence[Range], limits: Limits) -> list[Range]:
    """Cut ranges between whole entries, each into a number of about equal ones that goes by its entries.

    There are at least ``min_partitions``, if there are as many entries, and none holds more than ``max_entries``. One
    without known ledgers stays whole, and one without entries is left out.
    """
    counts = [one.entries() if one.ledgers else 0 for one in ranges]
    total, wanted = sum(counts), limits.min_partitions or 1
    cut: list[Range] = []
    for one, entries in zip(ranges, counts, strict=True):
        if not one.ledgers:
            cut.append(one)
        elif entries:
            by_share = _divided(entries * min(wanted, total), total)
            cut += _cut(one, entries, max(by_share, _divided(entries, limits.max_entries)))
    return cut


def _divided(number: int, by: int) -> int:
    """Rounded up."""
    return -(-number // by)


def _cut(whole: Range, entries: int, pieces: int) -> Iterable[Range]:
    """A range in ``pieces`` of about equally many entries, each from its first entry to behind its last."""
    runs, before, index = whole.runs(), 0, 0  # entries in the runs before the current one
    start = whole.start
    for piece in range(1, pieces + 1):
        target = entries * piece // pieces
        while before + _length(runs[index]) < target:
            before += _length(runs[index])
            index += 1
        run = runs[index]
        end = Place(run.ledger, run.first + target - before)
        yield _clipped(attrs.evolve(whole, start=start, end=whole.end if piece == pieces else end))
        start = _next(runs, index, end)


def _length(run: Run) -> int:
    return run.stop - run.first


def _next(runs: Sequence[Run], index: int, end: Place) -> Place:
    """The first entry behind ``end``, which lies in a run or at its end."""
    if end.entry < runs[index].stop or index + 1 == len(runs):
        return end
    return Place(runs[index + 1].ledger, runs[index + 1].first)
