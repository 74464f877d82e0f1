"""Bodies of map and object messages: Java's serialization stream in the few layouts that Starlight uses.

Only null, String, byte[] and the eight boxes of java.lang are written and read. Nothing else is ever created from a
stream: an object of another class is a ``JavaObject`` with the stream's bytes, and inside a map an error. There is no
recursion, and lengths are checked against the remaining bytes before memory is allocated.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

import attrs

from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model.arguments import shown, with_article
from jmsaio.model.messages.object_message import JavaObject
from jmsaio.model.text import decode_mutf8, encode_mutf8
from jmsaio.model.values import LAYOUTS, Byte, Char, Float, Long, Short, Value

MAGIC: Final = b"\xac\xed\x00\x05"
#: Number of the first class of a stream; later ones count up.
FIRST_HANDLE: Final = 0x7E0000
LENGTH8, LENGTH16 = struct.Struct(">B"), struct.Struct(">H")
LENGTH32, LENGTH64 = struct.Struct(">i"), struct.Struct(">q")
BYTE_ARRAY: Final = "[B"
_NUMBER: Final = "java.lang.Number"


@attrs.frozen
class _JavaClass:
    """A class with a known layout.

    ``description`` is what follows the name in the stream, up to the superclass. ``kind`` is the class of the value in
    its only field; None for an array and for Number.
    """

    name: str
    description: bytes
    parent: str | None
    kind: type | None


def _described(name: str, version: str, field: str = "", parent: str | None = None, kind: Any = None) -> _JavaClass:
    """Create a class from its serial version and the type code of its field ``value``."""
    fields = b"\x00\x01" + field.encode() + b"\x00\x05value" if field else b"\x00\x00"
    return _JavaClass(name, bytes.fromhex(version) + b"\x02" + fields + b"\x78", parent, kind)


_BOXES: Final = (
    _described("java.lang.Boolean", "cd207280d59cfaee", "Z", None, bool),
    _described("java.lang.Character", "348b47d96b1a2678", "C", None, Char),
    _described("java.lang.Byte", "9c4e6084ee50f51c", "B", _NUMBER, Byte),
    _described("java.lang.Short", "684d37133460da52", "S", _NUMBER, Short),
    _described("java.lang.Integer", "12e2a0a4f7818738", "I", _NUMBER, int),
    _described("java.lang.Long", "3b8be490cc8f23df", "J", _NUMBER, Long),
    _described("java.lang.Float", "daedc9a2db3cf0ec", "F", _NUMBER, Float),
    _described("java.lang.Double", "80b3c24a296bfb04", "D", _NUMBER, float),
)
#: Java class of each canonical type, and the classes by name.
BOXES: Final = {known.kind: known for known in _BOXES}
CLASSES: Final = {
    known.name: known
    for known in (*_BOXES, _described(BYTE_ARRAY, "acf317f8060854e0"), _described(_NUMBER, "86ac951d0b94e08b"))
}

_MAX_BLOCK: Final = 1024
_MAX_SHORT_BLOCK: Final = 0xFF
_MAX_UTF: Final = 0xFFFF


class _StreamWriter:
    """Writes objects as Java does: a class is described once, and referenced from then on."""

    __slots__ = ("_handles", "_next", "parts")

    def __init__(self) -> None:
        self.parts = [MAGIC]
        self._handles: dict[str, int] = {}
        self._next = FIRST_HANDLE

    def block(self, data: bytes) -> None:
        """Write primitive data, in records of up to 1024 bytes."""
        for start in range(0, len(data), _MAX_BLOCK):
            part = data[start : start + _MAX_BLOCK]
            if len(part) <= _MAX_SHORT_BLOCK:
                self.parts.append(bytes((0x77, len(part))))
            else:
                self.parts.append(b"\x7a" + LENGTH32.pack(len(part)))
            self.parts.append(part)

    def value(self, value: Any) -> None:
        kind = type(value)
        if value is None:
            self.parts.append(b"\x70")
        elif kind is str:
            data = encode_mutf8(value)
            long = len(data) > _MAX_UTF
            self.parts.append(b"\x7c" + LENGTH64.pack(len(data)) if long else b"\x74" + LENGTH16.pack(len(data)))
            self.parts.append(data)
            self._next += 1
        elif kind is bytes:
            self.parts.append(b"\x75")
            self._class(CLASSES[BYTE_ARRAY])
            self.parts += (LENGTH32.pack(len(value)), value)
            self._next += 1
        else:
            known = BOXES.get(kind)
            if known is None:
                raise MessageFormatError(f"there is no Java class for {with_article(kind.__name__)}")
            self.parts.append(b"\x73")
            self._class(known)
            self.parts.append(LAYOUTS[kind][0].pack(ord(value) if kind is Char else value))
            self._next += 1

    def _class(self, known: _JavaClass | None) -> None:
        while known is not None:
            handle = self._handles.get(known.name)
            if handle is not None:
                self.parts.append(b"\x71" + LENGTH32.pack(handle))
                return
            name = known.name.encode()
            self.parts += (b"\x72", LENGTH16.pack(len(name)), name, known.description)
            self._handles[known.name] = self._next
            self._next += 1
            known = None if known.parent is None else CLASSES[known.parent]
        self.parts.append(b"\x70")


def _utf(text: str) -> bytes:
    data = encode_mutf8(text)
    if len(data) > _MAX_UTF:
        raise MessageFormatError(f"the name of a map entry holds up to {_MAX_UTF} bytes, not {len(data)}")
    return LENGTH16.pack(len(data)) + data


def write_map(values: Mapping[str, Value]) -> bytes:
    writer = _StreamWriter()
    data = LENGTH32.pack(len(values))
    for name, value in values.items():
        writer.block(data + _utf(name))
        writer.value(value)
        data = b""
    writer.block(data)
    return b"".join(writer.parts)


def write_object(value: Value) -> bytes:
    writer = _StreamWriter()
    writer.value(value)
    return b"".join(writer.parts)


_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _ARRAY, _JAVA_CLASS = 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76
_BLOCK, _RESET, _LONG_BLOCK, _LONG_STRING, _PROXY, _ENUM = 0x77, 0x79, 0x7A, 0x7C, 0x7D, 0x7E


class _UnknownClassError(Exception):
    """The stream continues with an object of a class that is not supported."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _StreamReader:
    """Reads objects and block data. Its work is bounded by the stream's length."""

    __slots__ = ("_block", "_data", "_handles", "_position")

    def __init__(self, data: bytes) -> None:
        if data[: len(MAGIC)] != MAGIC:
            raise MalformedMessageError("this is not a Java serialization stream of version 5")
        self._data = data
        self._position = len(MAGIC)
        self._block = 0
        self._handles: list[str | None] = []

    def primitive(self, size: int) -> bytes:
        """Read ``size`` bytes of block data, even if it is split into several records."""
        parts: list[bytes] = []
        while size:
            while not self._block:
                self._open_block()
            step = min(size, self._block)
            parts.append(self._bytes(step))
            self._block -= step
            size -= step
        return b"".join(parts)

    def utf(self) -> str:
        return decode_mutf8(self.primitive(LENGTH16.unpack(self.primitive(2))[0]))

    def value(self) -> Value:
        """Read one object; raises _UnknownClassError if its class is not supported."""
        if self._block:
            raise MalformedMessageError(f"{self._block} bytes of block data stand before an object")
        tag = self._tag()
        if tag == _NULL:
            return None
        if tag in (_STRING, _LONG_STRING):
            self._handles.append(None)
            return decode_mutf8(self._bytes(self._number(LENGTH16 if tag == _STRING else LENGTH64)))
        if tag == _OBJECT:
            return self._boxed()
        if tag == _ARRAY:
            return self._array()
        if tag == _JAVA_CLASS:
            raise _UnknownClassError("java.lang.Class")
        if tag == _ENUM:
            name = self._class()
            raise _UnknownClassError(name or "java.lang.Enum")
        raise MalformedMessageError(f"there is no object with tag {tag:#04x} (byte {self._position - 1})")

    def _boxed(self) -> Value:
        known = CLASSES.get(self._class() or "")
        if known is None or known.kind is None:
            raise MalformedMessageError(f"an object without a class of objects, before byte {self._position}")
        self._handles.append(None)
        layout, make = LAYOUTS[known.kind]
        value: Value = layout.unpack(self._bytes(layout.size))[0]
        return value if make is None else make(value)

    def _array(self) -> bytes:
        if self._class() != BYTE_ARRAY:
            raise MalformedMessageError(f"an array without an array's class, before byte {self._position}")
        self._handles.append(None)
        return self._bytes(self._number(LENGTH32))

    def _class(self) -> str | None:
        """Read a class descriptor with its superclasses; return the class's name, None for a null descriptor."""
        first: str | None = None
        expected: str | None = None
        while True:
            tag = self._tag()
            if tag == _CLASS:
                name: str | None = self._described(first)
            elif tag == _REFERENCE:
                name = self._referred()
            elif tag == _NULL:
                name = None
            elif tag == _PROXY and first is None:
                raise _UnknownClassError("java.lang.reflect.Proxy")
            else:
                raise MalformedMessageError(f"there is no class descriptor with tag {tag:#04x}")
            if first is None:
                first = name
            elif name != expected:
                raise MalformedMessageError(f"{name} is not a superclass of {first}")
            if name is None or tag == _REFERENCE:
                return first
            expected = CLASSES[name].parent

    def _described(self, below: str | None) -> str:
        """Read a new class descriptor up to its superclass; return the class's name."""
        name = decode_mutf8(self._bytes(self._number(LENGTH16)))
        self._handles.append(name)
        known = CLASSES.get(name)
        if known is None:
            if below is not None:
                raise MalformedMessageError(f"{name[:200]} is not a superclass of {below}")
            raise _UnknownClassError(name)
        if self._bytes(len(known.description)) != known.description:
            raise MalformedMessageError(f"{name} is described in a way that Java does not")
        return name

    def _referred(self) -> str:
        index = self._number(LENGTH32) - FIRST_HANDLE
        name = self._handles[index] if 0 <= index < len(self._handles) else None
        if name is None:
            raise MalformedMessageError(f"a reference before byte {self._position} leads to no class")
        return name

    def _tag(self) -> int:
        while True:
            if self._position >= len(self._data):
                raise MalformedMessageError(f"the stream breaks off at byte {self._position}")
            tag = self._data[self._position]
            self._position += 1
            if tag != _RESET:
                return tag
            self._handles.clear()

    def _open_block(self) -> None:
        tag = self._tag()
        if tag not in (_BLOCK, _LONG_BLOCK):
            raise MalformedMessageError(f"block data wanted, not tag {tag:#04x} (byte {self._position - 1})")
        length = self._number(LENGTH8 if tag == _BLOCK else LENGTH32)
        if not 0 <= length <= len(self._data) - self._position:
            raise MalformedMessageError(f"{length} bytes of block data announced at byte {self._position}")
        self._block = length

    def _number(self, layout: struct.Struct) -> int:
        number: int = layout.unpack(self._bytes(layout.size))[0]
        return number

    def _bytes(self, size: int) -> bytes:
        end = self._position + size
        if not 0 <= size <= len(self._data) - self._position:
            raise MalformedMessageError(
                f"{size} bytes wanted at byte {self._position}, {len(self._data) - self._position} left"
            )
        part = self._data[self._position : end]
        self._position = end
        return part


def read_map(data: bytes) -> dict[str, Value]:
    """Read the canonical values of a map's stream. Bytes after the last entry are ignored, as in Java."""
    reader = _StreamReader(data)
    size: int = LENGTH32.unpack(reader.primitive(4))[0]
    values: dict[str, Value] = {}
    for _ in range(size):
        name = reader.utf()
        try:
            values[name] = reader.value()
        except _UnknownClassError as error:
            raise MalformedMessageError(f"{shown(name)} is a {error.name[:200]}, which a map can't hold") from None
    return values


def read_object(data: bytes) -> Value | JavaObject:
    """Read the canonical value of an object's stream; return a ``JavaObject`` if its class has no fixed layout."""
    try:
        return _StreamReader(data).value()
    except _UnknownClassError as error:
        return JavaObject(error.name, data)
