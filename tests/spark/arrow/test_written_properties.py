"""The properties of written rows, by column and row by row."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from jmsaio.codec import properties
from jmsaio.codec.properties import value_of, write_texts
from jmsaio.errors import MessageFormatError
from jmsaio.model.values import Byte, Float, Long, Short
from jmsaio.model.wire import TYPE_SUFFIX, TYPE_SUFFIX_READ
from jmsaio.spark.arrow import written_properties as module
from jmsaio.spark.arrow.columns import TEXTS
from jmsaio.spark.arrow.written_properties import (
    Texts,
    learn_shape,
    read_maps,
    read_properties,
    read_structs,
    written_properties,
)
from tests.codec.strategies import loose_texts, same

WORDS = {"n": "int", "b": "boolean"}
FIELDS = pa.struct([("n", pa.int32()), ("s", pa.string()), ("JMSType", pa.string())])
ENTRY = st.none() | st.sampled_from(["5", "-7", "99999999999", "true", "é", ""])
KINDS = st.none() | st.sampled_from(["int", "boolean", "double", "real"])
TEXT_ROWS = st.none() | st.dictionaries(st.sampled_from(["n", "b", "JMSType"]), ENTRY, max_size=3)
WORD_ROWS = st.none() | st.dictionaries(st.sampled_from(["n", "b", "lost"]), KINDS, max_size=2)


#: The properties of a row in their order; None where the row is refused.
Found = list[tuple[str, str]] | None


def maps(rows: list[Texts | None]) -> pa.MapArray:
    """A column of maps."""
    return pa.array([None if row is None else list(row.items()) for row in rows], TEXTS)


def alone(texts: Any, words: Any) -> Found:
    """The properties of one row, as they are without its neighbours."""
    wire: dict[str, str] = {}
    try:
        write_texts(*read_properties(texts or {}, words or {}), wire)
    except MessageFormatError:
        return None
    return list(wire.items())


def found(texts: Any, words: Any, declared: Any, rows: int) -> list[Found]:
    """The properties of rows, up to one that is refused."""
    written: list[Found] = []
    try:
        written.extend(list(each.items()) for each in written_properties(texts, words, declared, rows))
    except MessageFormatError:
        written.append(None)
    return written


def of_maps(rows: list[tuple[Any, Any]]) -> list[Found]:
    """What the properties of rows become together."""
    return found(maps([row for row, _ in rows]), maps([row for _, row in rows]), None, len(rows))


def up_to_refused(rows: Iterable[Found]) -> list[Found]:
    """Rows up to the first that is refused."""
    taken: list[Found] = []
    for row in rows:
        taken.append(row)
        if row is None:
            break
    return taken


@pytest.fixture
def by_column_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to write rows one by one."""

    def refuse(*row: object) -> dict[str, str]:
        raise AssertionError(row)

    monkeypatch.setattr(module, "_on_wire", refuse)


@given(st.lists(st.tuples(TEXT_ROWS, WORD_ROWS), min_size=1, max_size=3), st.integers(1, 6))
def test_what_rows_have_together_is_what_each_has_alone(rows: list[tuple[Any, Any]], times: int) -> None:
    assert of_maps(rows * times) == up_to_refused(alone(*row) for row in rows * times)


def test_rows_before_a_refused_one_have_their_properties() -> None:
    good, other = ({"n": "5", "b": "true"}, WORDS), ({"s": "é"}, None)
    bad = ({"n": "x", "b": "true"}, WORDS)
    assert of_maps([good] * 6 + [bad] + [other] * 6) == [alone(*good)] * 6 + [None]
    assert of_maps([good] * 6 + [other] * 6) == [alone(*good)] * 6 + [alone(*other)] * 6


@pytest.mark.usefixtures("by_column_only")
def test_a_slice_of_a_column_has_the_properties_of_its_rows() -> None:
    texts = maps([{"n": str(number)} for number in range(20)])
    words = maps([{"n": "int"}] * 20)
    rows = written_properties(texts.slice(7, 10), words.slice(7, 10), None, 10)
    assert [each["n"] for each in rows] == [str(number) for number in range(7, 17)]


@pytest.mark.usefixtures("by_column_only")
def test_rows_with_the_same_names_and_types_need_no_look_of_their_own() -> None:
    rows = [({"n": str(number), "b": "TRUE", "s": "x"}, WORDS) for number in range(-3, 7)]
    assert of_maps(rows) == [alone(*row) for row in rows]


def test_a_text_that_is_null_is_left_out_with_its_word_and_a_word_that_is_null_is_a_string() -> None:
    rows: list[Any] = [({"n": "5", "s": None}, {"n": "int", "s": "int"}), ({"n": None}, {"n": "int"})] * 4
    rows += [({"n": "5"}, {"n": None})] * 4
    assert of_maps(rows) == [[("n", "5"), ("n" + TYPE_SUFFIX, "int")], []] * 4 + [[("n", "5")]] * 4
    assert of_maps(rows) == [alone(*row) for row in rows]


def test_rows_that_all_differ_have_properties_of_their_own() -> None:
    assert of_maps([({f"n{number}": "5"}, None) for number in range(200)]) == [[(f"n{n}", "5")] for n in range(200)]


@pytest.mark.usefixtures("by_column_only")
def test_rows_without_properties_have_none() -> None:
    assert found(None, None, None, 3) == [[]] * 3
    assert found(maps([{}, {}]), None, None, 2) == [[]] * 2


def test_rows_without_maps_have_no_properties() -> None:
    assert found(maps([None, {}, {}, {}]), maps([{}, None, {}, {}]), None, 4) == [[]] * 4


FIELD_ROWS = st.lists(
    st.fixed_dictionaries({"n": st.none() | st.integers(-9, 9), "s": st.none() | st.text("aé")}), min_size=1, max_size=3
)


@given(FIELD_ROWS, st.booleans())
def test_fields_are_written_as_those_of_each_row(rows: list[dict[str, Any]], refused: bool) -> None:
    column = pa.array([row | {"JMSType": "t" if refused else None} for row in rows * 9], FIELDS)
    expected = up_to_refused(alone(*row) for row in read_structs(column))
    assert found(None, None, column, len(column)) == expected
    assert (None in expected) is refused


@pytest.mark.usefixtures("by_column_only")
def test_fields_without_null_need_no_look_of_their_own() -> None:
    column = pa.array(
        [{"n": number, "s": "é"} for number in range(9)], pa.struct([("n", pa.int32()), ("s", pa.string())])
    )
    assert found(None, None, column, 9) == [alone(*row) for row in read_structs(column)]


def test_rows_with_both_maps_and_fields_have_the_properties_of_both() -> None:
    fields = pa.array([{"n": 5}] * 8, pa.struct([("n", pa.int32())]))
    assert found(maps([{"s": "x"}] * 8), None, fields, 8) == [[("s", "x"), ("n", "5"), ("n" + TYPE_SUFFIX, "int")]] * 8


MAPS = st.none() | st.dictionaries(st.text("ab"), st.none() | st.text("xy"), max_size=3)


@given(st.lists(MAPS, max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_maps_are_read_back_from_any_slice_of_a_column(rows: list[Any], start: int, length: int) -> None:
    column, expected = maps(rows), [row or {} for row in rows]
    assert list(read_maps(column, len(column))) == expected
    assert list(read_maps(column.slice(start, length), length)) == expected[start : start + length]


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
    assert first == ({}, {})
    for value, (texts, words) in zip(values, rest, strict=True):
        assert list(texts) == ["p"] and words.keys() <= {"p"}
        assert same(value_of(texts["p"], words.get("p", "")), value)


def test_of_fields_with_one_name_the_last_has_text_and_type() -> None:
    column = pa.StructArray.from_arrays([pa.array([5], pa.int32()), pa.array(["x"])], names=["a", "a"])
    assert list(read_structs(column)) == [({"a": "x"}, {})]


def test_a_struct_without_fields_has_no_properties() -> None:
    assert list(read_structs(pa.array([{}, None], pa.struct([])))) == [({}, {})] * 2


def test_a_property_that_is_null_is_left_out_with_its_type() -> None:
    assert read_properties({"a": None, "b": "1", "c": "2"}, {"a": "int", "b": "int", "c": None}) == (
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
    assert read_properties({"p": text}, {"p": word}) == ({"p": text}, {"p": word})


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
        read_properties({"p": text}, {"p": word})


def test_a_property_in_both_columns_is_refused() -> None:
    fields = pa.array([{"n": 5}], pa.struct([("n", pa.int32())]))
    with pytest.raises(MessageFormatError, match=r"property 'n' is in properties and in props"):
        list(written_properties(maps([{"n": "5"}]), None, fields, 1))


MARK = "a" + TYPE_SUFFIX
SOME_NAMES = st.sampled_from(["a", "b", "é", "", "JMSXGroupID", "JMSType", MARK, "b" + TYPE_SUFFIX_READ, "\udc00"])
SOME_WORDS = st.sampled_from(["int", "integer", "double", "boolean", "string", ""])


def written(texts: dict[str, str], words: dict[str, str]) -> list[tuple[str, str]] | None:
    """What one row becomes, in its order; None where it is refused."""
    wire: dict[str, str] = {}
    try:
        properties.write_texts(texts, words, wire)
    except MessageFormatError:
        return None
    return list(wire.items())


@given(st.data())
def test_a_shape_writes_what_each_row_writes(data: st.DataObject) -> None:
    names = tuple(data.draw(st.lists(SOME_NAMES, min_size=1, max_size=4, unique=True)))
    words = data.draw(st.dictionaries(st.sampled_from([*names, "lost"]), SOME_WORDS, max_size=3))
    rows = data.draw(st.lists(st.tuples(*(loose_texts for _ in names)), min_size=1, max_size=4))
    expected = [written(dict(zip(names, row, strict=True)), words) for row in rows]
    shape = learn_shape(names, words)
    found = None if shape is None else shape.write(list(zip(*rows, strict=True)))
    if found is None:
        assert None in expected
    else:
        assert [list(row.items()) for row in found] == expected


@pytest.mark.parametrize("names", list(permutations(["a", "é", "JMSXGroupID"])))
def test_each_row_has_properties_of_its_own_in_the_order_of_names(names: tuple[str, ...]) -> None:
    shape = learn_shape(names, {"a": "integer"})
    assert shape is not None
    rows = shape.write([["1", "2"]] * 3)
    assert rows is not None
    one, other = rows
    wanted = [each for name in names for each in ((name, MARK) if name == "a" else (name,))]
    assert list(one) == list(other) == wanted
    one["a"] = "3"
    assert (other["a"], other[MARK]) == ("2", "int")
