"""Each class in the bytes that Java writes, in both directions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsaio.codec.javaser import read_map, read_object, write_map, write_object
from jmsaio.model.values import Value
from tests.codec.javaser.streams import BOOLEAN, BYTES, INTEGER, NUMBER, stream
from tests.codec.strategies import bodies, loose_texts, same


@pytest.mark.parametrize(
    ("values", "data"),
    [
        ({}, "77 04 00000000"),
        ({"k": "v"}, "77 07 00000001 0001 6b 74 0001 76"),
        ({"k": None}, "77 07 00000001 0001 6b 70"),
        ({"k": 1}, f"77 07 00000001 0001 6b 73 {INTEGER} {NUMBER} 00000001"),
        ({"k": True}, f"77 07 00000001 0001 6b 73 {BOOLEAN} 01"),
        (
            {"a": 1, "b": 2},
            f"77 07 00000002 0001 61 73 {INTEGER} {NUMBER} 00000001 77 03 0001 62 73 71 007e0000 00000002",
        ),
        (
            {"a": b"\1", "b": b""},
            f"77 07 00000002 0001 61 75 {BYTES} 00000001 01 77 03 0001 62 75 71 007e0000 00000000",
        ),
    ],
)
def test_a_map_is_written_and_read_as_java_does(values: dict[str, Value], data: str) -> None:
    assert write_map(values) == stream(data)
    assert read_map(stream(data)) == values


@pytest.mark.parametrize(
    ("value", "data"), [("foo", "74 0003 666f6f"), (7, f"73 {INTEGER} {NUMBER} 00000007"), (None, "70")]
)
def test_an_object_is_written_and_read_as_java_does(value: Value, data: str) -> None:
    assert write_object(value) == stream(data)
    assert same(read_object(stream(data)), value)


@given(bodies)
def test_object_round_trip(value: Value) -> None:
    assert same(read_object(write_object(value)), value)


@given(st.dictionaries(loose_texts, bodies, max_size=12))
def test_map_round_trip(values: dict[str, Value]) -> None:
    found = read_map(write_map(values))
    assert list(found) == list(values) and all(map(same, found.values(), values.values()))
