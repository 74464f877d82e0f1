"""A stream in Spark: checkpoints, restarts, the subscription that follows, progress."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.streaming.datasource import ReadMaxBytes, ReadMaxRows, ReadMinRows
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

import jmsaio.spark
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.session import set_for_now
from jmsaio.spark.stream import StreamReader
from tests.spark.use import backlog, send
from tests.support.broker import TestBroker

Name = Callable[[str], str]


def stream(spark: SparkSession, broker: TestBroker, queue: str, **options: str) -> DataFrame:
    given = {"url": broker.url, "queue": queue, "columns": "text", "startingOffsets": "earliest", **options}
    return spark.readStream.format("jms").options(**given).load()


def run(frame: DataFrame, folder: Path) -> StreamingQuery:
    """Read what there is into files, and go on from there at the next call."""
    writer = frame.writeStream.format("json").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.option("path", str(folder / "files")).trigger(availableNow=True).start()
    assert query.awaitTermination(100)
    return query


def test_a_restarted_stream_goes_on_and_stores_each_message_once(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name, tmp_path: Path
) -> None:
    queue = name("restart")
    for batch in range(2):
        send(pulsar_broker.url, queue, [f"{batch}-{number}" for number in range(10)])
        query = run(stream(spark, pulsar_broker, queue, maxEntriesPerTrigger="4", subscription="follower"), tmp_path)
        rows = [progress["numInputRows"] for progress in query.recentProgress]
        assert [count for count in rows if count] == [4, 4, 2]
        assert backlog(pulsar_broker, queue, "follower") == 0
    texts = [row.text for row in spark.read.schema("text STRING").json(str(tmp_path / "files")).collect()]
    assert sorted(texts) == [f"{batch}-{number}" for batch in range(2) for number in range(10)]


def test_the_progress_tells_what_lies_behind(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name, tmp_path: Path
) -> None:
    queue = name("progress")
    send(pulsar_broker.url, queue, [str(number) for number in range(6)])
    frame = stream(spark, pulsar_broker, queue, maxEntriesPerTrigger="4", columns="text,decode_error")
    counts = F.count("*").alias("rows"), F.sum(F.length("text")).alias("bytes"), F.count("decode_error").alias("errors")
    query = run(frame.observe("read", *counts), tmp_path)
    assert tuple(query.recentProgress[0]["observedMetrics"]["read"]) == (4, 4, 0)
    lags = [jmsaio.spark.lag(progress) for progress in query.recentProgress]
    topic = f"persistent://public/default/{queue}"
    assert [lag[topic].entries for lag in lags if topic in lag][:1] == [2]
    assert lags[-1][topic].entries == 0
    [oldest] = [lag[topic].oldest for lag in lags if topic in lag and lag[topic].entries]
    assert oldest is not None and oldest.startswith("20")
    shown = json.loads(query.recentProgress[0]["sources"][0]["latestOffset"])
    assert shown["batch"]["entries"] == 4 and shown["batch"]["bytes"] > 0
    assert shown["all"] == {"entries": 2, "bytes": lags[0][topic].bytes, "oldest": oldest}
    assert (shown["source"], shown["losses"]) == (f"queue://{queue} at {pulsar_broker.service_url}", 0)
    assert jmsaio.spark.lag(json.loads('{"sources": []}')) == {}


def test_a_stream_with_an_ending_time_is_stopped_at_its_end(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name, tmp_path: Path
) -> None:
    queue = name("ending")
    send(pulsar_broker.url, queue, ["first", "second"])
    time.sleep(0.1)
    ending = str(int(time.time() * 1000))
    time.sleep(0.1)
    send(pulsar_broker.url, queue, ["late"])
    frame = stream(spark, pulsar_broker, queue, endingTime=ending, subscription="follower")
    with set_for_now(spark, {"spark.sql.streaming.noDataProgressEventInterval": "100"}):
        writer = frame.writeStream.format("json").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.option("path", str(tmp_path / "files")).trigger(processingTime="100 milliseconds").start()
        jmsaio.spark.stop_at_end(query, poll=0.1)
    assert not query.isActive
    texts = [row.text for row in spark.read.schema("text STRING").json(str(tmp_path / "files")).collect()]
    assert sorted(texts) == ["first", "second"]
    assert backlog(pulsar_broker, queue, "follower") == 1


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadMinRows(1)),
        ({"maxEntriesPerTrigger": "5", "maxBytesPerTrigger": "7"}, ReadMaxRows(5)),
        ({"maxBytesPerTrigger": "7", "minEntriesPerTrigger": "2"}, ReadMaxBytes(7)),
        ({"minEntriesPerTrigger": "2"}, ReadMinRows(2)),
    ],
)
def test_spark_is_told_that_there_is_a_limit(options: dict[str, str], limit: object) -> None:
    given = {"url": "pulsar://broker:6650", "queue": "q", **options}
    schema = StructType([StructField("text", StringType())])
    assert StreamReader(parse_options(given, Use.READ_STREAM), schema).getDefaultReadLimit() == limit
