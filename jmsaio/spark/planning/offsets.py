"""Offsets of streams: how far each partition was read, how far the next batch goes, and what is left behind it."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from typing import Any, Final

import attrs

from jmsaio.errors import ConfigurationError
from jmsaio.spark.model.places import Place, parse_place
from jmsaio.spark.planning.plan import Limits, Stored, beyond, locate, split, weigh, whole
from jmsaio.spark.planning.ranges import Loss, Range

#: Places by the full name of the partition: the first message of it that was not read.
Offsets = Mapping[str, Place]
#: Version of the written form.
VERSION: Final = 1
_GONE: Final = "the topic, or the partition, does not exist any more"
_BEHIND: Final = "the batch ends behind what readers are given, which was not so when it was planned"


def to_json(offsets: Offsets) -> dict[str, Any]:
    """Offsets as Spark writes them into the checkpoint: ``{"v": 1, "p": {"<topic>": "ledger:entry"}}``."""
    return {"v": VERSION, "p": {topic: str(offsets[topic]) for topic in sorted(offsets)}}


def from_json(written: Mapping[str, Any]) -> dict[str, Place]:
    """Offsets from the checkpoint.

    Raises:
        ConfigurationError: another version wrote them, or something else did.
    """
    if written.get("v") != VERSION or not isinstance(written.get("p"), Mapping):
        raise ConfigurationError(
            f"the checkpoint is of another version: its offsets are not of version {VERSION}: {dict(written)!r:.200};"
            " read on with the version of jmsaio that wrote it, or begin with a new checkpoint"
        )
    return {topic: parse_place(str(text), f"checkpoint, {topic}") for topic, text in written["p"].items()}


@attrs.frozen
class Behind:
    """What of a partition has not been read.

    Attributes:
        entries: entries; a batch is one.
        bytes: about how many bytes they have.
    """

    entries: int
    bytes: int


def lag(start: Offsets, stores: Mapping[str, Stored]) -> dict[str, Behind]:
    """What lies behind the offsets by the name of the partition; one without an offset counts from its start.

    Args:
        start: the offsets.
        stores: what each partition stores.
    """
    return {topic: _behind(topic, _start(topic, start, store)[0], store) for topic, store in stores.items()}


def with_behind(offsets: Offsets, behind: Mapping[str, Behind]) -> dict[str, Any]:
    """Offsets as Spark shows them in a query's progress, with what lies behind the newest batch."""
    return to_json(offsets) | {"behind": {topic: attrs.asdict(one) for topic, one in behind.items()}}


def behind(shown: object) -> dict[str, Behind]:
    """What ``with_behind`` put into a query's progress; nothing if it is not ours."""
    if isinstance(shown, str):
        try:
            shown = json.loads(shown)
        except ValueError:
            return {}
    found = shown.get("behind", {}) if isinstance(shown, Mapping) else {}
    return {topic: Behind(one["entries"], one["bytes"]) for topic, one in found.items()}


def _start(topic: str, start: Offsets, store: Stored) -> tuple[Place, Loss | None]:
    return locate(topic, start[topic], store) if topic in start else (store.first, None)


def _behind(topic: str, start: Place, store: Stored, end: Place | None = None) -> Behind:
    end = store.end if end is None or store.end is None else min(end, store.end)
    if end is None or start >= end or not store.ledgers:
        return Behind(0, 0)
    left = Range(topic, start, end, store.entries)
    return Behind(left.entries(), weigh(left, store.ledgers))


@attrs.frozen
class Rate:
    """How much a batch of a stream reads at most; None: all there is.

    Attributes:
        max_entries: entries of all partitions together, exactly.
        max_bytes: bytes, by the mean size of the entries; at least one entry.
    """

    max_entries: int | None = None
    max_bytes: int | None = None


@attrs.frozen
class Step:
    """Where the next batch of a stream ends.

    Attributes:
        end: its offsets.
        entries: how many entries it has; 0 where the ledgers are not known.
        losses: what of it is gone.
    """

    end: dict[str, Place]
    entries: int
    losses: tuple[Loss, ...]


def advance(
    start: Offsets,
    stores: Mapping[str, Stored],
    rate: Rate = Rate(),
    until: Offsets | None = None,
    kept: Container[str] = (),
) -> Step:
    """The end of the next batch: never behind what readers are given.

    A limit is shared out by what is left of each partition: each gets an entry at least, or, where there are fewer
    entries than partitions, some get one in this batch and others in the next. A partition without an offset begins at
    its start. One whose ledgers are not known is read up to its end.

    Args:
        start: the offsets of the batch before.
        stores: what each partition stores.
        rate: limits.
        until: ends at these offsets at the latest, and leaves out partitions that have none.
        kept: topics of which a durable subscription keeps what was not read: where their oldest ledgers are gone,
            those were read, so that is no loss.
    """
    losses = [Loss(topic, place, None, _GONE) for topic, place in start.items() if topic not in stores]
    starts: dict[str, Place] = {}
    waiting: dict[str, Place] = {}  # nothing of them is read in this batch
    for topic, store in stores.items():
        is_new = topic not in start
        if store.end is None or (is_new and store.is_unused) or (until is not None and topic not in until):
            if not is_new:
                waiting[topic] = start[topic]
            continue
        starts[topic], loss = _start(topic, start, store)
        if loss is not None and not (topic in kept and is_trimmed(loss, store)):
            losses.append(loss)
    ends = {topic: None if until is None else until.get(topic) for topic in starts}
    behind = {topic: _behind(topic, place, stores[topic], ends[topic]) for topic, place in starts.items()}
    shares = share({topic: one.entries for topic, one in behind.items()}, _limit(behind, rate), _turn(start))
    end = {topic: _ahead(topic, place, stores[topic], shares[topic], ends[topic]) for topic, place in starts.items()}
    return Step(waiting | end, sum(shares.values()), tuple(losses))


def is_trimmed(loss: Loss, store: Stored) -> bool:
    """Whether it is the oldest ledgers that are gone."""
    return loss.wanted < store.first


def _was_empty(loss: Loss | None, ended: Loss | None, store: Stored) -> bool:
    """Whether what is gone of a batch had no messages, since a subscription has kept those that were not read.

    A batch that reaches into a ledger has an entry of it, unless it ends at its start: the broker may close and delete
    a ledger that nobody has written to.
    """
    is_old = all(one is None or is_trimmed(one, store) for one in (loss, ended))
    return is_old and (ended is None or ended.wanted.entry == 0)


def _limit(behind: Mapping[str, Behind], rate: Rate) -> int | None:
    """How many entries a batch may have."""
    entries, size = sum(one.entries for one in behind.values()), sum(one.bytes for one in behind.values())
    limits = [] if rate.max_entries is None else [rate.max_entries]
    if rate.max_bytes is not None and entries and size:
        limits.append(max(1, rate.max_bytes * entries // size))
    return min(limits, default=None)


def _turn(start: Offsets) -> int:
    """A number that grows by the entries that a batch reads, so that the next one begins with other partitions."""
    return sum(place.entry for place in start.values())


def share(left: Mapping[str, int], limit: int | None, turn: int = 0) -> dict[str, int]:
    """Share out ``limit`` entries by how many are left of each partition: exactly as many, if there are.

    Args:
        left: entries by partition.
        limit: None: all of them.
        turn: which partitions come first, where there are more than entries.
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
    """The place ``entries`` entries behind ``start``."""
    assert store.end is not None
    end = store.end if until is None else min(until, store.end)
    if not store.ledgers:
        return max(start, end)
    place = start
    for run in Range(topic, start, end, store.entries).runs() if start < end else ():
        if not entries:
            break
        step = min(entries, run.stop - run.first)
        place, entries = Place(run.ledger, run.first + step), entries - step
    return locate(topic, place, store)[0]


def between(
    start: Offsets, end: Offsets, stores: Mapping[str, Stored], limits: Limits, kept: Container[str] = ()
) -> tuple[list[Range], tuple[Loss, ...]]:
    """The ranges of a batch, and what of them is gone. The same again for the same arguments.

    Args:
        start: its start; a partition without an offset begins at its oldest message.
        end: its end.
        stores: what each partition stores; those whose offsets are equal are not looked for.
        limits: how much a task reads.
        kept: see ``advance``. A ledger that was read to its end may be gone before the batch behind it is read.
    """
    ranges: list[Range] = []
    losses: list[Loss] = []
    for topic in sorted(topic for topic in end if start.get(topic) != end[topic]):
        store = stores.get(topic)
        if store is None:
            losses.append(Loss(topic, start.get(topic, end[topic]), None, _GONE))
            continue
        first, loss = _start(topic, start, store)
        last, ended = locate(topic, end[topic], store)
        if topic in kept and _was_empty(loss, ended, store):
            loss = ended = None
        if loss is None and ended is None:
            ended = beyond(topic, last, store, _BEHIND)
        losses += [each for each in (loss or ended,) if each is not None]
        one = whole(topic, store, first, last) if ended is None or last > store.first else None
        ranges += [] if one is None else [one]
    return split(ranges, limits), tuple(losses)


def has_enough(entries: int, minimum: int | None, waited: float, max_delay: float) -> bool:
    """Whether a batch begins now.

    Args:
        entries: how many entries wait.
        minimum: how many are to wait at least; None: any number.
        waited: seconds since the batch before.
        max_delay: after as many seconds any number is enough.
    """
    return minimum is None or entries >= minimum or (entries > 0 and waited >= max_delay)
