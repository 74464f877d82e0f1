"""One encoder and one decoder for all tables: bounds, types, unknown fields, and work that is linear in the bytes."""

from __future__ import annotations

import re
import sys
from types import FrameType
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, strategies as st

from jmsaio.errors import ProtocolError
from jmsaio.protocol.commands import MESSAGE_ID, SCHEMA
from jmsaio.protocol.fields import FieldType, Table, decode, encode, number_at, optional, repeated, required, walk
from tests.protocol.pulsar_proto import proto

pytestmark = pytest.mark.fast
ALL = Table(
    required(1, "u64", FieldType.UINT64),
    optional(2, "u32", FieldType.UINT32),
    optional(3, "i64", FieldType.INT64),
    optional(4, "i32", FieldType.INT32),
    optional(5, "flag", FieldType.BOOL),
    optional(6, "text", FieldType.TEXT),
    optional(7, "data", FieldType.DATA),
    repeated(8, "many", FieldType.INT64),
    optional(9, "inner", Table(required(1, "name", FieldType.TEXT))),
)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("08", "no value"),
        ("08ff", "without an end"),
        ("08" + "ff" * 10 + "01", "without an end"),
        ("0a05", "ends 5 bytes after"),
        ("0affffffffffffffffff01", "ends"),
        ("090000", "ends"),
        ("0d0000", "ends"),
        ("0b", "no value"),
        ("0b00", "unknown type 3"),
        ("0f00", "unknown type 7"),
        ("0000", "no such number"),
        ("80808080800100", "no such number"),
        ("0801" + "3201ff", "not UTF-8"),
        ("0801" + "4a00", "name is missing"),
        ("0801" + "4201ff", "without an end"),
        ("", "u64 is missing"),
    ],
)
def test_wrong_bytes_are_a_protocol_error(data: str, words: str) -> None:
    encoded = bytes.fromhex(data)
    with pytest.raises(ProtocolError, match=re.escape(words)):
        decode(ALL, encoded + b"\x00" * 20, 0, len(encoded))  # what follows the message is never read


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ("0801" + "0802", {"u64": 2}),  # the last one counts
        ("08ffffffffffffffffff7f", {"u64": (1 << 64) - 1}),  # cut to 64 bits
        ("0801" + "10ffffffffffffffffff01", {"u64": 1, "u32": (1 << 32) - 1}),
        ("0801" + "20ffffffff0f", {"u64": 1, "i32": -1}),
        ("0801" + "2802", {"u64": 1, "flag": True}),
        ("0801" + "4001" + "4202037f", {"u64": 1, "many": [1, 3, 127]}),  # packed or not
        ("0801" + "3005" + "0a00" + "f20700" + "f90700000000" + "00000000", {"u64": 1}),  # types and fields unknown
    ],
)
def test_decoding_is_that_of_protobuf(data: str, found: dict[str, Any]) -> None:
    encoded = bytes.fromhex(data)
    assert decode(ALL, encoded, 0, len(encoded)) == {"many": []} | found


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({}, "required field u64"),
        ({"u64": 1, "other": 2}, "unknown fields: other"),
        ({"u64": -1}, "u64: -1 is out of range"),
        ({"u64": 1, "i32": 1 << 31}, "out of range"),
        ({"u64": "secret"}, "u64 is a number, not str"),
        ({"u64": 1, "text": b"x"}, "text is a text"),
        ({"u64": 1, "data": "secret"}, "data is bytes, not str"),
        ({"u64": 1, "many": "secret"}, "many is a list, not str"),
        ({"u64": 1, "inner": "secret"}, "inner is a message, not str"),
        ({"u64": 1, "text": "\ud800"}, "surrogates"),
    ],
)
def test_a_wrong_value_is_never_encoded(values: dict[str, Any], error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error) as caught:
        encode(ALL, values)
    assert "secret" not in str(caught.value)


@pytest.mark.property
@given(st.binary(max_size=400))
def test_ids_and_schemas_are_decoded_as_protobuf_decodes_them(data: bytes) -> None:
    """Where both accept the bytes, they agree. Protobuf also accepts groups and, here, missing fields."""
    for table, name in ((MESSAGE_ID, "MessageIdData"), (SCHEMA, "Schema")):
        try:
            ours = decode(table, data, 0, len(data))
            its = proto(name).FromString(data)
        except (ProtocolError, DecodeError):
            continue
        for field in table.fields:
            if isinstance(field.kind, FieldType) and (field.repeated or its.HasField(field.name)):
                value = getattr(its, field.name)
                assert ours[field.name] == (list(value) if field.repeated else value)


def test_work_is_linear_in_the_bytes() -> None:
    """Counted in lines of Python that run: twice the bytes take at most about twice the lines."""
    for unit in (b"\x08\x01", b"\x42\x01\x05", b"\x12\x80\x80\x00", b"\x3a\x00", b"\x4a\x02\x0a\x00", b"\xfa\x01\x00"):
        few, many = (lines(b"\x08\x01" + unit * count) for count in (200, 400))
        assert many < 2.2 * few


def lines(data: bytes) -> int:
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        decode(ALL, data, 0, len(data))
    except ProtocolError:
        pass
    finally:
        sys.settrace(before)
    return count


@given(st.integers(0, (1 << 64) - 1), st.binary(max_size=3))
def test_a_number_ends_where_its_bytes_do(number: int, rest: bytes) -> None:
    encoded = encode(Table(required(1, "number", FieldType.UINT64)), {"number": number})
    assert number_at(encoded + rest, 1, len(encoded) + len(rest)) == (number, len(encoded))
    assert list(walk(encoded + rest, 0, len(encoded))) == [(8, number, len(encoded))]
