"""Java's arithmetic."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from jmsaio.model.values import Byte, Float, Long, Short
from jmsaio.selector import numbers
from jmsaio.selector.numbers import MISMATCH


@pytest.mark.parametrize(
    ("operator", "left", "right", "result"),
    [
        ("+", 2**31 - 1, 1, -(2**31)),
        ("+", 2**31 - 1, Long(1), Long(2**31)),
        ("*", 65536, 65536, 0),
        ("*", Long(2**62), 4, Long(0)),
        ("-", Byte(-128), Short(1), -129),
        ("+", 2**31, 1, Long(2**31 + 1)),
        ("/", 7, 2, 3),
        ("/", -7, 2, -3),
        ("/", 7, -2, -3),
        ("/", -(2**31), -1, -(2**31)),
        ("/", Long(-(2**63)), -1, Long(-(2**63))),
        ("/", 1, 0, None),
        ("/", 1, 0.0, math.inf),
        ("/", -1.0, 0, -math.inf),
        ("/", 1.0, -0.0, -math.inf),
        ("+", Float(0.1), Float(0.2), Float(0.1 + 0.2)),
        ("*", Float(3e38), 10, Float(math.inf)),
        ("+", Float(0.1), 0.2, float(Float(0.1)) + 0.2),
        ("+", Float(1), 2**24 + 1, Float(2**24)),
        ("*", 1e308, 10.0, math.inf),
        ("+", "a", 1, MISMATCH),
        ("-", 1, True, MISMATCH),
        ("+", MISMATCH, 1, MISMATCH),
        ("+", None, "a", None),
        ("*", 1, None, None),
    ],
)
def test_operators_give_javas_value_and_type(operator: str, left: object, right: object, result: object) -> None:
    found = numbers.OPERATORS[operator](left, right)
    assert found == result and type(found) is type(result)
    assert numbers.fold((operator,), (left, right)) == result


def test_division_of_zeros_is_not_a_number() -> None:
    for left, right in ((0.0, 0.0), (math.nan, 0.0), (math.nan, 1.0)):
        result = numbers.divide(left, right)
        assert isinstance(result, float) and math.isnan(result)


def test_signs_keep_javas_overflow_and_refuse_text() -> None:
    assert numbers.negate(-(2**31)) == -(2**31)
    assert numbers.negate(Byte(-128)) == 128
    assert numbers.negate(Long(-(2**63))) == -(2**63)
    assert [numbers.negate(value) for value in ("a", None)] == [MISMATCH, None]
    assert [numbers.positive(value) for value in (5, "a", None)] == [5, MISMATCH, None]
    assert repr(MISMATCH) == "MISMATCH"


def test_chains_run_from_left_to_right() -> None:
    assert numbers.fold(("-", "-"), (10, 3, 2)) == 5
    assert numbers.fold(("/", "*"), (7, 2, 2)) == 6


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_long_is_rounded_to_a_float_once(value: int) -> None:
    found = Fraction(numbers.single_of(value))
    bits = struct.unpack("<i", struct.pack("<f", numbers.single_of(value)))[0]
    for neighbour in (bits - 1, bits + 1):
        other = struct.unpack("<f", struct.pack("<i", neighbour))[0] if 0 <= abs(neighbour) < 2**31 else math.nan
        if math.isfinite(other):
            assert abs(found - value) <= abs(Fraction(other) - value)


@given(st.integers(-(2**80), 2**80))
def test_results_wrap_into_32_and_64_bits(value: int) -> None:
    assert -(2**31) <= numbers.wrap_int(value) < 2**31 and (numbers.wrap_int(value) - value) % 2**32 == 0
    assert -(2**63) <= numbers.wrap_long(value) < 2**63 and (numbers.wrap_long(value) - value) % 2**64 == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_what_lies_just_above_the_middle_of_two_floats_is_rounded_up(sign: int) -> None:
    lower, upper = 2**59, 2**59 + 2**36
    assert numbers.single_of(sign * (lower + 2**35)) == sign * lower  # the middle itself goes to the even one
    assert numbers.single_of(sign * (lower + 2**35 + 1)) == sign * upper
