"""A batch read, called as Spark calls it."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StringType, StructField, StructType

from jmsaio.errors import NotFoundError
from jmsaio.spark.batch import BatchReader
from jmsaio.spark.options.parse import Use, parse_options
from tests.spark.use import send
from tests.support.broker import TestBroker

SCHEMA = StructType([StructField("TEXT", StringType()), StructField("JMSMessageID", StringType())])
Name = Callable[[str], str]


def reader(broker: TestBroker, queue: str, **options: str) -> BatchReader:
    given = {"url": broker.url, "queue": queue, "columns": "text, JMSMessageID", **options}
    return BatchReader(parse_options(given, Use.READ), SCHEMA)


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
