"""The column ``value``: each body read with the schema of its own version, fetched once."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pytest

import jmsaio
from jmsaio.codec.row_columns import ColumnMaker
from jmsaio.model.schema import Schema
from jmsaio.spark.arrow.value_column import ValueColumn, _fitted
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
    kind: pa.DataType, registry: Registry | None, *records: tuple[int | None, bytes | None]
) -> tuple[list[Any], dict[int, str]]:
    """The values of records, given as schema version and payload."""
    maker = ColumnMaker()
    for version, payload in records:
        properties = {} if version is not None else {"JMSPulsarMessageType": "text"}
        number = None if version is None else version.to_bytes(9 if version >= CLAIMED else 8, "big")
        maker.take([Record(payload, properties, schema_version=number)])
    columns = maker.columns()
    column = ValueColumn(kind, TOPIC)
    for _ in range(2):
        asyncio.run(column.learn(cast("Admin", registry), columns["schema_version"]))
    values, problems = column.array(columns)
    assert values.type == kind
    return values.to_pylist(maps_as_pydicts="strict"), problems


def test_versions_become_one_struct() -> None:
    registry = Registry(Schema("AVRO", FIRST), Schema("AVRO", LATER))
    rows = [(1, b"\x04\x02\x02x\x0a\x00"), (0, b"\x06"), (None, b"text"), (0, None), (1, b"\x04\x00")]
    values, problems = read(STRUCT, registry, *rows)
    assert values == [{"a": 2, "b": {"x": 5}}, {"a": 3, "b": None}, None, None, {"a": 2, "b": {}}]
    assert problems == {} and sorted(registry.asked) == [0, 1]


def test_other_schemas_become_json() -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    registry = Registry(
        Schema("JSON"), Schema("STRING"), Schema("INT64"), Schema("DATE"), Schema("AVRO", price), Schema("PROTOBUF"),
        Schema("AVRO", '"bytes"'),
    )  # fmt: skip
    payloads = ['{"a": "é"}'.encode(), b"x", bytes(7) + b"\x05", bytes(8), b"\x02\x05", b"?", b"\x02\x05"]
    values, problems = read(pa.string(), registry, *enumerate(payloads))
    assert problems == {} and values[5] is None
    assert [json.loads(value) for value in values if value is not None] == [
        {"a": "é"}, "x", 5, datetime(1970, 1, 1, tzinfo=UTC).isoformat(), "0.05", "BQ==",
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
    with pytest.raises(jmsaio.ConfigurationError, match="usePulsarAdmin"):
        read(STRUCT, None, (0, b"x"))
    assert read(STRUCT, None, (None, b"x")) == ([None], {})


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
