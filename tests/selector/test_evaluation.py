"""Values of names, comparisons and arithmetic of compiled selectors."""

from __future__ import annotations

import enum
import math
import operator
import re
import struct
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from jmsaio.model.messages.message import Message
from jmsaio.model.values import Byte, Double, Float, Int, Long, Short
from jmsaio.selector import evaluation
from jmsaio.selector.evaluation import MISMATCH, matcher, pieces


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
    found = evaluation.combine(operator, left, right)
    assert found == result and type(found) is type(result)
    assert evaluation.fold((operator,), (left, right)) == result


def test_division_of_zeros_is_not_a_number() -> None:
    for left, right in ((0.0, 0.0), (math.nan, 0.0), (math.nan, 1.0)):
        result = evaluation.combine("/", left, right)
        assert isinstance(result, float) and math.isnan(result)


def test_signs_keep_javas_overflow_and_refuse_text() -> None:
    assert evaluation.negate(-(2**31)) == -(2**31)
    assert evaluation.negate(Byte(-128)) == 128
    assert evaluation.negate(Long(-(2**63))) == -(2**63)
    assert [evaluation.negate(value) for value in ("a", None)] == [MISMATCH, None]
    assert [evaluation.positive(value) for value in (5, "a", None)] == [5, MISMATCH, None]


def test_chains_run_from_left_to_right() -> None:
    assert evaluation.fold(("-", "-"), (10, 3, 2)) == 5
    assert evaluation.fold(("/", "*"), (7, 2, 2)) == 6


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_long_is_rounded_to_a_float_once(value: int) -> None:
    found = Fraction(evaluation.single_of(value))
    bits = struct.unpack("<i", struct.pack("<f", evaluation.single_of(value)))[0]
    for neighbour in (bits - 1, bits + 1):
        other = struct.unpack("<f", struct.pack("<i", neighbour))[0] if 0 <= abs(neighbour) < 2**31 else math.nan
        if math.isfinite(other):
            assert abs(found - value) <= abs(Fraction(other) - value)


@given(st.integers(-(2**80), 2**80))
def test_results_wrap_into_32_and_64_bits(value: int) -> None:
    assert -(2**31) <= evaluation.wrap_int(value) < 2**31 and (evaluation.wrap_int(value) - value) % 2**32 == 0
    assert -(2**63) <= evaluation.wrap_long(value) < 2**63 and (evaluation.wrap_long(value) - value) % 2**64 == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_what_lies_just_above_the_middle_of_two_floats_is_rounded_up(sign: int) -> None:
    lower, upper = 2**59, 2**59 + 2**36
    assert evaluation.single_of(sign * (lower + 2**35)) == sign * lower  # the middle itself goes to the even one
    assert evaluation.single_of(sign * (lower + 2**35 + 1)) == sign * upper


PYTHON = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
NUMBERS = [Byte(5), Short(5), 5, Long(5), Float(5.0), 5.0, Byte(-3), 7, Long(2**40), Float(0.1), 0.1, math.inf]


def test_numbers_of_all_types_compare_by_value() -> None:
    for left in NUMBERS:
        for right in NUMBERS:
            if Float in (type(left), type(right)):
                continue  # below
            for text, function in evaluation.COMPARISONS.items():
                assert function(left, right) is PYTHON[text](left, right), (left, text, right)


def test_numbers_are_promoted_as_in_java_before_they_are_compared() -> None:
    assert evaluation.equal(Long(2**24 + 1), Float(2.0**24)) is True
    assert evaluation.equal(2**24 + 1, Float(2.0**24)) is True
    assert evaluation.equal(Float(1.1), 1.1) is False
    assert evaluation.equal(Float(1.1), Float(1.1)) is True
    assert evaluation.equal(Long(2**53 + 1), 2.0**53) is True
    assert evaluation.equal(2**53 + 1, 2.0**53) is True  # a caller's int beyond 32 bits is a long
    assert evaluation.less(Long(2**53), Long(2**53 + 1)) is True


def test_not_a_number() -> None:
    for text, function in evaluation.COMPARISONS.items():
        assert function(math.nan, math.nan) is (text == "<>")
        assert function(math.nan, 1) is (text == "<>")


@pytest.mark.parametrize(
    ("left", "right"),
    [("5", 5), (5, "5"), (True, 1), (1, True), ("true", True), (MISMATCH, 1), ("a", MISMATCH)],
)
def test_unlike_families_are_false(left: object, right: object) -> None:
    assert [function(left, right) for function in evaluation.COMPARISONS.values()] == [False] * 6


def test_null_is_unknown() -> None:
    for function in evaluation.COMPARISONS.values():
        assert [function(None, 1), function(1, None), function(None, None), function(None, "a")] == [None] * 4


def test_strings_and_booleans() -> None:
    assert (evaluation.equal("a", "a"), evaluation.unequal("a", "b"), evaluation.equal("a", "A")) == (True, True, False)
    assert (evaluation.equal(True, True), evaluation.unequal(True, False)) == (True, True)
    assert (evaluation.less("a", "b"), evaluation.greater(True, False), evaluation.less_equal("a", "a")) == (
        False,
        False,
        False,
    )


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
    assert evaluation.between(subject, low, high) is inside
    assert evaluation.not_between(subject, low, high) is outside


def test_membership_truth_and_not() -> None:
    members = frozenset({"a"})
    assert [evaluation.inside(value, members) for value in ("a", "b", None, 5)] == [True, False, None, None]
    assert [evaluation.truth(value) for value in (True, False, None)] == [True, False, None]
    assert [evaluation.truth(value) for value in (1, "true", MISMATCH)] == [False] * 3
    assert [evaluation.opposite(value) for value in (True, False, None)] == [False, True, None]


@pytest.mark.parametrize(
    ("mark", "text", "value"),
    [
        ("int", "5", 5), ("integer", "5", 5), ("long", "5", Long(5)), ("short", "5", Short(5)), ("byte", "5", Byte(5)),
        ("float", "1.5", Float(1.5)), ("double", "1.5", 1.5), ("boolean", "TRUE", True), ("boolean", "x", False),
        ("string", "5", "5"), ("other", "5", "5"), ("int", "x", None), ("byte", "300", None),
    ],
)  # fmt: skip
def test_a_type_mark_gives_the_value_its_type(mark: str, text: str, value: object) -> None:
    for suffix in ("_jsmtype", "_jmstype"):
        found = evaluation.load({"n": text, "n" + suffix: mark}.get, "n", "n_jsmtype", "n_jmstype")
        assert found == value and type(found) is type(value)


def test_starlights_spelling_of_the_mark_goes_first() -> None:
    properties = {"n": "5", "n_jsmtype": "long", "n_jmstype": "string"}
    assert evaluation.load(properties.get, "n", "n_jsmtype", "n_jmstype") == 5
    assert evaluation.load(properties.get, "m", "m_jsmtype", "m_jmstype") is None


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (5, int),
        (2**40, Long),
        (Int(5), int),
        (Double(1.5), float),
        (Byte(1), Byte),
        (True, bool),
        (Colour.RED, str),
        (None, type(None)),
    ],
)
def test_a_plain_value_has_the_type_it_gets_on_the_wire(value: object, kind: type) -> None:
    found = evaluation.plain(value)
    assert found == value and type(found) is kind


def test_what_is_no_value() -> None:
    assert [evaluation.plain(value) for value in (2**64, b"x", list[int](), 1j)] == [MISMATCH] * 4


def test_headers_of_a_mapping_have_the_types_of_selectors() -> None:
    header = evaluation.Values({"JMSDeliveryMode": 1, "JMSPriority": 3, "JMSTimestamp": 5}).header
    assert (header("JMSDeliveryMode"), header("JMSPriority"), header("JMSType")) == ("NON_PERSISTENT", 3, None)
    assert type(header("JMSTimestamp")) is Long


def test_properties_and_headers_of_a_message_are_found_by_name() -> None:
    message = Message()
    message.properties["a"] = 5
    message.jms_message_id = "ID:1"
    get, header = (values := evaluation.Values(message)).get, values.header
    assert (get("a"), get("a_jsmtype"), get("b"), get("b_jsmtype")) == ("5", "int", None, None)
    assert (header("JMSMessageID"), header("JMSDeliveryMode")) == ("ID:1", "PERSISTENT")


def test_a_correlation_id_of_bytes_is_compared_as_text() -> None:
    message = Message()
    message.jms_correlation_id_as_bytes = b"order 5"
    assert evaluation.Values(message).header("JMSCorrelationID") == "order 5"


def definition(pattern: str, escape: str | None, text: str) -> bool:
    """The rules, as a backtracking expression."""
    regex = ".*".join("".join(re.escape(part) or "." for part in piece) for piece in pieces(pattern, escape))
    return re.fullmatch(regex, text, re.DOTALL) is not None


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.text("ab%_\\", max_size=8), st.text("ab%_\\\n", max_size=10), st.sampled_from([None, "\\", "%", "_", "a"]))
def test_matches_as_defined(pattern: str, text: str, escape: str | None) -> None:
    assert matcher(pattern, escape)(text) is definition(pattern, escape, text)


@pytest.mark.parametrize(
    ("pattern", "escape", "text", "expected"),
    [
        ("", None, "", True),
        ("", None, "a", False),
        ("%", None, "a\nb", True),
        ("a.c", None, "abc", False),
        ("a%z", None, "az", True),
        ("a%a", None, "a", False),
        ("%b%", None, "abc", True),
        ("_", None, "😀", True),
        ("12%3", None, "12993", True),
        ("l_se", None, "loose", False),
        ("\\_%", "\\", "_foo", True),
        ("\\_%", "\\", "bar", False),
        ("a!b", "!", "a!b", True),
        ("a!", "!", "a!", True),
        ("a!!", "!", "a!", True),
        ("''", "'", "'", True),
    ],
)
def test_a_pattern_matches_what_sql_says(pattern: str, escape: str | None, text: str, expected: bool) -> None:
    assert matcher(pattern, escape)(text) is expected


def test_no_pattern_takes_more_than_a_pass_for_each_run() -> None:
    text = "a" * 20_000
    for pattern in ("%a" * 200 + "b", "%_a" * 100 + "%b", "%a%a%a%a%a%a%a%a%a%b_%", "_%" * 100 + "b"):
        assert matcher(pattern)(text) is False
