"""Rows with an identity: repeated tasks and batches store each once, and another layout is refused."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator

import httpx
import pytest
from hypothesis import given, strategies as st
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col, struct

from jmsaio.errors import IllegalArgumentError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.rules.routing import make_route
from jmsaio.spark import with_dedup
from jmsaio.spark.model.dedup import AscendingCheck, check_tasks, choose_partition
from tests.spark.use import deduplicate, read, send
from tests.support.broker import TestBroker

Name = Callable[[str], str]
COUNT = 200
#: So long that Spark does not keep them all in its buffers.
TEXTS = [f"{number:03}" + "x" * 2000 for number in range(COUNT)]


def pack(ledger: int, entry: int, batch: int) -> int:
    """The sequence id of a position."""
    return ledger << 32 | entry << 12 | max(batch, 0)


positions = st.tuples(
    st.integers(0, (1 << 31) - 1), st.integers(0, (1 << 20) - 1), st.integers(0, (1 << 12) - 1)
)  # fmt: skip


@given(positions, positions)
def test_numbers_sort_as_positions_do(one: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    assert (pack(*one) < pack(*other)) == (one < other)
    assert 0 <= pack(*one) < 1 << 63


def deduplicated(broker: TestBroker, queue: str) -> str:
    """A queue whose topic drops what it has already."""
    url = f"{broker.web_service_url}/admin/v2/persistent/public/default/{queue}"
    httpx.put(url, content="").raise_for_status()
    deduplicate(broker, queue)
    return queue


def write(frame: DataFrame, broker: TestBroker, queue: str) -> None:
    frame.write.format("jms").options(url=broker.url, queue=queue, dedup="columns").mode("append").save()


def stored(spark: SparkSession, broker: TestBroker, queue: str) -> list[str]:
    return sorted(row.text for row in read(spark, broker, queue=queue, columns="text").collect())


def die_in_the_middle(rows: Iterable[Row], stats: str) -> Iterator[Row]:
    """Pass rows on, and be killed at the first attempt once the topic has got some of them."""
    context = TaskContext.get()
    assert context is not None
    for number, row in enumerate(rows):
        if number == COUNT // 2 and not context.attemptNumber():
            end = time.monotonic() + 60
            while not httpx.get(stats).json()["msgInCounter"] and time.monotonic() < end:
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGKILL)
        yield row


@pytest.fixture
def source(spark: SparkSession, pulsar_broker: TestBroker, name: Name) -> DataFrame:
    queue = name("dedup-source")
    send(pulsar_broker.url, queue, TEXTS)
    return read(spark, pulsar_broker, queue=queue, columns="text, topic, position", minPartitions=3)


def test_a_task_that_dies_and_a_replayed_batch_leave_each_row_once(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name, source: DataFrame
) -> None:
    queue = deduplicated(pulsar_broker, name("dedup-target"))
    stats = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{queue}/stats"
    rows = with_dedup(source, "copy")
    dying = rows.rdd.mapPartitions(lambda part: die_in_the_middle(part, stats))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 10)
    try:
        write(spark.createDataFrame(dying, rows.schema), pulsar_broker, queue)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    write(with_dedup(source.repartition(5), "copy"), pulsar_broker, queue)
    assert stored(spark, pulsar_broker, queue) == TEXTS


def test_rows_that_were_moved_to_other_tasks_are_refused_and_not_lost(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name, source: DataFrame
) -> None:
    queue = deduplicated(pulsar_broker, name("dedup-moved"))
    rows = with_dedup(source, "copy")
    for moved in (rows.repartition(3), rows.filter("text not like '100%'")):
        with pytest.raises(PySparkException, match="moved or left out after with_dedup"):
            write(moved, pulsar_broker, queue)
    write(rows, pulsar_broker, queue)
    assert stored(spark, pulsar_broker, queue) == TEXTS


def test_the_order_is_checked_before_a_row_leaves(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name, source: DataFrame
) -> None:
    queue = deduplicated(pulsar_broker, name("dedup-order"))
    rows = with_dedup(source, "copy").drop("dedup_previous").coalesce(1).sortWithinPartitions(col("text").desc())
    with pytest.raises(PySparkException, match="must lie above"):
        write(rows, pulsar_broker, queue)
    assert stored(spark, pulsar_broker, queue) in ([], TEXTS[-1:])


def test_numbers_are_those_of_positions_and_follow_each_other(spark: SparkSession) -> None:
    places = [(7, 0, -1), (7, 1, 0), (7, 1, 1), ((1 << 31) - 1, (1 << 20) - 1, (1 << 12) - 1)]
    frame = spark.createDataFrame(
        [("t", place) for place in reversed(places)],
        "topic STRING, position STRUCT<ledger: BIGINT, entry: BIGINT, batch: INT>",
    )
    rows = with_dedup(frame, "job").orderBy("dedup_sequence").collect()
    numbers = [pack(*place) for place in places]
    assert [row.dedup_sequence for row in rows] == numbers
    assert [row.dedup_previous for row in rows] == [None, *numbers[:-1]]
    assert {row.dedup_producer for row in rows} == {"job:t"}


@pytest.mark.parametrize("position", [(1 << 31, 0, 0), (1, 1 << 20, 0), (1, 1, 1 << 12), None])
def test_a_position_that_makes_no_number_fails_the_query(
    spark: SparkSession, position: tuple[int, int, int] | None
) -> None:
    frame = spark.createDataFrame(
        [("t", position)], "topic STRING, position STRUCT<ledger: BIGINT, entry: BIGINT, batch: INT>"
    )
    with pytest.raises(PySparkException, match="makes no dedup_sequence"):
        with_dedup(frame, "job").collect()


def test_what_has_no_identity_is_refused_at_once(spark: SparkSession) -> None:
    frame = spark.range(1)
    with pytest.raises(IllegalArgumentError, match="topic and position is missing"):
        with_dedup(frame, "job")
    with pytest.raises(IllegalArgumentError, match="job is empty"):
        with_dedup(frame, "")
    with pytest.raises(IllegalArgumentError, match="foreachBatch"):
        with_dedup(spark.readStream.format("rate").load().select(struct("value").alias("position")), "job")


def test_rows_of_a_producer_must_ascend() -> None:
    check = AscendingCheck()
    for producer, sequence, row in (("a", 5, 0), ("b", 1, 1), ("a", 6, 2), ("b", 1 << 62, 3)):
        check.check(producer, sequence, None, row)
    for sequence in (6, 5, 0):
        words = f"row 4: dedup_sequence {sequence} of producer 'a' must lie above 6 of row 2"
        with pytest.raises(IllegalArgumentError, match=words):
            check.check("a", sequence, None, 4)
    check.check("a", 7, None, 5)


def test_a_row_must_follow_the_one_that_it_names() -> None:
    check = AscendingCheck(True)
    check.check("a", 5, None, 0)
    for producer, previous, here in (("a", 4, "has sent 5 last"), ("a", None, "has sent 5 last"), ("b", 5, "none")):
        with pytest.raises(IllegalArgumentError, match=f"producer '{producer}'.*{here}"):
            check.check(producer, 6, previous, 1)
    check.check("a", 6, 5, 1)
    check.check("b", 6, None, 1)


def test_a_producer_with_rows_in_two_tasks_is_refused() -> None:
    check_tasks([["a", "b"], ["c"], [], ["d", "d"]])
    with pytest.raises(IllegalArgumentError, match="rows of producer 'b' came from two tasks"):
        check_tasks([["a", "b"], ["c", "b"]])


def test_a_row_names_its_partition() -> None:
    assert choose_partition(2, "k", 5, 3) == 2
    for wrong in (3, -1):
        with pytest.raises(IllegalArgumentError, match=f"there is no partition {wrong}: the topic has 3"):
            choose_partition(wrong, "k", 5, 3)


@given(st.text(), st.integers(1, 50))
def test_the_partition_of_a_key_is_that_of_any_other_sender(key: str, partitions: int) -> None:
    record = OutgoingRecord(None, {}, key)
    assert choose_partition(None, key, 5, partitions) == make_route(None, False, float)(record, partitions)


def test_a_row_without_partition_and_key_goes_by_its_number() -> None:
    assert [choose_partition(None, None, number, 3) for number in range(5)] == [0, 1, 2, 0, 1]
    assert choose_partition(None, None, None, 3) is None
