"""What a compiled selector calls: values of names, three-valued comparisons, and Java's arithmetic.

Jakarta Messaging 3.1, 3.8.1.2 Null values and 3.8.1.3 Special notes.

Values are canonical: plain ``int`` and its subclasses ``Byte``, ``Short``, ``Int``, ``Long``; ``float`` and ``Double``
are doubles, ``Float`` is a float. A plain int beyond 32 bits (from a caller's mapping) counts as a long. Comparisons
return True, False or None (UNKNOWN). NULL on either side is UNKNOWN; values of different families (string, number,
Boolean) are never equal, unequal or ordered: FALSE.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from jmsaio.errors import MessageFormatError
from jmsaio.model.headers import FIELDS, FOR_SELECTORS, JMSX
from jmsaio.model.messages.message import Message
from jmsaio.model.text import parse_wire, to_java
from jmsaio.model.values import TYPE_NAMES, Byte, Double, Float, Int, Long, Short, canonical_property, round_float
from jmsaio.model.wire import TYPE_SUFFIX

INT, LONG, FLOAT, DOUBLE = 1, 2, 3, 4
#: Rank of the number classes; any other class is not a number.
RANKS: Final[dict[type, int]] = {
    int: INT, Byte: INT, Short: INT, Int: INT, Long: LONG, Float: FLOAT, float: DOUBLE, Double: DOUBLE,
}  # fmt: skip

_EXACT = 2**53


#: Result of arithmetic with a value that is not a number: the surrounding comparison is FALSE.
MISMATCH: Final = object()


def rank(value: object) -> int:
    found = RANKS.get(type(value), 0)
    if found == INT and not -0x80000000 <= value <= 0x7FFFFFFF:  # type: ignore[operator]  # rank INT is an int
        return LONG
    return found


def wrap_int(value: int) -> int:
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def wrap_long(value: int) -> int:
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


def combine(operator: str, left: object, right: object) -> object:
    """Evaluate ``left operator right`` with one of ``+ - * /``; integers are truncated toward zero when divided.

    Return None with a NULL operand and for an integer divided by zero, MISMATCH with an operand that is not a number.
    """
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


def negate(value: object) -> object:
    if value is None:
        return None
    level = rank(value)
    if level == 0:
        return MISMATCH
    assert isinstance(value, (int, float))  # implied by a rank above 0
    return _number(-value, level)


def positive(value: object) -> object:
    return None if value is None else value if rank(value) else MISMATCH


def fold(operators: tuple[str, ...], operands: tuple[object, ...]) -> object:
    """Evaluate a chain of operators of one level from left to right; there is one operand more than operators."""
    result = operands[0]
    for operator, operand in zip(operators, operands[1:], strict=True):
        result = combine(operator, result, operand)
    return result


# Comparisons


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
    if left is None or right is None:
        return None
    numbers = _promoted(left, right)
    return numbers is not None and numbers[0] < numbers[1]


def less_equal(left: object, right: object) -> bool | None:
    if left is None or right is None:
        return None
    numbers = _promoted(left, right)
    return numbers is not None and numbers[0] <= numbers[1]


def greater(left: object, right: object) -> bool | None:
    return less(right, left)


def greater_equal(left: object, right: object) -> bool | None:
    return less_equal(right, left)


COMPARISONS: Final[dict[str, Callable[[object, object], bool | None]]] = {
    "=": equal, "<>": unequal, "<": less, "<=": less_equal, ">": greater, ">=": greater_equal,
}  # fmt: skip


def between(subject: object, low: object, high: object) -> bool | None:
    """Evaluate ``low <= subject AND subject <= high``, which can be FALSE although one bound is NULL."""
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
    return None if value is None else not value


# LIKE patterns: compiled once to a test whose time is linear in the text for each %. An escape character makes a
# following %, _ or escape character literal, and is an ordinary character anywhere else.


def pieces(pattern: str, escape: str | None) -> list[list[str]]:
    """Split a pattern at each ``%`` into lists of characters, "" for ``_``; an escaped wildcard is a character."""
    found: list[list[str]] = [[]]
    place = 0
    while place < len(pattern):
        character, following = pattern[place], pattern[place + 1 : place + 2]
        if character == escape and following and following in ("%", "_", escape):
            found[-1].append(following)
            place += 1
        elif character == "%":
            found.append([])
        else:
            found[-1].append("" if character == "_" else character)
        place += 1
    return found


def matcher(pattern: str, escape: str | None = None) -> Callable[[str], bool]:
    """Return a function that checks whether a whole text matches ``pattern``; ``escape`` is one character, or None."""
    first, *others = parts = pieces(pattern, escape)
    if not any("" in piece for piece in parts):
        simple = _plain(*map("".join, parts)) if len(parts) <= 3 else None
        if simple is not None:
            return simple
    if not others:
        whole = re.compile(_regex(first), re.DOTALL).fullmatch
        return lambda text: whole(text) is not None
    # Between two runs the leftmost match of a piece is as good as any later one, so a match is never given up (an
    # atomic group) and there is no backtracking except for the last piece, which has one possible position.
    middle = "".join(f"(?>.*?{_regex(piece)})" for piece in others[:-1] if piece)
    search = re.compile(rf"{_regex(first)}{middle}", re.DOTALL).match
    last = re.compile(_regex(others[-1]), re.DOTALL).fullmatch
    width = len(others[-1])

    def matches(text: str) -> bool:
        found = search(text)
        if found is None:
            return False
        start = len(text) - width
        return start >= found.end() and last(text, start) is not None

    return matches


def _regex(piece: list[str]) -> str:
    return "".join(re.escape(part) if part else "." for part in piece)


def _plain(head: str, middle: str | None = None, tail: str | None = None) -> Callable[[str], bool] | None:
    """Compile up to two runs without ``_`` to methods of str alone; None if that is impossible."""
    if middle is None:
        return head.__eq__
    if tail is None:
        middle, tail = "", middle
    if middle:
        return None if head or tail else (lambda text: middle in text)
    if not tail:
        return lambda text: text.startswith(head)
    if not head:
        return lambda text: text.endswith(tail)
    least = len(head) + len(tail)
    return lambda text: len(text) >= least and text.startswith(head) and text.endswith(tail)


# Values of names

#: Properties that the provider sets for each delivery; on a record they are read as headers are.
PROVIDED: Final = frozenset(JMSX)


def typed(get: Callable[[str], str | None], text: str, mark: str, old_mark: str) -> object:
    """Convert a raw property by its type mark; None (so UNKNOWN) if the text is not a number of that type.

    Starlight's spelling of the mark's name takes precedence over the documented one, ``old_mark``.
    """
    name = get(mark)
    if name is None:
        name = get(old_mark)
        if name is None:
            return text
    if name == "int" and len(text) < 10 and text.isdecimal():
        return int(text)
    try:
        return parse_wire(text, name)
    except MessageFormatError:
        return None


def load(get: Callable[[str], str | None], name: str, mark: str, old_mark: str) -> object:
    text = get(name)
    return None if text is None else typed(get, text, mark, old_mark)


def plain(value: object) -> object:
    """Convert a caller's value to a canonical one: subclasses to their base; MISMATCH unless a JMS property value."""
    kind = type(value)
    if value is None or kind in _CANONICAL:
        return value
    try:
        return canonical_property(value)
    except MessageFormatError:
        return MISMATCH


_CANONICAL: Final = frozenset({bool, str, Byte, Short, Long, Float, float})


class Values:
    """A message, or a mapping with properties and headers under their JMS names, that is read as a record is."""

    __slots__ = ("_message", "_values")

    def __init__(self, source: Message | Mapping[str, object]) -> None:
        self._message = source if isinstance(source, Message) else None
        self._values = source._property_map() if isinstance(source, Message) else source

    def get(self, name: str, /) -> Any:
        """Return the text of a property, or the type mark of one; MISMATCH if it is not a JMS value."""
        marked = self._values.get(name.removesuffix(TYPE_SUFFIX)) if name.endswith(TYPE_SUFFIX) else None
        if marked is not None:
            return TYPE_NAMES.get(type(plain(marked)), "none")
        value = plain(self._values.get(name))
        return to_java(value) if type(value) in TYPE_NAMES else value  # type: ignore[arg-type]  # of these classes

    def header(self, name: str) -> object:
        declared = HEADERS.get(name)
        if declared is None:
            return self._values.get(name)
        value = self._values.get(name) if self._message is None else getattr(self._message._headers(), declared.field)
        convert = FOR_SELECTORS.get(declared.kind)
        return value if convert is None else convert(value)


#: Headers that selectors can use.
HEADERS: Final = {header.name: header for header in FIELDS if header.selectable}
