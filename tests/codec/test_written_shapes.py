"""What is learned of the names and types of rows writes the same as looking at each row."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from jmsaio.codec import properties
from jmsaio.codec.written_shapes import learn_shape
from jmsaio.errors import MessageFormatError
from jmsaio.model.wire import TYPE_SUFFIX, TYPE_SUFFIX_READ
from tests.codec.strategies import loose_texts

MARK = "a" + TYPE_SUFFIX
NAMES = st.sampled_from(["a", "b", "é", "", "JMSXGroupID", "JMSType", MARK, "b" + TYPE_SUFFIX_READ, "\udc00"])
WORDS = st.sampled_from(["int", "integer", "double", "boolean", "string", ""])


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
    names = tuple(data.draw(st.lists(NAMES, min_size=1, max_size=4, unique=True)))
    words = data.draw(st.dictionaries(st.sampled_from([*names, "lost"]), WORDS, max_size=3))
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
