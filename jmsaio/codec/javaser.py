"""Java's serialization streams, as far as map and object messages use fixed layouts (Starlight 2.8 and 2.9).

Only these layouts are read: null, String, byte[], the eight boxed primitives, and block data. Nothing is instantiated
by name; any other object is told apart by its class name alone. Lengths are checked before anything is allocated.

The writer repeats class descriptors instead of referring back, which Java reads as well.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from jmsaio.errors import MessageFormatError
from jmsaio.model.mutf8 import decode_mutf8, encode_mutf8
from jmsaio.model.object_message import JavaObject
from jmsaio.model.values import Byte, Char, Float, Long, Short, Value

MAGIC: Final = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _ARRAY = 0x70, 0x71, 0x72, 0x73, 0x74, 0x75
_BLOCK, _END, _BLOCK_LONG, _STRING_LONG = 0x77, 0x78, 0x7A, 0x7C
_FIRST_HANDLE: Final = 0x7E0000
_BLOCK_SIZE: Final = 1024
_SERIALIZABLE: Final = 0x02
_U16, _I32, _U32, _U64 = struct.Struct(">H"), struct.Struct(">i"), struct.Struct(">I"), struct.Struct(">Q")

#: class -> Java name, serial version, field type, has Number above it, layout, conversion for writing
_BOXES: Final[dict[type, tuple[str, int, str, bool, struct.Struct, Any]]] = {
    bool: ("java.lang.Boolean", 0xCD207280D59CFAEE, "Z", False, struct.Struct(">?"), bool),
    Char: ("java.lang.Character", 0x348B47D96B1A2678, "C", False, _U16, ord),
    Byte: ("java.lang.Byte", 0x9C4E6084EE50F51C, "B", True, struct.Struct(">b"), int),
    Short: ("java.lang.Short", 0x684D37133460DA52, "S", True, struct.Struct(">h"), int),
    int: ("java.lang.Integer", 0x12E2A0A4F7818738, "I", True, _I32, int),
    Long: ("java.lang.Long", 0x3B8BE490CC8F23DF, "J", True, struct.Struct(">q"), int),
    Float: ("java.lang.Float", 0xDAEDC9A2DB3CF0EC, "F", True, struct.Struct(">f"), float),
    float: ("java.lang.Double", 0x80B3C24A296BFB04, "D", True, struct.Struct(">d"), float),
}
_READ_BOXES: Final[dict[str, tuple[int, str, bool, struct.Struct, Any]]] = {
    name: (version, letter, number, struct.Struct(">B") if kind is bool else layout, _char if kind is Char else kind)
    for kind, (name, version, letter, number, layout, _) in _BOXES.items()
    for _char in [lambda unit: Char(chr(unit))]
}
_NUMBER: Final = ("java.lang.Number", 0x86AC951D0B94E08B)
_BYTE_ARRAY: Final = ("[B", 0xACF317F8060854E0)


# -------------------------------------------------------------------- writing


def _utf(text: str) -> bytes:
    data = encode_mutf8(text)
    if len(data) > 0xFFFF:
        raise MessageFormatError(f"a name has 65535 bytes at most, not {len(data)}: {text[:50]!r}...")
    return _U16.pack(len(data)) + data


def _descriptor(name: str, version: int, fields: bytes, parent: bytes) -> bytes:
    return b"\x72" + _utf(name) + _U64.pack(version) + bytes([_SERIALIZABLE]) + fields + b"\x78" + parent


_NO_PARENT: Final = b"\x70"
_NUMBER_DESCRIPTOR: Final = _descriptor(*_NUMBER, b"\x00\x00", _NO_PARENT)
_BYTES_HEAD: Final = b"\x75" + _descriptor(*_BYTE_ARRAY, b"\x00\x00", _NO_PARENT)
_BOX_HEADS: Final = {
    kind: b"\x73"
    + _descriptor(
        name, version, b"\x00\x01" + letter.encode() + _utf("value"), _NUMBER_DESCRIPTOR if number else _NO_PARENT
    )
    for kind, (name, version, letter, number, _, _) in _BOXES.items()
}


def _record(value: Value) -> bytes:
    if value is None:
        return b"\x70"
    box = _BOXES.get(type(value))
    if box is not None:
        return _BOX_HEADS[type(value)] + box[4].pack(box[5](value))
    if isinstance(value, str):
        data = encode_mutf8(value)
        if len(data) <= 0xFFFF:
            return b"\x74" + _U16.pack(len(data)) + data
        return b"\x7c" + _U64.pack(len(data)) + data
    if isinstance(value, bytes):
        return _BYTES_HEAD + _I32.pack(len(value)) + value
    raise MessageFormatError(f"a {type(value).__name__} has no Java form that every JVM can read")


def _blocks(data: bytes) -> bytes:
    out = bytearray()
    for start in range(0, len(data), _BLOCK_SIZE):
        part = data[start : start + _BLOCK_SIZE]
        out += bytes([_BLOCK, len(part)]) if len(part) <= 0xFF else b"\x7a" + _U32.pack(len(part))
        out += part
    return bytes(out)


def write_map(entries: Mapping[str, Value]) -> bytes:
    """The bytes of a map body: its size, then each name as block data and each value as an object record."""
    out = bytearray(MAGIC)
    pending = _I32.pack(len(entries))
    for name, value in entries.items():
        out += _blocks(pending + _utf(name))
        out += _record(value)
        pending = b""
    return bytes(out + (_blocks(pending) if pending else b""))


def write_object(value: Value) -> bytes:
    """The bytes of an object body: one record."""
    kind = type(value)
    if kind is int and not -(1 << 31) <= value < 1 << 31:  # type: ignore[operator]  # an int
        value = Long(value)  # type: ignore[arg-type]  # an int
    return MAGIC + _record(value)


# -------------------------------------------------------------------- reading


class _Foreign(Exception):
    """The stream holds an object of another class."""

    def __init__(self, class_name: str) -> None:
        super().__init__(class_name)
        self.class_name = class_name


class _Class:
    """A class descriptor that was read: enough to tell our fixed layouts from others."""

    __slots__ = ("fields", "name", "parent", "version")

    def __init__(self, name: str, version: int) -> None:
        self.name = name
        self.version = version
        self.fields: list[tuple[str, str]] = []
        self.parent: _Class | None = None


class _Reader:
    """Reads records and block data from one stream."""

    __slots__ = ("data", "handles", "position")

    def __init__(self, data: bytes) -> None:
        if data[:4] != MAGIC:
            raise MessageFormatError(f"no Java serialization stream: it starts with {bytes(data[:4]).hex(' ')!r}")
        self.data = data
        self.position = 4
        self.handles: list[object] = []

    def take(self, size: int) -> bytes:
        start, end = self.position, self.position + size
        if size < 0 or end > len(self.data):
            raise MessageFormatError(f"the stream breaks off: {size} bytes wanted at {start} of {len(self.data)}")
        self.position = end
        return self.data[start:end]

    def unpack(self, layout: struct.Struct) -> Any:
        return layout.unpack(self.take(layout.size))[0]

    def text(self, layout: struct.Struct = _U16) -> str:
        return decode_mutf8(self.take(self.unpack(layout)))

    def peek(self) -> int:
        if self.position >= len(self.data):
            raise MessageFormatError(f"the stream breaks off at {self.position}")
        return self.data[self.position]

    def blocks(self, needed: int, have: bytearray) -> None:
        """Append block data to ``have`` until it holds ``needed`` bytes."""
        while len(have) < needed:
            tag = self.take(1)[0]
            if tag not in (_BLOCK, _BLOCK_LONG):
                raise MessageFormatError(f"block data expected at {self.position - 1}, not tag {tag:#04x}")
            have += self.take(self.unpack(struct.Struct(">B")) if tag == _BLOCK else self.unpack(_I32))

    def record(self) -> Value:
        """One object record. Raises _Foreign for an object of another class."""
        tag = self.take(1)[0]
        if tag == _NULL:
            return None
        if tag in (_STRING, _STRING_LONG):
            self.handles.append(None)
            return self.text(_U16 if tag == _STRING else _U64)
        if tag == _ARRAY:
            return self._byte_array()
        if tag == _OBJECT:
            return self._box()
        raise MessageFormatError(f"an object record expected at {self.position - 1}, not tag {tag:#04x}")

    def _byte_array(self) -> bytes:
        described = self._class()
        if described is None or (described.name, described.version) != _BYTE_ARRAY:
            raise _Foreign("?" if described is None else described.name)
        self.handles.append(None)
        return bytes(self.take(self.unpack(_I32)))

    def _box(self) -> Value:
        described = self._class()
        box = None if described is None else _READ_BOXES.get(described.name)
        if described is None or box is None:
            raise _Foreign("?" if described is None else described.name)
        version, letter, number, layout, make = box
        parent = described.parent
        is_number = parent is not None and (parent.name, parent.version, parent.fields) == (*_NUMBER, [])
        if described.version != version or described.fields != [(letter, "value")] or is_number is not number:
            raise MessageFormatError(f"the stream describes {described.name} as another class than Java's")
        if parent is not None and not number:
            raise MessageFormatError(f"the stream describes {described.name} with a parent class")
        self.handles.append(None)
        made: Value = make(self.unpack(layout))
        return made

    def _class(self, depth: int = 0) -> _Class | None:
        tag = self.take(1)[0]
        if tag == _NULL:
            return None
        if tag == _REFERENCE:
            handle = self.unpack(_I32) - _FIRST_HANDLE
            found = self.handles[handle] if 0 <= handle < len(self.handles) else None
            if not isinstance(found, _Class):
                raise MessageFormatError(f"the stream refers to class number {handle}, which it has not")
            return found
        if tag != _CLASS:
            raise _Foreign(f"with descriptor {tag:#04x}")
        return self._new_class(depth)

    def _new_class(self, depth: int) -> _Class:
        described = _Class(self.text(), self.unpack(_U64))
        self.handles.append(described)
        known = described.name in _READ_BOXES or described.name in (_NUMBER[0], _BYTE_ARRAY[0])
        if not known:
            raise _Foreign(described.name)
        if self.take(1)[0] != _SERIALIZABLE:
            raise MessageFormatError(f"the stream describes {described.name} with other flags than Java's")
        count = self.unpack(_U16)
        if count > 1:
            raise MessageFormatError(f"the stream describes {described.name} with {count} fields")
        for _ in range(count):
            described.fields.append((chr(self.take(1)[0]), self.text()))
        if self.take(1)[0] != _END or depth > 1:
            raise MessageFormatError(f"the stream annotates {described.name}")
        described.parent = self._class(depth + 1)
        return described


def read_map(data: bytes) -> dict[str, Value]:
    """The entries of a map body. Raises MessageFormatError for anything but the fixed layouts."""
    reader = _Reader(data)
    have = bytearray()
    reader.blocks(4, have)
    count = _I32.unpack_from(have)[0]
    if not 0 <= count <= len(data):
        raise MessageFormatError(f"the map claims {count} entries in {len(data)} bytes")
    del have[:4]
    entries: dict[str, Value] = {}
    for _ in range(count):
        reader.blocks(2, have)
        length = _U16.unpack_from(have)[0]
        reader.blocks(2 + length, have)
        name = decode_mutf8(bytes(have[2 : 2 + length]))
        del have[: 2 + length]
        if have:
            raise MessageFormatError(f"the map has {len(have)} stray bytes before the value of {name!r}")
        try:
            entries[name] = reader.record()
        except _Foreign as foreign:
            raise MessageFormatError(f"the map's {name!r} is a Java object of class {foreign.class_name}") from None
    return entries


def read_object(data: bytes) -> Value | JavaObject:
    """The value of an object body; an object of any other class as JavaObject. Raises MessageFormatError."""
    reader = _Reader(data)
    try:
        value = reader.record()
    except _Foreign as foreign:
        return JavaObject(foreign.class_name, bytes(data))
    except MessageFormatError:
        if reader.data[4:5] and reader.data[4] in (_CLASS, 0x76, 0x7D, 0x7E):  # a class, a proxy, an enum
            return JavaObject("?", bytes(data))
        raise
    if reader.position != len(data):
        return JavaObject("?", bytes(data))
    return value
