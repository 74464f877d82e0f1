"""Batches and tasks, called as Spark calls them; streams in Spark: checkpoints, restarts, subscription, progress."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadMinRows
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

import jmsaio
import jmsaio.spark
from jmsaio.errors import AdminError, NotFoundError, ObjectClosedError
from jmsaio.spark import worker as workers
from jmsaio.spark.model.place import Place
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.readers import BatchReader, StreamReader, read_ranges
from jmsaio.transport.pulsar.admin import RestAdmin
from tests.spark.use import backlog, send, send_values
from tests.support.broker import TestBroker

Name = Callable[[str], str]
SCHEMA = pa.schema([("text", pa.string()), ("destination", pa.string())])


def options(broker: TestBroker, queue: str, **more: str) -> SourceOptions:
    given = {"url": broker.url, "queue": queue, "columns": "text, destination", **more}
    return parse_options(given, Use.READ)


def consumers(broker: TestBroker, queue: str) -> int:
    stats = httpx.get(f"{broker.web_service_url}/admin/v2/persistent/public/default/{queue}/stats").json()
    return sum(len(one["consumers"]) for one in stats["subscriptions"].values())


def ledger(broker: TestBroker, queue: str) -> int:
    url = f"{broker.web_service_url}/admin/v2/persistent/public/default/{queue}/internalStats"
    return int(httpx.get(url).json()["ledgers"][0]["ledgerId"])


def span(broker: TestBroker, queue: str, entries: int) -> Range:
    number = ledger(broker, queue)
    topic = f"persistent://public/default/{queue}"
    return Range(topic, Place(number, 0), Place(number, entries), ((number, entries),))


def test_a_consumer_that_takes_no_more_closes_the_reader(pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("closed")
    send(pulsar_broker.url, queue, [str(number) for number in range(10)])
    batches = read_ranges(options(pulsar_broker, queue, batchRows="2"), [span(pulsar_broker, queue, 10)], SCHEMA)
    first = next(batches)
    assert first.to_pylist() == [{"text": str(number), "destination": f"queue://{queue}"} for number in range(2)]
    assert consumers(pulsar_broker, queue) == 1
    batches.close()
    assert consumers(pulsar_broker, queue) == 0


def test_tasks_of_a_process_share_a_client_until_one_fails_at_the_broker(pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("shared")
    send(pulsar_broker.url, queue, ["one", "two"])
    chosen, whole = options(pulsar_broker, queue, readTimeout="1s"), span(pulsar_broker, queue, 2)
    key = workers._key(chosen)
    assert [batch.num_rows for batch in read_ranges(chosen, [whole], SCHEMA)] == [2]
    kept = workers._workers
    first = kept[key]
    assert [batch.num_rows for batch in read_ranges(chosen, [whole], SCHEMA)] == [2]
    assert kept[key] is first
    first.run(first.transport.aclose(5))
    with pytest.raises(ObjectClosedError):
        list(read_ranges(chosen, [whole], SCHEMA))
    assert [batch.num_rows for batch in read_ranges(chosen, [whole], SCHEMA)] == [2]
    assert kept[key] is not first
    workers.forget(chosen)


def test_a_task_waits_for_the_schema_while_the_broker_restarts(
    pulsar_broker: TestBroker, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, failures, give = name("waits"), [AdminError("connection refused")], RestAdmin.schema
    send_values(pulsar_broker.url, queue, (jmsaio.Schema("JSON", '"int"'), [5]))

    async def schema(self: RestAdmin, topic: str, version: int) -> jmsaio.Schema:
        if failures:
            raise failures.pop()
        return await give(self, topic, version)

    monkeypatch.setattr(RestAdmin, "schema", schema)
    chosen = options(pulsar_broker, queue, schema="auto")
    (batch,) = read_ranges(chosen, [span(pulsar_broker, queue, 1)], SCHEMA.append(pa.field("value", pa.string())))
    assert batch["value"].to_pylist() == ["[5]"] and failures == []
    workers.forget(chosen)


COLUMNS = StructType([StructField("TEXT", StringType()), StructField("JMSMessageID", StringType())])


def reader(broker: TestBroker, queue: str, **options: str) -> BatchReader:
    given = {"url": broker.url, "queue": queue, "columns": "text, JMSMessageID", **options}
    return BatchReader(parse_options(given, Use.READ), COLUMNS)


def test_each_partition_is_read_by_a_task_that_only_got_its_pickle(pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("batch")
    ids = send(pulsar_broker.url, queue, [str(number) for number in range(10)])
    planning = reader(pulsar_broker, queue, maxEntriesPerPartition="4")
    partitions = planning.partitions()
    assert [[each.entries() for each in one.value] for one in partitions] == [[3], [3], [4]]
    task: BatchReader = pickle.loads(pickle.dumps(planning))
    batches = [batch for one in partitions for batch in task.read(pickle.loads(pickle.dumps(one)))]
    assert all(batch.schema.names == ["TEXT", "JMSMessageID"] for batch in batches)
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert rows == list(zip(map(str, range(10)), ids, strict=True))
    assert max(len(pickle.dumps(one)) for one in partitions) < 1000


def test_the_task_that_spark_starts_for_nothing_reads_nothing(pulsar_broker: TestBroker) -> None:
    assert list(reader(pulsar_broker, "any").read(InputPartition(None))) == []


def test_a_topic_that_does_not_exist_is_no_empty_one(pulsar_broker: TestBroker, name: Name) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        reader(pulsar_broker, name("none")).partitions()


def test_small_topics_share_a_task_unless_more_tasks_are_wanted(pulsar_broker: TestBroker, name: Name) -> None:
    queues = [name(f"small{number}") for number in range(6)]
    for queue in queues:
        send(pulsar_broker.url, queue, [queue, "more"])
    many = f"multi:{','.join(queues)}"
    planning = reader(pulsar_broker, many)
    [task] = planning.partitions()
    assert len(pickle.dumps(task)) < 6 * 1000
    found = [row["TEXT"] for batch in planning.read(task) for row in batch.to_pylist()]
    assert found == [text for queue in queues for text in (queue, "more")]
    assert len(reader(pulsar_broker, many, minPartitions="3").partitions()) == 3
    assert len(reader(pulsar_broker, many, maxEntriesPerPartition="4").partitions()) == 3
    assert len(reader(pulsar_broker, many, maxEntriesPerPartition="1").partitions()) == 12


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
    shown = json.loads(query.recentProgress[0]["sources"][0]["latestOffset"])
    assert shown["all"] == {"entries": 2, "bytes": lags[0][topic].bytes}
    assert (shown["source"], shown["losses"]) == (f"queue://{queue} at {pulsar_broker.service_url}", 0)
    assert jmsaio.spark.lag(json.loads('{"sources": []}')) == {}


def test_a_progress_that_the_first_release_reported_has_a_backlog() -> None:
    behind = {"entries": 2, "bytes": 90, "oldest": "2026-01-31T12:00:00.000Z"}
    progress = {"sources": [{"latestOffset": {"behind": {"t": behind}, "batch": {}}}]}
    assert jmsaio.spark.lag(progress) == {"t": jmsaio.spark.Behind(2, 90)}


def test_spark_is_told_that_there_is_a_limit() -> None:
    given = {"url": "pulsar://broker:6650", "queue": "q"}
    schema = StructType([StructField("text", StringType())])
    assert StreamReader(parse_options(given, Use.READ_STREAM), schema).getDefaultReadLimit() == ReadMinRows(1)
