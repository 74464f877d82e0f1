"""The rows of Spark, and those that they are compared with."""

from __future__ import annotations

import importlib.util
import itertools
import time

import attrs

from benchmarks.scenario import Block, Scenario, with_query
from benchmarks.spark.messages import CHARACTERS, PARTITIONS, SOURCE, TOPICS

_HERE = "benchmarks.spark"
_LARGE = "4096"


def spark_scenarios(raw_url: str, url: str) -> list[Scenario]:
    """Return the rows of one run.

    Args:
        raw_url: the broker, as pulsar-client takes it.
        url: the same as jmsaio takes it.
    """
    stamp = time.time_ns()
    rows = [
        Scenario("spark.loop-bare", "bare Reader loop", Block.SPARK_READ, f"{_HERE}.loops:bare", raw_url),
        Scenario("spark.loop-columns", "Reader loop that builds the columns", Block.SPARK_READ,
                 f"{_HERE}.loops:columns", raw_url),
        Scenario("spark.read-one", "Spark, one task", Block.SPARK_READ, f"{_HERE}.reading:one_task", url,
                 references=("spark.loop-columns", "spark.tuples")),
        Scenario("spark.read-wire", "Spark, one task, on wire", Block.SPARK_READ, f"{_HERE}.reading:one_task",
                 with_query(url, "transport=wire"), references=("spark.read-one",)),
        Scenario("spark.read-two", "Spark, two tasks", Block.SPARK_READ, f"{_HERE}.reading:two_tasks", url,
                 references=("spark.loop-columns", "spark.loop-bare", "spark.read-one")),
        Scenario("spark.read-four", "Spark, four splits", Block.SPARK_READ, f"{_HERE}.reading:four_splits", url,
                 references=("spark.read-one",)),
        Scenario("spark.three", "Spark, three columns", Block.SPARK_READ, f"{_HERE}.reading:three_columns", url,
                 references=("spark.read-one",)),
        Scenario("spark.three-raw", "Spark, three columns without properties", Block.SPARK_READ,
                 f"{_HERE}.reading:three_raw", url, references=("spark.read-one", "spark.loop-bare")),
        Scenario("spark.selector", "Spark, a selector passes 1 %", Block.SPARK_READ, f"{_HERE}.reading:selector", url,
                 references=("spark.read-one",)),
        Scenario("spark.tuples", "Spark, tuples in place of Arrow", Block.SPARK_READ, f"{_HERE}.reading:tuples", url),
        Scenario("spark.archive", "archive to Parquet, two tasks", Block.SPARK_READ, f"{_HERE}.reading:archive", url,
                 references=("spark.read-two",)),
        Scenario("spark.loop-4k", "Reader loop that builds the columns, 4 KB", Block.SPARK_READ,
                 f"{_HERE}.loops:columns", raw_url, extra={CHARACTERS: _LARGE}),
        Scenario("spark.read-4k", "Spark, one task, 4 KB", Block.SPARK_READ, f"{_HERE}.reading:one_task", url,
                 extra={CHARACTERS: _LARGE}, references=("spark.loop-4k",)),
        Scenario("spark.ready-one", "Spark, ready batches, one task", Block.SPARK_READ, f"{_HERE}.reading:ready_one",
                 url),
        Scenario("spark.ready-two", "Spark, ready batches, two tasks", Block.SPARK_READ, f"{_HERE}.reading:ready_two",
                 url, references=("spark.ready-one",)),
        Scenario("spark.loop-touch", "pulsar-client's part: each part of a message", Block.SPARK_PARTS,
                 f"{_HERE}.loops:touch", raw_url),
        Scenario("spark.build", "records to columns", Block.SPARK_PARTS, f"{_HERE}.loops:build", raw_url,
                 references=("spark.loop-touch",)),
        *_spread(url),
        Scenario("spark.batch-ready", "ready batches", Block.SPARK_STREAM, f"{_HERE}.streaming:ready", url),
        Scenario("spark.batch", "from the broker", Block.SPARK_STREAM, f"{_HERE}.streaming:broker", url,
                 references=("spark.batch-ready",)),
        Scenario("spark.send-raw", "raw send_async, Python callback", Block.SPARK_WRITE, f"{_HERE}.loops:send_raw",
                 raw_url),
        Scenario("spark.send-jmsaio", "jmsaio send_async", Block.SPARK_WRITE, f"{_HERE}.loops:send_jmsaio", url),
        Scenario("spark.write", "Spark, one task", Block.SPARK_WRITE, f"{_HERE}.writing:write", url,
                 references=("spark.send-jmsaio", "spark.send-raw")),
        Scenario("spark.write-dedup", "Spark, one task, dedup", Block.SPARK_WRITE, f"{_HERE}.writing:dedup", url,
                 references=("spark.write",)),
    ]  # fmt: skip
    return [attrs.evolve(row, extra=row.extra | _source(row, stamp)) for row in rows]


def _spread(url: str) -> list[Scenario]:
    """Return the rows of many topics or partitions, compared with one topic."""
    one, hundred = ("spark.topics-1",), ("spark.topics-1", "spark.topics-100")
    rows = [
        ("spark.topics-1", "one topic", "many", {TOPICS: "1"}, ()),
        ("spark.topics-10", "10 topics", "many", {TOPICS: "10"}, one),
        ("spark.topics-100", "100 topics", "many", {TOPICS: "100"}, one),
        ("spark.topics-since", "100 topics, from a publish time", "many_since", {TOPICS: "100"}, hundred),
        ("spark.partitions-10", "10 partitions", "many", {PARTITIONS: "10"}, one),
        ("spark.partitions-100", "100 partitions", "many", {PARTITIONS: "100"}, one),
    ]
    found = [
        Scenario(name, title, Block.SPARK_TOPICS, f"{_HERE}.reading:{target}", url, extra=extra, references=references)
        for name, title, target, extra, references in rows
    ]
    batch = Scenario("spark.batch-topics", "100 topics", Block.SPARK_STREAM, f"{_HERE}.streaming:broker", url,
                     extra={TOPICS: "100"}, references=("spark.batch",))  # fmt: skip
    return [*found, batch]


def _source(row: Scenario, stamp: int) -> dict[str, str]:
    """Return the queue that a row reads: one for each length of texts."""
    if row.group is Block.SPARK_WRITE or "ready" in row.name:
        return {}
    kind = "-".join(itertools.chain(*sorted(row.extra.items()))) or "usual"
    return {SOURCE: f"bench-spark-{kind}-{stamp}"}


def reason_without() -> str | None:
    """Why the rows of Spark can't be measured here; None where they can."""
    missing = [name for name in ("pyspark", "pyarrow") if importlib.util.find_spec(name) is None]
    return f"the rows of Spark need {' and '.join(missing)}: pip install 'jmsaio[spark]'" if missing else None
