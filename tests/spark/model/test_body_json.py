"""Map and stream bodies as JSON with types, and back."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.codec.bodies import encode_body
from jmsaio.codec.rows import to_row
from jmsaio.errors import MessageFormatError
from jmsaio.model.values import Byte, Char, Float, Long, Short, Value
from jmsaio.spark.model.body_json import KINDS, body_json, read_json
from tests.codec import golden_files, strategies


def same(one: Any, other: Any) -> bool:
    """Equal bodies: same kind, names in the same order, same values by class and sign."""
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(strategies.same, one.values(), other.values()))
    return len(one) == len(other) and all(map(strategies.same, one, other))


def write_json(body: dict[str, Value] | list[Value]) -> str:
    """The JSON of the payload of a body."""
    kind = "map" if isinstance(body, dict) else "stream"
    text = body_json(kind, encode_body(kind, body, {}))
    assert text is not None
    return text


@given(st.dictionaries(strategies.loose_texts, strategies.bodies, max_size=6) | st.lists(strategies.bodies, max_size=6))
def test_any_body_is_read_back_from_its_json(body: dict[str, Any] | list[Any]) -> None:
    text = write_json(body)
    assert same(read_json(text), body)
    assert text.encode().decode() == text  # a column can hold it


def test_each_type_is_written_under_its_name() -> None:
    body: dict[str, Value] = {
        "a": True, "b": Byte(-1), "c": Short(2), "d": 3, "e": Long(1 << 62), "f": Float(0.5), "g": 2.5, "h": "é",
        "i": Char("x"), "j": b"\x00\xff", "k": None, "l": math.nan, "m": Float(-math.inf), "n": math.inf,
    }  # fmt: skip
    assert json.loads(write_json(body)) == {
        "a": {"boolean": True}, "b": {"byte": -1}, "c": {"short": 2}, "d": {"int": 3}, "e": {"long": 1 << 62},
        "f": {"float": 0.5}, "g": {"double": 2.5}, "h": {"string": "é"}, "i": {"char": "x"}, "j": {"bytes": "AP8="},
        "k": None, "l": {"double": "NaN"}, "m": {"float": "-Infinity"}, "n": {"double": "Infinity"},
    }  # fmt: skip
    assert write_json(["é", None]) == '[{"string":"é"},null]'
    assert write_json({"x": "\udc00é"}) == '{"x":{"string":"\\udc00é"}}'


def test_the_maps_and_streams_of_java_are_read_back_from_their_json() -> None:
    seen = set()
    for case in golden_files.cases():
        record = golden_files.received(case)
        if record is None:
            continue
        row = to_row(record)
        text = body_json(row.body_type, row.data)
        if row.body_type not in KINDS:
            assert text is None
            continue
        assert text is not None
        seen.add(row.body_type)
        assert body_json(row.body_type, encode_body(row.body_type, read_json(text), {})) == text
    assert seen == KINDS


@pytest.mark.parametrize(("kind", "empty"), [("map", "{}"), ("stream", "[]")])
def test_an_empty_body_is_json_without_values(kind: str, empty: str) -> None:
    assert body_json(kind, None) == body_json(kind, b"") == empty


def test_a_payload_of_another_layout_is_refused() -> None:
    with pytest.raises(MessageFormatError):
        body_json("map", b"\0")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("5", "an object or an array"),
        ('{"a":5}', "value 'a' must be null or an object of one type"),
        ('[{"int":1,"long":1}]', "value 0 must be null or"),
        ('[null,{"number":1}]', "value 1 has the type 'number': take boolean, "),
        ('[{"int":2147483648}]', "value 0 is no int: Int holds"),
        ('[{"int":true}]', "is no int"),
        ('[{"int":1.0}]', "is no int"),
        ('[{"boolean":1}]', "is no boolean"),
        ('[{"string":1}]', "is no string"),
        ('[{"char":"ab"}]', "is no char"),
        ('[{"float":0.1}]', "0.1 needs more than 32 bits"),
        ('[{"double":"nan"}]', "is no double"),
        ('[{"double":true}]', "is no double"),
        ('[{"double":NaN}]', "NaN must be a text, in quotes"),
        ('[{"double":1e999}]', "is no double"),
        ('[{"double":' + "9" * 400 + "}]", "is no double"),
        ('[{"bytes":"?"}]', "is no bytes"),
        ('[{"bytes":"é"}]', "is no bytes"),
        ('{"a":null,"a":null}', "a name occurs twice"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_json_of_another_form_is_refused_with_the_place(text: str, words: str) -> None:
    with pytest.raises(MessageFormatError, match=words):
        read_json(text)
