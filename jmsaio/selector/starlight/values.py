"""Values, equality, order and arithmetic as in ActiveMQ's engine, where classes matter more than numbers.

A value's Python class represents its Java class: bool Boolean, Byte, Short, int Integer, Long, Float, float Double, str
String, Big BigDecimal, tuple List, None null. The promotion is not symmetric, doubles are ordered as by
``Double.compareTo`` (NaN equals itself, -0.0 is below 0.0), ``/`` and ``%`` always return doubles. If Java throws,
these functions raise SelectorRuntimeError.
"""

from __future__ import annotations

import math
from typing import Final

from jmsaio.errors import MessageFormatError, NumberFormatError, SelectorRuntimeError
from jmsaio.model.text import parse_double, parse_float, parse_integer, to_java
from jmsaio.model.values import Byte, Float, Long, Short, canonical_property
from jmsaio.selector.literals import LONG_MIN
from jmsaio.selector.nodes import Big
from jmsaio.selector.numbers import divide_floats, single_of, wrap_int, wrap_long

Value = object

_NUMBERS: Final = frozenset({Byte, Short, int, Long, Float, float, Big})
_BITS: Final[dict[type, int]] = {Byte: 8, Short: 16, int: 32, Long: 64}


def native(value: object) -> Value:
    """Convert a property value of any origin to one of the classes above.

    Raises:
        SelectorRuntimeError: no JMS property can hold it.
    """
    try:
        return canonical_property(value)
    except MessageFormatError as error:
        raise SelectorRuntimeError(error.reason) from error


def text_of(value: Value) -> str:
    """Return a value as text, as in Java's string concatenation."""
    if value is None:
        return "null"
    if type(value) is tuple:
        return f"[{', '.join(text_of(item) for item in value)}]"
    if isinstance(value, Big):
        return int.__repr__(value)
    assert isinstance(value, (bool, int, float, str))  # no other class is left
    return to_java(value)


def same(left: Value, right: Value) -> bool:
    """Compare as Java's ``equals``: the classes count, 5 is not 5L, NaN equals NaN, 0.0 is not -0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float) and isinstance(right, float):
        return _float_order(left, right) == 0
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def equal(left: Value, right: Value, convert: bool) -> bool | None:
    """Evaluate ``left = right``: NULL on the right alone is FALSE, on the left alone UNKNOWN, on both sides TRUE."""
    if left is None:
        return True if right is None else None
    if right is None:
        return False
    if same(left, right):
        return True
    if type(left) is tuple or type(right) is tuple:
        return False
    return order(left, right, convert) == 0


def order(left: Value, right: Value, convert: bool) -> int | None:
    """Return a negative number, zero or a positive one, as ``compareTo``; None if the engine compares them as FALSE.

    Args:
        left: a value, not None.
        right: a value, not None.
        convert: whether strings are converted for a comparison with other types (``convert_string_expressions:``).

    Raises:
        SelectorRuntimeError: a list, a double against a float, a Boolean against a string to be converted.
    """
    if type(left) is tuple or type(right) is tuple:
        raise SelectorRuntimeError("a list can't be compared")
    if type(left) is not type(right):
        brought = _brought(left, right, convert)
        if brought is None:
            return None
        left, right = brought
    if isinstance(left, float) and isinstance(right, float):
        return _float_order(left, right)
    if isinstance(left, str) and isinstance(right, str):
        return _text_order(left, right)
    assert isinstance(left, int) and isinstance(right, int)  # only integers and Booleans are left
    return (left > right) - (left < right)


def _float_order(left: float, right: float) -> int:
    """Compare as ``Double.compareTo``."""
    if left < right:
        return -1
    if left > right:
        return 1
    signs = (_rank(left), _rank(right))
    return (signs[0] > signs[1]) - (signs[0] < signs[1])


def _rank(value: float) -> int:
    """Return the order of values that ``<`` does not distinguish: -0.0, 0.0 and other numbers, NaN."""
    if math.isnan(value):
        return 2
    return -1 if value == 0.0 and math.copysign(1.0, value) < 0 else 0


def _text_order(left: str, right: str) -> int:
    """Compare as ``String.compareTo``: by UTF-16 units."""
    first, second = left.encode("utf-16-be", "surrogatepass"), right.encode("utf-16-be", "surrogatepass")
    return (first > second) - (first < second)


#: Classes on the right that a class on the left supports; all others compare as FALSE.
_WIDER: Final[dict[type, frozenset[type]]] = {
    Byte: frozenset({Short, int, Long, Float, float}),
    Short: frozenset({int, Long, Float, float}),
    int: frozenset({Long, Float, float}),
    Long: frozenset({int, Float, float}),
    Float: frozenset({int, Long, float}),
    float: frozenset({int, Long, Float}),
}


def _brought(left: Value, right: Value, convert: bool) -> tuple[Value, Value] | None:
    """Return two values of different classes as two of one class, or None if the engine's result is FALSE."""
    if convert and (type(left) is str or type(right) is str):
        return _converted(left, right)
    if type(right) not in _WIDER.get(type(left), ()):
        return None
    assert isinstance(left, (int, float)) and isinstance(right, (int, float))  # the table has numbers only
    if type(left) is float and type(right) is Float:
        raise SelectorRuntimeError("a double can't be compared with a float on its right")
    if float in (type(left), type(right)):
        return float(left), float(right)
    if Float in (type(left), type(right)):
        return single_of(left), single_of(right)
    return left, right


def _converted(left: Value, right: Value) -> tuple[Value, Value] | None:
    """Return a string and another value, with the string converted to the other one's class."""
    if type(left) is bool:
        raise SelectorRuntimeError("a Boolean can't be compared with a string on its right")
    text, other = (left, right) if type(left) is str else (right, left)
    assert isinstance(text, str)  # one of them is
    parsed = _parsed(text, type(other))
    if parsed is None:
        return None
    return (parsed, other) if text is left else (other, parsed)


def _parsed(text: str, kind: type) -> Value:
    """Parse ``text`` as ``kind`` by Java's valueOf; None if that fails or the engine does not try."""
    try:
        if kind in _BITS:
            return parse_integer(text, _BITS[kind])
        if kind is Float:
            return parse_float(text)
        if kind is float:
            return float(parse_double(text))
    except NumberFormatError:
        return None
    return text.lower() == "true" if kind is bool else None


def add(left: Value, right: Value) -> Value:
    """Evaluate ``left + right``, which concatenates if the left side is a string."""
    if isinstance(left, str):
        return left + text_of(right)
    return _combine("+", left, right)


def _combine(operator: str, left: Value, right: Value) -> Value:
    if type(left) not in _NUMBERS or type(right) not in _NUMBERS:
        raise SelectorRuntimeError(f"{operator} needs numbers")
    assert isinstance(left, (int, float)) and isinstance(right, (int, float))  # the set has numbers only
    if isinstance(left, float) or isinstance(right, float):
        return _apply(operator, float(left), float(right))
    if type(left) is Long or type(right) is Long:
        return int.__new__(Long, wrap_long(int(_apply(operator, int(left), int(right)))))
    return wrap_int(int(_apply(operator, int(left), int(right))))


def _apply(operator: str, left: float, right: float) -> float:
    if operator == "+":
        return left + right
    return left - right if operator == "-" else left * right


def subtract(left: Value, right: Value) -> Value:
    """Evaluate ``left - right``."""
    return _combine("-", left, right)


def multiply(left: Value, right: Value) -> Value:
    """Evaluate ``left * right``."""
    return _combine("*", left, right)


def divide(left: Value, right: Value) -> Value:
    """Evaluate ``left / right``, always a double."""
    first, second = _doubles("/", left, right)
    return divide_floats(first, second)


def remainder(left: Value, right: Value) -> Value:
    """Evaluate ``left % right``, always a double, with the sign of the left side."""
    first, second = _doubles("%", left, right)
    if math.isnan(first) or math.isnan(second) or math.isinf(first) or second == 0.0:
        return math.nan
    return math.fmod(first, second)


def _doubles(operator: str, left: Value, right: Value) -> tuple[float, float]:
    if type(left) not in _NUMBERS or type(right) not in _NUMBERS:
        raise SelectorRuntimeError(f"{operator} needs numbers")
    assert isinstance(left, (int, float)) and isinstance(right, (int, float))  # the set has numbers only
    return float(left), float(right)


OPERATORS: Final = {"+": add, "-": subtract, "*": multiply, "/": divide, "%": remainder}


def negate(value: Value) -> Value:
    """Evaluate ``- value``: NULL for anything but a number."""
    if type(value) not in _NUMBERS:
        return None
    assert isinstance(value, (int, float))  # the set has numbers only
    if isinstance(value, Big):
        return int.__new__(Long, LONG_MIN) if -value == LONG_MIN else Big(-value)
    if isinstance(value, (Byte, Short)):
        raise SelectorRuntimeError("a byte or short can't be negated")
    if isinstance(value, Float):
        return Float(-value)
    if isinstance(value, Long):
        return int.__new__(Long, wrap_long(-value))
    return -value if isinstance(value, float) else wrap_int(-value)
