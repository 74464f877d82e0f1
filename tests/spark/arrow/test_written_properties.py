"""The properties of a batch by columns: the same as those of its rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from jmsaio.codec.properties import write_texts
from jmsaio.errors import MessageFormatError
from jmsaio.model.wire import TYPE_SUFFIX
from jmsaio.spark.arrow.columns import TEXTS
from jmsaio.spark.arrow.property_columns import Texts, read_properties, read_structs
from jmsaio.spark.arrow.written_properties import Written, written_properties

WORDS = {"n": "int", "b": "boolean"}
FIELDS = pa.struct([("n", pa.int32()), ("s", pa.string()), ("JMSType", pa.string())])
ENTRY = st.none() | st.sampled_from(["5", "-7", "99999999999", "true", "é", ""])
KINDS = st.none() | st.sampled_from(["int", "boolean", "double", "real"])
TEXT_ROWS = st.none() | st.dictionaries(st.sampled_from(["n", "b", "JMSType"]), ENTRY, max_size=3)
WORD_ROWS = st.none() | st.dictionaries(st.sampled_from(["n", "b", "lost"]), KINDS, max_size=2)


def maps(rows: list[Texts | None]) -> pa.MapArray:
    """A column of maps."""
    return pa.array([None if row is None else list(row.items()) for row in rows], TEXTS)


def alone(texts: Any, words: Any, declared: Any = None) -> list[tuple[str, str]] | None:
    """The properties of one row in their order, as they are without its neighbours; None where it is refused."""
    wire: dict[str, str] = {}
    try:
        write_texts(*read_properties(dict(texts or {}), dict(words or {}), declared or {}), wire)
    except MessageFormatError:
        return None
    return list(wire.items())


def of_maps(rows: list[tuple[Any, Any]]) -> list[Written]:
    """What the properties of rows become together."""
    return list(written_properties(maps([row for row, _ in rows]), maps([row for _, row in rows]), None, len(rows)))


@given(st.lists(st.tuples(TEXT_ROWS, WORD_ROWS), min_size=1, max_size=3), st.integers(1, 6))
def test_what_rows_have_together_is_what_each_has_alone(rows: list[tuple[Any, Any]], times: int) -> None:
    found = of_maps(rows * times)
    assert len(found) == len(rows) * times
    for row, written in zip(rows * times, found, strict=True):
        if written is not None:
            assert list(written.items()) == alone(*row)


def test_rows_of_a_shape_of_which_one_is_refused_are_left_to_be_looked_at() -> None:
    good, other = ({"n": "5", "b": "true"}, WORDS), ({"s": "é"}, None)
    bad = ({"n": "x", "b": "true"}, WORDS)
    found = of_maps([good] * 6 + [bad] + [other] * 6)
    assert [written is None for written in found] == [True] * 7 + [False] * 6
    assert alone(*bad) is None
    assert None not in of_maps([good] * 6 + [other] * 6)


def test_a_slice_of_a_column_has_the_properties_of_its_rows() -> None:
    texts = maps([{"n": str(number)} for number in range(20)])
    words = maps([{"n": "int"}] * 20)
    found = written_properties(texts.slice(7, 10), words.slice(7, 10), None, 10)
    assert [each and each["n"] for each in found] == [str(number) for number in range(7, 17)]


def test_rows_with_the_same_names_and_types_need_no_look_of_their_own() -> None:
    rows = [({"n": str(number), "b": "TRUE", "s": "x"}, WORDS) for number in range(-3, 7)]
    assert [list(written.items()) for written in of_maps(rows) if written is not None] == [alone(*row) for row in rows]


def test_a_text_that_is_null_is_left_out_with_its_word_and_a_word_that_is_null_is_a_string() -> None:
    rows: list[Any] = [({"n": "5", "s": None}, {"n": "int", "s": "int"}), ({"n": None}, {"n": "int"})] * 4
    rows += [({"n": "5"}, {"n": None})] * 4
    found = of_maps(rows)
    assert [written and dict(written) for written in found] == [{"n": "5", "n" + TYPE_SUFFIX: "int"}, {}] * 4 + [
        {"n": "5"}
    ] * 4
    assert [list((written or {}).items()) for written in found] == [alone(*row) for row in rows]


def test_rows_that_all_differ_are_left_to_be_looked_at() -> None:
    for count in (8, 200):
        assert of_maps([({f"n{number}": "5"}, None) for number in range(count)]) == [None] * count


def test_a_name_given_twice_is_left_to_be_looked_at() -> None:
    twice = pa.array([[("n", "5"), ("n", "6")]] * 8, TEXTS)
    assert list(written_properties(twice, None, None, 8)) == [None] * 8


def test_rows_without_properties_have_none() -> None:
    assert list(written_properties(None, None, None, 3)) == [{}] * 3
    assert list(written_properties(maps([{}, {}]), None, None, 2)) == [{}] * 2
    assert list(written_properties(maps([None, {}, {}, {}]), maps([{}, None, {}, {}]), None, 4)) == [{}] * 4


@given(
    st.lists(
        st.fixed_dictionaries({"n": st.none() | st.integers(-9, 9), "s": st.none() | st.text("aé")}),
        min_size=1, max_size=3,
    ),
    st.booleans(),
)  # fmt: skip
def test_fields_are_written_as_those_of_each_row(rows: list[dict[str, Any]], refused: bool) -> None:
    column = pa.array([row | {"JMSType": "t" if refused else None} for row in rows * 9], FIELDS)
    found = list(written_properties(None, None, column, len(column)))
    expected = [alone(None, None, row) for row in read_structs(column)]
    assert [None if each is None else list(each.items()) for each in found] == expected
    assert (None in found) is refused


def test_rows_with_both_maps_and_fields_are_left_to_be_looked_at() -> None:
    fields = pa.array([{"n": 5}] * 8, pa.struct([("n", pa.int32())]))
    assert list(written_properties(maps([{"s": "x"}] * 8), None, fields, 8)) == [None] * 8
