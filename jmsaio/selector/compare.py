"""Comparisons of the jms dialect: three-valued, by family, numbers after Java's promotion.

Jakarta Messaging 3.1, 3.8.1.2 Null values and 3.8.1.3 Special notes.

Every function accepts canonical values and returns True, False or None (UNKNOWN). NULL on either side is UNKNOWN;
values of different families (string, number, Boolean) are never equal, unequal or ordered: FALSE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jmsaio.selector.numbers import DOUBLE, FLOAT, RANKS, single_of


def _promoted(left: object, right: object) -> tuple[float, float] | None:
    """Return both numbers in the type in which Java compares them, or None if one is not a number."""
    level_left, level_right = RANKS.get(type(left), 0), RANKS.get(type(right), 0)
    if level_left == 0 or level_right == 0:
        return None
    assert isinstance(left, (int, float)) and isinstance(right, (int, float))  # implied by a rank above 0
    level = max(level_left, level_right)
    if level == FLOAT:
        return single_of(left), single_of(right)
    return (float(left), float(right)) if level == DOUBLE else (left, right)


def equal(left: object, right: object) -> bool | None:
    """Evaluate ``left = right``."""
    if left is None or right is None:
        return None
    numbers = _promoted(left, right)
    if numbers is not None:
        return numbers[0] == numbers[1]
    return type(left) is type(right) and type(left) in _FAMILIES and left == right


def unequal(left: object, right: object) -> bool | None:
    """Evaluate ``left <> right``: FALSE, not TRUE, for values of different families."""
    if left is None or right is None:
        return None
    numbers = _promoted(left, right)
    if numbers is not None:
        return numbers[0] != numbers[1]
    return type(left) is type(right) and type(left) in _FAMILIES and left != right


_FAMILIES: Final = (str, bool)


def less(left: object, right: object) -> bool | None:
    """Evaluate ``left < right``."""
    if left is None or right is None:
        return None
    numbers = _promoted(left, right)
    return numbers is not None and numbers[0] < numbers[1]


def less_equal(left: object, right: object) -> bool | None:
    """Evaluate ``left <= right``."""
    if left is None or right is None:
        return None
    numbers = _promoted(left, right)
    return numbers is not None and numbers[0] <= numbers[1]


def greater(left: object, right: object) -> bool | None:
    """Evaluate ``left > right``."""
    return less(right, left)


def greater_equal(left: object, right: object) -> bool | None:
    """Evaluate ``left >= right``."""
    return less_equal(right, left)


COMPARISONS: Final[dict[str, Callable[[object, object], bool | None]]] = {
    "=": equal, "<>": unequal, "<": less, "<=": less_equal, ">": greater, ">=": greater_equal,
}  # fmt: skip


def between(subject: object, low: object, high: object) -> bool | None:
    """Evaluate ``subject BETWEEN low AND high``.

    It is ``low <= subject AND subject <= high``, so it can be FALSE although one bound is NULL.
    """
    above, below = less_equal(low, subject), less_equal(subject, high)
    if above is False or below is False:
        return False
    return None if above is None or below is None else True


def not_between(subject: object, low: object, high: object) -> bool | None:
    """Evaluate ``subject NOT BETWEEN low AND high``: ``subject < low OR subject > high``; FALSE unless a number."""
    under, over = less(subject, low), less(high, subject)
    if under or over:
        return True
    return None if under is None or over is None else False


def inside(subject: object, values: frozenset[str]) -> bool | None:
    """Evaluate ``subject IN values``: UNKNOWN for anything but a string, so NOT IN does not match it either."""
    return subject in values if type(subject) is str else None


def truth(value: object) -> bool | None:
    """Return the value of a name used as a condition: its Boolean, UNKNOWN if missing, FALSE for any other type."""
    return value if value is None or type(value) is bool else False


def opposite(value: bool | None) -> bool | None:
    """Evaluate NOT."""
    return None if value is None else not value
