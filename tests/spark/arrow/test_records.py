"""Record batches of a writer to outgoing records."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from jmsaio.codec import Stamp, encode
from jmsaio.codec.bodies import encode_body
from jmsaio.codec.row_columns import RowColumns
from jmsaio.codec.rows import RawRow, to_record, to_row
from jmsaio.codec.schemas.reading import schema_reader
from jmsaio.codec.schemas.writing import schema_writer
from jmsaio.errors import (
    ConfigurationError,
    IllegalArgumentError,
    InvalidDestinationError,
    JMSError,
    MessageFormatError,
)
from jmsaio.model.names import check_property_name
from jmsaio.model.schema import Schema
from jmsaio.model.wire import OutgoingRecord
from jmsaio.spark.arrow import written_properties
from jmsaio.spark.arrow.columns import ARROW, POSITION, TEXTS, TIMESTAMP, RowBatches
from jmsaio.spark.arrow.records import WRITE_COLUMNS, OutgoingRow, RecordMaker, find_columns, names_of
from jmsaio.spark.arrow.value_column import written_schema
from jmsaio.spark.model.schema import COLUMNS, Body, Column, Type, columns_of, find_column
from tests.codec import golden_files
from tests.codec.described import build
from tests.codec.generated import Generator
from tests.kit.records import Record

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
        found = find_columns(RowBatches(columns_of(body), "q", "t").schema)
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
        find_columns(RowBatches(columns_of(Body.BOTH), "q", "t").schema)


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


NOW = 1_700_000_000_000
CONNECTION = "0a0a0a0a-connection"
KINDS = {
    Type.STRING: pa.string(), Type.BINARY: pa.binary(), Type.INT: pa.int64(), Type.LONG: pa.int64(),
    Type.TIMESTAMP: ARROW[Type.TIMESTAMP], Type.TEXTS: ARROW[Type.TEXTS],
    Type.PROPERTIES: pa.struct([("n", pa.int32()), ("s", pa.string())]), Type.ANY: pa.string(),
}  # fmt: skip
TYPES = {column.name: KINDS[column.type] for column in WRITE_COLUMNS}


def table(rows: list[Mapping[str, Any]]) -> pa.RecordBatch:
    """A batch of the columns that some row has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    arrays = [
        pa.array([list(value.items()) if isinstance(value := row.get(name), dict) and name != "props" else value
                  for row in rows], TYPES[name])
        for name in names
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, names=names)


def made(*rows: Mapping[str, Any], destination: str | None = "q", dedup: bool = False) -> list[OutgoingRow]:
    """What the rows of a table become."""
    batch = table(list(rows))
    maker = RecordMaker(batch.schema, connection_id=CONNECTION, destination=destination, dedup=dedup)
    return list(maker.records(batch, NOW))


def record(**cells: Any) -> OutgoingRecord:
    """The record of one row."""
    (row,) = made(cells)
    return row.record


def resent(rows: list[RawRow], body: Body) -> list[OutgoingRecord]:
    """The records of rows that went through a table."""
    columns = [column for column in columns_of(body) if column.written]
    batch = RowBatches(columns, "q", "persistent://public/default/q").batch(RowColumns.of(rows))
    maker = RecordMaker(batch.schema, connection_id=CONNECTION)
    return [row.record for row in maker.records(batch, NOW)]


def anew(row: RawRow, number: int) -> OutgoingRecord:
    """The record of a row that is sent anew: only what the provider sets differs."""
    message_id = f"ID:{CONNECTION}:1:1:{number}"
    return to_record(row._replace(message_id=message_id, timestamp=NOW, delivery_time=NOW, expiration=0), CONNECTION)


def java_rows() -> list[RawRow]:
    """A row of each golden file."""
    found = [golden_files.received(case) for case in golden_files.cases()]
    return [to_row(each) for each in found if each is not None]


@pytest.mark.parametrize("body", [Body.TYPED, Body.RAW])
def test_what_java_wrote_is_written_as_it_was_read(body: Body) -> None:
    rows = java_rows()
    assert len(rows) > 100
    assert resent(rows, body) == [anew(row, number) for number, row in enumerate(rows)]


@given(st.integers(0, 10**9), st.sampled_from([Body.TYPED, Body.RAW]))
def test_generated_messages_are_written_as_they_were_read(seed: int, body: Body) -> None:
    rows = []
    for item in Generator(seed).messages(6):
        options = item["options"]
        stamp = Stamp("ID:a:1:2", "other", 10, 10, 10, None, 0, options.get("priority", 4))
        stamp = stamp._replace(delivery_mode=options.get("delivery_mode", 2))
        rows.append(to_row(Record.sent(encode(build(item), stamp))))
    expected = [anew(row, number) for number, row in enumerate(rows)]
    assert resent(rows, body) == expected


def test_rows_keep_their_numbers_from_batch_to_batch() -> None:
    batch = table([{"text": "a"}, {"text": "b"}])
    maker = RecordMaker(batch.schema, connection_id=CONNECTION, destination="q")
    rows = [*maker.records(batch, NOW), *maker.records(batch.slice(1), NOW + 1)]
    assert [(row.destination, row.number, row.record.payload) for row in rows] == [
        ("q", 0, b"a"), ("q", 1, b"b"), ("q", 2, b"b"),
    ]  # fmt: skip
    assert [row.record.properties["JMSMessageId"] for row in rows] == [f"ID:{CONNECTION}:1:1:{n}" for n in range(3)]
    assert [row.record.event_time for row in rows] == [NOW, NOW, NOW + 1]
    assert maker.rows == 3


def test_every_column_has_its_part_in_a_record() -> None:
    cells = {
        "destination": "a", "text": "é", "body_type": "text", "object_format": "json", "key": "k",
        "properties": {"x": "7", "y": "z"}, "property_types": {"x": "long"}, "props": {"n": 5, "s": None},
        "JMSCorrelationID": "c", "JMSType": "t", "JMSReplyTo": "r", "reply_to_kind": "topic", "JMSPriority": 9,
        "JMSDeliveryMode": "NON_PERSISTENT", "time_to_live": 60_000, "partition": 2,
        "deliver_at": datetime.fromtimestamp(NOW / 1000 + 5, UTC), "dedup_producer": "p", "dedup_sequence": 77,
    }  # fmt: skip
    batch = table([cells])
    maker = RecordMaker(batch.schema, connection_id=CONNECTION, namespace="t/n", dedup=True)
    (row,) = maker.records(batch, NOW)
    expected = RawRow(
        body_type="text", text="é", data=None, object_format="json", properties={"x": "7", "y": "z", "n": "5"},
        property_types={"x": "long", "n": "int"}, key="k", correlation_id="c", correlation_bytes=None, type="t",
        reply_to="r", reply_to_kind="topic", message_id=f"ID:{CONNECTION}:1:1:0", timestamp=NOW,
        delivery_time=NOW + 5000, expiration=NOW + 60_000, priority=9, delivery_mode="NON_PERSISTENT",
    )  # fmt: skip
    wanted = to_record(expected, CONNECTION, "t/n", deliver_at=NOW + 5000)
    wanted.sequence_id, wanted.sticky_key = 77, 2
    assert row == OutgoingRow("a", wanted, 0, "p")
    assert maker.order is not None
    with pytest.raises(IllegalArgumentError, match="must lie above 77 of row 0"):
        maker.order.check("p", 77, None, 1)
    assert row.record.properties["JMSReplyTo"] == "persistent://t/n/r"
    assert record(correlation_bytes=b"\xff").properties["JMSCorrelationID"] == "/w=="


def test_a_row_of_nulls_is_a_message_without_anything() -> None:
    names = [name for name in TYPES if name not in ("payload", "body_json", "value") and not name.startswith("dedup_")]
    batch = pa.RecordBatch.from_arrays([pa.nulls(1, TYPES[name]) for name in names], names=names)
    maker = RecordMaker(batch.schema, connection_id=CONNECTION, destination="q")
    (row,) = maker.records(batch, NOW)
    bare = {"JMSPulsarMessageType": "header", "JMSConnectionID": CONNECTION, "JMSDeliveryTime": str(NOW)}
    bare["JMSMessageId"] = f"ID:{CONNECTION}:1:1:0"
    assert row == OutgoingRow("q", OutgoingRecord(None, bare, None, NOW), 0)


@pytest.mark.parametrize(
    ("cells", "kind", "payload"),
    [
        ({"text": "a"}, "text", b"a"),
        ({"text": None}, "text", None),
        ({"bytes": b"a"}, "bytes", b"a"),
        ({"bytes": None}, "bytes", None),
        ({"bytes": b"a", "body_type": "map"}, "map", b"a"),
        ({"payload": b"a", "body_type": "text"}, "text", b"a"),
        ({"payload": None, "body_type": "stream"}, "stream", None),
        ({"payload": None, "body_type": None}, "header", None),
        ({"text": "a", "bytes": None, "body_type": None}, "text", b"a"),
        ({"text": None, "bytes": b"a", "body_type": None}, "bytes", b"a"),
        ({"text": None, "bytes": b"\xff", "body_type": "text"}, "text", b"\xff"),
        ({"text": None, "bytes": b"a", "body_type": "avro"}, "avro", b"a"),
        ({"text": None, "bytes": None, "body_type": None}, "header", None),
        ({"body_json": '{"n":{"int":5}}'}, "map", encode_body("map", {"n": 5}, {})),
        ({"body_json": "[null]", "body_type": "stream"}, "stream", encode_body("stream", [None], {})),
        ({"body_json": None, "body_type": "stream"}, "stream", None),
        ({"body_json": None, "text": "a"}, "text", b"a"),
        ({"body_json": None, "text": None}, "header", None),
        ({"key": "k"}, "header", None),
        ({"body_type": "header"}, "header", None),
        ({"body_type": None}, "header", None),
    ],
)
def test_the_body_is_what_its_columns_say(cells: dict[str, Any], kind: str, payload: bytes | None) -> None:
    found = record(**cells)
    assert (found.properties["JMSPulsarMessageType"], found.payload) == (kind, payload)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"text": "a", "bytes": b"a", "body_type": "text"}, "two bodies, text and bytes"),
        ({"text": "a", "body_type": "map"}, "it has a text, but its body_type is 'map'"),
        ({"payload": b"a", "body_type": None}, "it has a payload, but its body_type is NULL"),
        ({"text": "a", "body_json": "[]"}, "two bodies, text and body_json"),
        (
            {"body_json": "[]", "body_type": "map"},
            "its body_json is that of a stream message, but its body_type is 'map'",
        ),
        ({"body_json": '{"n":5}'}, "value 'n' must be null or an object of one type, such as {\"int\": 5}"),
        ({"body_json": "{"}, "the body is not JSON"),
        ({"body_type": "text"}, "its body_type is 'text', but the table has no column for the body"),
        ({"properties": {"n": "5"}, "property_types": {"n": "real"}}, "can't have the type 'real'"),
        ({"properties": {"n": "x"}, "property_types": {"n": "int"}}, "property 'n': 'x' is not an int"),
        ({"properties": {"n": "2147483648"}, "property_types": {"n": "int"}}, "property 'n': '2147483648' is not a"),
        ({"properties": {}, "property_types": {"n": "int"}}, "'n' has the type 'int', but no text"),
        ({"properties": {"JMSPriority": "1"}}, "'JMSPriority' can't name a property"),
        ({"properties": {"n_jsmtype": "1"}}, "'n_jsmtype' can't name a property"),
        (
            {"properties": {"n": "6"}, "props": {"n": 5, "s": None}},
            "property 'n' is in properties and in props: drop one column",
        ),
        ({"JMSPriority": 10}, "JMSPriority must be 0 to 9, not 10"),
        ({"JMSPriority": -1}, "JMSPriority must be 0 to 9, not -1"),
        ({"JMSDeliveryMode": "persistent"}, "delivery_mode must be PERSISTENT or NON_PERSISTENT"),
        ({"JMSReplyTo": "r"}, "reply_to_kind must be queue or topic"),
        ({"JMSCorrelationID": "a", "correlation_bytes": b"a"}, "two correlation ids"),
        ({"time_to_live": -1}, "time_to_live must be 0 to "),
        ({"time_to_live": (1 << 63) - 1}, "time_to_live must be 0 to "),
        ({"partition": -1}, "partition must be 0 or more, not -1"),
    ],
)
def test_a_row_that_no_message_can_carry_is_refused_with_its_number(cells: dict[str, Any], words: str) -> None:
    """Those before it come first."""
    good = {"body_type": "header"} if "body_type" in cells else {}
    batch = table([good, good, cells])
    maker = RecordMaker(batch.schema, connection_id=CONNECTION, destination="q")
    rows = maker.records(batch, NOW)
    assert [next(rows).number, next(rows).number] == [0, 1]
    with pytest.raises(MessageFormatError, match=f"^row 2: .*{words}"):
        next(rows)


def test_a_row_names_its_destination_unless_the_option_does() -> None:
    rows: list[dict[str, Any]] = [{"destination": "a"}, {"destination": None}]
    assert [row.destination for row in made(*rows)] == ["q", "q"]
    for none in (None, ""):
        with pytest.raises(InvalidDestinationError, match="row 1: it has no destination"):
            made(rows[0], {"destination": none}, destination=None)
    with pytest.raises(ConfigurationError, match="no destination"):
        made({"text": "a"}, destination=None)


def test_a_time_of_delivery_that_has_passed_is_now() -> None:
    moments = [datetime.fromtimestamp((NOW + each) / 1000, UTC) for each in (-5, 0, 5)] + [None]
    rows = [row.record for row in made(*({"deliver_at": moment} for moment in moments))]
    assert [row.deliver_at for row in rows] == [None, None, NOW + 5, None]
    assert [int(row.properties["JMSDeliveryTime"]) - NOW for row in rows] == [0, 0, 5, 0]


def test_nothing_to_live_is_for_ever() -> None:
    rows = [row.record.properties for row in made(*({"time_to_live": each} for each in (None, 0, 1)))]
    assert [each.get("JMSExpiration") for each in rows] == [None, None, str(NOW + 1)]


def identity(producer: str | None, sequence: int | None) -> dict[str, Any]:
    """The cells of a row that deduplicates."""
    return {"dedup_producer": producer, "dedup_sequence": sequence}


@pytest.mark.parametrize(
    ("cells", "error", "words"),
    [
        (identity(None, 1), MessageFormatError, "dedup_producer must be the name of a producer"),
        (identity("", 1), MessageFormatError, "dedup_producer must be the name of a producer"),
        (identity("p", None), MessageFormatError, "dedup_sequence must be 0 or more, not NULL"),
        (identity("p", -1), MessageFormatError, "dedup_sequence must be 0 or more, not -1"),
        (identity("p", 5), IllegalArgumentError, "dedup_sequence 5 of producer 'p' must lie above 5 of row 0"),
    ],
)
def test_a_row_without_an_ascending_identity_is_refused(
    cells: dict[str, Any], error: type[JMSError], words: str
) -> None:
    first, second = made(identity("p", 5), identity("o", 5), dedup=True)
    assert (first.producer, first.record.sequence_id, second.producer) == ("p", 5, "o")
    with pytest.raises(error, match=f"^row 1: {words}"):
        made(identity("p", 5), cells, dedup=True)


def test_columns_are_found_in_any_case() -> None:
    column = find_column("JMSType")
    assert column is not None
    batch = pa.RecordBatch.from_arrays([pa.array(["t"])], names=["jmstype"])
    (row,) = RecordMaker(batch.schema, connection_id=CONNECTION, destination="q").records(batch, NOW)
    assert row.record.properties[column.name] == "t"


@pytest.mark.parametrize("name", ["in", "Between", "trace-id", "1st", ""])
def test_a_property_name_that_the_client_refuses_is_refused_before_any_row(name: str) -> None:
    with pytest.raises(IllegalArgumentError) as refused:
        check_property_name(name)
    batch = table([{"text": "a", "properties": {"n": "1"}}, {"text": "b", "properties": {"m": "1", name: "1"}}])
    maker = RecordMaker(batch.schema, connection_id=CONNECTION, destination="q")
    with pytest.raises(MessageFormatError, match=f"^row 1: {re.escape(str(refused.value))}$"):
        next(maker.records(batch, NOW))
    assert len(list(maker.records(batch.slice(0, 1), NOW))) == 1
    declared = pa.schema([("text", pa.string()), ("props", pa.struct([(name, pa.string())]))])
    with pytest.raises(ConfigurationError, match=re.escape(str(refused.value))):
        RecordMaker(declared, connection_id=CONNECTION, destination="q")


def test_a_raw_row_keeps_the_names_of_the_message_that_it_was() -> None:
    raw = {"payload": b"a", "body_type": "text", "properties": {"trace-id": "1"}}
    batch = table([raw])
    (row,) = RecordMaker(batch.schema, connection_id=CONNECTION, destination="q").records(batch, NOW)
    assert row.record.properties["trace-id"] == "1"


#: Of each cell what is usual first, then what is not, and what is refused.
CELLS: dict[str, list[Any]] = {
    "destination": ["queue://a", "topic://b", None, ""],
    "text": ["a", None, "é"],
    "bytes": [None, b"b", b""],
    "body_type": [None, "text", "bytes", "avro", "header"],
    "object_format": [None, "json"],
    "key": [None, "k", ""],
    "properties": [{"n": "5", "JMSXGroupID": "g"}, None, {}, {"n": "6", "s": None}, {"JMSType": "x"}],
    "property_types": [{"n": "int"}, None, {"lost": "int"}],
    "JMSCorrelationID": [None, "c"],
    "JMSType": [None, "t", "u"],
    "JMSReplyTo": [None, "r"],
    "reply_to_kind": ["queue", "topic", None],
    "JMSPriority": [None, 4, 9, 10],
    "JMSDeliveryMode": [None, "NON_PERSISTENT", "odd"],
    "time_to_live": [None, 0, 60_000, -1],
    "deliver_at": [None, datetime.fromtimestamp(NOW / 1000 + 5, UTC)],
    "partition": [None, 1, -1],
    "dedup_producer": ["p", "o", None],
    "dedup_sequence": [7, 8, -1, None],
}


@st.composite
def tables(draw: st.DrawFn, needed: set[str]) -> pa.RecordBatch:
    """Tables of which most rows are alike."""
    optional = sorted(name for name in CELLS if name != "destination" and not name.startswith("dedup_"))
    names = needed | draw(st.sets(st.sampled_from(optional), max_size=5))
    if {"text", "bytes"} <= names:
        names.add("body_type")
    kinds = [
        {name: draw(st.sampled_from(CELLS[name][: draw(st.sampled_from([2, 3, 9]))])) for name in sorted(names)}
        for _ in range(draw(st.integers(1, 3)))
    ]
    rows = kinds * draw(st.integers(1, 6))
    arrays = [
        pa.array([list(cell.items()) if isinstance(cell := row[name], dict) else cell for row in rows], TYPES[name])
        for name in sorted(names)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=sorted(names))


Outcome = tuple[list[tuple[OutgoingRow, list[tuple[str, str]]]], str]


def outcome(maker: RecordMaker, batches: list[pa.RecordBatch]) -> Outcome:
    """The rows before the first that is refused, with their properties in the order of the wire, and its error."""
    found: list[tuple[OutgoingRow, list[tuple[str, str]]]] = []
    try:
        for batch in batches:
            found.extend((row, list(row.record.properties.items())) for row in maker.records(batch, NOW))
    except JMSError as error:
        return found, repr(error)
    return found, ""


@given(st.data(), st.booleans(), st.booleans())
def test_rows_together_are_what_each_is_alone_up_to_the_one_that_is_refused(
    data: st.DataObject, named: bool, dedup: bool
) -> None:
    needed = {"dedup_producer", "dedup_sequence"} if dedup else {"text"}
    batch = data.draw(tables(needed | {"destination"} if named else needed))

    def maker() -> RecordMaker:
        return RecordMaker(
            batch.schema, connection_id=CONNECTION, destination=None if named else "queue://q", dedup=dedup
        )

    together = outcome(maker(), [batch])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(written_properties, "_by_column", lambda *columns: None)
        assert outcome(maker(), [batch.slice(row, 1) for row in range(batch.num_rows)]) == together


def test_a_head_is_made_once_for_all_rows_that_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[dict[str, Any]] = []
    make = RecordMaker._head

    def count(maker: RecordMaker, cells: dict[str, Any], now: int) -> OutgoingRecord:
        heads.append(cells)
        return make(maker, cells, now)

    monkeypatch.setattr(RecordMaker, "_head", count)
    rows = [{"text": text, "JMSType": kind, "JMSCorrelationID": text} for text in "ab" for kind in "tu" for _ in "1234"]
    found = [row.record for row in made(*rows)]
    assert len(heads) == 2
    assert [(each.payload, each.properties["JMSType"]) for each in found] == [
        (text.encode(), kind) for text in "ab" for kind in "tu" for _ in "1234"
    ]
    assert {each.properties["JMSCorrelationID"] for each in found} == {"YQ==", "Yg=="}


def test_a_body_is_that_of_the_column_that_is_not_null() -> None:
    cells: list[dict[str, Any]] = [{"text": "a", "body_type": None}, {"bytes": b"b"}, {}]
    assert [row.record.payload for row in made(*cells * 8)] == [b"a", b"b", None] * 8


def test_a_row_has_the_number_and_the_partition_that_it_is_given() -> None:
    rows = made({"key": "k", "partition": 3}, {"key": "l", "partition": None})
    assert [row.record.properties["JMSMessageId"] for row in rows] == [f"ID:{CONNECTION}:1:1:{n}" for n in (0, 1)]
    assert [(row.record.key, row.record.sticky_key, row.record.sequence_id) for row in rows] == [
        ("k", 3, None), ("l", None, None),
    ]  # fmt: skip


def test_a_group_of_the_properties_is_the_key() -> None:
    assert record(text="a", properties={"n": "5", "JMSXGroupID": "g"}, property_types={"n": "int"}).key == "g"
    assert record(text="a", key="k", properties={"JMSXGroupID": "g"}).key == "k"


@pytest.mark.parametrize(
    ("columns", "kind"),
    [({"text"}, "text"), ({"bytes", "key"}, "bytes"), ({"text", "bytes", "body_type"}, "header"), ({"key"}, "header")],
)
def test_a_row_without_a_body_is_of_the_kind_that_its_table_has(columns: set[str], kind: str) -> None:
    assert record(**dict.fromkeys(columns)).properties["JMSPulsarMessageType"] == kind


def test_a_time_of_delivery_is_in_whole_milliseconds() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)
    assert record(deliver_at=moment).deliver_at == int(moment.timestamp() * 1000)


ITEM = pa.struct([("item", pa.string()), ("qty", pa.map_(pa.string(), pa.int32()))])


def valued(schema: Schema, kind: pa.DataType, *values: Any, **columns: list[Any]) -> Iterator[OutgoingRow]:
    """What rows of a table become whose bodies are values of a schema."""
    batch = pa.RecordBatch.from_pydict({"value": pa.array(values, kind), **columns})
    writer = schema_writer(schema)
    return RecordMaker(batch.schema, connection_id=CONNECTION, destination="q", writer=writer).records(batch, NOW)


def test_a_value_is_written_with_its_schema() -> None:
    """Only a text says the kind of its message: a JMS client without schemas would read another as an object."""
    schema = written_schema("avro", pa.field("value", ITEM))
    values = {"item": "tea", "qty": [("a", 1)]}, None, {"item": None, "qty": None}
    rows = list(valued(schema, ITEM, *values, JMSType=["t"] * 3, key=["a", "b", "c"]))
    reader = schema_reader(schema)
    assert reader is not None
    assert [reader.read(row.record.payload, None) for row in rows] == [
        {"item": "tea", "qty": {"a": 1}}, None, {"item": None, "qty": None},
    ]  # fmt: skip
    assert [row.record.key for row in rows] == ["a", "b", "c"]
    assert all("JMSPulsarMessageType" not in row.record.properties for row in rows)
    assert {row.record.properties["JMSType"] for row in rows} == {"t"}
    (text,) = valued(Schema("STRING"), pa.string(), "hé")
    assert (text.record.payload, text.record.properties["JMSPulsarMessageType"]) == ("hé".encode(), "text")
    (number,) = valued(Schema("JSON", '"long"'), pa.int64(), 5)
    assert number.record.payload == b"5"
    assert [row.record.payload for row in valued(Schema("STRING"), pa.string(), None)] == [None]


def test_a_value_that_does_not_fit_names_row_column_and_value() -> None:
    schema = Schema("AVRO", {"type": "record", "name": "R", "fields": [{"name": "item", "type": "string"}]})
    kind = pa.struct([("item", pa.string())])
    rows = valued(schema, kind, {"item": "a"}, {"item": None}, {"item": "b"})
    assert next(rows).record.payload == b"\x02a"
    with pytest.raises(MessageFormatError, match=r"row 1: column value = \{'item': None\}: .* not fit the AVRO schema"):
        next(rows)
    with pytest.raises(MessageFormatError, match="row 0: column value = nan: the body can't be written as JSON"):
        list(valued(Schema("JSON", '"double"'), pa.float64(), float("nan")))
