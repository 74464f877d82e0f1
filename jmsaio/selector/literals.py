"""Text of literals to values, for both dialects.

Jakarta Messaging 3.1, 3.8.1.1 Message selector syntax; ActiveMQ's lexer for the Starlight dialect.
"""

from __future__ import annotations

import math
import re

from jmsaio.model.values import Float, Long
from jmsaio.selector.nodes import Big

_EXACT = re.compile(r"(?:0[xX](?P<hex>[0-9a-fA-F]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*))(?P<long>[lL]?)")
_APPROXIMATE = re.compile(r"(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eEfFdD]))(?:[eE][+-]?[0-9]+)?(?P<suffix>[fFdD]?)")
#: Maximum number of digits: a 64-bit number never needs more, and longer text is refused before Python converts it.
_MOST_DIGITS = 100

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
#: 2^63, which a long can't hold: a literal of this value must follow a minus directly.
BEYOND = Big(2**63)


def string_value(image: str) -> str:
    """Return the string of a quoted literal; a quote inside is written twice."""
    return image[1:-1].replace("''", "'")


def jms_number(image: str) -> int | float:
    """Parse a number of the jms dialect.

    Returns:
        int (32 bits), Long, float (double), Float, or BEYOND for 2^63.

    Raises:
        ValueError: not a number, or out of range; its text has the reason.
    """
    exact = _EXACT.fullmatch(image)
    if exact is not None:
        return _exact(exact, image)
    approximate = _APPROXIMATE.fullmatch(image)
    if approximate is not None:
        return _approximate(image, approximate["suffix"])
    if re.fullmatch(r"0[0-9]+[lL]?", image):
        raise ValueError(f"{_short(image)} starts with 0, so it is octal and can have only the digits 0 to 7")
    raise ValueError(f"{_short(image)} is not a number")


def _exact(exact: re.Match[str], image: str) -> int:
    digits, base = next((exact[name], base) for name, base in _BASES if exact[name] is not None)
    if len(digits.lstrip("0")) > _MOST_DIGITS:
        raise ValueError(f"{_short(image)} does not fit in 64 bits")
    value = int(digits, base)
    if value > LONG_MAX:
        if value == BEYOND:
            return BEYOND
        raise ValueError(f"{_short(image)} does not fit in 64 bits")
    return Long(value) if exact["long"] or value > INT_MAX else value


_BASES = (("hex", 16), ("octal", 8), ("decimal", 10))


def _approximate(image: str, suffix: str) -> float:
    value = float(image[:-1] if suffix else image)
    if suffix in ("f", "F"):
        value = Float(value)
    if math.isinf(value):
        raise ValueError(f"{_short(image)} does not fit in a {'float' if suffix in ('f', 'F') else 'double'}")
    return value


def starlight_number(image: str) -> int | float:
    """Parse a number of the Starlight dialect as the Java engine does.

    A decimal literal too large for a long becomes a `Big`, except that one whose low 64 bits happen to fit in an int
    becomes that int (the Java code narrows before it checks).

    Raises:
        ValueError: a hexadecimal or octal literal does not fit in 64 bits.
    """
    exact = _EXACT.fullmatch(image)
    if exact is None:
        return float(image)
    if exact["decimal"] is None:
        return _exact_radix(exact, image)
    digits = exact["decimal"]
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"{_short(image)} has more than {_MOST_DIGITS} digits")
    value = int(digits)
    low = (value + 2**63) % 2**64 - 2**63
    if INT_MIN <= low <= INT_MAX:
        return low
    return Long(value) if value <= LONG_MAX else Big(value)


def _exact_radix(exact: re.Match[str], image: str) -> int:
    value = _exact(exact, image)
    if value is BEYOND:
        raise ValueError(f"{_short(image)} does not fit in 64 bits")
    return value


def _short(image: str) -> str:
    return image if len(image) <= 24 else f"{image[:20]}..."
