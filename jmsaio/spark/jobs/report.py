"""A report on an archive: messages and bytes by day and type, sizes, gaps, dead letters. Needs no running Spark."""

from __future__ import annotations

import functools
import heapq
import itertools
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row

from jmsaio.errors import JMSError
from jmsaio.model.wire import REAL_TOPIC
from jmsaio.spark.jobs.files import COUNTED, count_batches, files_of, open_file
from jmsaio.spark.jobs.manifest import FILTERS, ArchivedPart, Manifest, join_parts, require_manifest
from jmsaio.spark.jobs.verify import compare
from jmsaio.spark.model.folder import AnyPath
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.values import time_text

_COLUMNS: Final = (*COUNTED, "JMSMessageID", "JMSType", "body_type", "properties", "payload")
_PARTITION: Final = "-partition-[0-9]{1,9}$"
#: Parts of the report with messages and bytes by group, and the columns that name a group.
_GROUPED: Final[Mapping[str, Sequence[str]]] = {
    "days": ("day",), "types": ("JMSType", "body_type"), "dead_letters": ("origin",),
}  # fmt: skip
#: Maximum number of groups in a part. Messages of further groups count only in the totals.
_GROUPS: Final = 10_000
#: Number of messages listed as the largest.
_LARGEST: Final = 10
#: Maximum rows of a batch, and its approximate maximum size.
_ROWS: Final = 1024
_BYTES: Final = 16 * 1024 * 1024

Group = tuple[str | None, ...]


@attrs.define
class _Counts:
    """Counts of the batches so far.

    Attributes:
        groups: number and bytes of messages by part of the report and group.
        sizes: number of messages by size.
        largest: the largest messages, largest first.
    """

    groups: dict[str, dict[Group, tuple[int, int]]] = attrs.field(factory=lambda: {part: {} for part in _GROUPED})
    sizes: Counter[int] = attrs.field(factory=Counter)
    largest: list[dict[str, Any]] = attrs.field(factory=list)

    def add(self, day: str | None, batch: pa.RecordBatch) -> None:
        """Add a batch of messages published on ``day``."""
        length = pc.fill_null(pc.binary_length(batch.column("payload")), 0)
        real = pc.map_lookup(batch.column("properties"), REAL_TOPIC, "first")
        rows = pa.table(
            {name: batch.column(name) for name in ("topic", "position", "JMSMessageID", "JMSType", "body_type")}
            | {"day": pa.repeat(pa.scalar(day, pa.string()), len(batch)), "bytes": length.cast(pa.int64())}
            | {"origin": pc.replace_substring_regex(real, _PARTITION, "")}
        )
        for part, names in _GROUPED.items():
            grouped = rows.group_by(list(names), use_threads=False).aggregate([([], "count_all"), ("bytes", "sum")])
            found = self.groups[part]
            for row in grouped.to_pylist():
                group = tuple(row[name] for name in names)
                if group in found or len(found) < _GROUPS:
                    messages, size = found.get(group, (0, 0))
                    found[group] = messages + row["count_all"], size + row["bytes_sum"]
        for each in pc.value_counts(rows["bytes"]).to_pylist():
            self.sizes[each["values"]] += each["counts"]
        top = rows.take(pc.select_k_unstable(rows, _LARGEST, [("bytes", "descending")]))
        self.largest = heapq.nlargest(_LARGEST, [*self.largest, *map(_shown, top.to_pylist())], key=itemgetter("bytes"))


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    ledger, entry, batch = row["position"].values()
    place = Place(ledger, entry, max(batch or 0, 0))
    names = ("bytes", "JMSMessageID", "JMSType", "topic")
    return {**{name: row[name] for name in names}, "position": str(place)}


def report_archive(folder: AnyPath) -> dict[str, Any]:
    """Report on the messages in an archive. Its files are read in batches.

    Returns:
        The summary. ``bytes`` are those of bodies. ``days`` (UTC, by publish time), ``types`` and ``dead_letters`` (by
        the topic where they failed) have the messages and bytes of each group; ``sizes`` the smallest size, the
        quartiles and the largest, or nothing without messages; ``problems`` what ``verify`` finds; ``lost`` the losses
        recorded by the archive.

    Raises:
        ConfigurationError: the folder has no archive, or its manifest can't be read.
        JMSError: a file can't be read; the error names it.
    """
    began = time.monotonic()
    manifest = require_manifest(folder)
    counts, files = _Counts(), defaultdict[AnyPath, tuple[ArchivedPart, ...]](tuple)
    for path in files_of(folder, manifest):
        try:
            for batch in batches(path):
                counts.add(_day(path), batch)
                files[path] = join_parts(files[path], count_batches([batch]))
        except (OSError, KeyError, pa.ArrowException) as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise JMSError(f"{path} can't be read: {reason}; restore it, or move it elsewhere") from error
    parts = join_parts((), itertools.chain(*files.values()))
    return {
        "job": "report",
        "folder": str(folder),
        **{name: getattr(manifest, name) for name in (*FILTERS, "runs")},
        "rows": counts.sizes.total(),
        "bytes": sum(size * count for size, count in counts.sizes.items()),
        "undecodable": sum(part.undecodable for part in parts),
        "first": time_text(min((part.first for part in parts if part.first is not None), default=None)),
        "last": time_text(max((part.last for part in parts if part.last is not None), default=None)),
        "days": sorted(_groups(counts, "days"), key=lambda row: row["day"] or ""),
        "types": _groups(counts, "types"),
        "sizes": quartiles(counts.sizes),
        "largest": counts.largest,
        "dead_letters": [row for row in _groups(counts, "dead_letters") if row["origin"] is not None],
        "problems": list(_problems(manifest, parts, files)),
        "lost": list(manifest.lost),
        "seconds": round(time.monotonic() - began, 3),
    }


def batches(path: AnyPath) -> Iterator[pa.RecordBatch]:
    """Read the columns of the report; batches have fewer rows if these are large."""
    with open_file(path) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        mean = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
        yield from file.iter_batches(max(1, min(_ROWS, _BYTES // max(mean, 1))), columns=list(_COLUMNS))


def _day(path: AnyPath) -> str | None:
    """Return the day in the name of a file's folder; None for messages without a publish time."""
    day = path.parent.name.removeprefix("date=")
    return None if day.startswith("__") else day


def _groups(counts: _Counts, part: str) -> list[dict[str, Any]]:
    """Return the groups of a part of the report, largest first."""
    found = sorted(counts.groups[part].items(), key=lambda item: (-item[1][0], *(name or "" for name in item[0])))
    return [
        {**dict(zip(_GROUPED[part], group, strict=True)), "messages": messages, "bytes": size}
        for group, (messages, size) in found
    ]


def quartiles(sizes: Mapping[int, int]) -> list[int]:
    """Return smallest, quartiles and largest (nearest rank) of messages counted by size; nothing without messages."""
    ordered = sorted(sizes)
    ranks = list(itertools.accumulate(sizes[size] for size in ordered))
    return [ordered[bisect_left(ranks, max(1, -(-ranks[-1] * part // 4)))] for part in range(5)] if ranks else []


def _problems(
    manifest: Manifest, parts: Iterable[ArchivedPart], files: Mapping[AnyPath, Iterable[ArchivedPart]]
) -> Iterator[str]:
    """Yield the differences from the manifest that ``verify`` finds."""
    spans = defaultdict[str, list[tuple[Place, Place, AnyPath]]](list)
    for path, counted in files.items():
        for part in counted:
            spans[part.topic].append((part.start, part.end, path))
    distinct = functools.cache(_distinct)
    found = {}
    for part in parts:
        found[part.topic] = Row(
            rows=part.rows,
            positions=sum(distinct(paths)[part.topic] for paths in overlapping(spans[part.topic])),
            first=part.first,
            last=part.last,
            low=part.start,
            high=Place(part.end.ledger, part.end.entry - 1),
        )
    return compare(manifest, found)


def overlapping(spans: Iterable[tuple[Place, Place, AnyPath]]) -> list[tuple[AnyPath, ...]]:
    """Group files by overlapping positions: only files of one group can have the same message.

    Tasks read separate ranges, so a group has the files of one task, unless the archive is damaged.
    """
    groups: list[tuple[AnyPath, ...]] = []
    reached = Place(0, 0)
    for start, end, path in sorted(spans):
        if start >= reached:
            groups.append(())
        groups[-1] += (path,)
        reached = max(reached, end)
    return groups


def _distinct(paths: Iterable[AnyPath]) -> dict[str, int]:
    """Count the distinct positions in files, by topic."""
    tables = []
    for path in paths:
        with open_file(path) as file:
            tables.append(file.read(columns=["topic", "position"]).flatten())
    rows = pa.concat_tables(tables)
    positions = rows.group_by(rows.column_names, use_threads=False).aggregate([])
    counted = positions.group_by("topic", use_threads=False).aggregate([([], "count_all")])
    return {row["topic"]: row["count_all"] for row in counted.to_pylist()}
