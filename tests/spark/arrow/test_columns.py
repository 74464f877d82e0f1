"""Rows to Arrow record batches."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from jmsaio.codec.row_columns import ColumnMaker, RowColumns, TextTable
from jmsaio.codec.rows import RawRow, to_row
from jmsaio.model.wire import WireId
from jmsaio.spark.arrow.columns import _BUILDERS, ARROW, RowBatches
from jmsaio.spark.model.body_json import body_json
from jmsaio.spark.model.schema import COLUMNS, Body, Column, Type, columns_of, find_column
from tests.codec import golden_files
from tests.kit.records import Record

TOPIC = "persistent://public/default/t"
LONGEST = (1 << 63) - 1
#: Columns that say what a field of the row says, as it is.
SAME = {
    "key": "key", "producer_name": "producer_name", "schema_version": "schema_version", "JMSMessageID": "message_id",
    "JMSCorrelationID": "correlation_id", "correlation_bytes": "correlation_bytes", "JMSType": "type",
    "JMSReplyTo": "reply_to", "reply_to_kind": "reply_to_kind", "JMSDeliveryMode": "delivery_mode",
    "JMSPriority": "priority", "body_type": "body_type", "text": "text", "bytes": "data",
    "object_format": "object_format", "decode_error": "decode_error",
}  # fmt: skip
TIMES = {
    "JMSTimestamp": "timestamp", "JMSExpiration": "expiration", "JMSDeliveryTime": "delivery_time",
    "publish_time": "publish_time",
}  # fmt: skip


def row(**fields: Any) -> RawRow:
    """The row of a message without anything, but with these fields."""
    return to_row(Record(None, {"JMSPulsarMessageType": "header"}, message_id=WireId(1, 2)))._replace(**fields)


def column(name: str) -> Column:
    """A column of the table."""
    found = find_column(name)
    assert found is not None
    return found


def batch(rows: list[RawRow], *names: str, topic: str = TOPIC) -> pa.RecordBatch:
    """A batch of these columns."""
    return RowBatches([column(name) for name in names], "q", topic).batch(RowColumns.of(rows))


def values(rows: list[RawRow], name: str) -> list[Any]:
    """The values of one column."""
    found: list[Any] = batch(rows, name).column(0).to_pylist()
    return found


def moment(milliseconds: int) -> datetime | None:
    """What a column of times says."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None


def received_rows() -> list[RawRow]:
    """A row of each golden file."""
    found = [golden_files.received(case) for case in golden_files.cases()]
    return [to_row(record) for record in found if record is not None]


def test_the_rows_of_what_java_wrote_are_their_columns() -> None:
    rows = received_rows()
    assert len(rows) > 100
    made = RowBatches(COLUMNS, "q", TOPIC + "-partition-3").batch(RowColumns.of(rows))
    made.validate(full=True)
    assert [field.name for field in made.schema] == [each.name for each in COLUMNS]
    for item, source in zip(made.to_pylist(maps_as_pydicts="strict"), rows, strict=True):
        assert {name: item[name] for name in SAME} == {name: getattr(source, field) for name, field in SAME.items()}
        assert (item["destination"], item["topic"], item["partition"]) == ("q", TOPIC + "-partition-3", 3)
        assert item["position"] == {"ledger": source.ledger, "entry": source.entry, "batch": source.batch}
        assert item["JMSTimestamp"] == moment(source.timestamp)
        assert item["JMSExpiration"] == moment(source.expiration)
        assert item["JMSDeliveryTime"] == moment(source.delivery_time)
        assert (item["properties"], item["property_types"]) == (source.properties, source.property_types)
        assert item["payload"] == (source.data if source.text is None else source.text.encode())
        assert item["body_json"] == body_json(source.body_type, source.data)
        assert (item["JMSRedelivered"], item["JMSXDeliveryCount"]) == (None, None)


@pytest.mark.parametrize("each", COLUMNS, ids=lambda each: each.name)
def test_a_column_is_the_same_alone_and_its_fields_are_enough(each: Column) -> None:
    records = [found for case in golden_files.cases() if (found := golden_files.received(case)) is not None]
    alone = RowBatches([each], "q", TOPIC)
    maker = ColumnMaker(fields=alone.fields())
    maker.add(records)
    everything = RowColumns.of([to_row(record) for record in records])
    assert alone.batch(maker.columns()) == alone.batch(everything)


def test_a_reader_reads_the_fields_of_its_columns_only() -> None:
    assert RowBatches([column("text")], "q", TOPIC).fields() == {"text"}


@pytest.mark.parametrize("others", [0, 1, 40])
def test_rows_that_share_a_map_each_have_it(others: int) -> None:
    """Whether few maps or many are shared: the first are made once, the others row by row."""
    shared, empty = {"a": "int", "b": "long"}, dict[str, str]()
    maps = [shared, empty, shared, shared, *({"c": str(number)} for number in range(others)), shared] * 5
    found = values([row(property_types=each) for each in maps], "property_types")
    assert found == [list(each.items()) for each in maps]


@pytest.mark.parametrize("texts", [{"a": "1", "b": "x"}, {"n": "5"}, {}])
def test_a_table_of_texts_is_the_same_column_as_its_rows(texts: dict[str, str]) -> None:
    rows = [row(properties={name: f"{text}{number}" for name, text in texts.items()}) for number in range(3)]
    table = TextTable(tuple(texts), [[each.properties[name] for each in rows] for name in texts], 3)
    columns = RowColumns.of(rows)
    shared = RowColumns(3, [table if each is columns["properties"] else each for each in columns.values])
    reader = RowBatches([column("properties")], "q", TOPIC)
    found = reader.batch(shared)
    found.validate(full=True)
    assert found.equals(reader.batch(columns))


@pytest.mark.parametrize("size", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("shared", [{"a": "int", "b": "long"}, {}])
def test_rows_that_all_share_one_map_each_have_it(shared: dict[str, str], size: int) -> None:
    columns = RowColumns.of([row(property_types=shared, properties=shared) for _ in range(size)])
    tables = [TextTable(tuple(shared), [[text] * size for text in shared.values()], size), columns["property_types"]]
    for table in tables:
        values = [table if each is columns["properties"] else each for each in columns.values]
        made = RowBatches([column("properties"), column("property_types")], "q", TOPIC).batch(RowColumns(size, values))
        made.validate(full=True)
        assert [each.to_pylist() for each in made.columns] == [[list(shared.items())] * size] * 2


def test_each_column_can_be_had_alone() -> None:
    rows = received_rows()
    whole = RowBatches(COLUMNS, "q", TOPIC).batch(RowColumns.of(rows))
    assert set(_BUILDERS) == {each.name for each in COLUMNS}
    for each in COLUMNS:
        one = RowBatches([each], "q", TOPIC).batch(RowColumns.of(rows))
        assert one.schema.names == [each.name]
        assert one.column(0).equals(whole.column(each.name)), each.name


def test_columns_come_in_the_order_that_was_asked_for() -> None:
    made = batch([row(expiration=LONGEST)], "decode_error", "JMSExpiration", "topic")
    assert made.schema.names == ["decode_error", "JMSExpiration", "topic"]
    assert made.column("decode_error")[0].is_valid


def test_problems_that_others_found_are_told_too() -> None:
    columns = RowColumns.of([row(), row(expiration=LONGEST)])
    wanted = [column("JMSExpiration"), column("decode_error")]
    made = RowBatches(wanted, "q", TOPIC).batch(columns, [(0, "no value"), (1, "neither")])
    found = made.column("decode_error").to_pylist()
    assert found[0] == "no value" and found[1].startswith("neither; JMSExpiration")


def test_no_rows_are_a_batch_without_rows() -> None:
    reader = RowBatches(columns_of(Body.BOTH), "q", TOPIC)
    assert reader.batch(RowColumns.of([])).num_rows == 0
    assert reader.batch(RowColumns.of([])).schema == reader.schema == reader.batch(RowColumns.of([row()])).schema


def test_a_topic_without_partitions_has_no_partition() -> None:
    assert values([row()], "partition") == [None]


def test_a_time_that_is_not_set_is_null() -> None:
    rows = [row(timestamp=time, expiration=time, delivery_time=time, publish_time=time) for time in (0, 1, -1)]
    for name in ("JMSTimestamp", "JMSExpiration", "JMSDeliveryTime"):
        assert values(rows[:1], name) == [None]
        assert values(rows, name) == [None, moment(1), moment(-1)]
        assert values(rows[1:2], name) == [moment(1)]
    assert values(rows, "publish_time") == [datetime(1970, 1, 1, tzinfo=UTC), moment(1), moment(-1)]


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("time", [LONGEST, -LONGEST - 1, (1 << 64) - 1, 253_402_300_800_000, -62_135_596_800_001])
def test_a_time_outside_of_what_a_column_holds_is_null_with_the_reason(name: str, time: int) -> None:
    field = TIMES[name]
    rows = [row(**{field: 5}), row(**{field: time}), row(**{field: 0}), row(**{field: time}, decode_error="before")]
    made = batch(rows, name, "decode_error")
    zero = datetime(1970, 1, 1, tzinfo=UTC) if name == "publish_time" else None
    assert made.column(0).to_pylist() == [moment(5), None, zero, None]
    reason = f"{name} is no time of the years 1 to 9999: {time} ms since 1970"
    assert made.column(1).to_pylist() == [None, reason, None, f"before; {reason}"]
    assert values(rows, "decode_error") == [None, None, None, "before"]  # nothing else is missing


def test_the_first_and_last_times_that_fit_are_times() -> None:
    rows = [row(timestamp=-62_135_596_800_000), row(timestamp=253_402_300_799_999)]
    last = datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)
    assert values(rows, "JMSTimestamp") == [datetime(1, 1, 1, tzinfo=UTC), last]


def test_two_times_that_do_not_fit_are_two_reasons() -> None:
    found = batch([row(timestamp=LONGEST, expiration=LONGEST)], "JMSTimestamp", "JMSExpiration", "decode_error").column(
        2
    )
    assert found[0].as_py().count("is no time of the years") == 2


def test_a_body_is_the_bytes_on_the_wire() -> None:
    text, null = row(body_type="text", text="é"), row(body_type="text")
    spoiled, raw = row(body_type="text", data=b"\xff"), row(body_type="bytes", data=b"")
    assert values([text, null, spoiled, raw], "payload") == ["é".encode(), None, b"\xff", b""]
    assert values([text], "payload") == ["é".encode()]
    assert values([null, raw], "payload") == [None, b""]


def test_a_body_that_is_no_map_has_no_json_and_the_reason_once() -> None:
    spoiled = to_row(Record(b"\0", {"JMSPulsarMessageType": "map"}))
    unchecked = to_row(Record(b"\0", {"JMSPulsarMessageType": "map"}), check_body=False)
    made = batch([spoiled, unchecked, row(body_type="map")], "body_json", "decode_error")
    assert made.column(0).to_pylist() == [None, None, "{}"]
    assert made.column(1).to_pylist() == [spoiled.decode_error, spoiled.decode_error, None]


POSITION = spark.StructType(
    [
        spark.StructField("ledger", spark.LongType()),
        spark.StructField("entry", spark.LongType()),
        spark.StructField("batch", spark.IntegerType()),
    ]
)
SPARK: dict[Type, Any] = {
    Type.STRING: spark.StringType(),
    Type.BINARY: spark.BinaryType(),
    Type.BOOLEAN: spark.BooleanType(),
    Type.INT: spark.IntegerType(),
    Type.LONG: spark.LongType(),
    Type.TIMESTAMP: spark.TimestampType(),
    Type.TEXTS: spark.MapType(spark.StringType(), spark.StringType()),
    Type.POSITION: POSITION,
}


def spark_schema(columns: tuple[Column, ...]) -> Any:
    """Spark's own schema of columns. Made without its parser of DDL, which needs a JVM."""
    return spark.StructType([spark.StructField(each.name, SPARK[each.type]) for each in columns])


def nullability(field: pa.Field) -> list[object]:
    """Names and nullability of a field and of those inside it."""
    kind = field.type
    parts = [kind.key_field, kind.item_field] if pa.types.is_map(kind) else []
    if pa.types.is_struct(kind):
        parts = list(kind)
    return [field.name, field.nullable, *map(nullability, parts)]


@pytest.mark.parametrize("columns", [COLUMNS, columns_of(Body.RAW), COLUMNS[:1]], ids=["all", "raw", "one"])
def test_the_arrow_schema_is_the_one_that_spark_makes_of_its_own(columns: tuple[Column, ...]) -> None:
    """Names and types, those inside of structs and maps, too, and that each may be NULL."""
    expected = to_arrow_schema(spark_schema(columns), timezone="UTC")
    found = RowBatches(columns, "q", TOPIC).schema
    assert found.equals(expected, check_metadata=False)
    assert [nullability(field) for field in found] == [nullability(field) for field in expected]


def test_the_types_of_spark_are_those_of_the_ddl() -> None:
    for kind, made in SPARK.items():
        assert made.simpleString() == kind.value.lower().replace(", ", ",").replace(": ", ":")


def test_each_type_of_column_has_an_arrow_type() -> None:
    assert set(ARROW) == set(SPARK) == set(Type) - {Type.PROPERTIES, Type.ANY}
