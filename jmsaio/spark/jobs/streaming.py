"""Archive a destination by a stream that ends: in small runs, each of which stays when a later one fails."""

from __future__ import annotations

import tempfile
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jmsaio.spark.jobs.archive import Run, open_archive, store_run, summarize
from jmsaio.spark.jobs.extent import ArchiveOrder, ArchivePlan, plan_archive
from jmsaio.spark.jobs.failures import find_cause, own_errors, reason_of
from jmsaio.spark.jobs.manifest import Manifest


def archive_once(session: SparkSession, order: ArchiveOrder, entries: int = 100_000) -> dict[str, Any]:
    """Archive what the destination stores now, as ``archive_range`` does, but in runs of some entries.

    The manifest says where the next run starts, not a checkpoint of the stream: it is written with the rows that it
    counts, and ``archive_range`` goes on with the same archive.

    Args:
        session: one that knows ``format("jms")``; not of Spark Connect.
        order: what and where.
        entries: of a run at most; a batch of messages is one.

    Returns:
        The summary of all runs. Where a later one failed it has ``stopped``, the reason; the same call goes on.

    Raises:
        As ``archive_range``, where nothing was added.
    """
    began = time.monotonic()
    with open_archive(order) as before:
        plan = plan_archive(order, before)
        runs: list[Run] = []
        stopped = _run(session, order, before, plan, entries, runs) if plan.extents or plan.lost else None
    summary = summarize(order, before, runs, plan.lost, began)
    return summary if stopped is None else {**summary, "stopped": stopped}


def _run(
    session: SparkSession, order: ArchiveOrder, before: Manifest, plan: ArchivePlan, entries: int, runs: list[Run]
) -> str | None:
    """Add runs until all is archived, or one fails; the reason why, where others came before it."""
    failures: list[Exception] = []

    def store(frame: DataFrame, number: int) -> None:
        archived = runs[-1].manifest if runs else before
        try:
            runs.append(store_run(frame, order, archived, ArchivePlan((), () if runs else plan.lost)))
        except Exception as error:  # Spark would only quote it
            failures.append(error)
            raise

    try:
        with own_errors():
            _stream(session, stream_options(order, before, entries), store)
    except Exception as error:
        cause = find_cause(str(failures[0])) or failures[0] if failures else error
        if not runs:
            raise cause from None
        return reason_of(cause)
    return None


def stream_options(order: ArchiveOrder, archived: Manifest, entries: int) -> dict[str, str]:
    """The options of the data source for a stream.

    Args:
        order: what is archived.
        archived: what is there.
        entries: of a batch at most.
    """
    options = order.options(archived)
    options.pop("endingTime", None)  # a stream has no end: later rows are left out where they are stored
    if "startingOffsets" not in options and "startingTime" not in options:
        options["startingOffsets"] = "earliest"
    return {**options, "maxEntriesPerTrigger": str(entries)}


def _stream(session: SparkSession, options: dict[str, str], store: Any) -> None:
    frame = session.readStream.format("jms").options(**options).load()
    with tempfile.TemporaryDirectory(prefix="jmsaio-", ignore_cleanup_errors=True) as folder:
        writer = frame.writeStream.foreachBatch(store).option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
