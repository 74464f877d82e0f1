"""StreamMessage: a sequence of values with JMS types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from jmsaio.errors import (
    MessageEOFError,
    MessageFormatError,
    MessageNotReadableError,
    MessageNotWriteableError,
)
from jmsaio.model.arguments import wrong_type
from jmsaio.model.conversion import convert_body
from jmsaio.model.messages.message import Message, Property
from jmsaio.model.typed import cut, typed, writable_bytes
from jmsaio.model.values import Byte, Char, Float, Int, JmsType, Long, Short, Value, canonical


class StreamMessage(Message):
    """A message with a sequence of values: write-only when new, read-only after ``reset`` and when received.

    Reads raise MessageNotReadableError while it is write-only and MessageEOFError at the end; writes raise
    MessageNotWriteableError while it is read-only. A read that fails does not move the position.

    Args:
        values: initial values; more can be appended.
        properties: as for ``Message``.
    """

    __slots__ = ("_offset", "_position", "_reading", "_values")
    KIND: ClassVar[str] = "stream"
    _values: list[Value]
    _position: int
    _offset: int
    _reading: bool

    def __init__(self, values: Iterable[object] = (), *, properties: Mapping[str, Property] | None = None) -> None:
        super().__init__(properties=properties)
        if isinstance(values, str | bytes | bytearray | memoryview):  # each would be split into its elements
            raise MessageFormatError(f"a stream message holds a list of values, not one {type(values).__name__}")
        if not isinstance(values, Iterable):
            raise wrong_type(values, "values", "a list or another iterable of values")
        self._values = [canonical(value, "stream") for value in values]
        self._position = 0
        self._offset = -1
        self._reading = False

    def _set_received_body(self, body: Any) -> None:
        self._values = body
        self._position = 0
        self._offset = -1
        self._reading = True

    def _body(self) -> list[Value]:
        return self._values

    def reset(self) -> None:
        """Make the body read-only and move to its start."""
        self._reading = True
        self._position = 0
        self._offset = -1

    def clear_body(self) -> None:
        """Remove the values and make the body write-only."""
        super().clear_body()
        self._values = []
        self._position = 0
        self._offset = -1
        self._reading = False

    def is_body_assignable_to(self, body_type: type) -> bool:
        """Return False: a stream has no body type."""
        return False

    def _current(self) -> Value:
        if not self._reading:
            raise MessageNotReadableError("the body is write-only; call reset first")
        if self._position >= len(self._values):
            raise MessageEOFError("the stream message has no more values")
        return self._values[self._position]

    def _next(self) -> Value:
        value = self._current()
        if self._offset >= 0:
            raise MessageFormatError("a bytes value is partly read; read_bytes until it returns less than the buffer")
        return value

    def _read(self, target: JmsType) -> Any:
        value = convert_body(self._next(), target, f"number {self._position + 1} of the stream")
        self._position += 1
        return value

    def read_boolean(self) -> bool:
        """Read the next value as boolean. The reads raise as described in ``model.conversion``."""
        return bool(self._read(JmsType.BOOLEAN))

    def read_byte(self) -> int:
        """Read the next value as byte."""
        return int(self._read(JmsType.BYTE))

    def read_short(self) -> int:
        """Read the next value as short."""
        return int(self._read(JmsType.SHORT))

    def read_char(self) -> str:
        """Read the next value as char."""
        return str(self._read(JmsType.CHAR))

    def read_int(self) -> int:
        """Read the next value as int."""
        return int(self._read(JmsType.INT))

    def read_long(self) -> int:
        """Read the next value as long."""
        return int(self._read(JmsType.LONG))

    def read_float(self) -> float:
        """Read the next value as float."""
        return float(self._read(JmsType.FLOAT))

    def read_double(self) -> float:
        """Read the next value as double."""
        return float(self._read(JmsType.DOUBLE))

    def read_string(self) -> str | None:
        """Read the next value as text."""
        value: str | None = self._read(JmsType.STRING)
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

    def _write(self, kind: type, value: Any) -> None:
        self._check_writable()
        self._values.append(typed(kind, value, kind.__name__.lower()))

    def _check_writable(self) -> None:
        if self._reading:
            raise MessageNotWriteableError("the body is read-only; clear_body first")

    def write_boolean(self, value: bool) -> None:
        """Write a boolean. The writes raise MessageFormatError for a value of another type or out of range."""
        self._write(bool, value)

    def write_byte(self, value: int) -> None:
        """Write a byte."""
        self._write(Byte, value)

    def write_short(self, value: int) -> None:
        """Write a short."""
        self._write(Short, value)

    def write_char(self, value: str) -> None:
        """Write a char."""
        self._write(Char, value)

    def write_int(self, value: int) -> None:
        """Write an int."""
        self._write(Int, value)

    def write_long(self, value: int) -> None:
        """Write a long."""
        self._write(Long, value)

    def write_float(self, value: float) -> None:
        """Write a float, rounded to 32 bits."""
        self._write(Float, value)

    def write_double(self, value: float) -> None:
        """Write a double."""
        self._write(float, value)

    def write_string(self, value: str | None) -> None:
        """Write a text, or None."""
        self._check_writable()
        self._values.append(None if value is None else typed(str, value, "string"))

    def write_bytes(
        self, data: bytes | bytearray | memoryview | None, offset: int = 0, length: int | None = None
    ) -> None:
        """Write ``length`` bytes of ``data`` from ``offset`` as one value. Raises IndexError out of bounds."""
        self._check_writable()
        self._values.append(None if data is None else cut(data, offset, length))

    def write_object(self, value: Value | bytearray | memoryview) -> None:
        """Write a value in its own type, or None. Raises MessageFormatError without JMS type."""
        self._check_writable()
        self._values.append(canonical(value, "stream"))
