"""Archives of a destination in Parquet files, run by run: each run resumes where the previous one ended.

A run writes beside the archive, adds its number to the names of its files, moves them to their places, and writes the
manifest last. Files with the number of a run that is not in the manifest are left over from a crash: the next run
deletes them, so that each message is archived exactly once.
"""

from __future__ import annotations

import fcntl
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from jmsaio.errors import IllegalStateError
from jmsaio.spark.jobs.extent import ArchiveOrder, ArchivePlan, Extent, plan_archive
from jmsaio.spark.jobs.manifest import ArchivedPart, Manifest, join_parts, read_manifest, write_manifest
from jmsaio.spark.jobs.verify import count_files
from jmsaio.spark.options.values import time as read_time
from jmsaio.spark.planning.losses import read_losses, write_loss
from jmsaio.spark.session import set_for_now

#: Folder where a run writes, in the archive's folder; the underscore hides it from readers of the folder.
_STAGING: Final = "_writing"
#: File locked by the active run.
_LOCK: Final = "_lock"
#: Columns that are folder names.
_FOLDERS: Final = ("destination", "date")
_DAY: Final = 86_400_000
#: A task writes the files of up to four days at the same time. Only for more days, its rows must be sorted first.
_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.maxConcurrentOutputFileWriters": "4",
}
#: Bytes of a row group, which is kept in memory until it is written: four of them have Parquet's usual size.
_ROW_GROUP: Final = 32 * 1024 * 1024


@attrs.frozen
class ArchiveRun:
    """Result of a run.

    Attributes:
        manifest: manifest of the archive after the run.
        parts: entries read from each partition.
        files: number of files written.
        lost: messages that no longer existed when they were to be read, one sentence per loss.
    """

    manifest: Manifest
    parts: tuple[ArchivedPart, ...]
    files: int
    lost: tuple[str, ...] = ()

    def followed_by(self, later: ArchiveRun) -> ArchiveRun:
        """Combine this run with a later one of the same archive."""
        return ArchiveRun(
            later.manifest,
            join_parts(self.parts, later.parts),
            self.files + later.files,
            (*self.lost, *later.lost),
        )


def accept(order: ArchiveOrder, archived: Manifest, plan: ArchivePlan) -> Manifest:
    """Add the losses of a plan to the manifest and write it, so that they are detected only once.

    A failed run has no summary: each loss stays in a file until the summary of a later run reports it.
    """
    if plan.losses:
        for sentence in plan.lost:
            write_loss(order.unreported, sentence)
        archived = archived.after_losses(plan.losses)
        write_manifest(order.folder, archived)
    return archived


def take_unreported(order: ArchiveOrder) -> tuple[str, ...]:
    """Return and delete the accepted losses that no summary has reported."""
    lost = read_losses(order.unreported)
    shutil.rmtree(order.unreported, ignore_errors=True)
    return lost


def store_run(frame: DataFrame, order: ArchiveOrder, archived: Manifest, extents: Iterable[Extent]) -> ArchiveRun:
    """Add the rows of a run to the archive, completely or not at all.

    Args:
        frame: rows with all columns and ``body=raw``.
        order: the order; its times filter the rows.
        archived: manifest before the run.
        extents: entries to read from each partition.
    """
    staging, session = order.folder / _STAGING, frame.sparkSession
    with set_for_now(session, _SETTINGS):
        _write(frame, order, staging)
    found = count_files(sorted(staging.glob("*/*/*.parquet")))
    parts = _parts(archived, extents, found)
    lost = tuple(sentence for sentence in read_losses(order.losses) if sentence not in archived.lost)
    files = _publish(staging, order.folder, archived.runs + 1)
    manifest = archived.after_run(parts, lost)
    write_manifest(order.folder, manifest)
    return ArchiveRun(manifest, parts, files, lost)


def summarize(
    order: ArchiveOrder, archived: Manifest, added: ArchiveRun | None, lost: Sequence[str], began: float
) -> dict[str, Any]:
    """Build the summary of added messages.

    Args:
        order: archive order.
        archived: manifest before the runs.
        added: what one run, or all consecutive ones, added; None: nothing.
        lost: losses before the first run, as sentences.
        began: start of the first run, by ``time.monotonic``.
    """
    if added is None:
        added = ArchiveRun(archived, (), 0)
    return {
        "job": "archive",
        "destination": order.destination,
        "folder": str(order.folder),
        "rows": sum(part.rows for part in added.parts),
        "undecodable": sum(part.undecodable for part in added.parts),
        "files": added.files,
        "archived": added.manifest.rows,
        "lost": [*lost, *added.lost],
        "partitions": [_shown(part) for part in added.parts],
        "seconds": round(time.monotonic() - began, 3),
    }


def describe_archive(order: ArchiveOrder) -> dict[str, Any]:
    """Describe what ``streaming.archive`` would read. Needs no session and writes nothing.

    Raises:
        As ``plan_archive``.
    """
    plan = plan_archive(order, _archived(order))
    return {
        "job": "archive",
        "dry_run": True,
        "destination": order.destination,
        "folder": str(order.folder),
        "entries": sum(extent.entries for extent in plan.extents),
        "bytes": sum(extent.bytes for extent in plan.extents),
        "lost": list(plan.lost),
        "partitions": [
            {**attrs.asdict(extent), "start": str(extent.start), "end": str(extent.end)} for extent in plan.extents
        ],
    }


@contextmanager
def open_archive(order: ArchiveOrder) -> Iterator[Manifest]:
    """Open and lock the archive of an order, after deleting the files of a crashed run.

    It is locked while the block runs: another run would delete the files of this one, or count them again. The lock
    applies to the processes of this machine, and to others if the file system supports such locks.

    Raises:
        ConfigurationError: the folder has an archive of something else.
        IllegalStateError: another run is active.
    """
    _archived(order)  # before creating the folder
    order.folder.mkdir(parents=True, exist_ok=True)
    with (order.folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = f"another run archives into {order.folder}: wait for its end, or name another folder"
            raise IllegalStateError(reason) from None
        archived = _archived(order)
        for left in (order.folder / _STAGING, order.losses):
            shutil.rmtree(left, ignore_errors=True)
        for path in order.folder.glob(f"*/*/{_prefix(archived.runs + 1)}*"):
            path.unlink()
        yield archived


def _archived(order: ArchiveOrder) -> Manifest:
    archived = read_manifest(order.folder)
    if archived is None:
        return order.manifest()
    archived.check_same(order.manifest())
    return archived


def _write(frame: DataFrame, order: ArchiveOrder, staging: Path) -> None:
    published = f.unix_millis("publish_time")
    if order.since is not None:
        frame = frame.where(published >= read_time(order.since))
    if order.until is not None:
        frame = frame.where(published < read_time(order.until))
    day = f.expr(f"date_from_unix_date(CAST(unix_millis(publish_time) DIV {_DAY} AS INT))")  # UTC, in any session
    writer = frame.withColumn("date", day).write.option("parquet.block.size", _ROW_GROUP)
    writer.partitionBy(*_FOLDERS).mode("overwrite").parquet(str(staging))


def _parts(
    archived: Manifest, extents: Iterable[Extent], found: Iterable[ArchivedPart]
) -> tuple[ArchivedPart, ...]:  # fmt: skip
    """Return the parts that the run has added. Topics created during the run count as well."""
    ends = archived.ends()
    read = [ArchivedPart(topic=extent.topic, start=extent.start, end=extent.end) for extent in extents]
    rows = [attrs.evolve(part, start=ends.get(part.topic) or part.start) for part in found]
    return tuple(attrs.evolve(part, next=part.end) for part in join_parts(rows, read))


def _publish(staging: Path, folder: Path, run: int) -> int:
    """Move the files of a run to their places; return their number."""
    files = sorted(staging.glob("*/*/*.parquet"))
    for path in files:
        place = folder / path.parent.relative_to(staging)
        place.mkdir(parents=True, exist_ok=True)
        path.rename(place / f"{_prefix(run)}{path.name}")
    shutil.rmtree(staging, ignore_errors=True)
    return len(files)


def _prefix(run: int) -> str:
    return f"run-{run:06d}-"


def _shown(part: ArchivedPart) -> dict[str, Any]:
    return {"topic": part.topic, "start": str(part.start), "end": str(part.end), "rows": part.rows}
