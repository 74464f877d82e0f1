"""Payloads by the schema that their topic has: primitives, JSON, key and value."""

from __future__ import annotations

import base64
import json
import struct
from datetime import UTC, date, datetime, time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.codec.schemas.reading import (
    _FIXED,
    clock_time,
    instant,
    local_date,
    local_date_time,
    local_time,
    moment,
    schema_reader,
)
from jmsaio.errors import MessageFormatError
from jmsaio.model.schema import Schema
from jmsaio.model.values import Byte, Float, Long, Short


def read(schema: Schema, payload: bytes | None, key: str | None = None) -> Any:
    reader = schema_reader(schema)
    assert reader is not None
    return reader.read(payload, key)


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [
        ("BOOLEAN", b"\x01", True),
        ("BOOLEAN", b"\x00", False),
        ("INT8", b"\xff", Byte(-1)),
        ("INT16", b"\xff\xfe", Short(-2)),
        ("INT32", b"\xff\xff\xff\xfd", -3),
        ("INT64", b"\0" * 7 + b"\x04", Long(4)),
        ("FLOAT", struct.pack(">f", 1.5), Float(1.5)),
        ("DOUBLE", struct.pack(">d", 0.1), 0.1),
        ("STRING", "hé".encode(), "hé"),
        ("STRING", b"", ""),
        ("JSON", b'{"a": [1, null, 1.5]}', {"a": [1, None, 1.5]}),
        ("JSON", b"5", 5),
    ],
)
def test_a_primitive_has_its_jms_type(kind: str, payload: bytes, value: object) -> None:
    found = read(Schema(kind), payload)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("kind", ["PROTOBUF", "PROTOBUF_NATIVE", "NONE", "BYTES", "AUTO_CONSUME", "monkey"])
def test_other_types_are_not_read(kind: str) -> None:
    assert schema_reader(Schema(kind)) is None


@given(st.sampled_from([*_FIXED, "STRING", "JSON"]), st.binary(max_size=20))
def test_a_payload_is_read_or_refused_and_nothing_else(kind: str, payload: bytes) -> None:
    try:
        read(Schema(kind), payload)
    except MessageFormatError:
        return


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        ("INT64", b"\0" * 7, "INT64 has 8 bytes, not 7"),
        ("DATE", b"\x7f" + b"\xff" * 7, "Python has no such DATE"),
        ("LOCAL_TIME", b"\xff" * 8, "not the time of a day"),
        ("JSON", b"{", "not JSON"),
        ("JSON", b"NaN", "not JSON"),
        ("JSON", b"\xff", "not UTF-8"),
        ("JSON", b"[" * 100_000, "not JSON"),
        ("JSON", b"[" * 200 + b"]" * 200, "nested too deep"),
        ("JSON", b"1" * 5000, "not JSON"),
    ],
)
def test_a_payload_that_does_not_fit_is_refused(kind: str, payload: bytes, words: str) -> None:
    with pytest.raises(MessageFormatError, match=words):
        read(Schema(kind), payload)


def pair(key: str, value: str, encoding: str, key_schema: Any = "", value_schema: Any = "") -> Schema:
    """A schema of key and value as the REST interface gives it."""
    properties = {"key.schema.type": key, "value.schema.type": value, "kv.encoding.type": encoding}
    return Schema("KEY_VALUE", json.dumps({"key": key_schema, "value": value_schema}), properties)


def prefixed(*parts: bytes | None) -> bytes:
    return b"".join(struct.pack(">i", -1 if part is None else len(part)) + (part or b"") for part in parts)


RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (prefixed(b"k", b"\x06"), {"key": "k", "value": {"a": 3}}),
        (prefixed(None, b"\x06"), {"key": None, "value": {"a": 3}}),
        (prefixed(b"", None), {"key": "", "value": None}),
    ],
)
def test_key_and_value_lie_one_behind_the_other(payload: bytes, found: object) -> None:
    assert read(pair("STRING", "AVRO", "INLINE", value_schema=RECORD), payload) == found


def test_the_key_may_be_the_key_of_the_record() -> None:
    schema = pair("INT16", "BYTES", "SEPARATED")
    key = base64.b64encode(b"\0\x05").decode()
    assert read(schema, b"x", key) == {"key": 5, "value": b"x"}
    assert read(schema, None, key) == {"key": 5, "value": None}
    assert read(schema, b"x") == {"key": None, "value": b"x"}


@pytest.mark.parametrize(
    ("schema", "payload", "key", "words"),
    [
        (pair("STRING", "STRING", "INLINE"), None, None, "ends before a length"),
        (pair("STRING", "STRING", "INLINE"), prefixed(b"a"), None, "ends before a length"),
        (pair("STRING", "STRING", "INLINE"), struct.pack(">i", 1 << 30), None, "a length of"),
        (pair("STRING", "STRING", "INLINE"), struct.pack(">i", -2), None, "a length of -2"),
        (pair("STRING", "STRING", "INLINE"), prefixed(b"a", b"b") + b"c", None, "1 bytes follow"),
        (pair("STRING", "STRING", "SEPARATED"), b"x", "not Base64", "not Base64"),
    ],
)
def test_a_pair_that_does_not_fit_is_refused(
    schema: Schema, payload: bytes | None, key: str | None, words: str
) -> None:
    with pytest.raises(MessageFormatError, match=words):
        read(schema, payload, key)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (Schema("AVRO", '"monkey"'), "monkey"),
        (Schema("KEY_VALUE", ""), "lacks the schemas of key and value"),
        (Schema("KEY_VALUE", "{}"), "lacks the schemas of key and value"),
        (Schema("KEY_VALUE", "[]"), "lacks the schemas of key and value"),
        (Schema("KEY_VALUE", '{"key": "", "value": ""}'), "lacks the schemas of key and value"),
        (pair("AVRO", "STRING", "INLINE", '"monkey"'), "its key: .*monkey"),
    ],
)
def test_a_schema_that_is_not_valid_is_refused(schema: Schema, words: str) -> None:
    with pytest.raises(MessageFormatError, match=words):
        schema_reader(schema)


def test_each_type_has_its_class() -> None:
    assert moment(1) == datetime(1970, 1, 1, microsecond=1000, tzinfo=UTC)
    assert moment(-1) == datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    assert clock_time(3_600_001) == time(1, 0, 0, 1000)
    assert local_date(19_000) == date(2022, 1, 8)
    assert local_date_time(1, 10**9) == datetime(1970, 1, 2, 0, 0, 1)


def test_nanoseconds_are_cut_off() -> None:
    assert instant(1, 999_999_999) == datetime(1970, 1, 1, 0, 0, 1, 999_999, tzinfo=UTC)
    assert local_time(86_400 * 10**9 - 1) == time(23, 59, 59, 999_999)


@pytest.mark.parametrize("nanoseconds", [-1, 86_400 * 10**9])
def test_a_time_is_within_a_day(nanoseconds: int) -> None:
    with pytest.raises(OverflowError, match="time of a day"):
        local_time(nanoseconds)


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63)])
def test_what_python_does_not_have_overflows(number: int) -> None:
    for make in (moment, local_date, lambda seconds: instant(seconds, 0)):
        with pytest.raises(OverflowError):
            make(number)
