"""StreamMessage: a sequence of values with JMS types (jms-spec 2.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from jmsaio.errors import (
    MessageEOFError,
    MessageFormatError,
    MessageNotReadableError,
    MessageNotWriteableError,
    NullValueError,
)
from jmsaio.model.conversion import convert_body
from jmsaio.model.map_message import cut
from jmsaio.model.message import Message, typed
from jmsaio.model.values import Byte, Char, Float, Int, JmsType, Long, Short, Value, canonical


class StreamMessage(Message):
    """A message with a sequence of values: write-only when new, read-only after ``reset`` and when received.

    Reads raise MessageNotReadableError while it is write-only and MessageEOFError at the end; writes raise
    MessageNotWriteableError while it is read-only. A read that fails does not move the position.

    Args:
        values: first values; more may be written behind them.
    """

    __slots__ = ("_offset", "_position", "_reading", "_values")
    KIND: ClassVar[str] = "stream"
    _values: list[Value]
    _position: int
    _offset: int
    _reading: bool

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
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

    # ---------------------------------------------------------------- states

    def reset(self) -> None:
        """Make the body read-only, at its start."""
        self._reading = True
        self._position = 0
        self._offset = -1

    def clear_body(self) -> None:
        """Remove the values; write-only again."""
        super().clear_body()
        self._values = []
        self._position = 0
        self._offset = -1
        self._reading = False

    def is_body_assignable_to(self, body_type: type) -> bool:
        """Always False: a stream has no body type."""
        return False

    def _next(self) -> Value:
        if not self._reading:
            raise MessageNotReadableError("the body is write-only; call reset first")
        if self._position >= len(self._values):
            raise MessageEOFError("there is no value left in the stream message")
        if self._offset >= 0:
            raise MessageFormatError("a bytes value is partly read; read_bytes until it returns less than the buffer")
        return self._values[self._position]

    # ---------------------------------------------------------------- reading

    def _read(self, target: JmsType) -> Any:
        value = convert_body(self._next(), target, f"number {self._position + 1} of the stream")
        self._position += 1
        return value

    def read_boolean(self) -> bool:
        """The next value as boolean. The reads raise as ``model.conversion`` says."""
        return bool(self._read(JmsType.BOOLEAN))

    def read_byte(self) -> int:
        """The next value as byte."""
        return int(self._read(JmsType.BYTE))

    def read_short(self) -> int:
        """The next value as short."""
        return int(self._read(JmsType.SHORT))

    def read_char(self) -> str:
        """The next value as char."""
        return str(self._read(JmsType.CHAR))

    def read_int(self) -> int:
        """The next value as int."""
        return int(self._read(JmsType.INT))

    def read_long(self) -> int:
        """The next value as long."""
        return int(self._read(JmsType.LONG))

    def read_float(self) -> float:
        """The next value as float."""
        return float(self._read(JmsType.FLOAT))

    def read_double(self) -> float:
        """The next value as double."""
        return float(self._read(JmsType.DOUBLE))

    def read_string(self) -> str | None:
        """The next value as text."""
        value: str | None = self._read(JmsType.STRING)
        return value

    def read_object(self) -> Any:
        """The next value in the type in which it was written."""
        value = self._next()
        self._position += 1
        return value

    def read_bytes(self, buffer: bytearray | memoryview) -> int:
        """Read the next bytes value, or its next part, into ``buffer``.

        Returns:
            How many were read; less than the buffer holds, and the value is done. -1 for a None value, or when the
            part before filled the buffer to the value's end.
        """
        if buffer is None:
            raise NullValueError("read_bytes needs a buffer, not None")
        offset, self._offset = self._offset, -1
        try:
            value = self._next()
        except BaseException:
            self._offset = offset
            raise
        if value is None:
            self._position += 1
            return -1
        if not isinstance(value, bytes):
            raise MessageFormatError(f"number {self._position + 1} of the stream is no bytes value")
        return self._read_part(value, max(offset, 0), offset >= 0, buffer)

    def _read_part(self, value: bytes, start: int, begun: bool, buffer: bytearray | memoryview) -> int:
        if not len(buffer):
            self._offset = start if begun else -1
            return 0
        part = value[start : start + len(buffer)]
        if begun and not part:
            self._position += 1
            return -1
        buffer[: len(part)] = part
        if len(part) < len(buffer):
            self._position += 1
        else:
            self._offset = start + len(part)
        return len(part)

    # ---------------------------------------------------------------- writing

    def _write(self, value: Value) -> None:
        if self._reading:
            raise MessageNotWriteableError("the body is read-only; clear_body first")
        self._values.append(value)

    def write_boolean(self, value: bool) -> None:
        """Write a boolean. The writes raise MessageFormatError for another type, or out of range."""
        self._write(typed(bool, value, "boolean"))

    def write_byte(self, value: int) -> None:
        """Write a byte."""
        self._write(typed(Byte, value, "byte"))

    def write_short(self, value: int) -> None:
        """Write a short."""
        self._write(typed(Short, value, "short"))

    def write_char(self, value: str) -> None:
        """Write a char."""
        self._write(typed(Char, value, "char"))

    def write_int(self, value: int) -> None:
        """Write an int."""
        self._write(typed(Int, value, "int"))

    def write_long(self, value: int) -> None:
        """Write a long."""
        self._write(typed(Long, value, "long"))

    def write_float(self, value: float) -> None:
        """Write a float, rounded to 32 bits."""
        self._write(typed(Float, value, "float"))

    def write_double(self, value: float) -> None:
        """Write a double."""
        self._write(typed(float, value, "double"))

    def write_string(self, value: str | None) -> None:
        """Write a text, or None."""
        self._write(None if value is None else typed(str, value, "string"))

    def write_bytes(
        self, data: bytes | bytearray | memoryview | None, offset: int = 0, length: int | None = None
    ) -> None:
        """Write ``length`` bytes of ``data`` from ``offset`` as one value. Raises IndexError outside of it."""
        self._write(None if data is None else cut(data, offset, length))

    def write_object(self, value: Any) -> None:
        """Write a value in its own type, or None. Raises MessageFormatError without JMS type."""
        self._write(canonical(value, "stream"))
