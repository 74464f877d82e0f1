"""What was learned of the names of records says the same as looking at each record."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsaio.codec import properties, shapes

#: Names and texts of which each says something: headers, marks, properties that look like them.
NAMES = st.sampled_from(
    ["a", "b", "a_jsmtype", "b_jsmtype", "a_jmstype", "JMSXGroupID", "JMSXGroupID_jsmtype", "JMSXGroupSeq",
     "JMSPulsarMessageType", "JMSDeliveryTime", "", "_jsmtype"]
)  # fmt: skip
TEXTS = st.sampled_from(["", "5", "int", "integer", "double", "odd", "text"])


def read_often(
    wire: Mapping[str, str], key: str | None = None, sequence_id: int | None = None
) -> list[tuple[dict[str, str], Mapping[str, str]]]:
    """What it says while it learns, and what it says then."""
    return [shapes.read_texts(wire, key, sequence_id) for _ in range(4)]


@given(st.dictionaries(NAMES, TEXTS, max_size=8), st.none() | TEXTS, st.none() | st.integers(0, 1 << 40))
def test_a_shape_says_what_the_record_says(wire: dict[str, str], key: str | None, number: int | None) -> None:
    expected = properties.read_texts(wire, key, number)
    for found in read_often(wire, key, number):
        assert found == expected
        assert list(found[0]) == list(expected[0])


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS), min_size=3, max_size=8))
def test_records_with_the_same_names_keep_their_own_texts_and_words(rows: list[tuple[str, ...]]) -> None:
    for row in rows:
        wire = dict(zip(("n", "JMSType", "n_jsmtype", "m"), row, strict=True))
        assert shapes.read_texts(wire, None, None) == properties.read_texts(wire, None, None)


def test_records_with_the_same_marks_share_their_words() -> None:
    first, *_, last = read_often({"n": "5", "n_jsmtype": "int"})
    _, words = shapes.read_texts({"n": "6", "n_jsmtype": "int"}, "key", None)
    assert first == last == ({"n": "5"}, {"n": "int"})
    assert words is last[1]


@pytest.mark.parametrize("names", [shapes._SHAPES_KEPT * 2, shapes._SHAPES_KEPT * 3 + 1])
def test_what_is_remembered_has_bounds(names: int) -> None:
    for number in range(names):
        for found in read_often({f"p{number}": "5", f"p{number}_jsmtype": "int"}):
            assert found == ({f"p{number}": "5"}, {f"p{number}": "int"})
    assert len(shapes._SHAPES) <= shapes._SHAPES_KEPT and len(shapes._SEEN) <= shapes._SHAPES_KEPT


def test_words_that_are_none_are_remembered_within_bounds() -> None:
    for number in range(shapes._WORDS_KEPT * 2):
        assert read_often({"w": "5", "w_jsmtype": f"odd{number}"})[-1] == ({"w": "5"}, {})
    shape = shapes._SHAPES["w", "w_jsmtype"]
    assert shape is not None and len(shape.words) == shapes._WORDS_KEPT


def test_very_long_names_are_not_remembered() -> None:
    wire = {"n" * 5000: "5"}
    assert read_often(wire)[-1] == (wire, {})
    assert tuple(wire) not in shapes._SHAPES
