"""Reads serialization streams without trusting their contents."""

from __future__ import annotations

import struct

from jmsaio.codec.javaser.layouts import (
    BYTE_ARRAY,
    CLASSES,
    FIRST_HANDLE,
    LENGTH8,
    LENGTH16,
    LENGTH32,
    LENGTH64,
    MAGIC,
)
from jmsaio.errors import MalformedMessageError
from jmsaio.model.arguments import shown
from jmsaio.model.messages.object_message import JavaObject
from jmsaio.model.mutf8 import decode_mutf8
from jmsaio.model.values import Value

_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _ARRAY, _JAVA_CLASS = 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76
_BLOCK, _RESET, _LONG_BLOCK, _LONG_STRING, _PROXY, _ENUM = 0x77, 0x79, 0x7A, 0x7C, 0x7D, 0x7E


class _UnknownClassError(Exception):
    """The stream continues with an object of a class that is not supported."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _Reader:
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
            parts.append(self._take(step))
            self._block -= step
            size -= step
        return b"".join(parts)

    def utf(self) -> str:
        """Read a text of block data."""
        return decode_mutf8(self.primitive(LENGTH16.unpack(self.primitive(2))[0]))

    def value(self) -> Value:
        """Read one object.

        Raises:
            _UnknownClassError: its class is not supported.
        """
        if self._block:
            raise MalformedMessageError(f"{self._block} bytes of block data stand before an object")
        tag = self._tag()
        if tag == _NULL:
            return None
        if tag in (_STRING, _LONG_STRING):
            self._handles.append(None)
            return decode_mutf8(self._take(self._number(LENGTH16 if tag == _STRING else LENGTH64)))
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
        if known is None or known.layout is None or known.make is None:
            raise MalformedMessageError(f"an object without a class of objects, before byte {self._position}")
        self._handles.append(None)
        return known.make(known.layout.unpack(self._take(known.layout.size))[0])

    def _array(self) -> bytes:
        if self._class() != BYTE_ARRAY:
            raise MalformedMessageError(f"an array without an array's class, before byte {self._position}")
        self._handles.append(None)
        return self._take(self._number(LENGTH32))

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
        name = decode_mutf8(self._take(self._number(LENGTH16)))
        self._handles.append(name)
        known = CLASSES.get(name)
        if known is None:
            if below is not None:
                raise MalformedMessageError(f"{name[:200]} is not a superclass of {below}")
            raise _UnknownClassError(name)
        if self._take(len(known.description)) != known.description:
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
        number: int = layout.unpack(self._take(layout.size))[0]
        return number

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if not 0 <= size <= len(self._data) - self._position:
            raise MalformedMessageError(
                f"{size} bytes wanted at byte {self._position}, {len(self._data) - self._position} left"
            )
        part = self._data[self._position : end]
        self._position = end
        return part


def read_map(data: bytes) -> dict[str, Value]:
    """Read the canonical values of a map's stream. Bytes after the last entry are ignored, as in Java.

    Raises:
        MalformedMessageError: it is not such a stream, is cut off, or has a value of another class.
        MessageFormatError: a text that is not modified UTF-8.
    """
    reader = _Reader(data)
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
    """Read the canonical value of an object's stream; return a ``JavaObject`` if its class has no fixed layout.

    Raises:
        MalformedMessageError: it is not such a stream, or is cut off.
        MessageFormatError: a text that is not modified UTF-8.
    """
    try:
        return _Reader(data).value()
    except _UnknownClassError as error:
        return JavaObject(error.name, data)
