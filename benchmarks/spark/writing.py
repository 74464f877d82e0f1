"""Rows that write from Spark: ready batches to a queue, one task."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import httpx
from pyspark.sql import DataFrame

from benchmarks.meter import Metrics
from benchmarks.spark.messages import work_of
from benchmarks.spark.session import ready, run_query
from benchmarks.workload import Task


def write(task: Task) -> Metrics:
    """In batches, as every write without ``dedup``."""
    return run_query(ready(task, "write"), work_of(task).messages, lambda frame: _save(frame, task))


def dedup(task: Task) -> Metrics:
    """With ``dedup=columns`` on a topic that deduplicates, which sends without batches."""
    _deduplicate(task)
    return run_query(ready(task, "dedup"), work_of(task).messages, lambda frame: _save(frame, task, dedup="columns"))


def _save(frame: DataFrame, task: Task, **options: str) -> None:
    given = {"url": task.url, "queue": task.topic} | options
    frame.write.format("jms").options(**given).mode("append").save()


def _deduplicate(task: Task) -> None:
    """Make the topic of the row, and let the broker deduplicate it."""
    web = dict(parse_qsl(urlsplit(task.url).query))["webServiceUrl"]
    with httpx.Client(base_url=f"{web}/admin/v2/persistent/public/default/{task.topic}", timeout=30) as topic:
        topic.put("").raise_for_status()
        topic.post("/deduplicationEnabled", json=True).raise_for_status()
        while topic.get("/deduplicationEnabled", params={"applied": True}).json() is not True:
            pass
