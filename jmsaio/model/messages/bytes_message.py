"""BytesMessage: raw bytes in the layout of Java's DataOutput."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from jmsaio.errors import MessageEOFError, MessageFormatError, NullValueError
from jmsaio.model.messages.message import Property
from jmsaio.model.messages.sequential import SequentialMessage
from jmsaio.model.mutf8 import decode_mutf8, encode_mutf8
from jmsaio.model.typed import cut, is_kind, typed, writable_bytes
from jmsaio.model.values import TYPE_OF, Byte, Char, Float, Int, JmsType, Long, Short, Value, canonical

_USHORT = struct.Struct(">H")
_LAYOUTS: Final = {
    JmsType.BOOLEAN: struct.Struct(">B"),
    JmsType.BYTE: struct.Struct(">b"),
    JmsType.SHORT: struct.Struct(">h"),
    JmsType.CHAR: _USHORT,
    JmsType.INT: struct.Struct(">i"),
    JmsType.LONG: struct.Struct(">q"),
    JmsType.FLOAT: struct.Struct(">f"),
    JmsType.DOUBLE: struct.Struct(">d"),
}
_LAYOUTS_OF: Final = {Int: _LAYOUTS[JmsType.INT]} | {
    kind: _LAYOUTS[of] for kind, of in TYPE_OF.items() if of in _LAYOUTS
}
_MAX_UTF = 0xFFFF


class BytesMessage(SequentialMessage):
    """A message with bytes: write-only when new, read-only after ``reset`` and when received.

    Args:
        data: initial bytes; more can be appended.
        properties: as for ``Message``.
    """

    __slots__ = ()
    KIND: ClassVar[str] = "bytes"
    _EMPTY = bytearray
    _content: bytearray | bytes

    def __init__(
        self, data: bytes | bytearray | memoryview = b"", *, properties: Mapping[str, Property] | None = None
    ) -> None:
        super().__init__(bytearray(cut(data, 0, None)), properties)

    def _body(self) -> bytes:
        return bytes(self._content)

    @property
    def body_length(self) -> int:
        """Number of bytes. Raises MessageNotReadableError while write-only."""
        self._check_readable()
        return len(self._content)

    def get_body_length(self) -> int:
        """Return ``body_length``."""
        return self.body_length

    def _body_copy(self) -> bytes | None:
        data = bytes(self._content)
        self.reset()
        return data or None

    def is_body_assignable_to(self, body_type: type) -> bool:
        """Return True for bytes and its base classes (object, Sequence), and for any type if there are no bytes."""
        return not self._content or is_kind(bytes, body_type)

    def _read(self, target: JmsType) -> Any:
        layout = _LAYOUTS[target]
        if not self._reading:
            self._check_readable()
        end = self._position + layout.size
        if end > len(self._content):
            raise MessageEOFError(f"{layout.size} bytes needed, {len(self._content) - self._position} left")
        value = layout.unpack_from(self._content, self._position)[0]
        self._position = end
        return value

    def read_char(self) -> str:
        """Read 2 bytes, one UTF-16 unit."""
        return chr(self._read(JmsType.CHAR))

    def read_unsigned_byte(self) -> int:
        """Read 1 byte, 0 to 255."""
        return int(self._read(JmsType.BYTE)) & 0xFF

    def read_unsigned_short(self) -> int:
        """Read 2 bytes, 0 to 65535."""
        return int(self._read(JmsType.SHORT)) & 0xFFFF

    def read_utf(self) -> str:
        """Read 2 bytes of length and modified UTF-8. Raises MessageFormatError for malformed bytes."""
        self._check_readable()
        data, start = self._content, self._position + _USHORT.size
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
        left = len(self._content) - self._position
        if left == 0 and wanted:
            return -1
        count = min(wanted, left)
        view[:count] = self._content[self._position : self._position + count]
        self._position += count
        return count

    def _write(self, kind: type, value: object) -> None:
        if self._reading:
            self._check_writable()
        self._content += _LAYOUTS_OF[kind].pack(typed(kind, value, kind.__name__.lower()))

    def write_char(self, value: str) -> None:
        """Write 2 bytes, one UTF-16 unit."""
        self._check_writable()
        self._content += _USHORT.pack(ord(typed(Char, value, "char")))

    def write_utf(self, value: str) -> None:
        """Write 2 bytes of length and modified UTF-8. Raises MessageFormatError above 65535 bytes."""
        self._check_writable()
        data = encode_mutf8(typed(str, value, "utf"))
        if len(data) > _MAX_UTF:
            raise MessageFormatError(f"write_utf accepts up to {_MAX_UTF} bytes, not {len(data)}; use write_bytes")
        self._content += _USHORT.pack(len(data)) + data

    def write_bytes(self, data: bytes | bytearray | memoryview, offset: int = 0, length: int | None = None) -> None:
        """Write ``length`` bytes of ``data`` from ``offset``. Raises IndexError out of bounds, NullValueError."""
        self._check_writable()
        if data is None:
            raise NullValueError("write_bytes needs bytes, not None")
        self._content += cut(data, offset, length)

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
