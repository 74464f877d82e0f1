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


@pytest.mark.parametrize(
    ("kinds", "widest"),
    [
        (("int", "long"), "BIGINT"), (("float", "double"), "DOUBLE"), (("double", "int"), "DOUBLE"),
        (("long", ["null", "float"]), "DOUBLE"), (("int", "float"), "DOUBLE"), (("int", "long", "double"), "DOUBLE"),
        (({"type": "array", "items": "int"}, {"type": "array", "items": "long"}), "ARRAY<BIGINT>"),
        (({"type": "map", "values": "float"}, {"type": "map", "values": "double"}), "MAP<STRING, DOUBLE>"),
        ((record("I", a="int"), record("I", a="long", b="string")), "STRUCT<`a`: BIGINT, `b`: STRING>"),
    ],
)  # fmt: skip
def test_a_field_that_versions_widen_has_the_widest_type(kinds: Any, widest: str) -> None:
    assert found(*kinds) == widest
    assert found(*(record(x=kind) for kind in kinds)) == f"STRUCT<`x`: {widest}>"


@pytest.mark.parametrize(
    "other",
    [record(a="string"), record(A="int"), record(a="boolean"), "int", record(), {"type": "array", "items": "int"}],
)
def test_versions_that_do_not_fit_are_json(other: Any) -> None:
    """Spark does not tell names apart that differ in case only. A version without fields fits all."""
    assert found(record(a="int"), other) == ("STRUCT<`a`: INT>" if other == record() else JSON)


def test_other_schemas_are_json_unless_all_are_numbers() -> None:
    assert value_type([]) == value_type([Schema("PROTOBUF")]) == JSON
    assert value_type([Schema("AVRO", json.dumps(record(a="int"))), Schema("STRING")]) == JSON
    assert value_type([Schema("INT32"), Schema("INT64")]) == "BIGINT"
    deep: Any = "int"
    for _ in range(150):
        deep = {"type": "array", "items": deep}
    assert found(record(a=deep)) == JSON


@pytest.mark.parametrize(
    ("kind", "ddl"),
    [
        ("BOOLEAN", "BOOLEAN"), ("INT8", "TINYINT"), ("INT16", "SMALLINT"), ("INT32", "INT"), ("INT64", "BIGINT"),
        ("FLOAT", "FLOAT"), ("DOUBLE", "DOUBLE"), ("STRING", "STRING"), ("TIMESTAMP", "TIMESTAMP"),
        ("INSTANT", "TIMESTAMP"), ("LOCAL_DATE", "DATE"), ("LOCAL_DATE_TIME", "TIMESTAMP_NTZ"), ("TIME", "STRING"),
    ],
)  # fmt: skip
def test_a_primitive_has_the_type_of_spark(kind: str, ddl: str) -> None:
    assert value_type([Schema(kind), Schema(kind)]) == ddl


def test_an_avro_schema_need_not_be_a_record() -> None:
    assert found("long") == "BIGINT" and found(["null", "string"]) == "STRING"
    assert found({"type": "array", "items": "int"}) == "ARRAY<INT>"


def test_json_has_the_fields_of_its_schema_but_no_bytes() -> None:
    def of(**fields: Any) -> str:
        return value_type([Schema("JSON", json.dumps(record(**fields)))])

    assert of(a="int", b=["null", "string"]) == "STRUCT<`a`: INT, `b`: STRING>"
    assert of(a="bytes") == of(a=decimal(9, 2)) == of(a={"type": "fixed", "name": "F", "size": 2}) == JSON


def pair(key: Schema, value: Schema) -> Schema:
    parts = {"key": key.definition, "value": value.definition}
    return Schema("KEY_VALUE", parts, {"key.schema.type": key.type, "value.schema.type": value.type})


def test_key_and_value_are_fields() -> None:
    one, two = (Schema("AVRO", json.dumps(record(**fields))) for fields in ({"a": "int"}, {"a": "int", "b": "long"}))
    text, data = Schema("STRING"), Schema("BYTES")
    assert value_type([pair(text, one), pair(text, two)]) == (
        "STRUCT<`key`: STRING, `value`: STRUCT<`a`: INT, `b`: BIGINT>>"
    )
    assert value_type([pair(data, Schema("INT64"))]) == "STRUCT<`key`: BINARY, `value`: BIGINT>"
    assert value_type([pair(text, one), pair(data, one)]) == value_type([pair(text, one), text]) == JSON
    assert value_type([pair(text, Schema("AVRO", '["int", "long"]'))]) == value_type([Schema("KEY_VALUE")]) == JSON


@pytest.mark.parametrize("definition", ["", "{", "5", '{"type": "record"}', json.dumps(record(x={"type": "array"}))])
def test_a_schema_that_is_not_valid_makes_it_json(definition: str) -> None:
    """Its messages are NULL with a reason; those of other versions are readable."""
    assert value_type([Schema("AVRO", definition)]) == JSON
