"""Writes serialization streams as Java does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jmsaio.codec.javaser.layouts import (
    BOXES,
    BYTE_ARRAY,
    CLASSES,
    FIRST_HANDLE,
    LENGTH16,
    LENGTH32,
    LENGTH64,
    MAGIC,
    JavaClass,
)
from jmsaio.errors import MessageFormatError
from jmsaio.model.arguments import with_article
from jmsaio.model.mutf8 import encode_mutf8
from jmsaio.model.values import Char, Value

_MAX_BLOCK: Final = 1024
_MAX_SHORT_BLOCK: Final = 0xFF
_MAX_UTF: Final = 0xFFFF


class _Writer:
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

    def value(self, value: Value) -> None:
        """Write one object."""
        kind = type(value)
        if value is None:
            self.parts.append(b"\x70")
        elif kind is str:
            data = encode_mutf8(value)  # type: ignore[arg-type]  # its class is str
            long = len(data) > _MAX_UTF
            self.parts.append(b"\x7c" + LENGTH64.pack(len(data)) if long else b"\x74" + LENGTH16.pack(len(data)))
            self.parts.append(data)
            self._next += 1
        elif kind is bytes:
            self.parts.append(b"\x75")
            self._class(CLASSES[BYTE_ARRAY])
            self.parts += (LENGTH32.pack(len(value)), value)  # type: ignore[arg-type]  # its class is bytes
            self._next += 1
        else:
            self._box(kind, value)

    def _box(self, kind: type, value: Any) -> None:
        known = BOXES.get(kind)
        if known is None or known.layout is None:
            raise MessageFormatError(f"there is no Java class for {with_article(kind.__name__)}")
        self.parts.append(b"\x73")
        self._class(known)
        self.parts.append(known.layout.pack(ord(value) if kind is Char else value))
        self._next += 1

    def _class(self, known: JavaClass | None) -> None:
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
    """Return the stream of a map's canonical values.

    Raises:
        MessageFormatError: a name above 65535 bytes of modified UTF-8, or a value without a Java class here.
    """
    writer = _Writer()
    data = LENGTH32.pack(len(values))
    for name, value in values.items():
        writer.block(data + _utf(name))
        writer.value(value)
        data = b""
    writer.block(data)
    return b"".join(writer.parts)


def write_object(value: Value) -> bytes:
    """Return the stream of one canonical value. Raises MessageFormatError for a value without a Java class here."""
    writer = _Writer()
    writer.value(value)
    return b"".join(writer.parts)
