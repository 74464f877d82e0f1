"""Archives of a destination: a stream of ``jms`` into Spark's file sink.

The stream's checkpoint, in the archive's folder, says where the next run starts. The sink's ``_spark_metadata`` lists
the files of each micro-batch that is complete, and Spark reads only those. So a micro-batch that is repeated after a
crash is in the archive once.
"""

from __future__ import annotations

import itertools
import json
import re
import time
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import attrs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, functions as f
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from jmsaio.config import Configuration
from jmsaio.errors import ConfigurationError
from jmsaio.model.topic_names import JOB_PREFIX
from jmsaio.spark.jobs.failures import find_cause, own_errors, reason_of
from jmsaio.spark.model.place import Place
from jmsaio.spark.model.schema import Body, columns_of, ddl
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.planning.batch_planning import source_of
from jmsaio.spark.planning.plan import from_json, shown_offset, to_json
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.planning.stream_planning import StreamPlanner
from jmsaio.spark.planning.tolerance import folder_at, names_in, read_bytes, read_losses, remove_losses, write_loss
from jmsaio.spark.session import hadoop_path, located, read_text
from jmsaio.spark.worker import call_broker
from jmsaio.transport.base import Transport

#: Folders in an archive's folder: the checkpoint of its stream, accepted losses, and those that no summary has reported
#: yet. The underscore hides them from readers of its files.
CHECKPOINT: Final = "_checkpoint"
_LOSSES: Final = "_losses"
_UNREPORTED: Final = "_unreported"
#: File with the filters of the archive.
_ORDER: Final = "_order.json"
_FILTERS: Final = ("destination", "selector", "since", "until")
#: Name of the observed metrics.
_COUNTS: Final = "archive"
#: Seconds between two checks of a query.
_POLL: Final = 0.5
#: Message of a query that reads and writes a micro-batch.
_AT_WORK: Final = "Processing new data"
#: Setting of the session, whose default is INT96: other programs can't use its statistics.
_TIMES: Final = "spark.sql.parquet.outputTimestampType"
#: Day of a row: UTC, whatever the session's time zone.
_DAY: Final = "date_from_unix_date(CAST(unix_millis(publish_time) DIV 86400000 AS INT))"


def subscription_of(folder: str) -> str:
    """Return the default subscription of the archive in a folder; the same path elsewhere has the same."""
    readable = re.sub(r"[^\w.-]", "-", folder.rstrip("/").rpartition("/")[2], flags=re.ASCII)
    return f"{JOB_PREFIX}{readable}-{zlib.crc32(folder.encode()):08x}"


@attrs.frozen(kw_only=True)
class ArchiveOrder:
    """Archive order: destination, filters and folder."""

    connection: Mapping[str, str]  # options of the data source, including ``url``
    destination: str
    folder: str  # absolute path or URL, which the driver and all workers reach
    selector: str | None = None
    since: str | None = None  # publish time of the first messages, in ISO 8601 or ms since the epoch
    until: str | None = None  # publish time from which messages are left out, likewise
    fail_on_data_loss: bool = True
    consume: str | None = None  # subscription to move past the archived messages

    def __attrs_post_init__(self) -> None:
        filters = [name for name in ("selector", "since", "until") if getattr(self, name) is not None]
        if self.consume is not None and filters:
            raise ConfigurationError(
                f"consume would acknowledge messages that {filters[0]} leaves out of the archive: archive all, or "
                "consume nothing"
            )

    def reader_options(self) -> dict[str, str]:
        optional = {
            "selector": self.selector,
            "endingTime": self.until,
            "startingTime": self.since,
            "subscription": self.consume,
        }
        return {
            **self.connection,
            "destination": self.destination,
            "body": "raw",
            "startingOffsets": "earliest",
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            **{name: text for name, text in optional.items() if text},
        }


@attrs.frozen(kw_only=True)
class Pace:
    """Micro-batches of an archive, which stops at the end of the stored messages unless there is an ``interval``."""

    entries: int | None = 100_000  # maximum of a micro-batch; None for no limit
    interval: float | None = None  # seconds until a micro-batch starts with fewer entries


#: Function called with the record of each micro-batch, and when an outage begins or ends.
OnRecord = Callable[[Mapping[str, Any]], None]


def archive(
    session: SparkSession,
    order: ArchiveOrder,
    pace: Pace = Pace(),
    *,
    stop: Callable[[], bool] = lambda: False,
    report: OnRecord = lambda record: None,
) -> dict[str, Any]:
    """Archive the messages of a destination that are not archived yet, by destination and day (UTC, publish time).

    ``stop`` is called twice a second; once it returns True, archiving ends after the current micro-batch. ``report``
    receives the record of each micro-batch, with ``entries_behind`` None for one that is repeated after a crash, and
    of each outage. The summary is about this call. If a later micro-batch failed, or ``stop`` ended archiving before
    the end of the stored messages, it has ``stopped``, the reason; the same call continues. An error adds nothing to
    the archive, and a KeyboardInterrupt drops only the current micro-batch.
    """
    if pace.interval is not None and order.until is not None:
        raise ConfigurationError("a continuous archive has no end: omit until, or archive only stored messages")
    began, stopped = time.monotonic(), None
    with own_errors():
        run = _Run(_start(session, order, pace), report)
        try:
            if not run.follow(stop) and pace.interval is None:
                stopped = "interrupted"
        except Exception as error:
            if not run.batches:
                raise
            stopped = str(find_cause(str(error)) or reason_of(error))
        finally:
            run.query.stop()
    return {
        "job": "archive",
        "destination": order.destination,
        "folder": order.folder,
        "rows": run.rows,
        "undecodable": run.undecodable,
        "lost": [] if order.fail_on_data_loss else _report_losses(order.folder),
        "partitions": [{"topic": topic, "place": str(place)} for topic, place in sorted(run.ends.items())],
        "seconds": round(time.monotonic() - began, 3),
        **({} if order.consume is None else {"subscription": order.consume, "unmoved": run.unmoved}),
        **({} if stopped is None else {"stopped": stopped}),
    }


def _start(session: SparkSession, order: ArchiveOrder, pace: Pace) -> StreamingQuery:
    options = order.reader_options()
    if not order.fail_on_data_loss:
        options["dataLossFolder"] = f"{order.folder}/{_UNREPORTED}"
    if pace.entries is not None:
        options["maxEntriesPerTrigger"] = str(pace.entries)
        if pace.interval is not None:
            options |= {"minEntriesPerTrigger": str(pace.entries), "maxTriggerDelay": f"{pace.interval} s"}
    frame = session.readStream.format("jms").options(**options).load()
    _check_folder(session, order)
    counts = f.count(f.lit(1)).alias("rows"), f.count("decode_error").alias("undecodable")
    writer = frame.withColumn("date", f.expr(_DAY)).observe(_COUNTS, *counts).writeStream.format("parquet")
    writer = writer.partitionBy("destination", "date").option("checkpointLocation", located(order.folder, CHECKPOINT))
    if pace.interval is None:
        writer = writer.trigger(availableNow=True)
    before = str(session.conf.get(_TIMES))
    session.conf.set(_TIMES, "TIMESTAMP_MICROS")
    try:
        return writer.start(located(order.folder))
    finally:
        session.conf.set(_TIMES, before)


def _check_folder(session: SparkSession, order: ArchiveOrder) -> None:
    """Check that the folder has this archive, or nothing; write the filters of a new one."""
    system, path = hadoop_path(session, located(order.folder))
    names = {each.getPath().getName() for each in system.listStatus(path)} if system.exists(path) else set()
    begun = read_text(session, located(order.folder, _ORDER)) if CHECKPOINT in names else None
    wanted = {name: getattr(order, name) for name in _FILTERS}
    if begun is None:
        if names - {f".{_ORDER}.crc", _ORDER}:
            raise ConfigurationError(
                f"{order.folder} has files, but no archive that this version can continue: name another folder; "
                "Spark reads the Parquet files of an older archive as they are"
            )
        _, file = hadoop_path(session, located(order.folder, _ORDER))
        stream = system.create(file, True)
        stream.write(json.dumps(wanted).encode())
        stream.close()
        return
    for name, value in json.loads(begun).items():
        if value != wanted[name]:
            raise ConfigurationError(
                f"the archive was begun with {name} {_shown(value)}, not {_shown(wanted[name])}: resume with the same, "
                "or begin another archive in another folder"
            )


def _shown(value: object) -> str:
    return "none" if value is None else f"{value!r:.200}"


@attrs.define(eq=False)
class _Run:
    """One call of ``archive``: counts of the micro-batches that its query has committed."""

    query: StreamingQuery
    report: OnRecord
    batches: int = 0
    rows: int = 0
    undecodable: int = 0
    ends: dict[str, Place] = attrs.field(factory=dict)
    unmoved: list[str] = attrs.field(factory=list)
    _seen: str = ""  # time of the newest progress
    _is_out: bool = False

    def follow(self, stop: Callable[[], bool]) -> bool:
        """Count micro-batches until the query ends; return False if ``stop`` ended that."""
        last: int | None = None  # batches when the stop was requested
        while True:
            try:
                is_ended = bool(self.query.awaitTermination(_POLL))  # type: ignore[arg-type] # also takes a float
            finally:
                self._read()
            if is_ended:
                return True
            if stop():
                last = self.batches if last is None else last
                if self.batches > last or self.query.status["message"] != _AT_WORK:
                    return False

    def _read(self) -> None:
        for progress in self.query.recentProgress:
            if progress.timestamp > self._seen:
                self._seen = progress.timestamp
                self._add(progress)

    def _add(self, progress: StreamingQueryProgress) -> None:
        shown = shown_offset(progress.sources[0])
        self.unmoved = shown.get("unmoved", [])
        if (reason := shown.get("unreachable")) is not None or self._is_out:
            if self._is_out is not (reason is not None):
                self.report({"job": "archive", "unreachable": None if reason is None else reason["reason"]})
            self._is_out = reason is not None
        if (counts := progress.observedMetrics.get(_COUNTS)) is None:
            return
        seconds = max(progress.durationMs["triggerExecution"], 1) / 1000
        self.batches += 1
        self.rows += counts.rows
        self.undecodable += counts.undecodable
        self.ends |= from_json(json.loads(progress.sources[0].endOffset))
        self.report({
            "job": "archive", "run": self.batches, "rows": counts.rows, "total": self.rows, "seconds": seconds,
            "rows_per_second": round(counts.rows / seconds, 1), "entries_behind": shown.get("all", {}).get("entries"),
        })  # fmt: skip


def pace_text(record: Mapping[str, Any]) -> str:
    if "unreachable" in record:
        reason = record["unreachable"]
        return "the broker answers again" if reason is None else f"waiting for the broker: {reason}"
    left = "" if record["entries_behind"] is None else f", {record['entries_behind']} entries behind"
    return f"{record['run']} runs, {record['total']} messages, {record['rows_per_second']}/s{left}"


def _report_losses(folder: str) -> list[str]:
    """Return the losses that no summary has reported yet, and store them with the others."""
    lost = read_losses(f"{folder}/{_UNREPORTED}")
    for sentence in lost:
        write_loss(f"{folder}/{_LOSSES}", sentence)
    remove_losses(f"{folder}/{_UNREPORTED}")
    return list(lost)


def describe_archive(order: ArchiveOrder) -> dict[str, Any]:
    """Describe what ``archive`` would read, and raise as it does. Needs no session and writes nothing."""
    options = parse_options(attrs.evolve(order, consume=None).reader_options(), Use.READ_STREAM)
    ranges = call_broker(options, partial(_plan, options=options, folder=order.folder))
    partitions = [
        {
            "topic": topic, "start": str(parts[0].start), "end": str(parts[-1].end),
            "entries": sum(each.entries() for each in parts),
            "bytes": sum(each.entries() * each.size for each in parts),
        }
        for topic, found in itertools.groupby(ranges, lambda each: each.topic) for parts in [list(found)]
    ]  # fmt: skip
    return {
        "job": "archive",
        "dry_run": True,
        "destination": order.destination,
        "folder": order.folder,
        "entries": sum(each["entries"] for each in partitions),
        "bytes": sum(each["bytes"] for each in partitions),
        "partitions": partitions,
    }


async def _plan(
    transport: Transport, configuration: Configuration, *, options: SourceOptions, folder: str
) -> list[Range]:
    planner = StreamPlanner(transport, source_of(options, configuration), options)
    places = read_places(folder)
    await planner.freeze()
    start = to_json(places) if places else await planner.initial()
    return await planner.ranges(start, await planner.latest(start, limited=False))


def read_places(folder: str) -> dict[str, Place]:
    """Return the places up to which an archive's micro-batches are committed; empty before the first."""
    try:
        system, path = folder_at(f"{folder}/{CHECKPOINT}")
        done = [int(name) for name in names_in(system, f"{path}/commits") if name.isdigit()]
        if not done:
            return {}
        offsets = read_bytes(system, f"{path}/offsets/{max(done)}").decode()
        return from_json(json.loads(offsets.splitlines()[-1]))  # after Spark's own lines, one for each source
    except (OSError, ValueError, LookupError) as error:
        raise ConfigurationError(f"the checkpoint in {folder} can't be read: {error}") from error


def read_archive(session: SparkSession, folder: str) -> DataFrame:
    """Return the rows of an archive, even one that another version of jmsaio wrote; the folder must exist."""
    schema = f"{ddl(columns_of(Body.RAW))}, date DATE"
    try:
        return session.read.schema(schema).parquet(located(folder))
    except AnalysisException as error:
        raise ConfigurationError(f"{folder} is no archive: {reason_of(error)}") from error
