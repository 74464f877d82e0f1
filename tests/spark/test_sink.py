"""Writing from Spark, read by a JMS consumer."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, lit, struct
from pyspark.sql.types import StringType, StructField, StructType

import jmsaio
from jmsaio.spark.model.dedup import Sent
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.sink import BatchWriter, Written
from tests.spark.use import read, receive, receive_values, send, send_values
from tests.support.broker import TestBroker

Name = Callable[[str], str]


def test_what_spark_writes_a_consumer_receives_with_headers_properties_and_body(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name
) -> None:
    queue = name("written")
    columns = (
        "text STRING, bytes BINARY, body_type STRING, key STRING, JMSType STRING, JMSPriority INT, "
        "JMSCorrelationID STRING, JMSReplyTo STRING, reply_to_kind STRING, time_to_live BIGINT, "
        "properties MAP<STRING, STRING>, property_types MAP<STRING, STRING>, props STRUCT<qty: INT, price: DOUBLE>"
    )
    first = (
        "Grüße",
        None,
        "text",
        "g",
        "order",
        7,
        "c",
        "answers",
        "topic",
        3_600_000,
        {"a": "1"},
        {"a": "long"},
        (5, 1.5),
    )
    second = (None, b"\x00\xff", "bytes", *[None] * 10)
    frame = spark.createDataFrame([first, second], columns).coalesce(1)
    frame.write.format("jms").options(url=pulsar_broker.url, queue=queue).mode("append").save()
    text, data = receive(pulsar_broker.url, queue, 2)
    assert (text.text, text.jms_type, text.jms_priority, text.jms_correlation_id) == ("Grüße", "order", 7, "c")
    assert text.jms_reply_to == jmsaio.Topic("answers")
    assert dict(text.properties) == {"JMSXGroupID": "g", "a": 1, "qty": 5, "price": 1.5, "JMSXDeliveryCount": 1}
    assert text.jms_expiration - text.jms_timestamp == 3_600_000
    assert isinstance(data, jmsaio.BytesMessage) and data.get_body(bytes) == b"\x00\xff"


def test_rows_that_were_read_can_be_written_again_to_a_queue_of_their_own(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name
) -> None:
    source, target = name("read"), name("again")
    message = jmsaio.MapMessage({"a": 1, "b": b"x"})
    message.set_float_property("f", 0.5)
    send(pulsar_broker.url, source, ["one", message, jmsaio.StreamMessage(["s", 2])])
    frame = read(spark, pulsar_broker, queue=source)
    again = frame.withColumn("destination", lit(f"queue://{target}")).orderBy("position").coalesce(1)
    again.write.format("jms").option("url", pulsar_broker.url).mode("append").save()
    provided = ("destination", "topic", "position", "publish_time", "producer_name", "JMSMessageID", "JMSTimestamp",
                "JMSDeliveryTime")  # fmt: skip
    rows = [
        each.orderBy("position").drop(*provided).collect() for each in (frame, read(spark, pulsar_broker, queue=target))
    ]
    assert rows[0] == rows[1] and len(rows[0]) == 3


def test_columns_that_are_left_out_are_warned_of_when_a_write_starts_and_not_in_each_task(
    pulsar_broker: TestBroker, name: Name
) -> None:
    options = parse_options({"url": pulsar_broker.url, "queue": name("warned")}, Use.WRITE)
    schema = StructType([StructField("text", StringType()), StructField("JMSMessageID", StringType())])
    with pytest.warns(UserWarning, match="not written: JMSMessageID"):
        writer = BatchWriter(options, schema)
    rows = pa.RecordBatch.from_pydict({"text": ["a", "b"], "JMSMessageID": ["ID:1", "ID:2"]})
    written = writer.write(iter([rows]))  # a warning would be an error here
    assert isinstance(written, Written) and sum(each.rows for each in written.sent) == 2


def test_rows_of_several_tasks_are_counted_by_topic(caplog: pytest.LogCaptureFixture) -> None:
    options = parse_options({"url": "pulsar://h", "queue": "counted"}, Use.WRITE)
    writer = BatchWriter(options, StructType([StructField("text", StringType())]))
    caplog.set_level("INFO")
    writer.commit([Written((Sent("a", 3, 1), Sent("b", 2, 0))), Written((Sent("a", 4, 2),)), Written(())])
    assert caplog.messages == [
        "write: 7 rows sent to a, of which the broker had 3 already",
        "write: 2 rows sent to b, of which the broker had 0 already",
    ]


@pytest.mark.parametrize(
    ("columns", "options", "mode", "sentence"),
    [
        ("text STRING", {}, "overwrite", "can't be replaced"),
        ("text STRING", {"queue": ""}, "append", "queue"),
        ("txet STRING", {}, "append", "no column 'txet'"),
        ("text STRING, payload BINARY, body_type STRING", {}, "append", "payload"),
        ("text INT", {}, "append", "text must be STRING"),
        ("text STRING", {"schema": "avro"}, "append", "needs the body as column value"),
        ("value DATE", {"schema": "json"}, "append", "no type for the column value, of the Arrow type date32"),
        ("value STRING", {"schema": "latest"}, "append", "does not exist"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_first_row(
    spark: SparkSession, pulsar_broker: TestBroker, columns: str, options: dict[str, str], mode: str, sentence: str
) -> None:
    frame = spark.createDataFrame([], columns)
    writer = frame.write.format("jms").options(url=pulsar_broker.url, **{"queue": "refused", **options})
    with pytest.raises(PySparkException) as refused:
        writer.mode(mode).save()
    assert sentence in str(refused.value)


def test_a_struct_is_written_as_avro_and_read_as_it_was(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name
) -> None:
    """Its schema is registered; a later write can use that of the topic."""
    queue, target = name("structs"), name("copies")
    options = {"url": pulsar_broker.url, "queue": queue}
    columns = "item STRING, qty INT, marks MAP<STRING, INT>"
    frame = spark.createDataFrame([("tea", 2, {"hot": 1}), ("coffee", None, None)], columns)
    bodies = frame.select(struct("*").alias("value"), col("item").alias("JMSType")).coalesce(1)
    bodies.write.format("jms").options(**options, schema="avro").mode("append").save()
    rows = read(spark, pulsar_broker, queue=queue, schema="latest")
    assert rows.orderBy("position").select("value", "JMSType").collect() == bodies.collect()
    assert receive_values(pulsar_broker.url, queue, 1) == [{"item": "tea", "qty": 2, "marks": {"hot": 1}}]
    few = frame.select(struct("item").alias("value"))
    few.write.format("jms").options(**options, schema="latest").mode("append").save()
    assert read(spark, pulsar_broker, queue=queue, schema="0").where("value IS NOT NULL").count() == 4
    rows.write.format("jms").options(url=pulsar_broker.url, queue=target, schema="json").mode("append").save()
    copied = read(spark, pulsar_broker, queue=target, schema="latest").select("value").collect()
    assert sorted(copied) == sorted(bodies.select("value").collect())


def test_a_value_that_does_not_fit_the_schema_fails_its_task(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name
) -> None:
    queue = name("misfits")
    whole = {"type": "record", "name": "R", "fields": [{"name": "qty", "type": "int"}]}
    send_values(pulsar_broker.url, queue, (jmsaio.Schema("AVRO", whole), {"qty": 1}))
    frame = spark.createDataFrame([(2,), (None,)], "qty INT").select(struct("*").alias("value")).coalesce(1)
    writer = frame.write.format("jms").options(url=pulsar_broker.url, queue=queue, schema="latest").mode("append")
    with pytest.raises(PySparkException, match=r"row 1: column value = \{'qty': None\}: the body does not fit"):
        writer.save()
    with pytest.raises(PySparkException, match="schema does not fit that of the topic"):
        writer.option("schema", "json").save()


def test_a_row_that_no_message_can_carry_fails_its_task_with_topic_row_and_reason(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name
) -> None:
    queue = name("refused")
    rows = [(str(number), {"n": "x" if number == 3 else "1"}, {"n": "int"}) for number in range(5)]
    frame = spark.createDataFrame(
        rows, "text STRING, properties MAP<STRING, STRING>, property_types MAP<STRING, STRING>"
    )
    with pytest.raises(PySparkException) as refused:
        frame.coalesce(1).write.format("jms").options(url=pulsar_broker.url, queue=queue).mode("append").save()
    assert "row 3: property 'n': 'x' is not a" in str(refused.value)


def test_a_stream_writes_its_batches(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source, target = name("stream"), name("stream-target")
    send(pulsar_broker.url, source, [str(number) for number in range(20)])
    folder = tmp_path_factory.mktemp(uuid.uuid4().hex)
    stream = spark.readStream.format("jms").options(
        url=pulsar_broker.url, queue=source, startingOffsets="earliest", columns="text", maxEntriesPerTrigger="7"
    )  # fmt: skip
    query = (
        stream.load().select(col("text")).writeStream.format("jms")
        .options(url=pulsar_broker.url, queue=target, checkpointLocation=str(folder)).trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(100)
    assert sum(progress.sink.numOutputRows for progress in query.recentProgress if progress.numInputRows) == 20
    received = {message.text for message in receive(pulsar_broker.url, target, 20)}
    assert received == {str(number) for number in range(20)}
