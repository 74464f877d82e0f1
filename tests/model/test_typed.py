"""What setters do with a value; most of it is tested through the messages."""

from __future__ import annotations

from typing import Any, Protocol

import pytest

from jmsaio.errors import MessageFormatError, NullValueError
from jmsaio.model.typed import cut, is_kind, typed, writable_bytes
from jmsaio.model.values import Byte, Char, Float, Int, Long


class Unchecked(Protocol):
    """A protocol that isinstance can't check."""


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [(bool, True, bool), (str, "x", str), (str, Char("x"), str), (float, 1, float), (float, Float(1.5), float),
     (Float, 1, Float), (Byte, 1, Byte), (Byte, Long(1), Byte), (Int, Byte(1), int), (Long, 1, Long), (Char,
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
