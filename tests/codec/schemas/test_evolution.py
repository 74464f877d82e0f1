"""Payloads of one version of an AVRO schema as values of another, by Avro's rules."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import Any

import pytest

from jmsaio.codec.schemas.avro import evolving_reader
from jmsaio.codec.schemas.reading import key_and_value, schema_reader
from jmsaio.codec.schemas.writing import schema_writer
from jmsaio.errors import ConfigurationError, MessageFormatError
from jmsaio.model.schema import Schema


def record(*fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def evolved(value: Any, written: Any, wanted: Any) -> Any:
    """A value that is written with one schema and read as another."""
    payload = schema_writer(Schema("AVRO", written)).write(value)
    return evolving_reader(json.dumps(written), json.dumps(wanted))(payload)


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


@pytest.mark.parametrize(
    ("written", "value", "wanted", "found"),
    [
        (record(field("a", "int")), {"a": 1}, record(field("a", "double")), {"a": 1.0}),
        (record(field("a", "int"), field("b", "string")), {"a": 1, "b": "x"}, record(field("b", "string")), {"b": "x"}),
        (
            record(field("a", "int")), {"a": 1}, record(field("b", "string", default="-"), field("a", "int")),
            {"a": 1, "b": "-"},
        ),
        (record(field("a", "int")), {"a": 1}, record(field("b", ["null", "int"], default=None)), {"b": None}),
        (record(field("a", "int")), {"a": 1}, record(field("b", "int", aliases=["a"])), {"b": 1}),
        (record(field("a", "int")), {"a": 1}, record(field("a", ["null", "long"])), {"a": 1}),
        (
            record(field("at", MILLIS)), {"at": 5}, record(field("at", MILLIS), field("b", "int", default=2)),
            {"at": 5, "b": 2},
        ),
        (
            record(field("p", PRICE)), {"p": Decimal("1.25")}, record(field("p", PRICE), field("b", "int", default=2)),
            {"p": Decimal("1.25"), "b": 2},
        ),
        (
            record(field("in", record(field("a", "int"), name="I"))), {"in": {"a": 1}},
            record(field("in", record(field("a", "int"), field("b", "int", default=3), name="I"))),
            {"in": {"a": 1, "b": 3}},
        ),
        ({**ENUM, "symbols": ["A", "C"]}, "C", {**ENUM, "default": "B"}, "B"),
    ],
)  # fmt: skip
def test_a_value_is_evolved(written: Any, value: Any, wanted: Any, found: Any) -> None:
    assert evolved(value, written, wanted) == found


@pytest.mark.parametrize(
    "wanted",
    [record(field("b", "int")), record(field("a", "string")), record(field("a", "int"), name="Q"), "long", ENUM],
)
def test_a_value_that_does_not_fit_is_refused(wanted: Any) -> None:
    with pytest.raises(MessageFormatError, match="it does not fit the schema to read: "):
        evolved({"a": 1}, record(field("a", "int")), wanted)


def test_a_payload_is_read_within_bounds_first() -> None:
    """A list of 2^62 nulls takes ten bytes."""
    written, wanted = {"type": "array", "items": "null"}, {"type": "array", "items": ["null", "int"]}
    bomb = b"\xfe" + b"\xff" * 8 + b"\x01"
    with pytest.raises(MessageFormatError, match="too many values"):
        evolving_reader(json.dumps(written), json.dumps(wanted))(bomb)
    nested: Any = "int"
    for _ in range(150):
        nested = {"type": "array", "items": nested}
    with pytest.raises(MessageFormatError, match="nested more than"):
        evolving_reader('"int"', json.dumps(nested))


def test_only_versions_that_differ_need_fastavro(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    assert evolving_reader('"int"', '"int"')(b"\x02") == 1
    with pytest.raises(ConfigurationError, match=r"install jmsaio\[schema\]: fastavro is missing"):
        evolving_reader('"int"', '"long"')


def test_key_and_value_are_evolved() -> None:
    def pair(value: Any) -> Schema:
        types = {"key.schema.type": "STRING", "value.schema.type": "AVRO", "kv.encoding.type": "SEPARATED"}
        return Schema("KEY_VALUE", {"key": "", "value": value}, types)

    written, wanted = record(field("a", "int")), record(field("a", "int"), field("b", "string", default="-"))
    reader = schema_reader(pair(written), pair(wanted))
    assert reader is not None and reader.read(b"\x02", "aw==") == {"key": "k", "value": {"a": 1, "b": "-"}}
    assert [part.type for part in key_and_value(pair(written))] == ["STRING", "AVRO"]
    with pytest.raises(MessageFormatError, match="its type is KEY_VALUE, not AVRO"):
        schema_reader(pair(written), Schema("AVRO", written))


@pytest.mark.parametrize("kind", ["INT64", "STRING", "JSON", "PROTOBUF"])
def test_a_version_of_another_type_is_not_read(kind: str) -> None:
    with pytest.raises(MessageFormatError, match=f"its type is {kind}, not INT32"):
        schema_reader(Schema(kind), Schema("INT32"))
