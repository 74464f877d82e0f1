"""The column ``value``: each body read with the schema of its own version, fetched once."""

from __future__ import annotations

import asyncio
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pytest

import jmsaio
from jmsaio.codec.row_columns import ColumnMaker
from jmsaio.codec.schemas.reading import schema_reader
from jmsaio.codec.schemas.writing import schema_writer
from jmsaio.model.schema import Schema
from jmsaio.spark.arrow.value_column import ValueColumn, _fitted, python_value, written_schema
from jmsaio.spark.model.value_type import value_type
from jmsaio.transport.base import Admin
from tests.kit.records import Record

TOPIC = "persistent://a/b/c-partition-1"
FIRST = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
LATER = {**FIRST, "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": {"type": "map", "values": "long"}}]}
STRUCT = pa.struct([("a", pa.int32()), ("b", pa.map_(pa.string(), pa.int64()))])

#: A version that no schema has.
CLAIMED = 1 << 63


class Registry:
    """An admin that has schemas."""

    def __init__(self, *schemas: Schema | Exception) -> None:
        self.schemas = schemas
        self.asked: list[int] = []

    async def schema(self, topic: str, version: int) -> Schema:
        assert topic == "persistent://a/b/c"
        self.asked.append(version)
        found = self.schemas[version]
        if isinstance(found, Exception):
            raise found
        return found


def read(
    kind: pa.DataType,
    registry: Registry | None,
    *records: tuple[int | None, bytes | None],
    wanted: Schema | None = None,
) -> tuple[list[Any], dict[int, str]]:
    """The values of records, given as schema version and payload."""
    maker = ColumnMaker()
    for version, payload in records:
        properties = {} if version is not None else {"JMSPulsarMessageType": "text"}
        number = None if version is None else version.to_bytes(9 if version >= CLAIMED else 8, "big")
        maker.add([Record(payload, properties, schema_version=number)])
    columns = maker.columns()
    column = ValueColumn(kind, TOPIC, wanted)
    for _ in range(2):
        asyncio.run(column.learn(cast("Admin", registry), columns["schema_version"]))
    values, problems = column.array(columns)
    assert values.type == kind
    return values.to_pylist(maps_as_pydicts="strict"), dict(problems)


def test_versions_become_one_struct() -> None:
    registry = Registry(Schema("AVRO", FIRST), Schema("AVRO", LATER))
    rows = [(1, b"\x04\x02\x02x\x0a\x00"), (0, b"\x06"), (None, b"text"), (0, None), (1, b"\x04\x00")]
    values, problems = read(STRUCT, registry, *rows)
    assert values == [{"a": 2, "b": {"x": 5}}, {"a": 3, "b": None}, None, None, {"a": 2, "b": {}}]
    assert problems == {} and sorted(registry.asked) == [0, 1]


def test_a_narrower_value_becomes_the_widest_type_if_that_has_it() -> None:
    kind = pa.struct([("a", pa.float64())])
    versions = (Schema("AVRO", {**FIRST, "fields": [{"name": "a", "type": each}]}) for each in ("long", "double"))
    exact, beyond = b"\x0a", b"\x82" + b"\x80" * 6 + b"\x20"  # 5, and 2**53 + 1
    values, problems = read(kind, Registry(*versions), (0, exact), (0, beyond), (1, struct.pack("<d", 0.5)))
    assert values == [{"a": 5.0}, None, {"a": 0.5}]
    assert list(problems) == [1] and "9007199254740993" in problems[1]


def test_other_schemas_become_json() -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    registry = Registry(
        Schema("JSON"), Schema("STRING"), Schema("INT64"), Schema("DATE"), Schema("AVRO", price), Schema("PROTOBUF"),
        Schema("AVRO", '"bytes"'),
    )  # fmt: skip
    payloads = ['{"a": "é"}'.encode(), b"x", bytes(7) + b"\x05", bytes(8), b"\x02\x05", b"?", b"\x02\x05"]
    values, problems = read(pa.string(), registry, *enumerate(payloads))
    assert problems == {} and values[5] is None and values.pop(1) == "x"
    assert [json.loads(value) for value in values if value is not None] == [
        {"a": "é"}, 5, datetime(1970, 1, 1, tzinfo=UTC).isoformat(), "0.05", "BQ==",
    ]  # fmt: skip


def test_what_can_not_be_read_is_null_with_the_reason() -> None:
    registry = Registry(
        Schema("AVRO", FIRST), Schema("AVRO", '"monkey"'), jmsaio.NotFoundError("deleted"), Schema("STRING"),
        Schema("AVRO", {**FIRST, "fields": [{"name": "a", "type": "string"}]}),
    )  # fmt: skip
    rows = [(0, b""), (1, b"x"), (2, b"x"), (3, b"x"), (4, b"\x02x"), (0, b"\x06")]
    values, problems = read(STRUCT, registry, *rows)
    assert values == [None, None, None, None, None, {"a": 3, "b": None}]
    words = ["no whole number", "schema 1 of persistent://a/b/c: it has no type 'monkey'", "deleted", "not fit", "'x'"]
    assert [word for row, word in enumerate(words) if word not in problems[row]] == []
    assert all(reason.startswith("no readable value: ") for reason in problems.values()) and len(problems) == 5


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (pa.string(), rb'"\ud800"'),
        (pa.struct([("a", pa.string())]), rb'{"a": "\ud800"}'),
        (pa.struct([("a", pa.int64())]), b'{"a": ' + b"9" * 30 + b"}"),
        (pa.map_(pa.string(), pa.int64()), rb'{"\ud800": 1}'),
    ],
)
def test_json_that_arrow_can_not_hold_is_null_with_the_reason(kind: pa.DataType, payload: bytes) -> None:
    values, problems = read(kind, Registry(Schema("JSON", FIRST)), (0, payload), (None, None), (CLAIMED, b"{}"))
    assert values == [None, None, None]
    assert sorted(problems) == [0, 2] and "claims a schema version" in problems[2]


def test_an_error_of_the_broker_is_raised() -> None:
    with pytest.raises(jmsaio.AdminError, match="away"):
        read(STRUCT, Registry(jmsaio.AdminError("away")), (0, b"x"))


@pytest.mark.parametrize(
    ("value", "kind"), [({"a": 1}, pa.int32()), ([1], STRUCT), (1, STRUCT), ({"a": 1}, pa.list_(pa.int32()))]
)
def test_a_value_of_another_shape_does_not_fit(value: Any, kind: pa.DataType) -> None:
    with pytest.raises(jmsaio.MessageFormatError, match="does not fit"):
        _fitted(value, kind)


def test_nested_values_fit() -> None:
    kind = pa.struct([("l", pa.list_(STRUCT)), ("d", pa.decimal128(9, 2))])
    fitted = _fitted({"l": [{"a": 1, "more": 2}, None], "d": Decimal("1.25")}, kind)
    assert pa.array([fitted], kind).to_pylist() == [{"l": [{"a": 1, "b": None}, None], "d": Decimal("1.25")}]


@pytest.mark.parametrize(
    ("schema", "kind", "payload", "value"),
    [
        (Schema("STRING"), pa.string(), b"x", "x"),
        (Schema("INT64"), pa.int64(), bytes(7) + b"\x05", 5),
        (Schema("FLOAT"), pa.float32(), b"\x3f\xc0\x00\x00", 1.5),
        (Schema("TIME"), pa.string(), bytes(8), "00:00:00"),
        (Schema("DATE"), pa.timestamp("us", "UTC"), bytes(8), datetime(1970, 1, 1, tzinfo=UTC)),
        (Schema("LOCAL_DATE"), pa.date32(), bytes(8), date(1970, 1, 1)),
        (Schema("LOCAL_DATE_TIME"), pa.timestamp("us"), bytes(16), datetime(1970, 1, 1)),
        (Schema("JSON", FIRST), STRUCT, b'{"a": 5, "z": 1}', {"a": 5, "b": None}),
    ],
)
def test_primitives_and_json_are_values_of_their_types(
    schema: Schema, kind: pa.DataType, payload: bytes, value: object
) -> None:
    assert read(kind, Registry(schema), (0, payload)) == ([value], {})


def test_json_of_another_type_than_its_schema_says_is_null_with_the_reason() -> None:
    values, problems = read(STRUCT, Registry(Schema("JSON", FIRST)), (0, b'{"a": "x"}'), (0, b'{"a": 2}'))
    assert values == [None, {"a": 2, "b": None}]
    assert list(problems) == [0] and problems[0].startswith("no readable value: ")


def test_each_version_is_evolved_to_the_one_that_is_wanted() -> None:
    """With its defaults, those of bytes and decimals, too; what does not fit is NULL with the reason."""
    price = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    fields = [
        {"name": "a", "type": "long"}, {"name": "c", "type": "string", "default": "-"},
        {"name": "d", "type": "bytes", "default": "\u00ff"}, {"name": "p", "type": price, "default": "\u0002\u0005"},
    ]  # fmt: skip
    wanted = Schema("AVRO", {**FIRST, "fields": fields})
    kind = pa.struct([("a", pa.int64()), ("c", pa.string()), ("d", pa.binary()), ("p", pa.decimal128(4, 2))])
    other = Schema("AVRO", {**FIRST, "fields": [{"name": "a", "type": "string"}]})
    registry = Registry(Schema("AVRO", FIRST), Schema("AVRO", LATER), wanted, other, Schema("STRING"))
    rows = [(0, b"\x02"), (1, b"\x04\x00"), (2, b"\x06\x02x\x02y\x02\x05"), (3, b"\x02x"), (4, b"x"), (0, b"")]
    values, problems = read(kind, registry, *rows, wanted=wanted)
    defaults = {"c": "-", "d": b"\xff", "p": Decimal("5.17")}
    assert values[:3] == [
        {"a": 1, **defaults},
        {"a": 2, **defaults},
        {"a": 3, "c": "x", "d": b"y", "p": Decimal("0.05")},
    ]
    assert values[3:] == [None, None, None] and sorted(problems) == [3, 4, 5]
    assert "does not fit the schema to read" in problems[3] and "its type is STRING, not AVRO" in problems[4]


DEEP = pa.struct(
    [
        ("id", pa.int64()), ("small", pa.int8()), ("name", pa.string()), ("data", pa.binary()), ("is", pa.bool_()),
        ("half", pa.float32()), ("whole", pa.float64()), ("price", pa.decimal128(9, 2)), ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")), ("lines", pa.list_(pa.map_(pa.string(), pa.int32()))),
        ("in", pa.struct([("in", pa.struct([("x", pa.int32())]))])),
    ]
)  # fmt: skip
ROW = {
    "id": 5, "small": 1, "name": "é", "data": b"x", "is": True, "half": 0.5, "whole": 1.5, "price": Decimal("1.20"),
    "day": date(1970, 1, 3), "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "lines": [[("a", 1)], []],
    "in": {"in": {"x": 7}},
}  # fmt: skip


@pytest.mark.parametrize("row", [ROW, dict.fromkeys(ROW)])
def test_a_row_is_written_with_the_schema_of_its_column(row: dict[str, Any]) -> None:
    """Dates and times are numbers when they are read, as Java's client has them."""
    schema = written_schema("avro", pa.field("value", DEEP))
    (value,) = pa.array([row], DEEP).to_pylist()
    payload = schema_writer(schema).write(python_value(value, DEEP))
    reader = schema_reader(schema)
    assert reader is not None
    read = {**row, "day": row["day"] and 2, "at": row["at"] and 1_000_000, "lines": row["lines"] and [{"a": 1}, {}]}
    assert reader.read(payload, None) == read
    assert value_type([schema]) == (
        "STRUCT<`id`: BIGINT, `small`: INT, `name`: STRING, `data`: BINARY, `is`: BOOLEAN, `half`: FLOAT, "
        "`whole`: DOUBLE, `price`: DECIMAL(9, 2), `day`: INT, `at`: BIGINT, `lines`: ARRAY<MAP<STRING, INT>>, "
        "`in`: STRUCT<`in`: STRUCT<`x`: INT>>>"
    )


@pytest.mark.parametrize(
    ("word", "kind", "path"),
    [
        ("string", pa.int32(), "value"), ("string", pa.struct([("a", pa.string())]), "value"),
        ("json", pa.struct([("a", pa.struct([("b", pa.binary())]))]), "value.a.b"), ("json", pa.date32(), "value"),
        ("json", pa.struct([("p", pa.decimal128(9, 2))]), "value.p"),
        ("avro", pa.struct([("m", pa.map_(pa.int32(), pa.int32()))]), "value.m"),
        ("avro", pa.list_(pa.month_day_nano_interval()), "value.item"), ("avro", pa.null(), "value"),
    ],
)  # fmt: skip
def test_a_column_without_a_type_in_the_schema_is_refused(word: str, kind: pa.DataType, path: str) -> None:
    with pytest.raises(
        jmsaio.ConfigurationError, match=f"option schema = '{word}': .* column {path}, of the Arrow type"
    ):
        written_schema(word, pa.field("value", kind))


def test_texts_and_json_are_written_with_their_schemas() -> None:
    assert written_schema("string", pa.field("value", pa.string())) == Schema("STRING")
    schema = written_schema("json", pa.field("value", pa.struct([("a", pa.int32())])))
    assert schema.type == "JSON" and value_type([schema]) == "STRUCT<`a`: INT>"
