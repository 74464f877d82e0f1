"""The classes whose objects are written and read, and the beginning of every stream."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import attrs

from jmsaio.model.values import Byte, Char, Float, Long, Short, Value

MAGIC: Final = b"\xac\xed\x00\x05"
#: Number of the first class of a stream; later ones count up.
FIRST_HANDLE: Final = 0x7E0000
LENGTH8, LENGTH16 = struct.Struct(">B"), struct.Struct(">H")
LENGTH32, LENGTH64 = struct.Struct(">i"), struct.Struct(">q")
BYTE_ARRAY: Final = "[B"
_NUMBER: Final = "java.lang.Number"


@attrs.frozen
class JavaClass:
    """A class with a known layout.

    Attributes:
        name: Java's name.
        description: bytes after the name in the stream, up to the superclass.
        parent: the superclass, or None.
        layout: the only field, None for an array and for Number.
        make: converts the unpacked field to the value.
    """

    name: str
    description: bytes
    parent: str | None
    layout: struct.Struct | None = None
    make: Callable[[Any], Value] | None = None


def _described(name: str, version: str, field: str, parent: str | None, make: Any = None, code: str = "") -> JavaClass:
    """Create a class from its serial version, the type code of its field ``value``, and the field's struct format."""
    fields = b"\x00\x01" + field.encode() + b"\x00\x05value" if field else b"\x00\x00"
    layout = struct.Struct(">" + code) if code else None
    return JavaClass(name, bytes.fromhex(version) + b"\x02" + fields + b"\x78", parent, layout, make)


def _whole(kind: type) -> Callable[[Any], Any]:
    return lambda value: int.__new__(kind, value)


#: Java class of each canonical type.
BOXES: Final[dict[type, JavaClass]] = {
    bool: _described("java.lang.Boolean", "cd207280d59cfaee", "Z", None, bool, "B"),
    Char: _described(
        "java.lang.Character", "348b47d96b1a2678", "C", None, lambda value: str.__new__(Char, chr(value)), "H"
    ),
    Byte: _described("java.lang.Byte", "9c4e6084ee50f51c", "B", _NUMBER, _whole(Byte), "b"),
    Short: _described("java.lang.Short", "684d37133460da52", "S", _NUMBER, _whole(Short), "h"),
    int: _described("java.lang.Integer", "12e2a0a4f7818738", "I", _NUMBER, int, "i"),
    Long: _described("java.lang.Long", "3b8be490cc8f23df", "J", _NUMBER, _whole(Long), "q"),
    Float: _described(
        "java.lang.Float", "daedc9a2db3cf0ec", "F", _NUMBER, lambda value: float.__new__(Float, value), "f"
    ),
    float: _described("java.lang.Double", "80b3c24a296bfb04", "D", _NUMBER, float, "d"),
}
CLASSES: Final[dict[str, JavaClass]] = {known.name: known for known in BOXES.values()} | {
    BYTE_ARRAY: _described(BYTE_ARRAY, "acf317f8060854e0", "", None),
    _NUMBER: _described(_NUMBER, "86ac951d0b94e08b", "", None),
}
