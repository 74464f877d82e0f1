"""Rows that read in Spark: the whole backlog of a queue, or batches that are ready."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import DataFrame

from benchmarks.meter import Metrics
from benchmarks.spark.messages import PERCENT, SOURCE, queues_of, work_of
from benchmarks.spark.session import metered, ready, run_query, the_session
from benchmarks.workload import Task
from jmsaio.spark.jobs import archive as archiving


def to_noop(frame: DataFrame) -> None:
    """Take every row, and do nothing with it."""
    frame.write.format("noop").mode("overwrite").save()


def _frame(task: Task, source: str = "jms", **options: str) -> DataFrame:
    given = {"url": task.url, "queue": task.extra[SOURCE]} | options
    return the_session().read.format(source).options(**given).load()


def _read(task: Task, source: str = "jms", **options: str) -> Metrics:
    return run_query(_frame(task, source, **options), work_of(task).messages, to_noop)


def one_task(task: Task) -> Metrics:
    """All columns, one task."""
    return _read(task)


def two_tasks(task: Task) -> Metrics:
    """Two tasks."""
    return _read(task, minPartitions="2")


def four_splits(task: Task) -> Metrics:
    """Four tasks, two at a time."""
    return _read(task, minPartitions="4")


def three_columns(task: Task) -> Metrics:
    """Three columns, one task."""
    return _read(task, columns="position,publish_time,text")


def three_raw(task: Task) -> Metrics:
    """Three columns, one task, for which no property of a message is read."""
    return _read(task, columns="position,publish_time,payload", body="raw")


def tuples(task: Task) -> Metrics:
    """All columns, one task, which gives Spark tuples."""
    return _read(task, "jms-tuples")


def selector(task: Task) -> Metrics:
    """Return a selector that passes every hundredth message; all count."""
    frame = _frame(task, selector=f"{PERCENT} = 7")
    work = work_of(task)
    return run_query(frame, work.messages, to_noop, work.messages // 100)


def ready_one(task: Task) -> Metrics:
    """Ready batches, one task."""
    return run_query(ready(task, "read"), work_of(task).messages, to_noop)


def ready_two(task: Task) -> Metrics:
    """Ready batches, two tasks."""
    return run_query(ready(task, "read", tasks=2), work_of(task).messages, to_noop)


def many(task: Task, **options: str) -> Metrics:
    """Return a query over many topics or partitions."""
    given = {"queue": f"multi:{','.join(queues_of(task))}", **options}
    metrics = _read(task, **given)
    return metrics | {"query_ms": metrics["wall_us"] * work_of(task).messages / 1000}


def many_since(task: Task) -> Metrics:
    """Return the same query from a publish time on, before that of all messages."""
    return many(task, startingTime="1000000000000")


def archive(task: Task) -> Metrics:
    """Return the job that archives to Parquet, two tasks.

    The session has compiled what reads rows; here it first compiles what writes them, which takes the JVM two thirds of
    the first 100,000 rows' time: 44 us of CPU a row, and 15 from the third query on.
    """
    work = work_of(task)
    with tempfile.TemporaryDirectory(prefix="jmsaio-bench-") as folder:
        for number in range(2):
            ready(task, "read", tasks=2).write.partitionBy("destination").parquet(f"{folder}/warm-{number}")
    with tempfile.TemporaryDirectory(prefix="jmsaio-bench-") as folder:
        connection = {"url": task.url, "minPartitions": "2"}
        order = archiving.ArchiveOrder(
            connection=connection, destination=f"queue://{task.extra[SOURCE]}", folder=folder
        )
        with metered() as costs:
            summary = archiving.archive(the_session(), order, archiving.Pace(entries=None))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
    if summary["rows"] != work.messages:
        raise RuntimeError(f"{summary['rows']} rows were archived")
    return costs.metrics(work.messages) | {"bytes_row": size / work.messages}
