"""Rows of streams: how long a micro-batch takes."""

from __future__ import annotations

import statistics
import tempfile

from pyspark.sql import DataFrame

from benchmarks.meter import Metrics
from benchmarks.spark.messages import ENTRY, SOURCE, is_spread, queues_of, work_of
from benchmarks.spark.session import metered, ready_options, the_session
from benchmarks.workload import Task


def broker(task: Task) -> Metrics:
    """Micro-batches of a queue, one task each, or of many."""
    entries, queue = work_of(task).spark_batch // ENTRY, task.extra[SOURCE]
    if is_spread(task):
        entries, queue = work_of(task).spark_batch, f"multi:{','.join(queues_of(task))}"
    options = {"url": task.url, "queue": queue, "startingOffsets": "earliest"}
    given = options | {"maxEntriesPerTrigger": str(entries)}
    return _run(the_session().readStream.format("jms").options(**given).load(), task)


def ready(task: Task) -> Metrics:
    """Micro-batches of ready batches, one task each."""
    given = ready_options(task, "read") | {"batch": str(task.workload.spark_batch)}
    return _run(the_session().readStream.format("ready").options(**given).load(), task)


def _run(frame: DataFrame, task: Task) -> Metrics:
    """Return the median of all micro-batches but the first, in which the query starts."""
    with tempfile.TemporaryDirectory(prefix="jmsaio-bench-") as folder, metered() as costs:
        writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    batches = [progress for progress in query.recentProgress if progress.numInputRows]
    work = work_of(task)
    rows = sum(progress.numInputRows for progress in batches)
    if rows != work.messages or len(batches) != -(-rows // work.spark_batch):
        raise RuntimeError(f"{rows} rows came in {len(batches)} micro-batches")
    durations = [progress.durationMs["triggerExecution"] for progress in batches[1:] or batches]
    return costs.metrics(rows) | {"batch_ms": float(statistics.median(durations))}
