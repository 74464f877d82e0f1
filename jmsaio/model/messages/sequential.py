"""BytesMessage and StreamMessage, whose bodies are written and read in sequence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, Self

from jmsaio.errors import (
    MessageEOFError,
    MessageFormatError,
    MessageNotReadableError,
    MessageNotWriteableError,
    NullValueError,
)
from jmsaio.model.arguments import wrong_type
from jmsaio.model.messages.message import Message, MessageSource, Property
from jmsaio.model.text import convert, decode_mutf8, encode_mutf8
from jmsaio.model.values import (
    LAYOUTS,
    Byte,
    Char,
    Float,
    Long,
    Short,
    Value,
    canonical,
    cut,
    is_kind,
    typed,
    writable_bytes,
)

_USHORT, _ = LAYOUTS[Char]
_LAYOUTS: Final = {kind: layout for kind, (layout, _) in LAYOUTS.items()}
_MAX_UTF = 0xFFFF


class SequentialMessage(Message):
    """A message whose values are written and read one after another.

    It is write-only when new, and read-only after ``reset`` and when received. Reads raise MessageNotReadableError
    while it is write-only and MessageEOFError at the end. Writes raise MessageNotWriteableError while it is read-only,
    and MessageFormatError for a value of another type or out of range. A read that fails does not move the position.
    """

    __slots__ = ("_offset", "_position")
    _offset: int  # bytes that were read of the next value, a bytes value of a stream; -1 if it was not begun
    _position: int  # of the next value; -1 while the body is write-only

    def __init__(self, content: Any, properties: Mapping[str, Property] | None) -> None:
        super().__init__(properties=properties)
        self._content = content
        self._position = self._offset = -1

    @classmethod
    def _received(cls, source: MessageSource, record: Any, body: Any) -> Self:
        # As Message._received, without its call: this is the hot path of a receiver.
        message = cls.__new__(cls)
        message._session = message._head = message._properties = None
        message._source = source
        message._record = record
        message._content = body
        message._count = 1
        message._delivery = 0
        message._read_only_body = message._read_only_properties = True
        message._position = 0
        message._offset = -1
        return message

    def _read(self, target: type) -> Any:
        """Return the next value, read as the type of a class."""
        raise NotImplementedError

    def _write(self, kind: type, value: object) -> None:
        """Write a value as the type of a class."""
        raise NotImplementedError

    def reset(self) -> None:
        """Make the body read-only and move to its start."""
        self._position, self._offset = 0, -1

    def clear_body(self) -> None:
        """Remove the body and make it write-only."""
        super().clear_body()
        self._position = self._offset = -1

    def _check_readable(self) -> None:
        if self._position < 0:
            raise MessageNotReadableError("the body is write-only; call reset first")

    def _check_writable(self) -> None:
        if self._position >= 0:
            raise MessageNotWriteableError("the body is read-only; clear_body first")

    def read_boolean(self) -> bool:
        """Read a boolean. In a bytes message it takes 1 byte, and any value but 0 is True."""
        return bool(self._read(bool))

    def read_byte(self) -> int:
        """Read a byte. In a bytes message it is signed."""
        return int(self._read(Byte))

    def read_short(self) -> int:
        """Read a short. In a bytes message it takes 2 bytes, signed."""
        return int(self._read(Short))

    def read_char(self) -> str:
        """Read a char. In a bytes message it takes 2 bytes, one UTF-16 unit."""
        return str(self._read(Char))

    def read_int(self) -> int:
        """Read an int. In a bytes message it takes 4 bytes."""
        return int(self._read(int))

    def read_long(self) -> int:
        """Read a long. In a bytes message it takes 8 bytes."""
        return int(self._read(Long))

    def read_float(self) -> float:
        """Read a float. In a bytes message it takes 4 bytes, IEEE 754."""
        return float(self._read(Float))

    def read_double(self) -> float:
        """Read a double. In a bytes message it takes 8 bytes, IEEE 754."""
        return float(self._read(float))

    def write_boolean(self, value: bool) -> None:
        """Write a boolean: 1 byte in a bytes message."""
        self._write(bool, value)

    def write_byte(self, value: int) -> None:
        """Write a byte, -128 to 127."""
        self._write(Byte, value)

    def write_short(self, value: int) -> None:
        """Write a short: 2 bytes in a bytes message."""
        self._write(Short, value)

    def write_char(self, value: str) -> None:
        """Write a char: 2 bytes in a bytes message, one UTF-16 unit."""
        self._write(Char, value)

    def write_int(self, value: int) -> None:
        """Write an int: 4 bytes in a bytes message."""
        self._write(int, value)

    def write_long(self, value: int) -> None:
        """Write a long: 8 bytes in a bytes message."""
        self._write(Long, value)

    def write_float(self, value: float) -> None:
        """Write a float, rounded to 32 bits: 4 bytes in a bytes message, IEEE 754."""
        self._write(Float, value)

    def write_double(self, value: float) -> None:
        """Write a double: 8 bytes in a bytes message, IEEE 754."""
        self._write(float, value)


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

    def _read(self, target: type) -> Any:
        layout = _LAYOUTS[target]
        if self._position < 0:
            self._check_readable()
        end = self._position + layout.size
        if end > len(self._content):
            raise MessageEOFError(f"{layout.size} bytes needed, {len(self._content) - self._position} left")
        value = layout.unpack_from(self._content, self._position)[0]
        self._position = end
        return chr(value) if target is Char else value

    def read_unsigned_byte(self) -> int:
        """Read 1 byte, 0 to 255."""
        return int(self._read(Byte)) & 0xFF

    def read_unsigned_short(self) -> int:
        """Read 2 bytes, 0 to 65535."""
        return int(self._read(Short)) & 0xFFFF

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
        if self._position >= 0:
            self._check_writable()
        made = typed(kind, value, kind.__name__.lower())
        self._content += _LAYOUTS[kind].pack(ord(made) if kind is Char else made)

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
        if isinstance(value, bytes):
            self.write_bytes(value)
        elif type(value) is str:
            self.write_utf(value)
        else:
            self._write(type(value), value)


class StreamMessage(SequentialMessage):
    """A message with a sequence of values: write-only when new, read-only after ``reset`` and when received.

    The reads convert values as JMS allows, and raise MessageFormatError, NumberFormatError and NullValueError.

    Args:
        values: initial values; more can be appended.
        properties: as for ``Message``.
    """

    __slots__ = ()
    KIND: ClassVar[str] = "stream"
    _EMPTY = list
    _content: list[Value]

    def __init__(self, values: Iterable[object] = (), *, properties: Mapping[str, Property] | None = None) -> None:
        if isinstance(values, str | bytes | bytearray | memoryview):  # each would be split into its elements
            raise MessageFormatError(f"a stream message holds a list of values, not one {type(values).__name__}")
        if not isinstance(values, Iterable):
            raise wrong_type(values, "values", "a list or another iterable of values")
        super().__init__([canonical(value, "stream") for value in values], properties)

    def is_body_assignable_to(self, body_type: type) -> bool:
        """Return False: a stream has no body type."""
        return False

    def _current(self) -> Value:
        if self._position < 0:
            self._check_readable()
        if self._position >= len(self._content):
            raise MessageEOFError("the stream message has no more values")
        return self._content[self._position]

    def _next(self) -> Value:
        value = self._current()
        if self._offset >= 0:
            raise MessageFormatError("a bytes value is partly read; read_bytes until it returns less than the buffer")
        return value

    def _read(self, target: type) -> Any:
        value = convert(self._next(), target, f"number {self._position + 1} of the stream")
        self._position += 1
        return value

    def read_string(self) -> str | None:
        """Read the next value as text."""
        value: str | None = self._read(str)
        return value

    def read_object(self) -> Any:
        """Read the next value in the type in which it was written."""
        value = self._next()
        self._position += 1
        return value

    def read_bytes(self, buffer: bytearray | memoryview) -> int:
        """Read the next bytes value, or its next part, into ``buffer``.

        Until the value is read completely, all other reads raise MessageFormatError.

        Returns:
            Number of bytes read; if it is less than the buffer's size, the value is complete. -1 for a None value, or
            if the previous part filled the buffer exactly up to the value's end. 0 for an empty buffer, which reads
            nothing.

        Raises:
            NullValueError: no buffer.
            TypeError: a read-only buffer, or not a buffer.
        """
        view = writable_bytes(buffer)
        value = self._current()
        if value is None:
            self._position += 1
            return -1
        if not isinstance(value, bytes):
            raise MessageFormatError(f"number {self._position + 1} of the stream is not a bytes value")
        if not len(view):
            return 0
        if self._offset == len(value):  # the previous part ended exactly at the value's end
            self._next_value()
            return -1
        start = max(self._offset, 0)
        part = value[start : start + len(view)]
        view[: len(part)] = part
        if len(part) < len(view):
            self._next_value()
        else:
            self._offset = start + len(part)
        return len(part)

    def _next_value(self) -> None:
        self._position += 1
        self._offset = -1

    def _write(self, kind: type, value: object) -> None:
        self._check_writable()
        self._content.append(typed(kind, value, kind.__name__.lower()))

    def write_string(self, value: str | None) -> None:
        """Write a text, or None."""
        self._check_writable()
        self._content.append(None if value is None else typed(str, value, "string"))

    def write_bytes(
        self, data: bytes | bytearray | memoryview | None, offset: int = 0, length: int | None = None
    ) -> None:
        """Write ``length`` bytes of ``data`` from ``offset`` as one value. Raises IndexError out of bounds."""
        self._check_writable()
        self._content.append(None if data is None else cut(data, offset, length))

    def write_object(self, value: Value | bytearray | memoryview) -> None:
        """Write a value in its own type, or None. Raises MessageFormatError without JMS type."""
        self._check_writable()
        self._content.append(canonical(value, "stream"))
