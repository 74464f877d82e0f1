"""Values as the Java engine handles them."""

from __future__ import annotations

import math

import pytest

from jmsaio.errors import SelectorRuntimeError
from jmsaio.model.values import Byte, Char, Double, Float, Int, Long, Short
from jmsaio.selector.nodes import Big
from jmsaio.selector.starlight import values


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        (1, 2, -1), (Long(2), 1, 1), (1, Long(1), 0), (Byte(1), 1, 0), (1, Byte(1), None), (5, Short(5), None),
        (Byte(5), Short(5), 0), (Short(5), Byte(5), None), (1.0, 1, 0), (1, 1.0, 0), (Float(1.5), 1.5, 0),
        (Long(2**24 + 1), Float(2**24), 0), ("a", "b", -1), ("a", 1, None), (True, False, 1), (True, 1, None),
        (math.nan, math.inf, 1), (math.nan, math.nan, 0), (-0.0, 0.0, -1), (0.0, 0, 0), (-0.0, 0, -1),
        (Big(2**64), Big(2**65), -1), (Big(2**64), 1, None), (1, Big(2**64), None), ("\ue000", "😀", 1),
    ],
)  # fmt: skip
def test_values_are_ordered_as_java_compares_them(left: object, right: object, order: int | None) -> None:
    assert values.order(left, right, False) == order


@pytest.mark.parametrize(("left", "right"), [(1.0, Float(1)), ((), 1), (1, ("a",))])
def test_values_without_an_order_are_an_error(left: object, right: object) -> None:
    with pytest.raises(SelectorRuntimeError):
        values.order(left, right, False)


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        ("5", 5, 0), (5, "5", 0), (5, "x", None), ("5.5", 5.5, 0), (Float(1.5), " 1.5f ", 0), ("300", Byte(5), None),
        ("TRUE", True, 0), ("x", True, -1), ("9", 10, -1), ("5", Big(2**64), None), (Long(5), "+5", 0),
    ],
)  # fmt: skip
def test_a_string_is_converted_to_the_other_sides_type_before_it_is_compared(
    left: object, right: object, order: int | None
) -> None:
    assert values.order(left, right, True) == order


def test_a_boolean_before_a_string_can_not_be_converted() -> None:
    with pytest.raises(SelectorRuntimeError):
        values.order(True, "true", True)


def test_equality_and_null() -> None:
    assert values.equal(None, None, False) is True
    assert values.equal(None, 1, False) is None
    assert values.equal(1, None, False) is False
    assert values.equal(("a", 1), ("a", 1), False) is True
    assert values.equal(("a", 1), ("a", Long(1)), False) is False
    assert values.equal((), 5, False) is False
    assert values.equal(math.nan, math.nan, False) is True
    assert values.same(0.0, -0.0) is False


@pytest.mark.parametrize(
    ("operator", "left", "right", "result"),
    [
        ("+", "a", 5, "a5"), ("+", "a", 1.0, "a1.0"), ("+", "a", True, "atrue"), ("+", "", ("x", None), "[x, null]"),
        ("+", "a", Big(2**64), "a18446744073709551616"), ("+", 2**31 - 1, 1, -(2**31)), ("*", Long(2**62), 4, Long(0)),
        ("/", 5, 2, 2.5), ("/", 1, 0, math.inf), ("%", 5, 3, 2.0), ("%", -5, 3, -2.0), ("%", 5.5, math.inf, 5.5),
        ("-", Float(0.5), 1, -0.5), ("+", Big(2**64 + 5), 1, 6),
    ],
)  # fmt: skip
def test_arithmetic_gives_javas_value_and_type(operator: str, left: object, right: object, result: object) -> None:
    found = values.OPERATORS[operator](left, right)
    assert found == result and type(found) is type(result)


@pytest.mark.parametrize(("left", "right"), [(5, 0), (math.inf, 2), (math.nan, 1), (1.0, math.nan)])
def test_remainders_that_are_not_a_number(left: object, right: object) -> None:
    result = values.remainder(left, right)
    assert isinstance(result, float) and math.isnan(result)


@pytest.mark.parametrize(
    ("operator", "left", "right"),
    [("+", 1, "a"), ("-", "a", 1), ("*", True, 1), ("/", (), 1), ("%", 1, "a"), ("+", (), 1)],
)
def test_arithmetic_with_what_is_no_number_is_an_error(operator: str, left: object, right: object) -> None:
    with pytest.raises(SelectorRuntimeError):
        values.OPERATORS[operator](left, right)


def test_negation_gives_javas_value_and_type() -> None:
    cases = [(5, -5), (-(2**31), -(2**31)), (Long(5), Long(-5)), (Float(1.5), Float(-1.5)), (1.5, -1.5), ("a", None)]
    for value, expected in [*cases, (True, None), ((), None), (None, None), (Big(2**64), Big(-(2**64)))]:
        found = values.negate(value)
        assert found == expected and type(found) is type(expected)
    assert type(values.negate(Big(2**63))) is Long
    for narrow in (Byte(1), Short(1)):
        with pytest.raises(SelectorRuntimeError):
            values.negate(narrow)


def test_a_python_value_gets_the_type_java_gives_it_or_is_an_error() -> None:
    cases = [(5, int), (2**40, Long), (Int(5), int), (Double(1.5), float), (Byte(1), Byte), ("a", str), (True, bool)]
    for value, kind in cases:
        assert type(values.native(value)) is kind
    for wrong in (Char("a"), b"x", 2**64, list[int]()):
        with pytest.raises(SelectorRuntimeError):
            values.native(wrong)
