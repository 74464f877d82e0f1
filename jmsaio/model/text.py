"""Java's text forms of values, and Java's rules for reading numbers from text (jms-spec 1.5)."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Final

from jmsaio.errors import MessageFormatError, NumberFormatError
from jmsaio.model.values import Byte, Float, Long, Short, Value, round_float

_DECIMAL: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?)", re.ASCII
)
_HEX: Final = re.compile(
    r"([+-]?)0[xX](?:([0-9a-fA-F]+)\.?|([0-9a-fA-F]*)\.([0-9a-fA-F]+))[pP]([+-]?[0-9]+)[fFdD]?", re.ASCII
)
#: What Java's String.trim removes: everything up to the space.
_TRIMMED: Final = "".join(map(chr, range(33)))
_MAX_NUMBER: Final = 1100


def to_java(value: Value) -> str:
    """Java's ``toString`` of a value: ``true``, ``5``, ``1.0E10``, ``NaN``. Raises MessageFormatError for bytes, None."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, Float):
        return _floating(value, _shortest_float(float(value)))
    if isinstance(value, float):
        return _floating(value, float.__repr__(value))
    raise MessageFormatError(f"a value of type {type(value).__name__} has no text form")


def _shortest_float(value: float) -> str:
    """The shortest digits that name a 32-bit float among its like."""
    if math.isfinite(value):
        for digits in range(1, 10):
            text = f"{value:.{digits - 1}e}"
            if round_float(float(text)) == value:
                return text
    return repr(value)


def _floating(value: float, shortest: str) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    digits, exponent = _digits(shortest.lstrip("-"))
    if len(digits) == 1:  # Java takes the nearest two digits then: 4.9E-324, not 5.0E-324
        digits, exponent = _digits(f"{abs(value):.1e}")
    sign = "-" if value < 0 else ""
    if 1e-3 <= abs(value) < 1e7:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _digits(text: str) -> tuple[str, int]:
    """Significant digits and the decimal exponent of the first of them."""
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    return digits.rstrip("0") or "0", int(exponent or 0) + len(whole) - 1 - leading


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{whole}.{digits[exponent + 1 :] or '0'}"


def parse_integer(text: str | None, bits: int) -> int:
    """Java's ``Byte/Short/Integer/Long.valueOf(text)``: optional sign, decimal digits of any script.

    Raises:
        NumberFormatError: anything else, or out of range of ``bits``.
    """
    if text is None:
        raise NumberFormatError("there is no value to read a number from (None)")
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii():
        digits = "".join(_digit(character) for character in digits)
    if not digits.isdigit() or len(digits) > _MAX_NUMBER or not digits.isascii():
        raise NumberFormatError(f"not a whole number: {text[:100]!r}")
    value = -int(digits) if text[0] == "-" else int(digits)
    limit = 1 << (bits - 1)
    if not -limit <= value < limit:
        raise NumberFormatError(f"out of range of {bits} bits: {text[:100]!r}")
    return value


def _digit(character: str) -> str:
    if unicodedata.category(character) != "Nd":
        return "x"
    return str(unicodedata.digit(character))


def parse_double(text: str | None) -> float:
    """Java's ``Double.valueOf(text)``: trimmed; suffix, hex floats, ``NaN`` and ``Infinity`` allowed.

    Raises:
        NumberFormatError: anything else (``inf``, ``1_0``, blank). The caller decides about None.
    """
    stripped = (text or "").strip(_TRIMMED)
    if _DECIMAL.fullmatch(stripped):
        plain = stripped.rstrip("fFdD") if stripped[-1] in "fFdD" else stripped
        return float(plain)
    match = _HEX.fullmatch(stripped)
    if match is None:
        raise NumberFormatError(f"not a number: {(text or '')[:100]!r}")
    sign, whole, front, back, exponent = match.groups()
    if len(exponent) > 8:
        exponent = "-99999999" if exponent[0] == "-" else "99999999"
    try:
        value = float.fromhex(f"0x{whole or front or '0'}.{back or ''}p{exponent}")
    except OverflowError:
        value = math.inf
    return -value if sign == "-" else value


def parse_float(text: str | None) -> Float:
    """Java's ``Float.valueOf(text)``. Raises NumberFormatError as ``parse_double``."""
    return Float(parse_double(text))


def parse_boolean(text: str | None) -> bool:
    """Java's ``Boolean.valueOf(text)``: True for "true" in any letter case, False for everything else."""
    return text is not None and text.lower() == "true" and text.isascii()


def parse_wire(text: str, mark: str) -> Value:
    """The value of a property on the wire: its text and its type mark (Starlight 2.1).

    Both ``int`` and the documented ``integer`` are read. An unknown mark leaves the text as it is, as in Java.

    Raises:
        MessageFormatError: the text is not a value of that type.
    """
    reader = _READERS.get(mark)
    if reader is None:
        return text
    try:
        return reader(text)
    except NumberFormatError as error:
        raise MessageFormatError(f"{text[:100]!r} is not a {mark}") from error


_READERS: Final = {
    "boolean": parse_boolean,
    "byte": lambda text: Byte(parse_integer(text, 8)),
    "short": lambda text: Short(parse_integer(text, 16)),
    "int": lambda text: parse_integer(text, 32),
    "integer": lambda text: parse_integer(text, 32),
    "long": lambda text: Long(parse_integer(text, 64)),
    "float": parse_float,
    "double": parse_double,
}
