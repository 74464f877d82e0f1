"""Archiving of a destination by a stream, in consecutive runs: up to what is stored now, or until stopped.

Each run is kept if a later one fails. The manifest determines the start of the next run, not the checkpoint of the
stream: it is written with the rows that it counts, and ``archive_range`` can continue the same archive.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from jmsaio.errors import ConfigurationError, NotFoundError
from jmsaio.spark.jobs.archive import ArchiveRun, accept, open_archive, store_run, summarize, take_unreported
from jmsaio.spark.jobs.consuming import ArchiveCursor
from jmsaio.spark.jobs.extent import ArchiveOrder, ArchivePlan, Extent, plan_archive
from jmsaio.spark.jobs.failures import find_cause, own_errors, reason_of
from jmsaio.spark.jobs.manifest import Manifest
from jmsaio.spark.jobs.pace import ENTRIES, OnRun, Pace, outage_record, run_record
from jmsaio.spark.model.places import Place
from jmsaio.spark.planning.offsets import from_json

#: Seconds between checks of a query, and the interval of checks for new messages.
_LOOK: Final = 0.5
_POLL: Final = "1 second"


def archive_once(
    session: SparkSession, order: ArchiveOrder, entries: int = ENTRIES, stop: Callable[[], bool] = lambda: False
) -> dict[str, Any]:
    """Archive the stored messages of the destination, as ``archive_range`` does, but in runs of limited size.

    Args:
        session: a session with ``format("jms")`` registered; not of Spark Connect.
        order: archive order.
        entries: maximum entries per run; a batch of messages counts as one.
        stop: called twice a second; once it returns True, the current run is finished and kept, and archiving ends.

    Returns:
        The summary of all runs. If a later one failed, or ``stop`` ended it early, it has ``stopped``, the reason; the
        same call continues.

    Raises:
        As ``archive_range``, if nothing was added.
    """
    return _archive(session, order, Pace(entries=entries), stop, _no_one)


def archive_on(
    session: SparkSession, order: ArchiveOrder, stop: Callable[[], bool], *, pace: Pace, report: OnRun
) -> dict[str, Any]:  # fmt: skip
    """Archive stored and new messages of the destination, until stopped.

    Args:
        session: as for ``archive_once``.
        order: archive order; ``until`` is rejected.
        stop: called twice a second; once it returns True, the current run is finished and kept, and archiving ends.
        pace: size and interval of the runs; the interval is required.
        report: callback with a record after each run, and when an outage begins or ends, in the caller's thread; see
            ``run_record`` and ``outage_record``.

    Returns:
        The summary of all runs, as ``archive_once``.

    Raises:
        ConfigurationError: ``until`` is set.
        As ``archive_range``, if nothing was added.

    A KeyboardInterrupt ends the query and drops the current run; earlier runs are kept.
    """
    if order.until is not None:
        raise ConfigurationError("a continuous archive has no end: omit until, or archive only stored messages")
    return _archive(session, order, pace, stop, report)


def _no_one(record: Mapping[str, Any]) -> None:
    """Ignore a record."""


def _archive(
    session: SparkSession, order: ArchiveOrder, pace: Pace, stop: Callable[[], bool], report: OnRun
) -> dict[str, Any]:
    began = time.monotonic()
    with open_archive(order) as before:
        plan = plan_archive(order, before)
        if pace.interval is not None and not plan.destination:
            raise NotFoundError(f"nothing is left of {order.destination}: its topics no longer exist")
        accepted = accept(order, before, plan)
        cursor = ArchiveCursor.begin(order, accepted)
        runs = _Runs(order, plan, accepted, cursor)
        stopped = _run(session, runs, pace, stop, report) if plan.extents or pace.interval is not None else None
        summary = {**summarize(order, before, runs.added, take_unreported(order), began), **cursor.summary()}
    return summary if stopped is None else {**summary, "stopped": stopped}


@attrs.define(eq=False)
class _Runs:
    """The runs of one stream.

    Attributes:
        order: archive order.
        plan: start of the stream.
        before: manifest before the stream.
        cursor: subscription that follows the archive.
        checkpoint: checkpoint folder of the stream.
        added: combined result of all runs.
        unreported: results of the unreported runs.
        reported: number of reported runs.
        failure: the error of a failed run.
        at_work: a run is active.
        is_out: the broker was unreachable in Spark's last progress.
        stopping: start no more runs.
        skipped: a run was not started because of ``stopping``.
    """

    order: ArchiveOrder
    plan: ArchivePlan
    before: Manifest
    cursor: ArchiveCursor
    checkpoint: Path | None = None
    added: ArchiveRun | None = None
    unreported: deque[ArchiveRun] = attrs.field(factory=deque)
    reported: int = 0
    failure: Exception | None = None
    at_work: bool = False
    is_out: bool = False
    stopping: bool = False
    skipped: bool = False

    def store(self, frame: DataFrame, number: int) -> None:
        """Add one run. Spark calls it in a thread of its own."""
        archived = self.before if self.added is None else self.added.manifest
        self.at_work = True  # set before stopping is read, so that the other thread sees one of them
        try:
            if self.stopping:
                self.skipped = True
                return
            assert self.checkpoint is not None
            extents = batch_extents(self.checkpoint, number, archived.ends())
            run = store_run(frame, self.order, archived, extents)
            self.added = run if self.added is None else self.added.followed_by(run)
            self.unreported.append(run)
            self.cursor.follow(run.manifest)
        except Exception as error:  # Spark only quotes it
            self.failure = error
            raise
        finally:
            self.at_work = False

    def report_next(self, progress: Mapping[str, Any] | None, pace: Pace, report: OnRun) -> None:
        """Report the oldest unreported run and forget it: a stream can have very many."""
        report(run_record(self.reported, self.unreported.popleft(), progress, pace.entries))
        self.reported += 1


def _run(session: SparkSession, runs: _Runs, pace: Pace, stop: Callable[[], bool], report: OnRun) -> str | None:
    """Add runs until everything is archived or one fails; return the reason if earlier runs were added."""
    try:
        with own_errors():
            is_done = _stream(session, runs, pace, stop, report)
    except Exception as error:
        failure = runs.failure
        cause = error if failure is None else find_cause(str(failure)) or failure
        if runs.added is None:
            raise cause from None
        return reason_of(cause)
    return None if is_done or pace.interval is not None else "interrupted"


def stream_options(order: ArchiveOrder, plan: ArchivePlan, pace: Pace) -> dict[str, str]:
    """Return the options of the data source for a stream.

    Args:
        order: archive order.
        plan: start of the stream.
        pace: size and interval of the runs.
    """
    options = plan.options(order)
    options.pop("endingTime", None)  # a stream has no end: later rows are filtered when they are stored
    if "startingOffsets" not in options and "startingTime" not in options:
        options["startingOffsets"] = "earliest"
    options["maxEntriesPerTrigger"] = str(pace.entries)
    if pace.interval is not None:
        options["minEntriesPerTrigger"] = str(pace.entries)
        options["maxTriggerDelay"] = f"{pace.interval:g} s"
    if order.consume is not None:
        options |= {"subscription": order.consume, "moveCursor": "false"}
    return options


def batch_extents(checkpoint: Path, number: int, starts: Mapping[str, Place]) -> list[Extent]:
    """Return the entries that a batch reads from each partition, from the offsets that Spark writes before it starts.

    Args:
        checkpoint: checkpoint folder of the stream.
        number: number of the batch.
        starts: known starts, by topic.
    """
    written = (checkpoint / "offsets" / str(number)).read_text(encoding="utf-8").splitlines()[-1]
    ends = from_json(json.loads(written))
    return [
        Extent(topic=topic, start=starts.get(topic, end), end=end, entries=0, bytes=0) for topic, end in ends.items()
    ]


def _stream(session: SparkSession, runs: _Runs, pace: Pace, stop: Callable[[], bool], report: OnRun) -> bool:
    """Run the query; return True if it ended by itself."""
    frame = session.readStream.format("jms").options(**stream_options(runs.order, runs.plan, pace)).load()
    with tempfile.TemporaryDirectory(prefix="jmsaio-", ignore_cleanup_errors=True) as folder:
        runs.checkpoint = Path(folder)
        writer = frame.writeStream.foreachBatch(runs.store).option("checkpointLocation", Path(folder).as_uri())
        timing: dict[str, Any] = {"availableNow": True} if pace.interval is None else {"processingTime": _POLL}
        query = writer.trigger(**timing).start()
        try:
            return _watch(query, runs, pace, stop, report)
        finally:
            query.stop()


def _watch(query: StreamingQuery, runs: _Runs, pace: Pace, stop: Callable[[], bool], report: OnRun) -> bool:
    """Report runs until the query ends, or stops with no active run. Return True if it ended by itself."""
    has_ended = False
    while not has_ended and (not runs.stopping or runs.at_work):
        has_ended = bool(query.awaitTermination(_LOOK))  # type: ignore[arg-type] # takes a float, too
        _report(query, runs, pace, report)
        runs.stopping = runs.stopping or stop()
    if runs.failure is not None:  # of the run that was active
        raise runs.failure
    while runs.unreported:
        runs.report_next(None, pace, report)
    return has_ended and not runs.skipped


def _report(query: StreamingQuery, runs: _Runs, pace: Pace, report: OnRun) -> None:
    """Report the runs and outages in Spark's progress."""
    outage = outage_record(query.lastProgress)
    if runs.is_out is not (outage["unreachable"] is not None):
        runs.is_out = not runs.is_out
        report(outage)
    recent = query.recentProgress if runs.unreported else []
    known = {each["batchId"]: each for each in recent if "addBatch" in each["durationMs"]}  # others are idle
    while runs.unreported and runs.reported in known:
        runs.report_next(known[runs.reported], pace, report)
