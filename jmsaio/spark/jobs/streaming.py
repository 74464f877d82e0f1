"""Archiving of a destination: in one run, in consecutive runs up to what is stored now, or until stopped.

One run is a batch read: it is added completely or not at all, and works with Spark Connect. Consecutive runs are the
micro-batches of a stream; each is kept if a later one fails. The manifest determines the start of the next run, not the
checkpoint of the stream: it is written with the rows that it counts, so that either way can continue an archive.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import jmsaio.spark
from jmsaio.errors import ConfigurationError, JMSError, NotFoundError
from jmsaio.spark.jobs.archive import ArchiveRun, accept, open_archive, store_run, summarize, take_unreported
from jmsaio.spark.jobs.extent import ArchiveOrder, ArchivePlan, Extent, places_json, plan_archive
from jmsaio.spark.jobs.failures import find_cause, own_errors, reason_of
from jmsaio.spark.jobs.manifest import Manifest
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.planning.batch_planning import list_sources, look, source_of
from jmsaio.spark.planning.cursor import StreamCursor
from jmsaio.spark.planning.offsets import from_json, shown_offset
from jmsaio.spark.worker import connected_by
from jmsaio.transport.base import StartPosition

_log = logging.getLogger(__name__)
#: Seconds between checks of a query, and the interval of checks for new messages.
_LOOK: Final = 0.5
_POLL: Final = "1 second"


@attrs.frozen(kw_only=True)
class Pace:
    """Size and interval of an archive's runs.

    Attributes:
        entries: maximum entries per run; a batch of messages counts as one. None: everything in one run.
        interval: archive new messages, too, until stopped: a run starts when ``entries`` are waiting, or with fewer
            after so many seconds. None: stop at the end of the stored messages.
    """

    entries: int | None = 100_000
    interval: float | None = None


#: Function called with the record of each run, and when an outage begins or ends, in the caller's thread.
OnRun = Callable[[Mapping[str, Any]], None]


def archive(
    session: SparkSession,
    order: ArchiveOrder,
    pace: Pace = Pace(),
    *,
    stop: Callable[[], bool] = lambda: False,
    report: OnRun = lambda record: None,
) -> dict[str, Any]:
    """Archive the messages of a destination that are not archived yet.

    Args:
        session: a session with ``format("jms")`` registered; one of Spark Connect can only archive in one run.
        order: archive order. A folder without an archive gets one.
        pace: size and interval of the runs.
        stop: called twice a second between and during consecutive runs; once it returns True, the current run is
            finished and kept, and archiving ends.
        report: see ``run_record`` and ``outage_record``.

    Returns:
        The summary: rows, files, and the contents of the archive. If a later run failed, or ``stop`` ended archiving
        before the end of the stored messages, it has ``stopped``, the reason; the same call continues.

    Raises:
        ConfigurationError: an option is invalid, or the folder has an archive of something else, or a continuous
            archive has ``until``.
        DataLossError: messages to archive no longer exist; nothing was added.
        TransportError: the broker failed; nothing was added.

    A KeyboardInterrupt drops the current run; earlier runs are kept.
    """
    if pace.interval is not None and order.until is not None:
        raise ConfigurationError("a continuous archive has no end: omit until, or archive only stored messages")
    began = time.monotonic()
    with open_archive(order) as before:
        plan = plan_archive(order, before)
        if pace.interval is not None and not plan.destination:
            raise NotFoundError(f"nothing is left of {order.destination}: its topics no longer exist")
        accepted = accept(order, before, plan)
        runs = _Runs(order, plan, pace, report, accepted, ArchiveCursor.begin(order, accepted))
        stopped = _run(session, runs, stop) if plan.extents or pace.interval is not None else None
        summary = {**summarize(order, before, runs.added, take_unreported(order), began), **runs.cursor.summary()}
    return summary if stopped is None else {**summary, "stopped": stopped}


@attrs.define(eq=False)
class ArchiveCursor:
    """Moves a subscription past the messages that an archive's manifest counts, and no further.

    Args:
        order: order of the archive; without ``consume``, nothing is done.
    """

    order: ArchiveOrder
    _cursor: StreamCursor | None = None
    _unmoved: list[str] = attrs.field(factory=list)

    @classmethod
    def begin(cls, order: ArchiveOrder, archived: Manifest) -> Self:
        """Create the subscription if it is missing, and move it past the archived messages.

        Raises:
            ConfigurationError: it has consumers, or there is no administration.
            NotFoundError: a topic does not exist.
            TransportError: the broker does not answer.
        """
        cursor = cls(order)
        if order.consume is not None:
            asyncio.run(cursor._move(archived))
        return cursor

    def follow(self, archived: Manifest) -> None:
        """Move the subscription past the archived messages. Warn about a failure: the next call or run retries."""
        if self.order.consume is None:
            return
        try:
            asyncio.run(self._move(archived))
        except JMSError as error:
            self._unmoved = sorted(archived.ends())
            _log.warning("subscription %s was not moved: %s", self.order.consume, error)

    def summary(self) -> dict[str, Any]:
        """Return ``subscription``, and ``unmoved``, the topics where moving it failed; empty without ``consume``."""
        if self.order.consume is None:
            return {}
        return {"subscription": self.order.consume, "unmoved": self._unmoved}

    async def _move(self, archived: Manifest) -> None:
        options = parse_options(self.order.reader_options(), Use.READ)
        async with connected_by(options) as (transport, configuration):
            if transport.admin is None:
                raise ConfigurationError(
                    "consume needs the broker's REST interface, which jms.usePulsarAdmin=false rules out"
                )
            source = source_of(options, configuration)
            stores = await look(transport, await list_sources(transport, source, may_miss=bool(archived.parts)))
            if self._cursor is None:
                assert self.order.consume is not None
                self._cursor = StreamCursor(transport.admin, self.order.consume, False, "consume", "")
                await self._cursor.begin(stores, StartPosition.EARLIEST)
            self._cursor.admin = transport.admin
            self._unmoved = await self._cursor.move(archived.ends(), stores, again=True)


@attrs.define(eq=False)
class _Runs:
    """The runs of one archive order.

    Attributes:
        plan: start of the first run.
        pace: size and interval of the runs.
        report: callback with the record of each run.
        before: manifest before the first run.
        cursor: subscription that follows the archive.
        checkpoint: checkpoint folder of the stream.
        added: combined result of all runs.
        unreported: results of the unreported runs.
        failure: the error of a failed run.
        at_work: a run is active.
        is_out: the broker was unreachable in Spark's last progress.
        stopping: start no more runs.
        skipped: a run was not started because of ``stopping``.
    """

    order: ArchiveOrder
    plan: ArchivePlan
    pace: Pace
    report: OnRun
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

    def store(self, frame: DataFrame, number: int | None = None) -> None:
        """Add one run; Spark calls it in a thread of its own with the number of a micro-batch."""
        archived = self.before if self.added is None else self.added.manifest
        self.at_work = True  # set before stopping is read, so that the other thread sees one of them
        try:
            if self.stopping:
                self.skipped = True
                return
            extents = self.plan.extents
            if number is not None:
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

    def report_next(self, progress: Mapping[str, Any] | None) -> None:
        """Report the oldest unreported run and forget it: a stream can have very many."""
        self.report(run_record(self.reported, self.unreported.popleft(), progress, self.pace.entries))
        self.reported += 1


def _run(session: SparkSession, runs: _Runs, stop: Callable[[], bool]) -> str | None:
    """Add runs until everything is archived or one fails; return the reason if earlier runs were added."""
    try:
        with own_errors():
            is_done = _read(session, runs) if runs.pace.entries is None else _stream(session, runs, stop)
    except Exception as error:
        failure = runs.failure
        cause = error if failure is None else find_cause(str(failure)) or failure
        if runs.added is None:
            raise cause from None
        return reason_of(cause)
    return None if is_done or runs.pace.interval is not None else "interrupted"


def _read(session: SparkSession, runs: _Runs) -> bool:
    """Add everything in one run; return True."""
    options = {**runs.plan.options(runs.order), "endingOffsets": places_json(runs.plan.ends())}
    runs.store(session.read.format("jms").options(**options).load())
    return True


def stream_options(order: ArchiveOrder, plan: ArchivePlan, pace: Pace) -> dict[str, str]:
    """Return the options of the data source for a stream.

    Args:
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


def batch_extents(checkpoint: Path, number: int, starts: Mapping[str, Place]) -> tuple[Extent, ...]:
    """Return the entries that a batch reads from each partition, from the offsets that Spark writes before it starts.

    Args:
        checkpoint: checkpoint folder of the stream.
        starts: known starts, by topic.
    """
    written = (checkpoint / "offsets" / str(number)).read_text(encoding="utf-8").splitlines()[-1]
    ends = from_json(json.loads(written))
    return tuple(
        Extent(topic=topic, start=starts.get(topic, end), end=end, entries=0, bytes=0) for topic, end in ends.items()
    )


def _stream(session: SparkSession, runs: _Runs, stop: Callable[[], bool]) -> bool:
    """Run the query; return True if it ended by itself."""
    frame = session.readStream.format("jms").options(**stream_options(runs.order, runs.plan, runs.pace)).load()
    with tempfile.TemporaryDirectory(prefix="jmsaio-", ignore_cleanup_errors=True) as folder:
        runs.checkpoint = Path(folder)
        writer = frame.writeStream.foreachBatch(runs.store).option("checkpointLocation", Path(folder).as_uri())
        timing: dict[str, Any] = {"availableNow": True} if runs.pace.interval is None else {"processingTime": _POLL}
        query = writer.trigger(**timing).start()
        try:
            return _watch(query, runs, stop)
        finally:
            query.stop()


def _watch(query: StreamingQuery, runs: _Runs, stop: Callable[[], bool]) -> bool:
    """Report runs until the query ends, or stops with no active run. Return True if it ended by itself."""
    has_ended = False
    while not has_ended and (not runs.stopping or runs.at_work):
        has_ended = bool(query.awaitTermination(_LOOK))  # type: ignore[arg-type] # takes a float, too
        _report(query, runs)
        runs.stopping = runs.stopping or stop()
    if runs.failure is not None:  # of the run that was active
        raise runs.failure
    while runs.unreported:
        runs.report_next(None)
    return has_ended and not runs.skipped


def _report(query: StreamingQuery, runs: _Runs) -> None:
    """Report the runs and outages in Spark's progress."""
    outage = outage_record(query.lastProgress)
    if runs.is_out is not (outage["unreachable"] is not None):
        runs.is_out = not runs.is_out
        runs.report(outage)
    recent = query.recentProgress if runs.unreported else []
    known = {each["batchId"]: each for each in recent if "addBatch" in each["durationMs"]}  # others are idle
    while runs.unreported and runs.reported in known:
        runs.report_next(known[runs.reported])


def run_record(number: int, run: ArchiveRun, progress: Mapping[str, Any] | None, entries: int | None) -> dict[str, Any]:
    """Return the record of a stream's run.

    Args:
        number: number of the run in this stream, from 0.
        progress: Spark's progress of its batch; None if there is none.
        entries: maximum entries per run.

    Returns:
        ``rows`` and ``files`` of the run, ``archived`` (rows in all), ``lost`` (sentences), ``seconds`` of the run,
        ``rows_per_second``, ``entries_behind`` (remaining entries), and ``seconds_left`` for them at this speed,
        without new messages. The four from ``seconds`` on are None without ``progress``.
    """
    record: dict[str, Any] = {
        "job": "archive",
        "run": number + 1,
        "rows": sum(part.rows for part in run.parts),
        "files": run.files,
        "archived": run.manifest.rows,
        "lost": list(run.lost),
        **dict.fromkeys(("seconds", "rows_per_second", "entries_behind", "seconds_left")),
    }
    if progress is None or entries is None:
        return record
    seconds = max(progress["batchDuration"], 1) / 1000
    behind = sum(each.entries for each in jmsaio.spark.lag(progress).values())
    record.update(
        seconds=seconds,
        rows_per_second=round(record["rows"] / seconds, 1),
        entries_behind=behind,
        seconds_left=round(behind * seconds / entries),  # a run that leaves entries was a full one
    )
    return record


def outage_record(progress: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the record of the beginning or end of a broker outage: ``unreachable``, the reason, or None.

    Args:
        progress: Spark's progress of the newest trigger.
    """
    outage = {} if progress is None else shown_offset(progress["sources"][0]).get("unreachable")
    return {"job": "archive", "unreachable": outage["reason"] if outage else None}


def pace_text(record: Mapping[str, Any]) -> str:
    """Format the record of a run or of an outage as a line."""
    if "unreachable" in record:
        reason = record["unreachable"]
        return "the broker answers again" if reason is None else f"waiting for the broker: {reason}"
    text = f"{record['run']} runs, {record['archived']} messages"
    if record["entries_behind"] is None:
        return text
    left = f", {record['seconds_left']} s left" if record["entries_behind"] else ""
    return f"{text}, {record['rows_per_second']}/s, {record['entries_behind']} entries behind{left}"
