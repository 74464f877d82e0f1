"""The type of ``value``: the fields of all versions where they fit together, else JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jmsaio.model.schema import Schema
from jmsaio.spark.model.value_type import JSON, value_type


def record(name: str = "R", **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


def decimal(precision: int, scale: int, **more: Any) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale, **more}


def found(*trees: Any) -> str:
    return value_type(Schema("AVRO", json.dumps(tree)) for tree in trees)


@pytest.mark.parametrize(
    ("kind", "ddl"),
    [
        ("boolean", "BOOLEAN"), ("int", "INT"), ("long", "BIGINT"), ("float", "FLOAT"), ("double", "DOUBLE"),
        ("bytes", "BINARY"), ("string", "STRING"), (["null", "int"], "INT"), ({"type": "int"}, "INT"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "STRING"),
        ({"type": "fixed", "name": "F", "size": 2}, "BINARY"),
        ({"type": "array", "items": "int"}, "ARRAY<INT>"), ({"type": "map", "values": "long"}, "MAP<STRING, BIGINT>"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "BIGINT"), (record("I", a="int"), "STRUCT<`a`: INT>"),
        (decimal(9, 2), "DECIMAL(9, 2)"), (decimal(38, 0), "DECIMAL(38, 0)"), (decimal(2, 3), "BINARY"),
        (decimal(2, 1, type="fixed", name="D", size=2), "DECIMAL(2, 1)"),
    ],
)  # fmt: skip
def test_a_field_has_the_type_of_spark(kind: Any, ddl: str) -> None:
    assert found(record(x=kind)) == f"STRUCT<`x`: {ddl}>"


@pytest.mark.parametrize(
    "kind",
    [
        ["int", "string"], ["null"], "null", decimal(39, 0), record("I"), ["null", "R"],
        {"type": "array", "items": ["int", "string"]}, {"type": "map", "values": "null"}, record("I", a="int", A="int"),
        {"type": {"type": "array", "items": "null"}},
    ],
)  # fmt: skip
def test_a_field_without_a_type_of_spark_makes_it_json(kind: Any) -> None:
    """A union of two types, a decimal beyond Spark's, a record that contains itself, and the like."""
    assert found(record(x=kind)) == JSON


def test_a_type_may_be_named_again() -> None:
    inner = record("I", a="int")
    assert found(record(x=inner, y={"type": "array", "items": "I"})) == (
        "STRUCT<`x`: STRUCT<`a`: INT>, `y`: ARRAY<STRUCT<`a`: INT>>>"
    )


def test_versions_that_fit_have_all_their_fields() -> None:
    assert found(record(b="string", a="int"), record(a="int", c="long")) == "STRUCT<`b`: STRING, `a`: INT, `c`: BIGINT>"


@pytest.mark.parametrize("other", [record(a="string"), record(A="int"), "int", record(), [record("O", a="int")]])
def test_versions_that_do_not_fit_are_json(other: Any) -> None:
    """Spark does not tell names apart that differ in case only. A version without fields fits all."""
    assert found(record(a="int"), other) == ("STRUCT<`a`: INT>" if other == record() else JSON)


def test_other_schemas_are_json() -> None:
    assert value_type([]) == value_type([Schema("JSON", json.dumps(record(a="int")))]) == JSON
    assert value_type([Schema("AVRO", json.dumps(record(a="int"))), Schema("STRING")]) == JSON
    deep: Any = "int"
    for _ in range(150):
        deep = {"type": "array", "items": deep}
    assert found(record(a=deep)) == JSON


@pytest.mark.parametrize("definition", ["", "{", "5", '{"type": "record"}', json.dumps(record(x={"type": "array"}))])
def test_a_schema_that_is_not_valid_makes_it_json(definition: str) -> None:
    """Its messages are NULL with a reason; those of other versions are readable."""
    assert value_type([Schema("AVRO", definition)]) == JSON
