"""Offsets of streams: the end of the messages read in each partition, the end of the next batch, and the backlog."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

import attrs

from jmsaio.errors import ConfigurationError
from jmsaio.spark.model.place import Place, parse_place
from jmsaio.spark.planning.plan import Stored, beyond, locate, weigh, whole
from jmsaio.spark.planning.ranges import Loss, Range

#: Places by the full name of the partition: its first unread message.
Offsets = Mapping[str, Place]
#: Version of the JSON form.
VERSION: Final = 1
GONE: Final = "the topic, or the partition, no longer exists"
_BEHIND: Final = "the batch ends after the last entry that readers receive, unlike when it was planned"


def to_json(offsets: Offsets) -> dict[str, Any]:
    """Return offsets in the form of Spark's checkpoint: ``{"v": 1, "p": {"<topic>": "ledger:entry"}}``."""
    return {"v": VERSION, "p": {topic: str(offsets[topic]) for topic in sorted(offsets)}}


def from_json(written: Mapping[str, Any]) -> dict[str, Place]:
    """Parse offsets from a checkpoint; raise ConfigurationError if another version or program wrote them."""
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
        oldest: publish time of the first entry, in ISO 8601; None if there is none, or it is unknown.
    """

    entries: int
    bytes: int
    oldest: str | None = None

    @classmethod
    def total(cls, parts: Iterable[Behind]) -> Behind:
        """Return the unread part of all partitions together."""
        found = list(parts)
        times = (one.oldest for one in found if one.oldest is not None)
        return cls(sum(one.entries for one in found), sum(one.bytes for one in found), min(times, default=None))


def first_unread(start: Offsets, stores: Mapping[str, Stored]) -> dict[str, Place]:
    """Return the first unread place by partition; a partition without an offset starts at its oldest message."""
    return {topic: _start(topic, start, store)[0] for topic, store in stores.items()}


def lag(start: Offsets, stores: Mapping[str, Stored]) -> dict[str, Behind]:
    """Return the backlog after the offsets by partition, without times; see ``first_unread``."""
    return {topic: _behind(topic, place, stores[topic]) for topic, place in first_unread(start, stores).items()}


def with_behind(offsets: Offsets, behind: Mapping[str, Behind], before: Behind) -> dict[str, Any]:
    """Return offsets for a query's progress, with the newest batch and the backlog before and after it."""
    parts, left = {topic: attrs.asdict(one) for topic, one in behind.items()}, Behind.total(behind.values())
    batch = {"entries": before.entries - left.entries, "bytes": before.bytes - left.bytes}
    return to_json(offsets) | {"batch": batch, "behind": parts, "all": attrs.asdict(left)}


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


def _behind(topic: str, start: Place, store: Stored, end: Place | None = None) -> Behind:
    end = store.end if end is None or store.end is None else min(end, store.end)
    if end is None or start >= end or not store.ledgers:
        return Behind(0, 0)
    left = Range(topic, start, end, store.entries)
    return Behind(left.entries(), weigh(left, store.ledgers))


@attrs.frozen
class Step:
    """End of the next batch of a stream; it has no ``entries`` if the ledgers are unknown."""

    end: dict[str, Place]
    entries: int
    losses: tuple[Loss, ...]


def advance(
    start: Offsets,
    stores: Mapping[str, Stored],
    *,
    max_entries: int | None = None,
    max_bytes: int | None = None,
    until: Mapping[str, Place | None] | None = None,
    retained: Container[str] = (),
) -> Step:
    """Return the end of the next batch. It contains only readable messages.

    A limit is divided in proportion to the backlog of each partition. Each partition receives an entry or more; if
    there are fewer entries than partitions, some receive one in this batch and others in the next. A partition without
    an offset starts at its oldest message. One with unknown ledgers is read up to its end.

    Args:
        max_entries: maximum entries of all partitions together, exact; None: no limit.
        max_bytes: maximum bytes, estimated by the mean size of the entries; at least one entry is read. None: no limit.
        until: maximum offsets, None for a partition without a maximum; other partitions are left out. None: no maximum.
        retained: topics with a durable subscription that retains unread messages: deleted oldest ledgers were read,
            so they are not a loss.
    """
    losses = [Loss(topic, place, None, GONE) for topic, place in start.items() if topic not in stores]
    starts: dict[str, Place] = {}  # of the partitions that are read in this batch
    for topic, store in stores.items():
        is_unused = store.end is None or (topic not in start and store.is_unused)
        if is_unused or (until is not None and topic not in until):
            continue
        starts[topic], loss = _start(topic, start, store)
        if loss is not None and not (topic in retained and is_trimmed(loss, store)):
            losses.append(loss)
    ends = {topic: None if until is None else until.get(topic) for topic in starts}
    behind = {topic: _behind(topic, place, stores[topic], ends[topic]) for topic, place in starts.items()}
    limit = _limit(behind, max_entries, max_bytes)
    turn = sum(place.entry for place in start.values())  # grows with each batch, so that other partitions are first
    shares = share({topic: one.entries for topic, one in behind.items()}, limit, turn)
    end = {topic: _ahead(topic, place, stores[topic], shares[topic], ends[topic]) for topic, place in starts.items()}
    waiting = {topic: place for topic, place in start.items() if topic in stores and topic not in end}
    return Step(waiting | end, sum(shares.values()), tuple(losses))


def is_trimmed(loss: Loss, store: Stored) -> bool:
    """Return True if the oldest ledgers were deleted."""
    return loss.wanted < store.first


def _was_empty(loss: Loss | None, ended: Loss | None, store: Stored) -> bool:
    """Return True if the lost part of a batch had no messages, since a subscription has retained all unread ones.

    A batch that ends in a ledger contains an entry of it, unless it ends at the ledger's start: the broker can close
    and delete a ledger without entries.
    """
    is_old = all(one is None or is_trimmed(one, store) for one in (loss, ended))
    return is_old and (ended is None or ended.wanted.entry == 0)


def _limit(behind: Mapping[str, Behind], max_entries: int | None, max_bytes: int | None) -> int | None:
    """Return the maximum number of entries of a batch."""
    total = Behind.total(behind.values())
    limits = [] if max_entries is None else [max_entries]
    if max_bytes is not None and total.entries and total.bytes:
        limits.append(max(1, max_bytes * total.entries // total.bytes))
    return min(limits, default=None)


def share(left: Mapping[str, int], limit: int | None, turn: int = 0) -> dict[str, int]:
    """Divide ``limit`` entries in proportion to the backlog of each partition; the sum is exact if there are enough.

    ``turn`` determines which partitions are first if there are more partitions than entries.
    """
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


def _ahead(topic: str, start: Place, store: Stored, entries: int, until: Place | None) -> Place:
    """Return the place ``entries`` entries after ``start``."""
    assert store.end is not None
    end = store.end if until is None else min(until, store.end)
    if not store.ledgers:
        return max(start, end)
    place = start
    for run in Range(topic, start, end, store.entries).runs() if start < end else ():
        if not entries:
            break
        step = min(entries, run.entries)
        place, entries = Place(run.ledger, run.first + step), entries - step
    place = max(start, min(place, end))  # the end can lie in the batch of the last entry, or before a closing topic's
    return locate(topic, place, store)[0]


def between(
    start: Offsets, end: Offsets, stores: Mapping[str, Stored], retained: Container[str] = ()
) -> tuple[list[Range], tuple[Loss, ...]]:
    """Return the range of a batch in each partition, and its lost messages. Deterministic for the same arguments.

    A partition without a start begins at its oldest message. ``retained`` is as in ``advance``: a ledger that was read
    completely can be deleted before the next batch is read.
    """
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
            ended = beyond(topic, last, store, _BEHIND)
        losses += [each for each in (loss or ended,) if each is not None]
        one = whole(topic, store, first, last) if ended is None or last > store.first else None
        ranges += [] if one is None else [one]
    return ranges, tuple(losses)


def has_enough(entries: int, minimum: int | None, waited: float, max_delay: float) -> bool:
    """Return True if a batch can start: ``minimum`` entries wait, or any ``max_delay`` seconds after the last batch."""
    return minimum is None or entries >= minimum or (entries > 0 and waited >= max_delay)
