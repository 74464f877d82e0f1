"""Comparisons of the jms dialect: three-valued, by family, numbers after Java's promotion.

Jakarta Messaging 3.1, 3.8.1.2 Null values and 3.8.1.3 Special notes.

Every function takes canonical values and gives True, False or None (UNKNOWN). NULL on either side is UNKNOWN; values
of different families (string, number, Boolean) are never equal, unequal or ordered: FALSE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jmsaio.selector.numbers import DOUBLE, FLOAT, RANKS, single_of


def _promoted(left: object, right: object) -> tuple[float, float] | None:
    """Both numbers in the type in which Java compares them, or None if one is not a number."""
    level_left, level_right = RANKS.get(type(left), 0), RANKS.get(type(right), 0)
    if level_left == 0 or level_right == 0:
        return None
    assert isinstance(left, (int, float)) and isinstance(right, (int, float))  # a rank above 0 says so
    level = max(level_left, level_right)
    if level == FLOAT:
        return single_of(left), single_of(right)
    return (float(left), float(right)) if level == DOUBLE else (left, right)


def equal(left: object, right: object) -> bool | None:
    """``left = right``."""
    if left is None or right is None:
        return None
    numbers = _promoted(left, right)
    if numbers is not None:
        return numbers[0] == numbers[1]
    return type(left) is type(right) and type(left) in _FAMILIES and left == right


def unequal(left: object, right: object) -> bool | None:
    """``left <> right``: FALSE, not TRUE, for values of different families."""
    if left is None or right is None:
        return None
    numbers = _promoted(left, right)
    if numbers is not None:
        return numbers[0] != numbers[1]
    return type(left) is type(right) and type(left) in _FAMILIES and left != right


_FAMILIES: Final = (str, bool)


def less(left: object, right: object) -> bool | None:
    """``left < right``."""
    if left is None or right is None:
        return None
    numbers = _promoted(left, right)
    return numbers is not None and numbers[0] < numbers[1]


def less_equal(left: object, right: object) -> bool | None:
    """``left <= right``."""
    if left is None or right is None:
        return None
    numbers = _promoted(left, right)
    return numbers is not None and numbers[0] <= numbers[1]


def greater(left: object, right: object) -> bool | None:
    """``left > right``."""
    return less(right, left)


def greater_equal(left: object, right: object) -> bool | None:
    """``left >= right``."""
    return less_equal(right, left)


COMPARISONS: Final[dict[str, Callable[[object, object], bool | None]]] = {
    "=": equal, "<>": unequal, "<": less, "<=": less_equal, ">": greater, ">=": greater_equal,
}  # fmt: skip


def between(subject: object, low: object, high: object) -> bool | None:
    """``subject BETWEEN low AND high``: ``low <= subject AND subject <= high``, so one NULL bound may not matter."""
    above, below = less_equal(low, subject), less_equal(subject, high)
    if above is False or below is False:
        return False
    return None if above is None or below is None else True


def not_between(subject: object, low: object, high: object) -> bool | None:
    """``subject NOT BETWEEN low AND high``: ``subject < low OR subject > high``; FALSE for anything but a number."""
    under, over = less(subject, low), less(high, subject)
    if under or over:
        return True
    return None if under is None or over is None else False


def inside(subject: object, values: frozenset[str]) -> bool | None:
    """``subject IN values``: UNKNOWN for anything but a string, so that NOT IN does not match it either."""
    return subject in values if type(subject) is str else None


def truth(value: object) -> bool | None:
    """A name used as a condition: its Boolean, UNKNOWN when missing, FALSE for any other type."""
    return value if value is None or type(value) is bool else False


def opposite(value: bool | None) -> bool | None:
    """NOT."""
    return None if value is None else not value
