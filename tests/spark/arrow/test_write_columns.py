"""The columns that a table may have when it is written."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

from jmsaio.errors import ConfigurationError
from jmsaio.spark.arrow.columns import POSITION, TEXTS, TIMESTAMP, schema_of
from jmsaio.spark.arrow.write_columns import WRITE_COLUMNS, find_columns, names_of
from jmsaio.spark.model.schema import COLUMNS, Body, Column, Type, columns_of

GOOD = {
    Type.STRING: [pa.string(), pa.large_string(), pa.null()],
    Type.BINARY: [pa.binary(), pa.large_binary(), pa.null()],
    Type.INT: [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.null()],
    Type.LONG: [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.null()],
    Type.TIMESTAMP: [TIMESTAMP, pa.timestamp("ns", tz="Europe/Berlin"), pa.null()],
    Type.TEXTS: [TEXTS, pa.map_(pa.large_string(), pa.large_string()), pa.null()],
    Type.ANY: [pa.int32(), pa.null()],
    Type.PROPERTIES: [
        pa.struct([("a", pa.string()), ("b", pa.bool_()), ("c", pa.int64()), ("d", pa.float32())]),
        pa.struct([]),
        pa.null(),
    ],
}
BAD = {
    Type.STRING: [pa.binary(), pa.int32(), TEXTS],
    Type.BINARY: [pa.string(), POSITION],
    Type.INT: [pa.float64(), pa.string(), pa.uint8(), pa.decimal128(5, 0)],
    Type.LONG: [pa.float64(), pa.string(), pa.uint8(), pa.decimal128(5, 0)],
    Type.TIMESTAMP: [pa.timestamp("us"), pa.int64(), pa.date32()],
    Type.TEXTS: [pa.map_(pa.string(), pa.int32()), pa.map_(pa.int32(), pa.string()), pa.string()],
    Type.ANY: [],
    Type.PROPERTIES: [TEXTS, pa.struct([("a", TIMESTAMP)]), pa.struct([("a", pa.binary())])],
}


def find(*names: str, destination: str | None = "q", dedup: bool = False) -> dict[str, int]:
    """The columns of a table with these, each of its type."""
    kinds = {column.name: GOOD[column.type][0] for column in WRITE_COLUMNS}
    fields = [(name, kinds.get(name, pa.string())) for name in names]
    return find_columns(pa.schema(fields), destination=destination, dedup=dedup)


@pytest.mark.parametrize("column", WRITE_COLUMNS, ids=lambda column: column.name)
def test_a_column_is_taken_with_each_of_its_types_and_no_other(column: Column) -> None:
    name, kind = column.name, column.type
    needed = {"body_type": pa.string(), "dedup_producer": pa.string(), "dedup_sequence": pa.int64()}
    beside = [(each, type_) for each, type_ in needed.items() if each != name]
    if name == "value":
        beside.remove(("body_type", pa.string()))
    for good in GOOD[kind]:
        schema = pa.schema([*beside, (name.upper(), good)])
        assert find_columns(schema, destination="q", dedup=True, values=name == "value")[name] == len(beside)
    for bad in BAD[kind]:
        schema = pa.schema([*beside, (name, bad)])
        with pytest.raises(ConfigurationError) as refused:
            find_columns(schema, destination="q", dedup=True)
        assert f"the column {name} must be {names_of(kind)}, not of the Arrow type {bad}" in str(refused.value)


def test_columns_that_the_provider_sets_are_left_out_with_one_warning() -> None:
    assert {
        "topic", "position", "publish_time", "producer_name", "schema_version", "JMSMessageID", "JMSTimestamp",
        "JMSExpiration", "JMSDeliveryTime", "JMSRedelivered", "JMSXDeliveryCount", "decode_error",
    } == {column.name for column in COLUMNS} - {column.name for column in WRITE_COLUMNS}  # fmt: skip
    with pytest.warns(UserWarning, match="columns that are not written: JMSMessageID, position$") as seen:
        assert find("jmsMESSAGEid", "text", "position") == {"text": 1}
    assert len(seen) == 1


@pytest.mark.parametrize("body", [Body.TYPED, Body.RAW])
def test_a_table_that_was_read_can_be_written(body: Body) -> None:
    with pytest.warns(UserWarning, match="columns that are not written"):
        found = find_columns(schema_of(columns_of(body)))
    assert {"destination", "partition", "properties", "body_type"} <= found.keys()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("text", "colour"), "there is no column 'colour' to write"),
        (("text", "TEXT"), "the column text occurs twice"),
        (("text", "bytes"), "text and bytes are two bodies: drop one, or add body_type"),
        (("text", "payload", "body_type"), "payload and text are two bodies"),
        (("text", "bytes", "payload", "body_type"), "payload and text and bytes are two bodies"),
        (("payload",), "payload requires the column body_type"),
    ],
)
def test_a_table_that_no_messages_can_be_made_of_is_refused(names: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        find(*names)


@pytest.mark.parametrize("body", ["bytes", "payload"])
def test_json_of_a_body_is_left_out_beside_its_bytes(body: str) -> None:
    assert find("text", "body_json") == {"text": 0, "body_json": 1}
    with pytest.warns(UserWarning, match="columns that are not written: body_json$"):
        assert find(body, "body_json", "body_type") == {body: 0, "body_type": 2}


def test_a_table_that_was_read_with_both_bodies_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="payload and text and bytes are two bodies"):
        find_columns(schema_of(columns_of(Body.BOTH)))


def test_a_table_names_its_destination_or_the_option_does() -> None:
    with pytest.raises(ConfigurationError, match="no destination: set the option queue or topic"):
        find("text", destination=None)
    assert find("text", "destination", destination=None) == {"text": 0, "destination": 1}


def test_the_columns_of_deduplication_come_with_the_option() -> None:
    for missing, there in (("dedup_producer", "dedup_sequence"), ("dedup_sequence", "dedup_producer")):
        with pytest.raises(ConfigurationError, match=f"dedup=columns requires the column {missing}"):
            find("text", there, dedup=True)
    with pytest.warns(UserWarning, match="not written: dedup_producer, dedup_sequence"):
        assert find("text", "dedup_producer", "dedup_sequence") == {"text": 0}


def test_a_table_without_anything_to_warn_of_is_silent() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert find("text", "bytes", "body_type", "key") == {"text": 0, "bytes": 1, "body_type": 2, "key": 3}
    assert seen == []


def test_with_a_schema_the_column_value_is_the_body() -> None:
    table = pa.schema([("value", pa.int64()), ("text", pa.string()), ("body_type", pa.string()), ("key", pa.string())])
    with pytest.warns(UserWarning, match="columns that are not written: text, body_type"):
        assert find_columns(table, destination="q", values=True) == {"value": 0, "key": 3}
    with pytest.raises(ConfigurationError, match="no column 'value' to write: drop it, or set the option schema"):
        find_columns(table, destination="q")
    with pytest.raises(ConfigurationError, match="option schema needs the body as column value, such as struct"):
        find_columns(pa.schema([("text", pa.string())]), destination="q", values=True)
