"""The vectors seen on a live broker, the order of evaluation, and what the Java parser refuses."""

from __future__ import annotations

import pytest

from jmsaio.errors import InvalidSelectorError, SelectorRuntimeError
from jmsaio.model.values import Float
from jmsaio.selector import Selector
from tests.kit.records import Record

VALUES = {"i": 5, "s": "abc", "n": "5", "b": True, "u": "a_c", "fl": Float(0.1)}
TRUE = [
    "i=5.0", "n='5'", "i <> '5'", "i=5L", "i=0x5", "i=05", "x IS NULL", "i <> x", "x = y", "b", "b=TRUE", "s='abc' = b",
    "s LIKE 'a_c'", "i BETWEEN 1 AND 5", "s + i = 'abc5'", "i/2=2.5", "i%2=1", "i/0 > 1", "u LIKE 'a\\_c' ESCAPE '\\'",
]  # fmt: skip
FALSE = [
    "n=5", "i='5'", "'5'=i", "i LIKE '5'", "s", "NOT b", "b='true'", "NOT i=5", "fl=0.1", "i BETWEEN 6 AND 4",
    "s LIKE ''",
]  # fmt: skip
UNKNOWN = ["x = 1", "x <> 1", "x <> i", "NOT (x = 1)", "x NOT IN ('z')", "i IN ('5')", "NULL", "x AND b", "-s > 1"]
INVALID = [
    "i==5", "i!=5", "s > 'a'", "s = NULL", "s IN ()", "s LIKE s", "i BETWEEN 'a' AND 'b'", "1", "\"s\"='abc'", "é=1",
    "a.b=1", "XPATH 'a'", "xquery = 1", "'a'", "i + 1", "TRUE = 1", "(i = 5) > 1", "(i + 1) IN ('a')", "NULL = i",
    "s LIKE 'a' ESCAPE 'ab'", "s LIKE 'a' ESCAPE '😀'", "s LIKE 'a\t\t' ESCAPE '\t'", "NOT 5", "i > NULL",
    "0xffffffffffffffff = i", "",
]  # fmt: skip


def answer(text: str) -> bool | None:
    return Selector(text, "starlight").matches(VALUES)


@pytest.mark.parametrize("text", TRUE)
def test_conditions_that_hold_are_true(text: str) -> None:
    assert answer(text) is True


@pytest.mark.parametrize("text", FALSE)
def test_conditions_that_do_not_hold_are_false(text: str) -> None:
    assert answer(text) is False


@pytest.mark.parametrize("text", UNKNOWN)
def test_conditions_on_unknown_values_are_unknown(text: str) -> None:
    assert answer(text) is None


@pytest.mark.parametrize("text", INVALID)
def test_selectors_that_starlight_refuses_are_refused(text: str) -> None:
    with pytest.raises(InvalidSelectorError):
        Selector(text, "starlight")


@pytest.mark.parametrize("text", ["i + s = 'x'", "-(1 + s) > 1", "b OR i = 1 AND s - 1 = 2", "s * 2 BETWEEN 1 AND 2"])
def test_an_error_is_raised_only_where_it_is_evaluated(text: str) -> None:
    if text.startswith("b OR"):
        assert answer(text) is True  # never looked at
    else:
        with pytest.raises(SelectorRuntimeError):
            answer(text)


def test_a_term_that_is_not_true_ends_the_matching() -> None:
    """After an UNKNOWN term ``matches`` does not look at the next, which would throw; inside NOT it does."""
    assert answer("x = 1 AND i - s = 1") is False
    assert answer("x BETWEEN 1 AND 2 AND i - s = 1") is False
    assert answer("i = 1 AND i - s = 1") is False
    with pytest.raises(SelectorRuntimeError):
        answer("NOT (x = 1 AND i - s = 1)")
    with pytest.raises(SelectorRuntimeError):
        answer("x = 1 OR i - s = 1")


def test_signs_and_parentheses_leave_no_trace() -> None:
    for text in ("+(s) IN ('abc')", "+b", "(+i) = 5", "+(b AND TRUE)", "+REGEX(('a'), s)"):
        assert answer(text) is True


def test_conversion_of_strings() -> None:
    for text in ("n = 5", "n > 4", "i = '5'", "n BETWEEN 1 AND 9", "NOT (n = 6)"):
        assert answer(f"convert_string_expressions:{text}") is True
    with pytest.raises(SelectorRuntimeError):
        answer("convert_string_expressions:b = 'true'")
    with pytest.raises(InvalidSelectorError) as caught:
        Selector("convert_string_expressions:n = ", "starlight")
    assert caught.value.column == len("convert_string_expressions:n = ") + 1


def test_on_a_record() -> None:
    record = Record(properties={"region": "EU", "amount": "5", "amount_jsmtype": "int"})
    selector = Selector("region = 'EU' AND amount % 2 = 1 AND JMSPriority = 4", "starlight")
    assert selector.matches_record(record, lambda record, name: None) is True
    with pytest.raises(SelectorRuntimeError):
        Selector("JMSMessageID IS NULL", "starlight").matches_record(record, lambda record, name: None)
