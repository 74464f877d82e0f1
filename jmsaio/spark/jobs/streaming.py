"""Archive a destination by a stream, in runs that follow each other: up to what is stored now, or until told to stop.

Each run stays when a later one fails. The manifest says where the next one starts, not the checkpoint of the stream: it
is written with the rows that it counts, and ``archive_range`` goes on with the same archive.
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
from jmsaio.spark.jobs.archive import Run, accept, open_archive, store_run, summarize, take_untold
from jmsaio.spark.jobs.consuming import ArchiveCursor
from jmsaio.spark.jobs.extent import ArchiveOrder, ArchivePlan, Extent, plan_archive
from jmsaio.spark.jobs.failures import find_cause, own_errors, reason_of
from jmsaio.spark.jobs.manifest import Manifest
from jmsaio.spark.jobs.pace import ENTRIES, Pace, Tell, outage_record, run_record
from jmsaio.spark.model.places import Place
from jmsaio.spark.planning.offsets import from_json

#: Seconds between two looks at a query, and at the broker while it has nothing.
_LOOK: Final = 0.5
_POLL: Final = "1 second"


def archive_once(
    session: SparkSession, order: ArchiveOrder, entries: int = ENTRIES, stop: Callable[[], bool] = lambda: False
) -> dict[str, Any]:
    """Archive what the destination stores now, as ``archive_range`` does, but in runs of some entries.

    Args:
        session: one that knows ``format("jms")``; not of Spark Connect.
        order: what and where.
        entries: of a run at most; a batch of messages is one.
        stop: asked twice a second; once it says True, the run at work is finished and kept, and that is the end.

    Returns:
        The summary of all runs. Where a later one failed, or ``stop`` left something, it has ``stopped``, the reason;
        the same call goes on.

    Raises:
        As ``archive_range``, where nothing was added.
    """
    return _archive(session, order, Pace(entries=entries), stop, _no_one)


def archive_on(
    session: SparkSession, order: ArchiveOrder, stop: Callable[[], bool], *, pace: Pace, tell: Tell
) -> dict[str, Any]:  # fmt: skip
    """Archive what the destination stores and what comes, until told to stop.

    Args:
        session: as for ``archive_once``.
        order: what and where; one with ``until`` is refused.
        stop: asked twice a second; once it says True, the run at work is finished and kept, and that is the end.
        pace: with an interval.
        tell: called after each run, and when an outage begins or ends, in the thread of the caller, with the record of
            it; see ``run_record`` and ``outage_record``.

    Returns:
        The summary of all runs, as ``archive_once``.

    Raises:
        ConfigurationError: ``until`` is set.
        As ``archive_range``, where nothing was added.

    A KeyboardInterrupt ends the query and drops the run at work; what was added before stays.
    """
    if order.until is not None:
        raise ConfigurationError("an archive that goes on has no end: leave out until, or archive what is stored now")
    return _archive(session, order, pace, stop, tell)


def _no_one(record: Mapping[str, Any]) -> None:
    """Tell no one."""


def _archive(
    session: SparkSession, order: ArchiveOrder, pace: Pace, stop: Callable[[], bool], tell: Tell
) -> dict[str, Any]:
    began = time.monotonic()
    with open_archive(order) as before:
        plan = plan_archive(order, before)
        if pace.interval is not None and not plan.destination:
            raise NotFoundError(f"nothing is left of {order.destination}: its topics do not exist any more")
        accepted = accept(order, before, plan)
        cursor = ArchiveCursor.begin(order, accepted)
        runs = _Runs(order, plan, accepted, cursor)
        stopped = _run(session, runs, pace, stop, tell) if plan.extents or pace.interval is not None else None
        summary = {**summarize(order, before, runs.added, take_untold(order), began), **cursor.summary()}
    return summary if stopped is None else {**summary, "stopped": stopped}


@attrs.define(eq=False)
class _Runs:
    """The runs of one stream.

    Attributes:
        order: what is archived where.
        plan: where the stream begins.
        before: what was there before.
        cursor: follows what is archived.
        checkpoint: of the stream.
        added: what all of them together have added.
        untold: what each has added, as long as nobody was told.
        told: how many were.
        failure: why a run was not added.
        at_work: a run is.
        is_out: the broker was unreachable when Spark last told of the query.
        stopping: no more runs begin.
        skipped: a run did not begin for that.
    """

    order: ArchiveOrder
    plan: ArchivePlan
    before: Manifest
    cursor: ArchiveCursor
    checkpoint: Path | None = None
    added: Run | None = None
    untold: deque[Run] = attrs.field(factory=deque)
    told: int = 0
    failure: Exception | None = None
    at_work: bool = False
    is_out: bool = False
    stopping: bool = False
    skipped: bool = False

    def store(self, frame: DataFrame, number: int) -> None:
        """Add one run. Spark calls it, in a thread of its own."""
        archived = self.before if self.added is None else self.added.manifest
        self.at_work = True  # before the look at the wish to stop, so that whoever has it sees the one or the other
        try:
            if self.stopping:
                self.skipped = True
                return
            assert self.checkpoint is not None
            extents = batch_extents(self.checkpoint, number, archived.ends())
            run = store_run(frame, self.order, archived, extents)
            self.added = run if self.added is None else self.added.followed_by(run)
            self.untold.append(run)
            self.cursor.follow(run.manifest)
        except Exception as error:  # Spark would only quote it
            self.failure = error
            raise
        finally:
            self.at_work = False

    def tell_next(self, progress: Mapping[str, Any] | None, pace: Pace, tell: Tell) -> None:
        """Tell of the first run of which nobody was told, which is forgotten then: a stream may have very many."""
        tell(run_record(self.told, self.untold.popleft(), progress, pace.entries))
        self.told += 1


def _run(session: SparkSession, runs: _Runs, pace: Pace, stop: Callable[[], bool], tell: Tell) -> str | None:
    """Add runs until all is archived, or one fails; the reason why, where others came before it."""
    try:
        with own_errors():
            is_done = _stream(session, runs, pace, stop, tell)
    except Exception as error:
        failure = runs.failure
        cause = error if failure is None else find_cause(str(failure)) or failure
        if runs.added is None:
            raise cause from None
        return reason_of(cause)
    return None if is_done or pace.interval is not None else "interrupted"


def stream_options(order: ArchiveOrder, plan: ArchivePlan, pace: Pace) -> dict[str, str]:
    """The options of the data source for a stream.

    Args:
        order: what is archived.
        plan: where it begins.
        pace: how it is cut into runs.
    """
    options = plan.options(order)
    options.pop("endingTime", None)  # a stream has no end: later rows are left out where they are stored
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
    """What a batch of the stream reads of each partition, by the offsets that Spark writes before it starts.

    Args:
        checkpoint: of the stream.
        number: of the batch.
        starts: where it begins, by topic, as far as that is known.
    """
    written = (checkpoint / "offsets" / str(number)).read_text(encoding="utf-8").splitlines()[-1]
    ends = from_json(json.loads(written))
    return [
        Extent(topic=topic, start=starts.get(topic, end), end=end, entries=0, bytes=0) for topic, end in ends.items()
    ]


def _stream(session: SparkSession, runs: _Runs, pace: Pace, stop: Callable[[], bool], tell: Tell) -> bool:
    """Run the query; whether it came to its end by itself."""
    frame = session.readStream.format("jms").options(**stream_options(runs.order, runs.plan, pace)).load()
    with tempfile.TemporaryDirectory(prefix="jmsaio-", ignore_cleanup_errors=True) as folder:
        runs.checkpoint = Path(folder)
        writer = frame.writeStream.foreachBatch(runs.store).option("checkpointLocation", Path(folder).as_uri())
        timing: dict[str, Any] = {"availableNow": True} if pace.interval is None else {"processingTime": _POLL}
        query = writer.trigger(**timing).start()
        try:
            return _watch(query, runs, pace, stop, tell)
        finally:
            query.stop()


def _watch(query: StreamingQuery, runs: _Runs, pace: Pace, stop: Callable[[], bool], tell: Tell) -> bool:
    """Tell of each run until the query ends or is to; then no run is at work. Whether it has ended by itself."""
    has_ended = False
    while not has_ended and (not runs.stopping or runs.at_work):
        has_ended = bool(query.awaitTermination(_LOOK))  # type: ignore[arg-type] # takes a float, too
        _tell(query, runs, pace, tell)
        runs.stopping = runs.stopping or stop()
    if runs.failure is not None:  # of the run that was at work
        raise runs.failure
    while runs.untold:
        runs.tell_next(None, pace, tell)
    return has_ended and not runs.skipped


def _tell(query: StreamingQuery, runs: _Runs, pace: Pace, tell: Tell) -> None:
    """Tell of the runs, and of the outages, of which Spark has told."""
    outage = outage_record(query.lastProgress)
    if runs.is_out is not (outage["unreachable"] is not None):
        runs.is_out = not runs.is_out
        tell(outage)
    recent = query.recentProgress if runs.untold else []
    known = {each["batchId"]: each for each in recent if "addBatch" in each["durationMs"]}  # others are idle
    while runs.untold and runs.told in known:
        runs.tell_next(known[runs.told], pace, tell)
