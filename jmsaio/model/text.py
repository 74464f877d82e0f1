"""Java's text forms of values, its rules for reading them, JMS's two conversion tables, and modified UTF-8.

Jakarta Messaging 3.1, 3.5.4 Property value conversion, which defers to Java's ``valueOf`` methods; 3.11.3 Conversions
provided by StreamMessage and MapMessage.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from jmsaio.errors import MessageFormatError, NullValueError, NumberFormatError
from jmsaio.model.arguments import shown, with_article
from jmsaio.model.values import TYPE_NAMES, Byte, Char, Float, Long, Short, Value, round_float

# Possessive repetitions: a long text from a hostile sender is scanned once, not once per digit.
# No possessive groups: before Python 3.11.5, one that fails in its middle matches anyway.
_DECIMAL: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?[fFdD]?)", re.ASCII
)
_HEX: Final = re.compile(
    r"([+-]?)0[xX](?:([0-9a-fA-F]++)\.?|([0-9a-fA-F]*+)\.([0-9a-fA-F]++))[pP]([+-]?)0*+([0-9]*+)(?<=[0-9])[fFdD]?",
    re.ASCII,
)
#: Characters that Java's String.trim removes: everything up to the space.
_TRIMMED: Final = "".join(map(chr, range(33)))
#: Number of digits of the largest long; a longer number (without leading zeros) is out of range of every type.
_MOST_DIGITS: Final = 19
#: Maximum number of digits of a finite number's exponent.
_MOST_EXPONENT: Final = 8


def to_java(value: Value) -> str:
    """Return Java's ``toString`` of a value: ``true``, ``5``, ``1.0E10``, ``NaN``; shortest digits, as since JDK 19."""
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
    """Return the shortest digits that identify a 32-bit float, and of those the nearest to it, as ``repr`` does."""
    if not math.isfinite(value) or value == 0:
        return repr(value)
    size = abs(value)
    for digits in range(1, 9):
        text = f"{size:.{digits - 1}e}"
        if parse_float(text) == size:
            break
        if math.frexp(size)[0] == 0.5:  # the floats above are further apart: try the next digit
            mantissa, _, exponent = text.partition("e")
            text = f"{int(mantissa.replace('.', '')) + 1}e{int(exponent) - digits + 1}"
            if parse_float(text) == size:
                break
    else:
        text = f"{size:.8e}"
    return repr(math.copysign(float(text), value))


def _floating(value: float, shortest: str) -> str:
    """Return Java's form of a number, from the ``repr`` of its shortest digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return shortest
    digits, exponent = _digits(shortest.lstrip("-"))
    if len(digits) == 1:  # Java then uses the nearest two digits: 4.9E-324, not 5.0E-324
        digits, exponent = _digits(f"{abs(value):.1e}")
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _digits(text: str) -> tuple[str, int]:
    """Return the significant digits and the decimal exponent of the first of them."""
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    return digits.rstrip("0") or "0", int(exponent or 0) + len(whole) - 1 - leading


def parse_integer(text: str | None, bits: int) -> int:
    """Parse as Java's ``Byte/Short/Integer/Long.valueOf(text)``: optional sign, decimal digits of any script."""
    if text is None:
        raise NumberFormatError("there is no value to read a number from (None)")
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii():
        digits = "".join(map(_digit, digits))
    if not digits.isascii() or not digits.isdigit():
        raise NumberFormatError(f"not a whole number: {shown(text)}")
    if len(digits) > _MOST_DIGITS:
        digits = digits.lstrip("0")[: _MOST_DIGITS + 1] or "0"  # one digit above the maximum suffices
    value = -int(digits) if text[0] == "-" else int(digits)
    limit = 1 << (bits - 1)
    if not -limit <= value < limit:
        raise NumberFormatError(f"out of range of {bits} bits: {shown(text)}")
    return value


def _digit(character: str) -> str:
    """Return the ASCII digit for a digit of any script; Java reads UTF-16 units, so none above U+FFFF."""
    if character > "\uffff" or unicodedata.category(character) != "Nd":
        return "x"
    return str(unicodedata.digit(character))


def parse_double(text: str | None) -> float:
    """Parse as Java's ``Double.valueOf(text)``: trimmed; suffix, hex floats, ``NaN`` and ``Infinity`` allowed."""
    stripped = (text or "").strip(_TRIMMED)
    if _DECIMAL.fullmatch(stripped):
        return float(_without_suffix(stripped))
    match = _HEX.fullmatch(stripped)
    if match is None:
        raise NumberFormatError(f"not a number: {shown(text or '')}")
    sign, whole, front, back, exponent_sign, exponent = match.groups()
    if len(exponent) > _MOST_EXPONENT:
        exponent = "9" * _MOST_EXPONENT
    try:
        value = float.fromhex(f"0x{whole or front or '0'}.{back or ''}p{exponent_sign}{exponent or '0'}")
    except OverflowError:
        value = math.inf
    return -value if sign == "-" else value


def _without_suffix(text: str) -> str:
    return text[:-1] if text[-1] in "fFdD" else text


def parse_float(text: str | None) -> Float:
    """Parse as Java's ``Float.valueOf(text)``, rounded once."""
    value = parse_double(text)
    below, above = math.nextafter(value, -math.inf), math.nextafter(value, math.inf)
    if round_float(below) != round_float(above) and math.isfinite(value):
        # Rounding twice is right if the first time is to the odd one of the two doubles around the number.
        exact = _exact(str(text).strip(_TRIMMED))
        if exact != value and math.frexp(value)[0] * 2.0**53 % 2 == 0:
            value = above if exact > value else below
    return Float(value)


def _exact(text: str) -> Decimal | Fraction:
    """Return the unrounded number of a text that ``parse_double`` accepts; only for numbers in the range of a float."""
    match = _HEX.fullmatch(text)
    if match is None:
        return Decimal(_without_suffix(text))
    sign, whole, front, back, exponent_sign, exponent = match.groups()
    digits = (whole or front or "") + (back or "")
    scale = int(f"{exponent_sign}{exponent or '0'}") - 4 * len(back or "")
    mantissa = int(digits, 16)
    number = Fraction(mantissa << scale) if scale >= 0 else Fraction(mantissa, 1 << -scale)
    return -number if sign == "-" else number


def parse_boolean(text: str | None) -> bool:
    """Parse as Java's ``Boolean.valueOf(text)``: True for "true" in any letter case, False for everything else."""
    return text is not None and text.lower() == "true" and text.isascii()


def parse_wire(text: str, mark: str) -> Value:
    """Parse a property's value on the wire; raises MessageFormatError.

    With an unknown mark the text is returned unchanged, as in Java.
    """
    parse = PARSERS.get(mark)
    if parse is None:
        return text
    try:
        value: Value = parse(text)
    except NumberFormatError as error:
        raise MessageFormatError(f"{shown(text)} is not {with_article(mark)}") from error
    return value


def _wire_int(text: str) -> int:
    if len(text) < 10 and text.isdigit() and text.isascii():  # the usual case, always in range
        return int(text)
    return parse_integer(text, 32)


#: Parsers of the types by their words on the wire; ``integer`` is the documented spelling of ``int``.
PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "boolean": parse_boolean,
    "byte": lambda text: Byte(parse_integer(text, 8)),
    "short": lambda text: Short(parse_integer(text, 16)),
    "int": _wire_int,
    "integer": _wire_int,
    "long": lambda text: int.__new__(Long, parse_integer(text, 64)),  # its range is checked
    "float": parse_float,
    "double": parse_double,
}


#: Class of a value to the classes as which it can be read. A String can't be read as char, and byte[] only as byte[].
READABLE_AS: Final[dict[type, tuple[type, ...]]] = {
    bool: (bool, str),
    Byte: (Byte, Short, int, Long, str),
    Short: (Short, int, Long, str),
    int: (int, Long, str),
    Long: (Long, str),
    Float: (Float, float, str),
    float: (float, str),
    str: (bool, Byte, Short, int, Long, Float, float, str),
    Char: (Char, str),
    bytes: (bytes,),
}


def convert(value: Value, target: type, name: str = "", what: str = "value") -> Any:
    """Convert a value to the JMS type of the class ``target``; ``name`` and ``what`` (it is) are for the error.

    Raises MessageFormatError if JMS has no such conversion, NumberFormatError for a String that is not such a number,
    and for a missing value NumberFormatError (integers) or NullValueError (float, double, char).
    """
    if value is None:
        return _null(target, name, what)
    source = type(value)
    if source is target:
        return value
    word = TYPE_NAMES.get(source)
    if word is None:  # in a message that was decoded with a schema
        raise MessageFormatError(f"{what} {shown(name)} is {with_article(source.__name__)}; read it with get_object")
    if target not in READABLE_AS[source]:
        raise MessageFormatError(
            f"{what} {shown(name)} is {with_article(word)} and can't be read as {TYPE_NAMES[target]}"
        )
    if target is str:
        return to_java(value)
    return PARSERS[TYPE_NAMES[target]](value) if isinstance(value, str) else target(value)


def _null(target: type, name: str, what: str) -> Any:
    if target is bool:
        return False
    if target in (str, bytes):
        return None
    error = NullValueError if target in (Float, float, Char) else NumberFormatError
    raise error(f"{what} {shown(name)} is missing or None, so it can't be read as {TYPE_NAMES[target]}")


_ABOVE_BMP = re.compile("[\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def encode_mutf8(text: str) -> bytes:
    """Encode text as modified UTF-8; lone surrogates are kept."""
    if text.isascii():
        data = text.encode("ascii")
        return data.replace(b"\x00", b"\xc0\x80") if b"\x00" in data else data
    split = _ABOVE_BMP.sub(_surrogates, text)
    return split.encode("utf-8", "surrogatepass").replace(b"\x00", b"\xc0\x80")


def _surrogates(match: re.Match[str]) -> str:
    code = ord(match.group()) - 0x10000
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))


def decode_mutf8(data: bytes) -> str:
    """Decode modified UTF-8 as strictly as Java's ``DataInput.readUTF``: overlong forms yes, 4-byte forms no."""
    if data.isascii():
        return data.decode("ascii")
    try:
        text = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return _decode_slowly(data)  # malformed, or a form that Java reads and Python does not
    if _SURROGATE.search(text):
        return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    return text if not _ABOVE_BMP.search(text) else _decode_slowly(data)


def _decode_slowly(data: bytes) -> str:
    units: list[int] = []
    index = 0
    while index < len(data):
        first = data[index]
        size = 1 if first < 0x80 else 2 if first >> 5 == 0b110 else 3 if first >> 4 == 0b1110 else 0
        if not size:
            raise MessageFormatError(f"malformed modified UTF-8: byte {first:#04x} at {index}")
        unit = first & (0x7F, 0x1F, 0x0F)[size - 1]
        for place in range(index + 1, index + size):
            if place >= len(data) or data[place] >> 6 != 0b10:
                raise MessageFormatError(f"malformed modified UTF-8: a character is cut off at {place}")
            unit = unit << 6 | data[place] & 0x3F
        units.append(unit)
        index += size
    return b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be", "surrogatepass")
