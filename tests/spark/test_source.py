"""The data source in Spark, on a real broker: options, columns, and what it leaves behind."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from decimal import Decimal

import httpx
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import IntegerType, LongType, MapType, StringType, StructField, StructType, TimestampType

import jmsaio
from jmsaio import Byte, Float, Long, Short
from jmsaio.errors import ConfigurationError
from jmsaio.spark.model.schema import COLUMNS
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.source import JmsSource, choose_columns
from tests.kit.records import ORDER
from tests.spark.use import read, send, send_values
from tests.support.broker import TestBroker

Name = Callable[[str], str]


def test_a_queue_is_read_with_headers_typed_properties_and_bodies(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name
) -> None:
    queue = name("bodies")
    text = jmsaio.TextMessage("Grüße")
    text.jms_correlation_id = "order-1"
    text.jms_type = "order"
    text.jms_reply_to = jmsaio.Topic("answers")
    values: dict[str, bool | int | float | str] = {
        "s": "x",
        "i": 5,
        "b": Byte(1),
        "h": Short(2),
        "l": Long(3),
        "f": Float(0.5),
        "d": 1.5,
        "t": True,
    }
    for key, value in values.items():
        text.set_object_property(key, value)
    data, tree = jmsaio.BytesMessage(b"\x00\xff"), jmsaio.MapMessage({"a": 1})
    ids = send(pulsar_broker.url, queue, [text, data, tree, jmsaio.Message()])
    rows = read(spark, pulsar_broker, queue=queue).orderBy("position").collect()
    assert [row.JMSMessageID for row in rows] == ids
    assert [row.body_type for row in rows] == ["text", "bytes", "map", "header"]
    assert [row.text for row in rows] == ["Grüße", None, None, None]
    assert rows[1].bytes == b"\x00\xff" and rows[0].bytes is None
    first = rows[0]
    assert (first.destination, first.topic) == (f"queue://{queue}", f"persistent://public/default/{queue}")
    assert (first.JMSCorrelationID, first.JMSType, first.JMSReplyTo, first.reply_to_kind) == (
        "order-1", "order", "answers", "topic",
    )  # fmt: skip
    assert first.properties == {"s": "x", "i": "5", "b": "1", "h": "2", "l": "3", "f": "0.5", "d": "1.5", "t": "true"}
    assert first.property_types == {
        "i": "int", "b": "byte", "h": "short", "l": "long", "f": "float", "d": "double", "t": "boolean",
    }  # fmt: skip
    assert (first.JMSDeliveryMode, first.JMSPriority, first.JMSExpiration) == ("PERSISTENT", 4, None)
    assert isinstance(first.JMSTimestamp, datetime.datetime)
    assert all(row.decode_error is None for row in rows)


def test_a_load_is_frozen_and_leaves_nothing_on_the_broker(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name
) -> None:
    queue = name("frozen")
    send(pulsar_broker.url, queue, [str(number) for number in range(30)])
    frame = read(spark, pulsar_broker, queue=queue, columns="text", maxEntriesPerPartition=7)
    assert frame.count() == 30
    send(pulsar_broker.url, queue, ["later"])
    assert frame.count() == 30
    assert read(spark, pulsar_broker, queue=queue, columns="text").count() == 31
    assert len(frame.limit(3).collect()) == 3

    stats = httpx.get(f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{queue}/stats").json()
    assert set(stats["subscriptions"]) == {"jms-queue"}
    assert stats["subscriptions"]["jms-queue"]["consumers"] == []


def test_a_selector_and_columns_choose_what_is_read(spark: SparkSession, pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("chosen")
    messages = []
    for number in range(10):
        message = jmsaio.TextMessage(str(number))
        message.set_int_property("qty", number)
        messages.append(message)
    send(pulsar_broker.url, queue, messages)
    options = {"queue": queue, "selector": "qty BETWEEN 3 AND 5", "columns": "Text, properties"}
    frame = read(spark, pulsar_broker, **options)
    assert frame.orderBy("text").collect() == [Row(text=str(qty), properties={"qty": str(qty)}) for qty in (3, 4, 5)]
    spark.sql(f"CREATE TEMPORARY VIEW chosen USING jms OPTIONS (url '{pulsar_broker.url}', queue '{queue}')")
    assert spark.sql("SELECT count(*) AS n FROM chosen WHERE JMSPriority = 4").first() == Row(n=10)
    spark.catalog.dropTempView("chosen")
    reader = spark.read.format("jms").schema("jmstype STRING, TEXT STRING").options(url=pulsar_broker.url, queue=queue)
    frame = reader.load()
    assert frame.columns == ["jmstype", "TEXT"]
    assert sorted(row.TEXT for row in frame.collect()) == [str(number) for number in range(10)]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"quue": "refused"}, "unknown option 'quue'.*queue"),
        ({"queue": "refused", "startingOffsets": "latest"}, "startingOffsets"),
        ({"queue": "refused", "selector": "a ="}, "selector"),
        ({"topic": "there-is-none"}, "topic persistent://public/default/there-is-none does not exist"),
    ],
)
def test_what_cannot_be_read_is_refused_before_a_task_starts(
    spark: SparkSession, pulsar_broker: TestBroker, options: dict[str, str], sentence: str
) -> None:
    send(pulsar_broker.url, "refused", ["there"])
    with pytest.raises(PySparkException) as refused:
        read(spark, pulsar_broker, **options).collect()
    assert re.search(sentence, str(refused.value))
    assert "Task" not in str(refused.value).splitlines()[0]


@pytest.mark.parametrize("wrong", [{"jms.usePulsarAdmin": "false"}, {"sharedCursor": "true"}, {"readTimeout": "long"}])
def test_the_fault_of_a_stream_is_named_beside_an_option_that_only_streams_have(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        JmsSource({"url": "pulsar://host", "queue": "orders", "subscription": "s", **wrong}).schema()
    assert [refused.value.key] == [*wrong]


def test_the_processes_in_which_spark_makes_and_commits_a_write_load_no_pyarrow() -> None:
    """A session's first query waits for each of them to start."""
    code = (
        "import sys, jmsaio.spark.source, jmsaio.spark.sink; print(*{'pyarrow', 'lark', 'tenacity'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []


WIDER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}


def test_versions_of_a_record_are_one_column(spark: SparkSession, pulsar_broker: TestBroker, name: Name) -> None:
    """Also in a stream; a message without a schema has NULL there, and no error."""
    queue, first, later = name("values"), jmsaio.Schema("AVRO", ORDER), jmsaio.Schema("AVRO", WIDER)
    tea = {"id": 5, "price": Decimal("12.30"), "lines": [{"tea": 2}]}
    send_values(pulsar_broker.url, queue, (first, tea), (later, {**tea, "id": 6, "note": "x"}), (None, "text"))
    rows = read(spark, pulsar_broker, queue=queue, schema="auto").orderBy("position")
    assert dict(rows.dtypes)["value"] == (
        "struct<id:bigint,price:decimal(9,2),lines:array<map<string,int>>,note:string>"
    )
    found = [(row.value and row.value.asDict(), row.text, row.decode_error) for row in rows.collect()]
    assert found == [
        ({**tea, "note": None}, None, None), ({**tea, "id": 6, "note": "x"}, None, None), (None, "text", None),
    ]  # fmt: skip
    assert [row.id for row in rows.where("value.id > 5").select("value.id").collect()] == [6]
    stream = spark.readStream.format("jms").options(
        url=pulsar_broker.url, queue=queue, schema="auto", startingOffsets="earliest"
    )
    table = f"values_{uuid.uuid4().hex}"
    query = stream.load().writeStream.format("memory").queryName(table).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert sorted(row.id for row in spark.sql(f"SELECT value.id FROM {table}").collect() if row.id) == [5, 6]


def test_values_without_a_common_type_are_json(spark: SparkSession, pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("json")
    send_values(pulsar_broker.url, queue, (jmsaio.Schema("JSON", ORDER), {"id": 5, "note": [None, "é"]}))
    rows = read(spark, pulsar_broker, queue=queue, schema="auto")
    (row,) = rows.selectExpr("value", "get_json_object(value, '$.id') AS id").collect()
    assert (row.value, row.id) == ('{"id": 5, "note": [null, "é"]}', "5")
    with pytest.raises(PySparkException, match="must be auto"):
        read(spark, pulsar_broker, queue=queue, schema="avro")


OPTIONS = parse_options({"url": "pulsar://broker:6650", "queue": "orders"}, Use.READ)


def test_all_versions_are_evolved_to_one(spark: SparkSession, pulsar_broker: TestBroker, name: Name) -> None:
    """With the defaults of that version; also in a stream, and with columns that the user declares."""
    queue, first = name("evolved"), jmsaio.Schema("AVRO", ORDER)
    fields = [each for each in ORDER["fields"] if each["name"] != "lines"]
    later = jmsaio.Schema("AVRO", {**ORDER, "fields": [*fields, {"name": "note", "type": "string", "default": "-"}]})
    tea = {"id": 5, "price": Decimal("12.30")}
    send_values(pulsar_broker.url, queue, (first, {**tea, "lines": [{"tea": 2}]}), (later, {**tea, "note": "x"}))
    rows = read(spark, pulsar_broker, queue=queue, schema="latest")
    assert dict(rows.dtypes)["value"] == "struct<id:bigint,price:decimal(9,2),note:string>"
    newest = [Row(**tea, note="-"), Row(**tea, note="x")]
    found = rows.orderBy("position").select("value", "decode_error").collect()
    assert found == [Row(value=one, decode_error=None) for one in newest]
    oldest = read(spark, pulsar_broker, queue=queue, schema="0", columns="position").orderBy("position")
    assert [row.value for row in oldest.collect()] == [Row(**tea, lines=[{"tea": 2}]), Row(**tea, lines=[])]
    declared = spark.read.format("jms").schema("value STRUCT<note: STRING>").options(url=pulsar_broker.url, queue=queue)
    assert sorted(row.value.note for row in declared.option("schema", "latest").load().collect()) == ["-", "x"]
    source = spark.readStream.format("jms").options(url=pulsar_broker.url, queue=queue, startingOffsets="earliest")
    table = f"evolved_{uuid.uuid4().hex}"
    query = source.option("schema", "latest").load().writeStream.format("memory").queryName(table)
    assert query.trigger(availableNow=True).start().awaitTermination(60)
    assert sorted(spark.sql(f"SELECT value FROM {table}").collect()) == sorted(Row(value=one) for one in newest)
    for version, sentence in ("7", f"topic .*{queue} does not exist"), ("newest", "must be auto, latest or the number"):
        with pytest.raises(PySparkException, match=f"option schema = '{version}': .*{sentence}"):
            read(spark, pulsar_broker, queue=queue, schema=version)


def test_topics_with_different_schemas_have_no_newest_one(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name
) -> None:
    one, other = name("one"), name("other")
    send_values(pulsar_broker.url, one, (jmsaio.Schema("STRING"), "a"))
    send_values(pulsar_broker.url, other, (jmsaio.Schema("JSON", '{"type": "record", "name": "R", "fields": []}'), {}))
    with pytest.raises(PySparkException, match="have different schemas: use them one by one"):
        read(spark, pulsar_broker, queue=f"{one},{other}", schema="latest")
    values = read(spark, pulsar_broker, queue=f"{one},{other}", schema="auto").select("value").collect()
    assert sorted(row.value for row in values) == ["a", "{}"]


def test_json_becomes_the_fields_of_its_schema(spark: SparkSession, pulsar_broker: TestBroker, name: Name) -> None:
    queue, fields = name("fields"), [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}]
    schema = jmsaio.Schema("JSON", {"type": "record", "name": "Order", "fields": fields})
    send_values(pulsar_broker.url, queue, (schema, {"id": 5, "more": 1}), (schema, {"id": "five"}))
    fit, misfit = read(spark, pulsar_broker, queue=queue, schema="auto").orderBy("position").collect()
    assert fit.value == Row(id=5, note=None) and fit.decode_error is None
    assert misfit.value is None and misfit.bytes == b'{"id":"five"}' and "no readable value" in misfit.decode_error


def schema(*fields: StructField) -> StructType:
    return StructType(list(fields))


def test_columns_come_in_the_order_and_number_of_the_schema_in_any_case() -> None:
    wanted = schema(
        StructField("TEXT", StringType()),
        StructField("publish_time", TimestampType()),
        StructField("Properties", MapType(StringType(), StringType())),
        StructField("body_json", StringType()),
    )
    chosen = choose_columns(OPTIONS, wanted)
    assert [column.name for column in chosen.columns] == ["text", "publish_time", "properties", "body_json"]
    assert all(column in COLUMNS for column in chosen.columns)


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (StructField("texts", StringType()), "the source jms has no column 'texts'; did you mean 'text'"),
        (StructField("text", StringType(), nullable=False), "column 'text' can be NULL; leave out NOT NULL"),
        (StructField("JMSPriority", LongType()), "column 'JMSPriority' is INT, not bigint"),
        (StructField("position", StructType([StructField("ledger", IntegerType())])), "column 'position' is STRUCT<"),
    ],
)
def test_a_column_that_cannot_be_given_so_is_refused(field: StructField, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        choose_columns(OPTIONS, schema(StructField("text", StringType()) if field.name != "text" else field, field))
    assert sentence in str(refused.value)


def test_the_column_value_is_not_one_of_the_table() -> None:
    """It has the type of the values, or any that the user gives; without the option there is no such column."""
    options = parse_options({"url": "pulsar://broker:6650", "queue": "orders", "schema": "auto"}, Use.READ)
    wanted = schema(StructField("text", StringType()), StructField("Value", schema(StructField("a", LongType()))))
    assert [column.name for column in choose_columns(options, wanted).columns] == ["text"]
    with pytest.raises(ConfigurationError, match="no column 'Value'"):
        choose_columns(OPTIONS, wanted)
