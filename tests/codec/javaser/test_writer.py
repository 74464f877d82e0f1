"""Streams are written as Java writes them."""

from __future__ import annotations

import pytest

from jmsaio.codec.javaser import read_map, read_object, write_map, write_object
from jmsaio.errors import MessageFormatError
from jmsaio.model.values import Long, Value
from tests.codec.strategies import same


def test_a_class_above_is_referred_to() -> None:
    data = write_map({"a": 1, "b": Long(2)})
    assert data.endswith(bytes.fromhex("0005 76616c7565 78 71 007e0001 0000000000000002"))
    assert all(map(same, read_map(data).values(), [1, Long(2)]))


def test_classes_are_referred_to_past_texts_bytes_and_boxes() -> None:
    """Each of them takes a number of its own."""
    values: dict[str, Value] = {
        "a": "x",
        "b": b"y",
        "c": 1,
        "d": True,
        "e": "z",
        "f": Long(2),
        "g": Long(3),
        "h": b"w",
        "i": False,
    }
    found = read_map(write_map(values))
    assert list(found) == list(values) and all(map(same, found.values(), values.values()))


def test_long_names_and_texts() -> None:
    assert write_map({"k" * 1500: None})[4:9].hex() == "7a00000400"
    assert read_map(write_map({"k" * 65_535: 1})) == {"k" * 65_535: 1}
    with pytest.raises(MessageFormatError, match="up to 65535 bytes"):
        write_map({"k" * 65_536: 1})
    assert write_object("x" * 65_535)[4] == 0x74
    assert write_object("x" * 65_536)[4:13].hex() == "7c" + "0000000000010000"
    assert read_object(write_object("é" * 70_000)) == "é" * 70_000


def test_values_without_a_class() -> None:
    with pytest.raises(MessageFormatError, match="no Java class for a list"):
        write_object([])  # type: ignore[arg-type]  # that is the test
