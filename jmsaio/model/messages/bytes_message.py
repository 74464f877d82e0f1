"""BytesMessage: raw bytes in the layout of Java's DataOutput."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from jmsaio.errors import (
    MessageEOFError,
    MessageFormatError,
    MessageNotReadableError,
    MessageNotWriteableError,
    NullValueError,
)
from jmsaio.model.messages.message import Message, Property
from jmsaio.model.mutf8 import decode_mutf8, encode_mutf8
from jmsaio.model.typed import cut, is_kind, typed, writable_bytes
from jmsaio.model.values import Byte, Char, Float, Int, Long, Short, Value, canonical

_SHORT, _USHORT = struct.Struct(">h"), struct.Struct(">H")
_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")
_FLOAT, _DOUBLE = struct.Struct(">f"), struct.Struct(">d")
_BYTE, _UBYTE, _BOOLEAN = struct.Struct(">b"), struct.Struct(">B"), struct.Struct(">?")
_MAX_UTF = 0xFFFF


class BytesMessage(Message):
    """A message with bytes: write-only when new, read-only after ``reset`` and when received.

    Reads raise MessageNotReadableError while it is write-only and MessageEOFError at the end; writes raise
    MessageNotWriteableError while it is read-only. A read that fails does not move the position.

    Args:
        data: initial bytes; more can be appended.
        properties: as for ``Message``.
    """

    __slots__ = ("_data", "_position", "_reading")
    KIND: ClassVar[str] = "bytes"
    _data: bytearray | bytes
    _position: int
    _reading: bool

    def __init__(
        self, data: bytes | bytearray | memoryview = b"", *, properties: Mapping[str, Property] | None = None
    ) -> None:
        super().__init__(properties=properties)
        self._data = bytearray(cut(data, 0, None))
        self._position = 0
        self._reading = False

    def _set_received_body(self, body: Any) -> None:
        self._data = body
        self._position = 0
        self._reading = True

    def _body(self) -> bytes:
        return bytes(self._data)

    def reset(self) -> None:
        """Make the body read-only and move to its start."""
        self._reading = True
        self._position = 0

    def clear_body(self) -> None:
        """Remove the bytes and make the body write-only."""
        super().clear_body()
        self._data = bytearray()
        self._position = 0
        self._reading = False

    @property
    def body_length(self) -> int:
        """Number of bytes. Raises MessageNotReadableError while write-only."""
        self._check_readable()
        return len(self._data)

    def get_body_length(self) -> int:
        """Return ``body_length``."""
        return self.body_length

    def _body_copy(self) -> bytes | None:
        data = bytes(self._data)
        self.reset()
        return data or None

    def is_body_assignable_to(self, body_type: type) -> bool:
        """Return True for bytes and its base classes (object, Sequence), and for any type if there are no bytes."""
        return not self._data or is_kind(bytes, body_type)

    def _check_readable(self) -> None:
        if not self._reading:
            raise MessageNotReadableError("the body is write-only; call reset first")

    def _read(self, layout: struct.Struct) -> Any:
        self._check_readable()
        end = self._position + layout.size
        if end > len(self._data):
            raise MessageEOFError(f"{layout.size} bytes needed, {len(self._data) - self._position} left")
        value = layout.unpack_from(self._data, self._position)[0]
        self._position = end
        return value

    def read_boolean(self) -> bool:
        """Read 1 byte; any value but 0 is True."""
        return bool(self._read(_UBYTE))

    def read_byte(self) -> int:
        """Read 1 byte, signed."""
        return int(self._read(_BYTE))

    def read_unsigned_byte(self) -> int:
        """Read 1 byte, 0 to 255."""
        return int(self._read(_UBYTE))

    def read_short(self) -> int:
        """Read 2 bytes, signed."""
        return int(self._read(_SHORT))

    def read_unsigned_short(self) -> int:
        """Read 2 bytes, 0 to 65535."""
        return int(self._read(_USHORT))

    def read_char(self) -> str:
        """Read 2 bytes, one UTF-16 unit."""
        return chr(self._read(_USHORT))

    def read_int(self) -> int:
        """Read 4 bytes."""
        return int(self._read(_INT))

    def read_long(self) -> int:
        """Read 8 bytes."""
        return int(self._read(_LONG))

    def read_float(self) -> float:
        """Read 4 bytes, IEEE 754."""
        return float(self._read(_FLOAT))

    def read_double(self) -> float:
        """Read 8 bytes, IEEE 754."""
        return float(self._read(_DOUBLE))

    def read_utf(self) -> str:
        """Read 2 bytes of length and modified UTF-8. Raises MessageFormatError for malformed bytes."""
        self._check_readable()
        data, start = self._data, self._position + _USHORT.size
        left = len(data) - start
        if left < 0:
            raise MessageEOFError(f"the length of a text needed, {left + _USHORT.size} bytes left")
        length: int = _USHORT.unpack_from(data, self._position)[0]
        if length > left:
            raise MessageEOFError(f"a text of {length} bytes needed, {left} left")
        text = decode_mutf8(bytes(data[start : start + length]))
        self._position = start + length
        return text

    def read_bytes(self, buffer: bytearray | memoryview, length: int | None = None) -> int:
        """Read up to ``length`` bytes (default: as many as fit) into ``buffer``.

        Returns:
            Number of bytes read, at the end fewer than requested; -1 if none are left.

        Raises:
            IndexError: ``length`` is negative or larger than the buffer.
            NullValueError: no buffer.
            TypeError: a read-only buffer, or not a buffer.
        """
        self._check_readable()
        view = writable_bytes(buffer)
        wanted = len(view) if length is None else length
        if wanted < 0 or wanted > len(view):
            raise IndexError(f"length {wanted} is outside a buffer of {len(view)} bytes")
        left = len(self._data) - self._position
        if left == 0 and wanted:
            return -1
        count = min(wanted, left)
        view[:count] = self._data[self._position : self._position + count]
        self._position += count
        return count

    def _check_writable(self) -> None:
        if self._reading:
            raise MessageNotWriteableError("the body is read-only; clear_body first")

    def _write(self, layout: struct.Struct, kind: type, value: object) -> None:
        self._check_writable()
        self._data += layout.pack(typed(kind, value, kind.__name__.lower()))

    def write_boolean(self, value: bool) -> None:
        """Write 1 byte."""
        self._write(_BOOLEAN, bool, value)

    def write_byte(self, value: int) -> None:
        """Write 1 byte, -128 to 127."""
        self._write(_BYTE, Byte, value)

    def write_short(self, value: int) -> None:
        """Write 2 bytes."""
        self._write(_SHORT, Short, value)

    def write_char(self, value: str) -> None:
        """Write 2 bytes, one UTF-16 unit."""
        self._check_writable()
        self._data += _USHORT.pack(ord(typed(Char, value, "char")))

    def write_int(self, value: int) -> None:
        """Write 4 bytes."""
        self._write(_INT, Int, value)

    def write_long(self, value: int) -> None:
        """Write 8 bytes."""
        self._write(_LONG, Long, value)

    def write_float(self, value: float) -> None:
        """Write 4 bytes, IEEE 754."""
        self._write(_FLOAT, Float, value)

    def write_double(self, value: float) -> None:
        """Write 8 bytes, IEEE 754."""
        self._write(_DOUBLE, float, value)

    def write_utf(self, value: str) -> None:
        """Write 2 bytes of length and modified UTF-8. Raises MessageFormatError above 65535 bytes."""
        self._check_writable()
        data = encode_mutf8(typed(str, value, "utf"))
        if len(data) > _MAX_UTF:
            raise MessageFormatError(f"write_utf accepts up to {_MAX_UTF} bytes, not {len(data)}; use write_bytes")
        self._data += _USHORT.pack(len(data)) + data

    def write_bytes(self, data: bytes | bytearray | memoryview, offset: int = 0, length: int | None = None) -> None:
        """Write ``length`` bytes of ``data`` from ``offset``. Raises IndexError out of bounds, NullValueError."""
        self._check_writable()
        if data is None:
            raise NullValueError("write_bytes needs bytes, not None")
        self._data += cut(data, offset, length)

    def write_object(self, value: Value | bytearray | memoryview) -> None:
        """Write a value in its own type. Raises NullValueError for None, MessageFormatError without JMS type."""
        self._check_writable()
        if value is None:
            raise NullValueError("write_object needs a value, not None")
        value = canonical(value, "object")
        writer = _WRITERS[type(value)]
        writer(self, value)


_WRITERS: dict[type, Callable[[BytesMessage, Any], None]] = {
    bool: BytesMessage.write_boolean,
    Byte: BytesMessage.write_byte,
    Short: BytesMessage.write_short,
    Char: BytesMessage.write_char,
    int: BytesMessage.write_int,
    Long: BytesMessage.write_long,
    Float: BytesMessage.write_float,
    float: BytesMessage.write_double,
    str: BytesMessage.write_utf,
    bytes: BytesMessage.write_bytes,
}
