"""The columns that hold a writer's properties."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsaio.codec.properties import value_of
from jmsaio.errors import MessageFormatError
from jmsaio.model.values import Byte, Float, Long, Short
from jmsaio.spark.arrow.columns import TEXTS
from jmsaio.spark.arrow.property_columns import Declared, read_maps, read_properties, read_structs
from tests.codec.strategies import same

maps = st.none() | st.dictionaries(st.text("ab"), st.none() | st.text("xy"), max_size=3)


@given(st.lists(maps, max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_maps_are_read_back_from_any_slice_of_a_column(rows: list[Any], start: int, length: int) -> None:
    column = pa.array([None if row is None else list(row.items()) for row in rows], TEXTS)
    assert list(read_maps(column)) == rows
    assert list(read_maps(column.slice(start, length))) == rows[start : start + length]


VALUES: dict[pa.DataType, list[Any]] = {
    pa.string(): ["é", ""], pa.bool_(): [True, False], pa.int8(): [Byte(-128)], pa.int16(): [Short(-32768)],
    pa.int32(): [-(1 << 31)], pa.int64(): [Long((1 << 63) - 1)],
    pa.float32(): [Float(0.1), Float(math.nan), Float(math.inf), Float(-0.0), Float(1e10)],
    pa.float64(): [0.1, math.nan, -math.inf, -0.0, 5e-324],
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_fields_are_properties_of_their_types(kind: pa.DataType) -> None:
    values = VALUES[kind]
    kinds = pa.struct([("p", kind), ("q", kind)])
    column = pa.array([None, *({"p": value, "q": None} for value in values)], kinds)
    first, *rest = read_structs(column)
    assert first == {}
    for value, row in zip(values, rest, strict=True):
        (text, word) = row.pop("p")
        assert row == {}
        assert same(value_of(text, word or ""), value)


def test_a_struct_without_fields_has_no_properties() -> None:
    assert list(read_structs(pa.array([{}, None], pa.struct([])))) == [{}, {}]


def test_a_property_that_is_null_is_left_out_with_its_type() -> None:
    assert read_properties({"a": None, "b": "1", "c": "2"}, {"a": "int", "b": "int", "c": None}, {}) == (
        {"b": "1", "c": "2"},
        {"b": "int"},
    )


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("127", "byte"), ("-32768", "short"), ("+5", "int"), ("2147483647", "integer"),
        ("-9223372036854775808", "long"),
        ("TRUE", "boolean"), ("false", "boolean"), ("1.5", "float"), ("NaN", "double"), ("1e400", "double"),
        ("-1.5E-3", "float"), ("x", "no type"),
    ],
)  # fmt: skip
def test_a_text_of_its_type_is_taken_as_it_is(text: str, word: str) -> None:
    """A word that names no type is for the codec to refuse."""
    assert read_properties({"p": text}, {"p": word}, {}) == ({"p": text}, {"p": word})


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x", "int"), ("", "int"), ("1.0", "int"), ("2147483648", "int"), ("2147483648", "integer"), ("128", "byte"),
        ("32768", "short"), ("9223372036854775808", "long"), ("\u00b2", "int"), ("yes", "boolean"), ("", "boolean"),
        ("inf", "double"), ("1,5", "float"),
    ],
)  # fmt: skip
def test_a_text_that_is_not_of_its_type_is_refused(text: str, word: str) -> None:
    with pytest.raises(MessageFormatError, match=r"property 'p': .* is not an? "):
        read_properties({"p": text}, {"p": word}, {})


DECLARED: Declared = {
    "n": ("5", "int"),
    "d": ("0.10000000149011612", "double"),
    "s": ("x", None),
    "nan": ("NaN", "double"),
}


def test_a_declared_property_that_says_the_same_as_the_text_leaves_it() -> None:
    texts = {"n": "5", "d": "0.1", "s": "x", "nan": "NaN", "other": "1"}
    words = {"n": "byte", "d": "float", "nan": "float"}
    assert read_properties(dict(texts), dict(words), DECLARED) == (texts, words)
    assert read_properties({}, {}, DECLARED) == (
        {name: text for name, (text, _) in DECLARED.items()},
        {name: word for name, (_, word) in DECLARED.items() if word is not None},
    )


@pytest.mark.parametrize(
    ("name", "text", "word"), [("n", "6", "int"), ("n", "5", None), ("s", "y", None), ("n", "true", "boolean")]
)
def test_a_property_with_two_values_is_refused(name: str, text: str, word: str | None) -> None:
    with pytest.raises(MessageFormatError, match=rf"property '{name}' is '{text}' in properties and .* in props"):
        read_properties({name: text}, {name: word}, DECLARED)
