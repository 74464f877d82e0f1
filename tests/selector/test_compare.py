"""The three-valued comparisons."""

from __future__ import annotations

import math
import operator

import pytest

from jmsaio.model.values import Byte, Float, Long, Short
from jmsaio.selector import compare
from jmsaio.selector.numbers import MISMATCH

PYTHON = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
NUMBERS = [Byte(5), Short(5), 5, Long(5), Float(5.0), 5.0, Byte(-3), 7, Long(2**40), Float(0.1), 0.1, math.inf]


def test_numbers_of_all_types_compare_by_value() -> None:
    for left in NUMBERS:
        for right in NUMBERS:
            if Float in (type(left), type(right)):
                continue  # below
            for text, function in compare.COMPARISONS.items():
                assert function(left, right) is PYTHON[text](left, right), (left, text, right)


def test_numbers_are_promoted_as_in_java_before_they_are_compared() -> None:
    assert compare.equal(Long(2**24 + 1), Float(2.0**24)) is True
    assert compare.equal(2**24 + 1, Float(2.0**24)) is True
    assert compare.equal(Float(1.1), 1.1) is False
    assert compare.equal(Float(1.1), Float(1.1)) is True
    assert compare.equal(Long(2**53 + 1), 2.0**53) is True
    assert compare.equal(2**53 + 1, 2.0**53) is True  # a caller's int beyond 32 bits is a long
    assert compare.less(Long(2**53), Long(2**53 + 1)) is True


def test_not_a_number() -> None:
    for text, function in compare.COMPARISONS.items():
        assert function(math.nan, math.nan) is (text == "<>")
        assert function(math.nan, 1) is (text == "<>")


@pytest.mark.parametrize(
    ("left", "right"),
    [("5", 5), (5, "5"), (True, 1), (1, True), ("true", True), (MISMATCH, 1), ("a", MISMATCH)],
)
def test_unlike_families_are_false(left: object, right: object) -> None:
    assert [function(left, right) for function in compare.COMPARISONS.values()] == [False] * 6


def test_null_is_unknown() -> None:
    for function in compare.COMPARISONS.values():
        assert [function(None, 1), function(1, None), function(None, None), function(None, "a")] == [None] * 4


def test_strings_and_booleans() -> None:
    assert (compare.equal("a", "a"), compare.unequal("a", "b"), compare.equal("a", "A")) == (True, True, False)
    assert (compare.equal(True, True), compare.unequal(True, False)) == (True, True)
    assert (compare.less("a", "b"), compare.greater(True, False), compare.less_equal("a", "a")) == (False, False, False)


@pytest.mark.parametrize(
    ("subject", "low", "high", "inside", "outside"),
    [
        (5, 1, 5, True, False),
        (5, 6, 4, False, True),
        (None, 1, 5, None, None),
        (5, None, 4, False, True),
        (5, None, 6, None, None),
        (5, 6, None, False, True),
        ("5", 1, 6, False, False),
        ("5", None, 6, False, None),
    ],
)
def test_between_and_not_between_include_both_ends(
    subject: object, low: object, high: object, inside: bool | None, outside: bool | None
) -> None:
    assert compare.between(subject, low, high) is inside
    assert compare.not_between(subject, low, high) is outside


def test_membership_truth_and_not() -> None:
    members = frozenset({"a"})
    assert [compare.inside(value, members) for value in ("a", "b", None, 5)] == [True, False, None, None]
    assert [compare.truth(value) for value in (True, False, None)] == [True, False, None]
    assert [compare.truth(value) for value in (1, "true", MISMATCH)] == [False] * 3
    assert [compare.opposite(value) for value in (True, False, None)] == [False, True, None]
