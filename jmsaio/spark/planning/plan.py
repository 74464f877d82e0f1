"""Contents of a topic, and the requested part of them as ranges for tasks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final

import attrs

from jmsaio.model.wire import WireId
from jmsaio.spark.model.place import Place
from jmsaio.spark.planning.ranges import BEGINNING, Loss, Range
from jmsaio.transport.administration import Cursor, Ledger, TopicLog

#: Maximum ranges of a task, and their maximum entries and bytes if there are several: reading fewer takes less time
#: than starting a task. A task starts to read all of its ranges at the same time.
_TOGETHER: Final = 32
_SMALL_ENTRIES, _SMALL_BYTES = 1000, 4 * 1024 * 1024
#: Reasons why a place no longer exists.
_TRIMMED: Final = "the broker has deleted them, or the topic was deleted and created again"
_BEHIND: Final = "the position is after the end of the topic, which might have been deleted and created again"


@attrs.frozen
class Stored:
    """Readable contents of a topic without partitions, or of one partition.

    Attributes:
        ledgers: oldest first; empty if they are unknown, or the topic has none yet.
        end: place after the last readable entry; None if the topic never had one.
        intact_from: place from which nothing was ever deleted; None if unknown.
    """

    ledgers: tuple[Ledger, ...]
    end: Place | None
    intact_from: Place | None = None

    @property
    def first(self) -> Place:
        """Place of the oldest message, or before it."""
        return self.normal(BEGINNING)

    @property
    def is_unused(self) -> bool:
        """True if nothing is stored, and perhaps never was: the topic has no place to start at yet."""
        is_empty = not any(ledger.entries for ledger in self.ledgers)
        return self.end is None or bool(self.ledgers and self.intact_from is None and is_empty)

    def normal(self, place: Place) -> Place:
        """Return the normal form of a place: before a stored entry, else at the end of the newest ledger.

        The end of a ledger, the start of the next one and any place in an empty ledger between them are the same place:
        the start of the next ledger that has entries. It stays valid when earlier ledgers are deleted. In this form,
        places of one topic are ordered as their messages, and equal places are equal. If the ledgers are unknown, the
        place is returned unchanged.
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
        """Mean bytes of an entry; None if unknown."""
        entries = sum(ledger.entries for ledger in self.ledgers if ledger.bytes)
        return sum(ledger.bytes for ledger in self.ledgers) // entries if entries else None

    def before(self, place: Place, entries: int) -> Place:
        """Return the place ``entries`` before ``place``, or the start, of its ledger if others are unknown."""
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
    """Combine a topic's log, None without administration, and its last entry, used only if the log lacks it."""
    ledgers = () if log is None else log.ledgers
    if log is not None and log.is_readable_known:
        last = log.last_readable
    if log is None or not ledgers:
        return Stored((), None if last is None else Place(last.ledger, last.entry + 1))
    mark = log.kept_after
    one = Stored(ledgers, None, None if mark is None else Place(mark.ledger, mark.entry + 1))
    if last is not None:  # if the topic has grown since, the end of the known ledgers
        end = Place(last.ledger, last.entry + 1)
    elif log.last is None:  # everything was deleted; nothing waits for a transaction
        end = Place(ledgers[-1].id, ledgers[-1].entries)
    else:
        end = BEGINNING
    return attrs.evolve(one, end=one.normal(end))


def locate(topic: str, place: Place, store: Stored) -> tuple[Place, Loss | None]:
    """Return the current normal form of a given or stored place, and the loss if it no longer exists.

    The broker deletes the oldest ledgers first, and retains what a durable subscription has not acknowledged. A ledger
    missing between others, or after the place of such a subscription, was therefore empty.
    """
    if not store.ledgers or store.end is None or place == BEGINNING:
        return store.normal(place), None
    last = store.ledgers[-1]
    if place.ledger < store.ledgers[0].id and (store.intact_from is None or place < store.intact_from):
        return store.first, Loss(topic, place, store.first, _TRIMMED)
    if place.ledger > last.id or (place.ledger == last.id and place.entry > last.entries):
        return store.end, Loss(topic, place, store.end, _BEHIND)
    return store.normal(place), None


def beyond(topic: str, place: Place, store: Stored, reason: str) -> Loss | None:
    """Return the loss if a read up to ``place``, as ``locate`` returned it, ends after the readable messages."""
    if store.end is not None and place <= store.end:
        return None
    return Loss(topic, store.end or place, None, reason)


def whole(topic: str, store: Stored, start: Place, end: Place | None = None) -> Range | None:
    """Return the range of all readable messages from ``start`` up to ``end``; None if it is empty."""
    if store.end is None:
        return None
    end = store.end if end is None else min(end, store.end)
    if start >= end:
        return None
    found = _clipped(Range(topic, start, end, store.entries))
    return attrs.evolve(found, size=weigh(found, store.ledgers) // max(1, found.entries()))


def weigh(range: Range, ledgers: Iterable[Ledger]) -> int:
    """Estimate the bytes of a range's entries by the mean size of each ledger; unknown ledgers have none."""
    known = {ledger.id: ledger for ledger in ledgers if ledger.entries}
    runs = [(known[run.ledger], run.entries) for run in range.runs() if run.ledger in known]
    return round(sum(ledger.bytes * entries / ledger.entries for ledger, entries in runs))


def pending(range: Range, cursor: Cursor) -> Range | None:
    """Return the part of a range that a subscription has not acknowledged, by whole entries; None if it is empty."""
    mark = cursor.mark_delete
    start = range.start if mark is None else max(range.start, Place(mark.ledger, mark.entry + 1))
    if start >= range.end:
        return None
    left = _clipped(attrs.evolve(range, start=start, acknowledged=cursor.deleted))
    return left if not left.ledgers or left.entries() else None


def _clipped(range: Range) -> Range:
    """Return the range without ledgers and spans outside of it."""
    ledgers = tuple(one for one in range.ledgers if range.start.ledger <= one[0] <= range.end.ledger)
    low, high = (range.start.ledger, range.start.entry), range.stop
    spans = tuple(span for span in range.acknowledged if span[1] >= low and span[0] < high)
    return attrs.evolve(range, ledgers=ledgers, acknowledged=spans)


def split(ranges: Sequence[Range], min_partitions: int | None = None, max_entries: int = 50_000) -> list[Range]:
    """Cut ranges between whole entries, each into about equal ranges, in proportion to its entries.

    A range without known ledgers stays whole; one without entries is left out. ``min_partitions`` can only be reached
    if there are as many entries.
    """
    counts = [one.entries() if one.ledgers else 0 for one in ranges]
    total, wanted = sum(counts), min_partitions or 1
    cut: list[Range] = []
    for one, entries in zip(ranges, counts, strict=True):
        if not one.ledgers:
            cut.append(one)
        elif entries:
            by_share = _divided(entries * min(wanted, total), total)
            cut += _cut(one, entries, max(by_share, _divided(entries, max_entries)))
    return cut


def share_tasks(
    ranges: Sequence[Range], min_partitions: int | None = None, max_entries: int = 50_000
) -> list[tuple[Range, ...]]:  # fmt: skip
    """Divide ranges among tasks, in their order. Small ranges share tasks; one with unknown ledgers is not small.

    There are at least ``min_partitions`` tasks if there are as many ranges, each with up to ``max_entries``.
    """
    most = max(1, min(_TOGETHER, len(ranges) // (min_partitions or 1)))
    tasks: list[list[Range]] = []
    entries = size = 0
    for one in ranges:
        count = one.entries() if one.ledgers else max_entries
        entries, size = entries + count, size + count * one.size
        is_small = entries <= min(_SMALL_ENTRIES, max_entries) and size <= _SMALL_BYTES
        if not tasks or len(tasks[-1]) == most or not is_small:
            tasks.append([])
            entries, size = count, count * one.size
        tasks[-1].append(one)
    return [tuple(task) for task in tasks]


def _divided(number: int, by: int) -> int:
    """Divide and round up."""
    return -(-number // by)


def _cut(whole: Range, entries: int, pieces: int) -> Iterator[Range]:
    """Cut a range into ``pieces`` of about equally many entries, each from its first entry to after its last."""
    runs = whole.runs()
    before = [0, *accumulate(run.entries for run in runs)]  # entries before each run

    def place(number: int) -> Place:
        """Return the place of the entry with a number in the range."""
        index = bisect_right(before, number) - 1
        return Place(runs[index].ledger, runs[index].first + number - before[index])

    for low, high in pairwise(entries * piece // pieces for piece in range(pieces + 1)):
        last = place(high - 1)
        start, end = place(low) if low else whole.start, last._replace(entry=last.entry + 1)
        yield _clipped(attrs.evolve(whole, start=start, end=end if high < entries else whole.end))
