"""Wrappers, canonical values, and the checks of setters that name a type."""

from __future__ import annotations

import copy
import math
import pickle
from enum import IntEnum
from typing import Any, Protocol

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import IllegalArgumentError, IllegalArgumentTypeError, MessageFormatError, NullValueError
from jmsaio.model.values import (
    Byte,
    Char,
    Double,
    Float,
    Int,
    Long,
    Short,
    canonical,
    canonical_property,
    cut,
    is_kind,
    round_float,
    typed,
    writable_bytes,
)


class Colour(IntEnum):
    RED = 1


class Name(str):
    """A text of the application's own class."""


@pytest.mark.parametrize(("kind", "bits"), [(Byte, 8), (Short, 16), (Int, 32), (Long, 64)])
def test_range_of_whole_numbers(kind: type[Any], bits: int) -> None:
    limit = 2 ** (bits - 1)
    assert kind(limit - 1) == limit - 1 and kind(-limit) == -limit
    for value in (limit, -limit - 1):
        with pytest.raises(ValueError, match=kind.__name__) as refusal:
            kind(value)
        assert isinstance(refusal.value, IllegalArgumentError)


@pytest.mark.parametrize("kind", [Byte, Short, Int, Long])
@pytest.mark.parametrize("value", [1.0, "1", None, True, b"1"])
def test_whole_numbers_take_ints_only(kind: type[Any], value: Any) -> None:
    with pytest.raises(TypeError, match=kind.__name__) as refusal:
        kind(value)
    assert isinstance(refusal.value, IllegalArgumentTypeError)


@pytest.mark.parametrize("kind", [Float, Double])
@pytest.mark.parametrize("value", ["1", None, True])
def test_floating_numbers_take_numbers_only(kind: type[Any], value: Any) -> None:
    with pytest.raises(TypeError, match=kind.__name__) as refusal:
        kind(value)
    assert isinstance(refusal.value, IllegalArgumentTypeError)


def test_float_is_rounded_to_32_bits() -> None:
    assert Float(1.1) == 1.100000023841858
    assert Float(1e39) == math.inf and Float(-1e39) == -math.inf
    assert Float(1e-60) == 0.0
    assert math.isnan(Float(math.nan))


@given(st.floats(width=32))
def test_a_float_of_32_bits_stays(value: float) -> None:
    assert round_float(value) == value or math.isnan(value)


@pytest.mark.parametrize("value", ["", "ab", "\U0001f600"])
def test_char_is_one_unit(value: str) -> None:
    with pytest.raises(ValueError, match="one character") as refusal:
        Char(value)
    assert isinstance(refusal.value, IllegalArgumentError)


@pytest.mark.parametrize("kind", [Byte, Short, Int, Long, Float, Double])
def test_a_number_that_is_too_long_to_be_written(kind: type[Any]) -> None:
    """Python itself refuses to make text of it, which must not hide what is wrong."""
    with pytest.raises(IllegalArgumentError, match=f"{kind.__name__} holds.* 19932 bits"):
        kind(10**6000)


def test_char_takes_a_text_only() -> None:
    with pytest.raises(TypeError, match="Char"):
        Char(65)  # type: ignore[arg-type]  # what is tested
    assert Char("\ud800") == "\ud800"


@pytest.mark.parametrize("value", [Byte(1), Short(2), Int(3), Long(4), Float(1.5), Double(2.5), Char("x")])
def test_looks_like_its_value_and_shows_its_type(value: Any) -> None:
    base = next(kind for kind in (int, float, str) if isinstance(value, kind))
    assert repr(value) == f"{type(value).__name__}({base(value)!r})"
    assert str(value) == f"{value}" == str(base(value))
    assert value == base(value) and hash(value) == hash(base(value))
    for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert again == value and type(again) is type(value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, bool), (0, int), (2**31 - 1, int), (-(2**31), int), (2**31, Long), (-(2**31) - 1, Long),
        (2**63 - 1, Long), (-(2**63), Long), (Int(5), int), (Byte(5), Byte), (Short(5), Short), (Long(5), Long),
        (1.5, float), (Double(1.5), float), (Float(1.5), Float), ("x", str), (Name("x"), str), (Colour.RED, int),
        (None, type(None)),
    ],
)  # fmt: skip
def test_a_number_without_a_type_is_an_int_if_it_fits_else_a_long(value: Any, kind: type) -> None:
    for function in (canonical, canonical_property):
        found = function(value)
        assert type(found) is kind and found == value


@pytest.mark.parametrize("value", [Char("x"), b"x", bytearray(b"x"), memoryview(b"x")])
def test_char_and_bytes_are_for_bodies(value: Any) -> None:
    assert type(canonical(value)) in (Char, bytes) and canonical(value) == value
    with pytest.raises(MessageFormatError, match=r"'p'.*can't hold"):
        canonical_property(value, "p")


@pytest.mark.parametrize(
    "value",
    [2**63, -(2**63) - 1, 10**5000, [], [10**5000], {}, (), object(), 1j, {1}, int],
    ids=lambda value: type(value).__name__,
)
def test_no_jms_type(value: Any) -> None:
    for function in (canonical, canonical_property):
        with pytest.raises(MessageFormatError, match="'p'"):
            function(value, "p")


class Unchecked(Protocol):
    """A protocol that isinstance can't check."""


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [(bool, True, bool), (str, "x", str), (str, Char("x"), str), (float, 1, float), (float, Float(1.5), float),
     (Float, 1, Float), (Byte, 1, Byte), (Byte, Long(1), Byte), (int, Byte(1), int), (Long, 1, Long), (Char,
     "x", Char)],
)  # fmt: skip
def test_a_value_takes_the_type_that_is_asked_for(kind: type, value: Any, found: type) -> None:
    made = typed(kind, value, "n")
    assert made == value and type(made) is found


class Unshowable:
    """Its repr raises."""

    def __repr__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize("value", [object(), Unshowable(), [10**5000], b"x"], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("kind", [bool, str, float, Float, Byte, Char])
def test_others_are_refused_whatever_they_are(kind: type, value: Any) -> None:
    with pytest.raises(MessageFormatError, match="'n'"):
        typed(kind, value, "n")


def test_none_is_refused_by_name_and_type() -> None:
    with pytest.raises(NullValueError, match=r"'n'.*byte"):
        typed(Byte, None, "n")


def test_cut_and_views() -> None:
    assert cut(memoryview(b"abcdef")[::2], 1, 1) == b"c"
    assert cut(b"abc", 0, None) == b"abc"
    view = writable_bytes(bytearray(3))
    view[:] = b"abc"
    with pytest.raises(NullValueError):
        writable_bytes(None)
    with pytest.raises(TypeError):
        writable_bytes(b"abc")


def test_only_classes_are_kinds_and_bool_is_no_int() -> None:
    assert is_kind(str, object) and is_kind(bool, int) and not is_kind(int, bool)
    for no_class in (None, "str", list[str], str | int, Unchecked):
        assert not is_kind(str, no_class)
