"""The generated functions: short circuits, deep and wide trees, names that look like code; what is refused."""

from __future__ import annotations

import itertools

import pytest

from jmsaio.errors import InvalidSelectorError
from jmsaio.selector import Selector
from jmsaio.selector.generate import FORBIDDEN
from tests.kit.records import Record

TRUTH = {"T": True, "F": False, "U": None}


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_three_valued_logic(word: str) -> None:
    """All combinations of three terms, at the top and inside, against the tables of the specification."""
    for first, second, third in itertools.product("TFU", repeat=3):
        terms = (first, second, third)
        ends = "F" if word == "AND" else "T"
        expected = TRUTH[ends] if ends in terms else None if "U" in terms else not TRUTH[ends]
        values = {name: TRUTH[term] for name, term in zip("abc", terms, strict=True)}
        text = f"a {word} b {word} c"
        assert Selector(text).matches(values) is expected
        assert Selector(f"NOT ({text})").matches(values) is (None if expected is None else not expected)
        assert Selector(f"(a {word} b) {word} (c)").matches(values) is expected


def test_a_decided_result_ends_the_evaluation() -> None:
    asked: list[str] = []

    def header(record: object, name: str) -> object:
        asked.append(name)
        return None

    record = Record(properties={"a": "1", "a_jsmtype": "int"})
    assert Selector("a = 2 AND JMSType = 'x'").matches_record(record, header) is False
    assert Selector("a = 1 OR JMSType = 'x'").matches_record(record, header) is True
    assert asked == []
    assert Selector("JMSType = 'x' AND a = 2 AND JMSMessageID = 'y'").matches_record(record, header) is False
    assert asked == ["JMSType"]


@pytest.mark.parametrize("text", ["(a OR (NOT (", "(a + (2 * ("])
def test_deep_trees_are_cut_into_functions(text: str) -> None:
    levels = 10
    inner = "b" if "OR" in text else "1"
    closed = text * levels + inner + ")))" * levels
    selector = Selector(closed if "OR" in text else f"{closed} > 1")
    assert selector.matches({"a": 1, "b": True}) in (True, False)


@pytest.mark.slow
def test_wide_conditions_inside_others() -> None:
    text = "NOT (" + " OR ".join(f"a = {number}" for number in range(2_000)) + ")"
    assert Selector(text).matches({"a": 1_999}) is False
    assert Selector(text).matches({"a": 2_000}) is True


def test_texts_of_the_selector_are_no_code() -> None:
    nasty = "'); raise SystemExit #\\\n\"{0}\ud800"
    quoted = nasty.replace("'", "''")
    for text in (f"s = '{quoted}'", f"s IN ('{quoted}', 'x')", f"s LIKE '{quoted}'"):
        assert Selector(text).matches({"s": nasty}) is True
        assert Selector(text).matches_record(Record(properties={"s": nasty}), lambda record, name: None) is True
    assert Selector("get = 1 AND len = 1 AND evaluate = 1 AND v1 = 1 AND None1 = 1").matches(
        dict.fromkeys(("get", "len", "evaluate", "v1", "None1"), 1)
    )


TERMS = ["n > 3", "3 < n", "n = 7", "n <= 3.5", "n <> 123456789", "n >= 1L", "n < 1.5f", "n = 1234567890L"]
AMOUNTS = ["0", "3", "999", "1000", "123456789", "1234567890", "-5", "+7", "007", "٣", "2147483648"]
MARKS = ["int", "long", "short", "double", "float"]


def no_header(record: object, name: str) -> None:
    return None


@pytest.mark.parametrize("term", TERMS)
def test_the_fast_way_is_the_slow_way(term: str) -> None:
    """A term compared in place answers as the same term through the general functions."""
    slow = term.replace("n ", "+n ") if term.startswith("n") else term.replace(" n", " +n")
    for mark, amount in itertools.product(MARKS, AMOUNTS):
        record = Record(properties={"n": amount, "n_jsmtype": mark})
        expected = Selector(slow).matches_record(record, no_header)
        assert Selector(term).matches_record(record, no_header) is expected, (mark, amount)


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("5", 1, "the selector must be a condition, this is a number"),
        ("'a'", 1, "this is a string"),
        ("a + 1", 1, "this is arithmetic"),
        ("a = 1 AND 5", 11, "each side of AND"),
        ("NOT 'x'", 5, "the operand of NOT"),
        ("(a + 1) OR b", 2, "each side of OR"),
        ("s > 'a'", 5, "each side of > must be a number or a name, this is a string"),
        ("TRUE < a", 1, "this is TRUE"),
        ("a BETWEEN 'x' AND 5", 11, "each operand of BETWEEN"),
        ("(a = 1) > 2", 2, "this is a condition"),
        ("'a' + 1 = 2", 1, "each side of +"),
        ("1 + 'a' = 2", 5, "each side of +"),
        ("-TRUE = 1", 2, "the operand of -"),
        ("a * (b = 1) = 2", 6, "each side of *"),
        ("'a' IN ('a')", 1, "the left side of IN"),
        ("(a) IN ('a')", 2, "the name a in parentheses"),
        ("a + 1 LIKE 'x'", 1, "the left side of LIKE"),
        ("5 IS NULL", 1, "the left side of IS NULL"),
        ("a = 9223372036854775808", 5, "directly after a minus"),
        ("a = -(9223372036854775808)", 7, "directly after a minus"),
        ("a = +9223372036854775808", 6, "directly after a minus"),
        ("TRUE = 'a'", 1, "TRUE = a string compares a Boolean with a non-Boolean"),
        ("a = 1 OR (5) <> FALSE", 11, "TRUE and FALSE can't be names"),
    ],
)
def test_a_selector_that_is_no_condition_is_refused_at_its_column(text: str, column: int, says: str) -> None:
    with pytest.raises(InvalidSelectorError) as caught:
        Selector(text)
    assert (caught.value.column, says in caught.value.reason) == (column, True)


@pytest.mark.parametrize("name", sorted(FORBIDDEN))
def test_headers_that_selectors_may_not_name(name: str) -> None:
    for text in (f"{name} = 1", f"a = 1 OR {name} IS NULL", f"{name} IN ('a')", f"a < {name} + 1", name):
        with pytest.raises(InvalidSelectorError, match=f"the header {name} can't be used"):
            Selector(text)


@pytest.mark.parametrize(
    "text",
    [
        "TRUE", "a", "NOT a", "(a)", "(a = 1) = (b = 2)", "1 = 'a'", "TRUE <> a", "TRUE = FALSE", "-a = 1",
        "JMSXGroupID = 'g'",
    ],
)  # fmt: skip
def test_conditions_of_every_form_are_accepted(text: str) -> None:
    Selector(text)
