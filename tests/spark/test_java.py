"""The real Java client and Spark: each reads what the other one sends, compared field by field."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import struct

from jmsaio.codec import encode
from jmsaio.codec.properties import value_of
from jmsaio.codec.rows import to_row
from jmsaio.spark.model.body_json import read_json
from jmsaio.spark.model.schema import COLUMNS
from tests.codec.cases import Described, value
from tests.codec.described import build, describe, describe_value, value_of as described_value
from tests.codec.generated import Generator
from tests.codec.test_golden import canonical_body, expanded_body
from tests.codec.test_live_exchange import SYSTEM, short, stamp
from tests.java.peer import JavaPeer, queue
from tests.kit.records import Record, decode
from tests.spark.use import read
from tests.support.broker import TestBroker
from tests.support.java import class_path

Name = Callable[[str], str]
HOUR = 3_600_000
#: A property of each type, and the column ``props`` that declares them.
TYPED = {
    "t_boolean": value("boolean", True), "t_byte": value("byte", -128), "t_short": value("short", 32767),
    "t_int": value("int", -5), "t_long": value("long", 2**62), "t_float": value("float", 1.5),
    "t_double": value("double", 0.1), "t_string": value("string", "größe"),
}  # fmt: skip
DECLARED = (
    "t_boolean BOOLEAN, t_byte TINYINT, t_short SMALLINT, t_int INT, t_long BIGINT, t_float FLOAT, t_double DOUBLE, "
    "t_string STRING"
)
#: The columns of a row but ``decode_error``, those with times as milliseconds.
TIMES = ("publish_time", "JMSTimestamp", "JMSExpiration", "JMSDeliveryTime")
SELECTED = [f"unix_millis({each.name}) AS {each.name}" if each.name in TIMES else each.name for each in COLUMNS]


@pytest.fixture(scope="module")
def peer(pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path) -> Iterator[JavaPeer]:
    """The Java client, one for all tests, whose producers batch what comes within 20 ms."""
    path = class_path(java_classpath, java_peer_dir)
    batching = {"batchingEnabled": True, "batchingMaxPublishDelayMicros": 20_000}
    with JavaPeer(path, pulsar_broker.service_url, pulsar_broker.web_service_url, producerConfig=batching) as running:
        yield running


def messages(seed: int) -> list[Described]:
    """Messages of every kind with every header and type of property."""
    found = Generator(seed).messages(36)
    found[0]["properties"] |= TYPED | {"JMSXGroupID": value("string", "grüppe"), "JMSXGroupSeq": value("int", 7)}
    found[1] |= {"headers": {"correlation_id_bytes": "00ff80fe", "type": "order"}, "options": {"priority": 9}}
    found[2]["options"] = {"time_to_live": HOUR, "delivery_mode": 1, "priority": 0}
    found[3]["headers"] = {"correlation_id": "corr-é-😀", "reply_to": {"kind": "topic", "name": "answers"}}
    return found


def test_what_java_sends_is_in_every_column_of_its_row(
    spark: SparkSession, pulsar_broker: TestBroker, peer: JavaPeer, name: Name
) -> None:
    target, items = name("java-to-spark"), messages(21)
    items[6]["options"] = {"delivery_delay": HOUR}
    items.sort(key=needs_a_send_of_its_own)
    together = [item for item in items if not needs_a_send_of_its_own(item)]
    headers = anyio.run(peer.send_all, queue(target), together)
    for item in items[len(together) :]:
        headers.append(anyio.run(partial(peer.send, queue(target), item, **item["options"])))
    rows = {row.JMSMessageID: row for row in whole_rows(spark, pulsar_broker, target)}
    assert len(rows) == len(items)
    assert len({row.position.entry for row in rows.values()}) < len(items)  # there are batches
    assert len({row.producer_name for row in rows.values()}) == 1
    for item, header in zip(items, headers, strict=True):
        check_row(rows[header["message_id"]], item, header, target)


def test_a_message_that_java_sent_in_chunks_is_one_row_wherever_tasks_are_cut(
    spark: SparkSession, pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path, name: Name
) -> None:
    target, items = name("java-chunks"), messages(23)[:4]
    for item in items[1], items[2]:
        item |= {"kind": "text", "body": value("string", "größe 😀 ") | {"times": 600_000}, "options": {}}
    path, producer = class_path(java_classpath, java_peer_dir), {"batchingEnabled": False, "chunkingEnabled": True}
    with JavaPeer(path, pulsar_broker.service_url, pulsar_broker.web_service_url, producerConfig=producer) as peer:
        headers = anyio.run(peer.send_all, queue(target), items)
    rows = whole_rows(spark, pulsar_broker, target, maxEntriesPerPartition=1)
    entries = [row.position.entry for row in rows]
    assert (entries[0], len(entries)) == (0, len(items))
    assert entries[2] - entries[1] > 1  # its last chunk is the place of a message
    for row, item, header in zip(rows, items, headers, strict=True):
        check_row(row, item, header, target)


def whole_rows(spark: SparkSession, broker: TestBroker, target: str, **options: object) -> list[Row]:
    """Every column of a queue without partitions, in its order."""
    columns = ", ".join(each.name for each in COLUMNS)
    frame = read(spark, broker, queue=target, body="both", columns=columns, **options)
    return frame.orderBy("position").selectExpr(*SELECTED).collect()


def needs_a_send_of_its_own(item: Described) -> bool:
    """Whether it has an option that Java's producer has for all messages, and reads at a time of its own."""
    return bool(item["options"].keys() & {"delivery_delay", "disable_timestamp"})


def check_row(row: Row, item: Described, header: Described, target: str) -> None:
    """Every column of a row, against what Java was told to send and what its sender's object says."""
    described, properties = item["headers"], item["properties"]
    assert (row.destination, row.topic) == (f"queue://{target}", f"persistent://public/default/{target}")
    assert (row.partition, row.JMSRedelivered, row.JMSXDeliveryCount, row.decode_error) == (None, None, None, None)
    assert row.producer_name and row.schema_version is None
    assert row.key == properties.get("JMSXGroupID", {}).get("v")
    assert (row.JMSCorrelationID, row.correlation_bytes) == correlation(described)
    assert (row.JMSType, row.JMSPriority) == (described.get("type"), header["priority"])
    reply_to = short(described.get("reply_to"))
    assert (row.JMSReplyTo, row.reply_to_kind) == ((reply_to["name"], reply_to["kind"]) if reply_to else (None, None))
    assert row.JMSDeliveryMode == {1: "NON_PERSISTENT", 2: "PERSISTENT"}[header["delivery_mode"]]
    is_timed = "disable_timestamp" not in item["options"]
    assert row.JMSTimestamp == (header["timestamp"] if is_timed else None)
    assert row.JMSExpiration == (header["expiration"] or None)
    assert row.JMSDeliveryTime == header["delivery_time"]  # Java writes the time of the send, even with a delay
    typed = {key: value_of(text, row.property_types.get(key)) for key, text in row.properties.items()}
    assert {key: describe_value(found) for key, found in typed.items()} == properties
    check_body(row, item)


def correlation(headers: Described) -> tuple[str | None, bytes | None]:
    """The two columns of JMSCorrelationID: bytes that are UTF-8 are text."""
    if "correlation_id_bytes" not in headers:
        return headers.get("correlation_id"), None
    content = bytes.fromhex(headers["correlation_id_bytes"])
    try:
        return content.decode(), None
    except UnicodeDecodeError:
        return None, content


def check_body(row: Row, item: Described) -> None:
    """The columns of the body."""
    kind, payload = item["kind"], None if row.payload is None else bytes(row.payload)
    assert (row.body_type, row.object_format) == (kind, None)
    assert row.text == (described_value(item["body"]) if kind == "text" else None)
    assert row.bytes == (None if kind == "text" else row.payload)
    body = describe(decode(Record(payload, {"JMSPulsarMessageType": kind}), None))["body"]
    expected = canonical_body(kind, expanded_body(item))
    assert canonical_body(kind, body) == expected
    if kind == "map":
        found = read_json(row.body_json)
        assert isinstance(found, dict)
        pairs = [[value("string", key), describe_value(each)] for key, each in found.items()]
        assert canonical_body(kind, pairs) == expected
    elif kind == "stream":
        assert [describe_value(each) for each in read_json(row.body_json)] == expected
    else:
        assert row.body_json is None


def test_what_spark_writes_java_receives_with_every_header_property_and_body(
    spark: SparkSession, pulsar_broker: TestBroker, peer: JavaPeer, name: Name
) -> None:
    target, items = name("spark-to-java"), messages(22)
    deliver_at = int(time.time() + 3) * 1000
    rows = [written(item, number, deliver_at if number == 6 else None) for number, item in enumerate(items)]
    frame = spark.createDataFrame(rows, WRITTEN).repartition(2)
    anyio.run(peer.subscribe, queue(target))
    frame.write.format("jms").options(url=pulsar_broker.url, queue=target).mode("append").save()
    received = anyio.run(peer.receive, queue(target), len(items))
    by_number = {int(found["properties"].pop("t_number")["v"]): found for found in received}
    assert sorted(by_number) == list(range(len(items)))
    for number, item in enumerate(items):
        seen = by_number[number]["headers"]
        check_received(by_number[number], item)
        if number == 6:
            assert seen["delivery_time"] == max(seen["timestamp"], deliver_at)


def test_java_reads_the_values_that_spark_writes_and_spark_those_of_java(
    spark: SparkSession, pulsar_broker: TestBroker, peer: JavaPeer, name: Name
) -> None:
    target, row = name("values"), ("tea", 2, [1, 2], {"name": "x"})
    frame = spark.createDataFrame([row], "item STRING, qty LONG, marks ARRAY<INT>, buyer STRUCT<name: STRING>")
    anyio.run(peer.subscribe_values, target)
    writer = frame.select(struct("*").alias("value")).write.format("jms").mode("append")
    writer.options(url=pulsar_broker.url, queue=target, schema="avro").save()
    (found,) = anyio.run(peer.consume, target)
    assert found["value"] == {"item": "tea", "qty": 2, "marks": [1, 2], "buyer": {"name": "x"}}
    pairs, part = name("pairs"), {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    schema = {"type": "KEY_VALUE", "key": {"type": "STRING"}, "value": {"type": "AVRO", "definition": part}}
    given = [{"key": value("string", "k"), "value": {"a": 3}}]
    anyio.run(peer.produce, pairs, {**schema, "encoding": "SEPARATED"}, given)
    found_pairs = read(spark, pulsar_broker, topic=pairs, schema="latest").select("value.key", "value.value.a")
    assert found_pairs.collect() == [Row(key="k", a=3)]
    numbers = name("numbers")
    anyio.run(peer.produce, numbers, {"type": "INT64"}, [value("long", 5)])
    assert read(spark, pulsar_broker, topic=numbers, schema="auto").select("value").collect() == [Row(value=5)]


#: What is written, in the order of ``written``.
WRITTEN = (
    "text STRING, bytes BINARY, body_type STRING, key STRING, properties MAP<STRING, STRING>, "
    "property_types MAP<STRING, STRING>, JMSCorrelationID STRING, correlation_bytes BINARY, JMSType STRING, "
    "JMSReplyTo STRING, reply_to_kind STRING, JMSPriority INT, JMSDeliveryMode STRING, time_to_live BIGINT, "
    f"deliver_at TIMESTAMP, props STRUCT<t_number: INT, {DECLARED.replace(' ', ': ').replace(',: ', ', ')}>"
)


def written(item: Described, number: int, deliver_at: int | None) -> tuple[Any, ...]:
    """The row of a message, whose properties are in both places, and its number."""
    properties = {key: each for key, each in item["properties"].items() if key not in TYPED}
    row = to_row(Record.sent(encode(build(item | {"properties": properties}), stamp(item, number))))
    options = item["options"]
    declared = [plain(item["properties"].get(key)) for key in TYPED]
    return (
        row.text, row.data, row.body_type, row.key, dict(row.properties), dict(row.property_types), row.correlation_id,
        row.correlation_bytes, row.type, row.reply_to, row.reply_to_kind, options.get("priority"),
        "NON_PERSISTENT" if options.get("delivery_mode") == 1 else None, options.get("time_to_live"),
        None if deliver_at is None else datetime.datetime.fromtimestamp(deliver_at / 1000), (number, *declared),
    )  # fmt: skip


def plain(described: Described | None) -> object:
    """A value without the subclasses that say its JMS type, which Spark does not take."""
    found = None if described is None else described_value(described)
    base = type(found).__mro__[-2]
    return found if found is None or isinstance(found, bool) else base(found)


def check_received(found: Described, item: Described) -> None:
    """What Java received, against what was written."""
    options, seen = item["options"], found["headers"]
    assert found["kind"] == item["kind"]
    assert canonical_body(item["kind"], found["body"]) == canonical_body(item["kind"], expanded_body(item))
    assert seen["message_id"].startswith("ID:") and not seen["redelivered"]
    assert abs(seen["timestamp"] - time.time() * 1000) < 100_000 and seen["delivery_time"] >= seen["timestamp"]
    assert seen["expiration"] == (seen["timestamp"] + options["time_to_live"] if "time_to_live" in options else 0)
    assert (seen["priority"], seen["delivery_mode"]) == (options.get("priority", 4), options.get("delivery_mode", 2))
    assert seen["type"] == item["headers"].get("type")
    correlation = build(item).jms_correlation_id_as_bytes
    assert seen["correlation_id_bytes"] == (None if correlation is None else correlation.hex())
    assert short(seen["reply_to"]) == short(item["headers"].get("reply_to"))
    properties = found["properties"]
    assert {key: properties.get(key) for key in item["properties"]} == item["properties"]
    assert set(properties) - set(item["properties"]) <= SYSTEM
