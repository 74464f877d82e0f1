"""Java's numbers for selectors: ranks, and wrapping and rounding by Java's binary numeric promotion.

Jakarta Messaging 3.1, 3.8.1.3 Special notes.

Values are canonical: plain ``int`` and its subclasses ``Byte``, ``Short``, ``Int``, ``Long``; ``float`` and ``Double``
are doubles, ``Float`` is a float. A plain int beyond 32 bits (from a caller's mapping) counts as a long.
"""

from __future__ import annotations

import math
from typing import Final

from jmsaio.model.values import Byte, Double, Float, Int, Long, Short, round_float

INT, LONG, FLOAT, DOUBLE = 1, 2, 3, 4
#: Rank of the number classes; any other class is not a number.
RANKS: Final[dict[type, int]] = {
    int: INT, Byte: INT, Short: INT, Int: INT, Long: LONG, Float: FLOAT, float: DOUBLE, Double: DOUBLE,
}  # fmt: skip

_EXACT = 2**53


class Mismatch:
    """Result of arithmetic with a value that is not a number: the surrounding comparison is FALSE."""

    def __repr__(self) -> str:
        return "MISMATCH"


MISMATCH: Final = Mismatch()


def rank(value: object) -> int:
    """Return the rank of a number, 0 for anything else."""
    found = RANKS.get(type(value), 0)
    if found == INT and not -0x80000000 <= value <= 0x7FFFFFFF:  # type: ignore[operator]  # rank INT is an int
        return LONG
    return found


def wrap_int(value: int) -> int:
    """Return the low 32 bits of ``value`` as a signed number."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def wrap_long(value: int) -> int:
    """Return the low 64 bits of ``value`` as a signed number."""
    return ((value + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def single_of(value: float) -> float:
    """Return a number of any rank as a float, rounded once (a long must not be rounded to a double first)."""
    if isinstance(value, int) and not -_EXACT <= value <= _EXACT:
        size = abs(value)
        shift = size.bit_length() - 40
        kept = size >> shift | (size & ((1 << shift) - 1) != 0)  # the last bit records that bits were cut off
        return math.copysign(round_float(float(kept)) * 2.0**shift, value)
    return round_float(float(value))


def _number(value: float, level: int) -> float:
    """Return the result of an operation as a value of its rank."""
    if level == INT:
        return wrap_int(int(value))
    if level == LONG:
        return int.__new__(Long, wrap_long(int(value)))
    if level == FLOAT:
        return float.__new__(Float, round_float(value))
    return value


def divide_floats(left: float, right: float) -> float:
    """Divide by the rules of IEEE, even if Python would raise."""
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _combine(operator: str, left: object, right: object) -> object:
    if left is None or right is None:
        return None
    level_left, level_right = rank(left), rank(right)
    if level_left == 0 or level_right == 0:
        return MISMATCH
    level = max(level_left, level_right)
    assert isinstance(left, (int, float)) and isinstance(right, (int, float))  # implied by a rank above 0
    if level == FLOAT:
        left, right = single_of(left), single_of(right)
    elif level == DOUBLE:
        left, right = float(left), float(right)
    if operator == "+":
        return _number(left + right, level)
    if operator == "-":
        return _number(left - right, level)
    if operator == "*":
        return _number(left * right, level)
    if level >= FLOAT:
        return _number(divide_floats(left, right), level)
    if right == 0:
        return None  # Java would throw; the specification does not define it, and UNKNOWN selects nothing
    quotient = abs(int(left)) // abs(int(right))
    return _number(-quotient if (left < 0) != (right < 0) else quotient, level)


def add(left: object, right: object) -> object:
    """Evaluate ``left + right``: None with a NULL operand, MISMATCH with one that is not a number."""
    return _combine("+", left, right)


def subtract(left: object, right: object) -> object:
    """Evaluate ``left - right``; see `add`."""
    return _combine("-", left, right)


def multiply(left: object, right: object) -> object:
    """Evaluate ``left * right``; see `add`."""
    return _combine("*", left, right)


def divide(left: object, right: object) -> object:
    """Evaluate ``left / right``: integers truncate toward zero, an integer divided by zero is None; else see `add`."""
    return _combine("/", left, right)


def negate(value: object) -> object:
    """Evaluate ``- value``; see `add`."""
    if value is None:
        return None
    level = rank(value)
    if level == 0:
        return MISMATCH
    assert isinstance(value, (int, float))  # implied by a rank above 0
    return _number(-value, level)


def positive(value: object) -> object:
    """Evaluate ``+ value``; see `add`."""
    return None if value is None else value if rank(value) else MISMATCH


OPERATORS: Final = {"+": add, "-": subtract, "*": multiply, "/": divide}


def fold(operators: tuple[str, ...], operands: tuple[object, ...]) -> object:
    """Evaluate a chain of operators of one level from left to right; there is one operand more than operators."""
    result = operands[0]
    for operator, operand in zip(operators, operands[1:], strict=True):
        result = _combine(operator, result, operand)
    return result
