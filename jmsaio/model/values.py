"""Values with a JMS type: Python's own if the type is obvious, wrappers if it is not.

A stored value's class is its JMS type: ``bool`` boolean, ``Byte``, ``Short``, plain ``int`` (32 bits) int, ``Long``,
``Float``, plain ``float`` double, ``str`` String, ``Char``, ``bytes`` byte[], and None.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, ClassVar, Final, Self

from jmsaio.errors import IllegalArgumentError, MessageFormatError, NullValueError
from jmsaio.model.arguments import shown, with_article, wrong_type

_FLOAT = struct.Struct(">f")


class _Whole(int):
    """An integer of a fixed width.

    Raises:
        IllegalArgumentError: out of range; also a ValueError.
        IllegalArgumentTypeError: a bool, or not an int; also a TypeError.
    """

    __slots__ = ()
    bits: ClassVar[int] = 64

    def __new__(cls, value: int = 0) -> Self:
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong_type(value, f"the value of {cls.__name__}", "an int")
        limit = 1 << (cls.bits - 1)
        if not -limit <= value < limit:
            raise IllegalArgumentError(f"{cls.__name__} holds {-limit} to {limit - 1}, not {shown(int(value))}")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int(self)})"

    __str__ = int.__repr__

    def __getnewargs__(self) -> tuple[int]:
        return (int(self),)


class Byte(_Whole):
    """A JMS byte: -128 to 127."""

    __slots__ = ()
    bits = 8


class Short(_Whole):
    """A JMS short: 16 bits, signed."""

    __slots__ = ()
    bits = 16


class Int(_Whole):
    """A JMS int: 32 bits, signed. Equivalent to a plain int of that range."""

    __slots__ = ()
    bits = 32


class Long(_Whole):
    """A JMS long: 64 bits, signed."""

    __slots__ = ()
    bits = 64


class Float(float):
    """A JMS float: rounded to 32 bits; numbers that are too large become infinite, as in a Java cast."""

    __slots__ = ()

    def __new__(cls, value: float = 0.0) -> Self:
        if not isinstance(value, float | int) or isinstance(value, bool):
            raise wrong_type(value, "the value of Float", "a number")
        return super().__new__(cls, round_float(_as_float(value, "Float")))

    def __repr__(self) -> str:
        return f"Float({float(self)!r})"

    __str__ = float.__repr__


class Double(float):
    """A JMS double. Equivalent to a plain float."""

    __slots__ = ()

    def __new__(cls, value: float = 0.0) -> Self:
        if not isinstance(value, float | int) or isinstance(value, bool):
            raise wrong_type(value, "the value of Double", "a number")
        return super().__new__(cls, _as_float(value, "Double"))

    def __repr__(self) -> str:
        return f"Double({float(self)!r})"

    __str__ = float.__repr__


class Char(str):
    """A JMS char: one UTF-16 unit, so one character up to U+FFFF."""

    __slots__ = ()

    def __new__(cls, value: str = "\0") -> Self:
        if not isinstance(value, str):
            raise wrong_type(value, "the value of Char", "a text of one character")
        if len(value) != 1 or ord(value) > 0xFFFF:
            raise IllegalArgumentError(f"Char holds one character up to U+FFFF, not {shown(value)}")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"Char({str(self)!r})"


#: A value of a property; the values of map and stream messages add Char and bytes.
Value = bool | int | float | str | bytes | None

INT_MIN: Final = -(1 << 31)
INT_MAX: Final = (1 << 31) - 1
_LONG_MIN: Final = -(1 << 63)
_LONG_MAX: Final = (1 << 63) - 1

#: Name of the JMS type of each canonical class: Starlight's mark on the wire, if it has one.
TYPE_NAMES: Final[dict[type, str]] = {
    bool: "boolean", Byte: "byte", Short: "short", int: "int", Long: "long", Float: "float", float: "double",
    str: "string", Char: "char", bytes: "bytes",
}  # fmt: skip


#: Java's layout of each type with a fixed size, and the function that creates the value of the unpacked number, which
#: is in range; None if the number is the value.
LAYOUTS: Final[dict[type, tuple[struct.Struct, Callable[[Any], Any] | None]]] = {
    bool: (struct.Struct(">B"), bool),
    Byte: (struct.Struct(">b"), {number: Byte(number) for number in range(-128, 128)}.__getitem__),
    Short: (struct.Struct(">h"), lambda value: int.__new__(Short, value)),
    Char: (struct.Struct(">H"), lambda value: str.__new__(Char, chr(value))),
    int: (struct.Struct(">i"), None),
    Long: (struct.Struct(">q"), lambda value: int.__new__(Long, value)),
    Float: (struct.Struct(">f"), lambda value: float.__new__(Float, value)),
    float: (struct.Struct(">d"), None),
}


def _as_float(value: float, kind: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise IllegalArgumentError(f"{kind} holds numbers below 2^1024, not {shown(value)}") from None


def round_float(value: float) -> float:
    """Round ``value`` to 32 bits; infinite if it is too large."""
    try:
        return float(_FLOAT.unpack(_FLOAT.pack(value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def canonical_property(value: Any, name: str = "") -> bool | int | float | str | None:
    """Convert a property value without a given type to its canonical form; raises MessageFormatError."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value  # type: ignore[no-any-return]  # checked by its class
    if kind is int:
        return _whole(value, name)
    found = canonical(value, name)
    if isinstance(found, bytes | Char):
        raise MessageFormatError(f"property {shown(name)} can't hold {with_article(kind.__name__)}")
    return found


def canonical(value: Any, name: str = "") -> Value:
    """Convert a value of a body without a given type to its canonical form; raises MessageFormatError."""
    kind = type(value)
    if value is None or kind in (bool, str, float, bytes, Byte, Short, Long, Float, Char):
        return value  # type: ignore[no-any-return]  # checked by its class
    if kind is int:
        return _whole(value, name)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return _from_subclass(value, name)


def _from_subclass(value: object, name: str) -> Value:
    if isinstance(value, Int | Double):
        return int(value) if isinstance(value, Int) else float(value)
    for kind in (Byte, Short, Long, Float, Char, bool):
        if isinstance(value, kind):
            return value
    if isinstance(value, int):
        return _whole(int(value), name)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes(value)
    where = f" of {shown(name)}" if name else ""
    # Only its class: the repr might be huge, or fail.
    raise MessageFormatError(f"the value{where} has no JMS type: {type(value).__name__}")


def _whole(value: int, name: str) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    if _LONG_MIN <= value <= _LONG_MAX:
        return int.__new__(Long, value)  # its range is checked
    raise MessageFormatError(f"the value of {shown(name)} needs {value.bit_length() + 1} bits; a long has 64")


def typed(kind: type, value: Any, name: str) -> Any:
    """Convert the value called ``name`` to the canonical form of a JMS type, named by its canonical class.

    Raises MessageFormatError for another type or a number out of range, NullValueError for None.
    """
    if value is None:
        raise NullValueError(f"{shown(name)} can't be None as {kind.__name__.lower()}")
    try:
        if kind is bool or kind is str:
            if not isinstance(value, kind):
                raise TypeError(f"needs {with_article(kind.__name__)}, not {type(value).__name__} {shown(value)}")
            return value if type(value) is kind else str.__str__(value)
        if isinstance(value, bool):
            raise TypeError(f"needs a number, not a bool: {shown(value)}")
        if kind is float:
            if not isinstance(value, int | float):
                raise TypeError(f"needs a number, not {type(value).__name__} {shown(value)}")
            return float(value)
        return int(Int(value)) if kind is int else kind(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise MessageFormatError(f"{shown(name)}: {error}") from error


def cut(value: object, offset: int, length: int | None) -> bytes:
    """Copy ``length`` bytes of ``value`` from ``offset``; without ``length`` up to its end.

    Raises MessageFormatError if it is not bytes, IndexError out of bounds (IndexOutOfBoundsException).
    """
    if not isinstance(value, bytes | bytearray | memoryview):
        raise MessageFormatError(f"the data or value must be bytes, not {type(value).__name__}")
    data = bytes(value)
    for argument, number in (("offset", offset), ("length", 0 if length is None else length)):
        if not isinstance(number, int) or isinstance(number, bool):
            raise wrong_type(number, argument, "an int")
    size = len(data) - offset if length is None else length
    if offset < 0 or size < 0 or offset + size > len(data):
        raise IndexError(f"offset {offset} and length {length} are outside {len(data)} bytes")
    return data[offset : offset + size]


def writable_bytes(buffer: Any) -> memoryview:
    """Return a writable view of a buffer; raises NullValueError for None, else TypeError."""
    if buffer is None:
        raise NullValueError("read_bytes needs a buffer, not None")
    try:
        view = memoryview(buffer).cast("B")
    except TypeError:
        raise wrong_type(buffer, "buffer", "a bytearray, or another buffer of bytes") from None
    if view.readonly:
        raise wrong_type(buffer, "buffer", "one that can be written, such as a bytearray")
    return view


def is_kind(kind: type, body_type: object) -> bool:
    """Return whether ``body_type`` is a class with ``kind`` as a subclass; False for anything that is not a class."""
    try:
        return isinstance(body_type, type) and issubclass(kind, body_type)
    except TypeError:  # a protocol that can't be checked
        return False
