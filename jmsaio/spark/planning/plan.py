"""What topics store, and what is read of it: ranges for tasks, offsets of streams, the next batch, the backlog."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

import attrs

from jmsaio.errors import ConfigurationError
from jmsaio.model.wire import WireId
from jmsaio.spark.model.place import Place, parse_place
from jmsaio.spark.planning.ranges import BEGINNING, Loss, Range
from jmsaio.transport.administration import Cursor, Ledger, TopicLog

#: Maximum ranges of a task, and their maximum entries and bytes if there are several: reading fewer takes less time
#: than starting a task. A task starts to read all of its ranges at the same time.
_TOGETHER: Final = 32
_SMALL_ENTRIES, _SMALL_BYTES = 1000, 4 * 1024 * 1024
#: Reasons why a place no longer exists.
_TRIMMED: Final = "the broker has deleted them, or the topic was deleted and created again"
_BEHIND: Final = "the position is after the end of the topic, which might have been deleted and created again"
#: Places by the full name of the partition: its first unread message.
Offsets = Mapping[str, Place]
#: Version of the JSON form.
VERSION: Final = 1
GONE: Final = "the topic, or the partition, no longer exists"
_SHRUNK: Final = "the batch ends after the last entry that readers receive, unlike when it was planned"


@attrs.frozen
class Stored:
    """Readable contents of a topic without partitions, or of one partition."""

    ledgers: tuple[Ledger, ...]  # the oldest first; empty if the topic has none yet
    end: Place | None  # after the last readable entry; None if there never was one
    intact_from: Place | None = None  # nothing after it was ever deleted; None if unknown

    @property
    def first(self) -> Place:
        return self.normal(BEGINNING)

    @property
    def is_unused(self) -> bool:
        """True if nothing is stored, and perhaps never was: the topic has no place to start at yet."""
        is_empty = not any(ledger.entries for ledger in self.ledgers)
        return self.end is None or (self.intact_from is None and is_empty)

    def normal(self, place: Place) -> Place:
        """Return the normal form of a place: before a stored entry, else at the end of the newest ledger.

        The end of a ledger, the start of the next one and any place in an empty ledger between them are the same place:
        the start of the next ledger that has entries. It stays valid when earlier ledgers are deleted. In this form,
        places of one topic are ordered as their messages, and equal places are equal.
        """
        for ledger in self.ledgers:
            if ledger.id == place.ledger and place.entry < ledger.entries:
                return place
            if ledger.id > place.ledger and ledger.entries:
                return Place(ledger.id, 0)
        return Place(self.ledgers[-1].id, self.ledgers[-1].entries) if self.ledgers else place

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        return tuple((ledger.id, ledger.entries) for ledger in self.ledgers)

    @property
    def mean_size(self) -> int | None:
        """Mean bytes of an entry; None if unknown."""
        entries = sum(ledger.entries for ledger in self.ledgers if ledger.bytes)
        return sum(ledger.bytes for ledger in self.ledgers) // entries if entries else None

    def before(self, place: Place, entries: int) -> Place:
        for ledger in reversed(self.ledgers):
            if ledger.id > place.ledger:
                continue
            number = min(place.entry, ledger.entries) if ledger.id == place.ledger else ledger.entries
            if entries <= number:
                return Place(ledger.id, number - entries)
            entries -= number
        return min(self.first, place)


def stored(log: TopicLog, last: WireId | None) -> Stored:
    """Combine a topic's log and its last entry, used only if the log lacks it."""
    ledgers, mark = log.ledgers, log.kept_after
    one = Stored(ledgers, None, None if mark is None else Place(mark.ledger, mark.entry + 1))
    if not ledgers:
        return one
    if log.is_readable_known:
        last = log.last_readable
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
    if store.end is None or place == BEGINNING:
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
    if store.end is None:
        return None
    end = store.end if end is None else min(end, store.end)
    if start >= end:
        return None
    found = _clipped(Range(topic, start, end, store.entries))
    return attrs.evolve(found, size=weigh(found, store.ledgers) // max(1, found.entries()))


def weigh(range: Range, ledgers: Iterable[Ledger]) -> int:
    """Estimate the bytes of a range's entries by the mean size of each ledger."""
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
    return left if left.entries() else None


def _clipped(range: Range) -> Range:
    ledgers = tuple(one for one in range.ledgers if range.start.ledger <= one[0] <= range.end.ledger)
    low, high = (range.start.ledger, range.start.entry), range.stop
    spans = tuple(span for span in range.acknowledged if span[1] >= low and span[0] < high)
    return attrs.evolve(range, ledgers=ledgers, acknowledged=spans)


def split(ranges: Sequence[Range], min_partitions: int | None = None, max_entries: int = 50_000) -> list[Range]:
    """Cut ranges between whole entries, each into about equal ranges; a range without entries is left out."""
    counts = [one.entries() for one in ranges]
    total, wanted = sum(counts), min_partitions or 1
    cut: list[Range] = []
    for one, entries in zip(ranges, counts, strict=True):
        if entries:
            by_share = _divided(entries * min(wanted, total), total)
            cut += _cut(one, entries, max(by_share, _divided(entries, max_entries)))
    return cut


def share_tasks(
    ranges: Sequence[Range], min_partitions: int | None = None, max_entries: int = 50_000
) -> list[tuple[Range, ...]]:  # fmt: skip
    """Divide ranges among tasks, in their order: small ranges share one, if ``min_partitions`` tasks remain."""
    most = max(1, min(_TOGETHER, len(ranges) // (min_partitions or 1)))
    tasks: list[list[Range]] = []
    entries = size = 0
    for one in ranges:
        count = one.entries()
        entries, size = entries + count, size + count * one.size
        is_small = entries <= min(_SMALL_ENTRIES, max_entries) and size <= _SMALL_BYTES
        if not tasks or len(tasks[-1]) == most or not is_small:
            tasks.append([])
            entries, size = count, count * one.size
        tasks[-1].append(one)
    return [tuple(task) for task in tasks]


def _divided(number: int, by: int) -> int:
    return -(-number // by)


def _cut(whole: Range, entries: int, pieces: int) -> Iterator[Range]:
    """Cut a range into ``pieces`` of about equally many entries, each from its first entry to after its last."""
    runs = whole.runs()
    before = [0, *accumulate(run.entries for run in runs)]  # entries before each run

    def place(number: int) -> Place:
        index = bisect_right(before, number) - 1
        return Place(runs[index].ledger, runs[index].first + number - before[index])

    for low, high in pairwise(entries * piece // pieces for piece in range(pieces + 1)):
        last = place(high - 1)
        start, end = place(low) if low else whole.start, last._replace(entry=last.entry + 1)
        yield _clipped(attrs.evolve(whole, start=start, end=end if high < entries else whole.end))


def to_json(offsets: Offsets) -> dict[str, Any]:
    """Return offsets in the form of Spark's checkpoint: ``{"v": 1, "p": {"<topic>": "ledger:entry"}}``."""
    return {"v": VERSION, "p": {topic: str(offsets[topic]) for topic in sorted(offsets)}}


def from_json(written: Mapping[str, Any]) -> dict[str, Place]:
    if written.get("v") != VERSION or not isinstance(written.get("p"), Mapping):
        raise ConfigurationError(
            f"the checkpoint is of another version: its offsets are not of version {VERSION}: {dict(written)!r:.200};"
            " read on with the version of jmsaio that wrote it, or begin with a new checkpoint"
        )
    return {topic: parse_place(str(text), f"checkpoint, {topic}") for topic, text in written["p"].items()}


@attrs.frozen
class Behind:
    """Unread part of a partition.

    Attributes:
        entries: number of entries; a batch counts as one.
        bytes: approximate number of bytes.
    """

    entries: int
    bytes: int

    @classmethod
    def total(cls, parts: Collection[Behind]) -> Behind:
        """Return the unread part of all partitions together."""
        return cls(sum(one.entries for one in parts), sum(one.bytes for one in parts))


def lag(start: Offsets, stores: Mapping[str, Stored]) -> dict[str, Behind]:
    """Return the backlog after the offsets by partition; one without an offset starts at its oldest message."""
    return {topic: _behind(topic, _start(topic, start, store)[0], store) for topic, store in stores.items()}


def with_behind(offsets: Offsets, behind: Mapping[str, Behind]) -> dict[str, Any]:
    """Return offsets for a query's progress, with the backlog after the newest batch."""
    parts = {topic: attrs.asdict(one) for topic, one in behind.items()}
    return to_json(offsets) | {"behind": parts, "all": attrs.asdict(Behind.total(behind.values()))}


def shown_offset(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what ``latestOffset`` shows of a source in a query's progress; empty for sources of other kinds."""
    shown = source.get("latestOffset")
    if isinstance(shown, str):
        try:
            shown = json.loads(shown)
        except ValueError:
            return {}
    return shown if isinstance(shown, Mapping) else {}


def _start(topic: str, start: Offsets, store: Stored) -> tuple[Place, Loss | None]:
    return locate(topic, start[topic], store) if topic in start else (store.first, None)


def _behind(topic: str, start: Place, store: Stored) -> Behind:
    if store.end is None or start >= store.end:
        return Behind(0, 0)
    left = Range(topic, start, store.end, store.entries)
    return Behind(left.entries(), weigh(left, store.ledgers))


@attrs.frozen
class Step:
    """End of the next batch of a stream."""

    end: dict[str, Place]
    losses: tuple[Loss, ...]


def clipped(stores: Mapping[str, Stored], until: Offsets) -> dict[str, Stored]:
    """Return the topics as if nothing were readable after ``until``; in others, nothing is."""
    ends = {topic: min(until[topic], store.end) for topic, store in stores.items() if topic in until and store.end}
    return {topic: attrs.evolve(store, end=ends.get(topic)) for topic, store in stores.items()}


def advance(
    start: Offsets,
    stores: Mapping[str, Stored],
    *,
    max_entries: int | None = None,
    max_bytes: int | None = None,
    retained: Container[str] = (),
) -> Step:
    """Return the end of the next batch. It contains only readable messages.

    A limit is divided in proportion to the backlog of each partition. Each partition receives an entry or more; if
    there are fewer entries than partitions, some receive one in this batch and others in the next. A partition without
    an offset starts at its oldest message. ``max_entries`` is exact; ``max_bytes`` is estimated by the mean size of the
    entries, and at least one is read. ``retained`` are topics with a durable subscription that retains unread messages:
    deleted oldest ledgers were read, so they are not a loss.
    """
    losses = [Loss(topic, place, None, GONE) for topic, place in start.items() if topic not in stores]
    starts: dict[str, Place] = {}  # of the partitions that are read in this batch
    for topic, store in stores.items():
        if store.end is None or (topic not in start and store.is_unused):
            continue
        starts[topic], loss = _start(topic, start, store)
        if loss is not None and not (topic in retained and is_trimmed(loss, store)):
            losses.append(loss)
    behind = {topic: _behind(topic, place, stores[topic]) for topic, place in starts.items()}
    limit = _limit(behind, max_entries, max_bytes)
    turn = sum(place.entry for place in start.values())  # grows with each batch, so that other partitions are first
    shares = share({topic: one.entries for topic, one in behind.items()}, limit, turn)
    end = {topic: _ahead(topic, place, stores[topic], shares[topic]) for topic, place in starts.items()}
    waiting = {topic: place for topic, place in start.items() if topic in stores and topic not in end}
    return Step(waiting | end, tuple(losses))


def is_trimmed(loss: Loss, store: Stored) -> bool:
    return loss.wanted < store.first


def _was_empty(loss: Loss | None, ended: Loss | None, store: Stored) -> bool:
    """Return True if the lost part of a batch had no messages, since a subscription has retained all unread ones.

    A batch that ends in a ledger contains an entry of it, unless it ends at the ledger's start: the broker can close
    and delete a ledger without entries.
    """
    is_old = all(one is None or is_trimmed(one, store) for one in (loss, ended))
    return is_old and (ended is None or ended.wanted.entry == 0)


def _limit(behind: Mapping[str, Behind], max_entries: int | None, max_bytes: int | None) -> int | None:
    total = Behind.total(behind.values())
    limits = [] if max_entries is None else [max_entries]
    if max_bytes is not None and total.entries and total.bytes:
        limits.append(max(1, max_bytes * total.entries // total.bytes))
    return min(limits, default=None)


def share(left: Mapping[str, int], limit: int | None, turn: int = 0) -> dict[str, int]:
    """Divide ``limit`` entries in proportion to the backlogs; if there are too few, ``turn`` says who is first."""
    total = sum(left.values())
    if limit is None or limit >= total:
        return dict(left)
    waiting = sorted(topic for topic, entries in left.items() if entries)
    shares = dict.fromkeys(left, 0)
    if limit <= len(waiting):
        for number in range(limit):
            shares[waiting[(turn + number) % len(waiting)]] = 1
        return shares
    spare, rest = limit - len(waiting), total - len(waiting)  # each has one already
    for topic in waiting:
        shares[topic] = 1 + spare * (left[topic] - 1) // rest
    by_fraction = sorted(waiting, key=lambda topic: (-(spare * (left[topic] - 1) % rest), topic))
    for topic in by_fraction[: limit - sum(shares.values())]:
        shares[topic] += 1
    return shares


def _ahead(topic: str, start: Place, store: Stored, entries: int) -> Place:
    assert store.end is not None
    place = start
    for run in Range(topic, start, store.end, store.entries).runs() if start < store.end else ():
        if not entries:
            break
        step = min(entries, run.entries)
        place, entries = Place(run.ledger, run.first + step), entries - step
    # The end can lie in the batch of the last entry, or before the start while a topic closes.
    place = max(start, min(place, store.end))
    return locate(topic, place, store)[0]


def between(
    start: Offsets, end: Offsets, stores: Mapping[str, Stored], retained: Container[str] = ()
) -> tuple[list[Range], tuple[Loss, ...]]:
    """Return the range of a batch in each partition, and its lost messages; ``retained`` is as in ``advance``."""
    ranges: list[Range] = []
    losses: list[Loss] = []
    for topic in sorted(topic for topic in end if start.get(topic) != end[topic]):
        store = stores.get(topic)
        if store is None:
            losses.append(Loss(topic, start.get(topic, end[topic]), None, GONE))
            continue
        first, loss = _start(topic, start, store)
        last, ended = locate(topic, end[topic], store)
        if topic in retained and _was_empty(loss, ended, store):
            loss = ended = None
        if loss is None and ended is None:
            ended = beyond(topic, last, store, _SHRUNK)
        losses += [each for each in (loss or ended,) if each is not None]
        one = whole(topic, store, first, last) if ended is None or last > store.first else None
        ranges += [] if one is None else [one]
    return ranges, tuple(losses)
