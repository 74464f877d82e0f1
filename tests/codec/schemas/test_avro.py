"""Avro's binary encoding: what fastavro writes is read alike, and no payload or schema takes more than its bounds."""

from __future__ import annotations

import io
import json
import math
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings, strategies as st

from jmsaio.codec.schemas import avro
from jmsaio.codec.schemas.avro import DEEPEST, LARGEST, avro_reader
from jmsaio.errors import MessageFormatError
from jmsaio.model.values import Float, Long

FIXED = '{"type": "fixed", "name": "F", "size": 1}'
LINKED = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
#: A record in a record, each behind 90 unions of one type.
UNIONS = {"type": "record", "name": "N", "fields": [{"name": "next", "type": json.loads("[" * 90 + '"N"' + "]" * 90)}]}


def written(schema: Any, value: Any) -> bytes:
    """A payload as fastavro writes it."""
    payload = io.BytesIO()
    fastavro.schemaless_writer(payload, fastavro.parse_schema(schema, named_schemas={}), value)
    return payload.getvalue()


def varint(number: int) -> bytes:
    """A long as Avro writes it."""
    return written("long", number)


def read(schema: Any, payload: bytes) -> Any:
    return avro_reader(json.dumps(schema))(payload)


LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": LONGS,
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=20),
    "string": st.text(max_size=20),
}


@st.composite
def typed_values(draw: st.DrawFn, depth: int = 3) -> tuple[Any, Any]:
    """A schema and a value of it."""
    number = draw(st.integers(0, 10**9))
    kind = draw(st.sampled_from([*LEAVES, *(["array", "map", "record", "enum", "fixed", "union"] if depth else [])]))
    if kind in LEAVES:
        return kind, draw(LEAVES[kind])
    if kind == "enum":
        return {"type": "enum", "name": f"E{number}", "symbols": ["A", "B", "C"]}, draw(st.sampled_from("ABC"))
    if kind == "fixed":
        return {"type": "fixed", "name": f"F{number}", "size": 3}, draw(st.binary(min_size=3, max_size=3))
    if kind == "union":
        leaf = draw(st.sampled_from(["int", "string", "boolean", "bytes"]))
        return ["null", leaf], draw(st.none() | LEAVES[leaf])
    schema, value = draw(typed_values(depth=depth - 1))
    count = draw(st.integers(0, 3))
    if kind == "array":
        return {"type": "array", "items": schema}, [value] * count
    if kind == "map":
        return {"type": "map", "values": schema}, {str(index): value for index in range(count)}
    fields, values = [], {}
    for index in range(count + 1):
        other, held = draw(typed_values(depth=depth - 1)) if index else (schema, value)
        fields.append({"name": f"f{index}", "type": other})
        values[f"f{index}"] = held
    return {"type": "record", "name": f"R{number}", "namespace": "a.b", "fields": fields}, values


def distinct(schema: Any, seen: set[str]) -> bool:
    """Whether no name is given twice, which the strategy does not see to."""
    if isinstance(schema, dict):
        name = schema.get("name")
        if schema.get("type") in ("record", "enum", "fixed"):
            if name in seen:
                return False
            seen.add(str(name))
        inner = [schema.get("items"), schema.get("values"), *(field["type"] for field in schema.get("fields", []))]
        return all(distinct(each, seen) for each in inner)
    return True


@settings(deadline=None)
@given(typed_values())
def test_what_fastavro_writes_is_read_alike(pair: tuple[Any, Any]) -> None:
    schema, value = pair
    if distinct(schema, set()):
        assert read(schema, written(schema, value)) == value


@settings(deadline=None)
@given(typed_values(), st.data())
def test_a_damaged_payload_is_refused_or_read_but_never_anything_else(
    pair: tuple[Any, Any], data: st.DataObject
) -> None:
    schema, value = pair
    if not distinct(schema, set()):
        return
    payload = bytearray(written(schema, value))
    for _ in range(data.draw(st.integers(1, 3))):
        if payload:
            payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(payload[: data.draw(st.integers(0, len(payload)))]) + data.draw(st.binary(max_size=3))
    try:
        read(schema, cut)
    except MessageFormatError:
        return


def test_numbers_have_their_jms_types() -> None:
    kinds = {"int": int, "long": Long, "float": Float, "double": float, "boolean": bool}
    for name, kind in kinds.items():
        assert type(read(name, written(name, 1))) is kind
    assert math.isnan(read("double", written("double", math.nan)))


def test_names_are_found_in_their_namespace() -> None:
    inner = {"type": "fixed", "name": "F", "size": 1}
    schema = {
        "type": "record", "name": "x.y.R", "fields": [
            {"name": "a", "type": inner}, {"name": "b", "type": "F"}, {"name": "c", "type": "x.y.F"},
            {"name": "d", "type": {"type": {"type": "string"}}},
        ],
    }  # fmt: skip
    assert read(schema, b"123" + written("string", "t")) == {"a": b"1", "b": b"2", "c": b"3", "d": "t"}


def test_names_may_have_letters_of_any_alphabet() -> None:
    """Java's producers register such schemas."""
    schema = {
        "type": "record",
        "name": "Straße",
        "fields": [{"name": "größe", "type": "int"}, {"name": "名", "type": "int"}],
    }
    assert read(schema, b"\x02\x04") == {"größe": 1, "名": 2}


def test_a_recursive_schema_reads_lists() -> None:
    assert read(LINKED, b"\x02\x02\x00") == {"next": {"next": {"next": None}}}


@pytest.mark.parametrize("negative", [False, True])
def test_blocks_may_give_their_size(negative: bool) -> None:
    count = varint(-2) + varint(2) if negative else varint(2)
    assert read({"type": "array", "items": "int"}, count + b"\x02\x04" + varint(1) + b"\x06\x00") == [1, 2, 3]


DECIMALS = [
    (4, 2, Decimal("12.34")), (4, 2, Decimal("-0.01")), (1, 0, Decimal(0)), (1000, 999, Decimal("1e-999")),
    (40, 10, Decimal("123456789012345678901234567890.0123456789")),
]  # fmt: skip


@pytest.mark.parametrize(("precision", "scale", "value"), DECIMALS)
def test_a_decimal_is_exact(precision: int, scale: int, value: Decimal) -> None:
    number = int(f"{value:f}".replace(".", ""))
    size = number.bit_length() // 8 + 1
    kind = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    payload = varint(size) + number.to_bytes(size, "big", signed=True)
    found = read(kind, payload)
    assert found == value and -found.as_tuple().exponent == scale
    fixed = {**kind, "type": "fixed", "name": "F", "size": size}
    assert read(fixed, payload[len(varint(size)) :]) == value


@pytest.mark.parametrize("attributes", [{"precision": 2, "scale": 3}, {}, {"precision": 10**9}, {"precision": "4"}])
def test_a_decimal_that_can_not_be_is_its_bytes(attributes: dict[str, Any]) -> None:
    """Avro specification 1.11, Logical Types: such an attribute is ignored."""
    assert read({"type": "bytes", "logicalType": "decimal", **attributes}, b"\x02\x05") == b"\x05"


@pytest.mark.parametrize(
    ("kind", "plain"),
    [("timestamp-millis", 1700000000000), ("timestamp-micros", 5), ("time-micros", 7), ("unknown", 1)],
)
def test_times_stay_numbers(kind: str, plain: int) -> None:
    assert read({"type": "long", "logicalType": kind}, varint(plain)) == Long(plain)
    assert read({"type": "string", "logicalType": "uuid"}, b"\x02x") == "x"


def digits(count: int) -> bytes:
    number: int = 10**count
    size = number.bit_length() // 8 + 1
    return varint(size) + number.to_bytes(size, "big", signed=True)


@pytest.mark.parametrize(
    ("schema", "payload", "words"),
    [
        ("string", varint(100) + b"abc", "100 bytes at byte 2"),
        ("string", varint(-3) + b"abc", "-3 bytes"),
        ("bytes", varint(1 << 40), f"{1 << 40} bytes"),
        ("string", b"\x02\xff", "not UTF-8"),
        ("int", varint(1 << 31), "more than 32 bits"),
        ("long", b"\xff" * 9 + b"\x7f", "more than 64 bits"),
        ("long", b"\xff" * 1000 + b"\x01", "no whole number"),
        ("long", b"", "no whole number"),
        ("boolean", b"\x02", "not a boolean"),
        ("int", b"\x02\x02", "ends at byte 1 of 2"),
        (["null", "int"], varint(-1) + b"\x02", "branch -1"),
        (["null", "int"], varint(2), "branch 2"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, varint(-1), "symbol -1"),
        ({"type": "fixed", "name": "F", "size": 10}, b"abc", "10 bytes"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, digits(4), "more than 4 digits"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, varint(10**6) + b"\x7f" * 10**6, "4 digits"),
    ],
)
def test_a_payload_that_does_not_fit_is_refused(schema: Any, payload: bytes, words: str) -> None:
    with pytest.raises(MessageFormatError, match=words):
        read(schema, payload)


def empties(levels: int) -> Any:
    """Records that hold 2^levels others without a byte."""
    schema: Any = {"type": "record", "name": "A0", "fields": []}
    for level in range(1, levels):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"A{level - 1}"}]
        schema = {"type": "record", "name": f"A{level}", "fields": fields}
    return schema


@pytest.mark.parametrize(
    ("schema", "payload", "words"),
    [
        ({"type": "array", "items": "null"}, varint(1 << 40) + b"\0", "too many values"),
        ({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}, varint(1 << 40) + b"\0", "too many"),
        ({"type": "array", "items": {"type": "record", "name": "R", "fields": []}}, varint(1 << 40), "too many"),
        ({"type": "array", "items": "int"}, varint(1 << 40) + b"\x02", "no whole number"),
        ({"type": "map", "values": "null"}, varint(1 << 40) + b"\x00", "no whole number"),
        (LINKED, b"\x02" * 2_000_000 + b"\0", "more than 100 deep"),
        ({"type": "record", "name": "N", "fields": [{"name": "next", "type": "N"}]}, b"", "more than 100 deep"),
        (empties(40), b"", "too many values"),
        (UNIONS, b"\0" * 10_000, "nested too deep"),
    ],
)
def test_a_bomb_is_refused_before_it_takes_memory(schema: Any, payload: bytes, words: str) -> None:
    """Each of these ends a process, or fills its memory, that reads it without bounds."""
    with pytest.raises(MessageFormatError, match=words):
        read(schema, payload)


def test_what_many_bytes_hold_is_read() -> None:
    numbers = [1] * 1_500_000
    payload = varint(len(numbers)) + b"\x02" * len(numbers) + b"\0"
    assert read({"type": "array", "items": "int"}, payload) == numbers


def nested(levels: int) -> str:
    return '{"type": "array", "items": ' * levels + '"int"' + "}" * levels


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('"' + "x" * LARGEST + '"', "characters"),
        (nested(DEEPEST), "nested more than 100"),
        ("5", "5 is not a type"),
        ('"monkey"', "no type 'monkey'"),
        ('{"type": "array"}', "None is not a type"),
        ('{"type": "record", "name": "R"}', "record 'R' has no list of fields"),
        ('{"type": "record", "name": "a b", "fields": []}', "'a b' is not a name"),
        ('{"type": "record", "fields": []}', "None is not a name"),
        ('{"type": "record", "name": "R", "fields": [5]}', "None in record 'R'"),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}, {"name": "x", "type": "int"}]}',
            "'x' in record 'R' is not a name, or occurs twice",
        ),
        ('{"type": "record", "name": "R", "fields": [{"name": "x", "type": "no"}]}', "field 'x' of record 'R': .*'no'"),
        ('["int", {"type": "fixed", "name": "F", "size": -1}]', "fixed 'F' has no size"),
        ('{"type": "enum", "name": "E", "symbols": [5]}', "enum 'E' has no list of symbols"),
        (f"[{FIXED}, {FIXED}]", "'F' is defined twice"),
    ],
)  # fmt: skip
def test_a_schema_that_is_not_valid_is_refused(definition: str, words: str) -> None:
    with pytest.raises(MessageFormatError, match=words):
        avro_reader(definition)


def test_a_schema_may_be_nested_up_to_the_bound() -> None:
    assert avro_reader(nested(DEEPEST - 1))(b"\0") == []
    assert avro._MOST > avro._FEWEST
