"""SequentialMessage: what bytes and stream messages have in common, a body that is written and read in sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from jmsaio.errors import MessageNotReadableError, MessageNotWriteableError
from jmsaio.model.messages.message import Message, MessageSource, Property
from jmsaio.model.values import Byte, Char, Float, Int, JmsType, Long, Short


class SequentialMessage(Message):
    """A message whose values are written and read one after another.

    It is write-only when new, and read-only after ``reset`` and when received. Reads raise MessageNotReadableError
    while it is write-only and MessageEOFError at the end. Writes raise MessageNotWriteableError while it is read-only,
    and MessageFormatError for a value of another type or out of range. A read that fails does not move the position.
    """

    __slots__ = ("_position", "_reading")
    _position: int
    _reading: bool

    def __init__(self, content: Any, properties: Mapping[str, Property] | None) -> None:
        super().__init__(properties=properties)
        self._content = content
        self._position = 0
        self._reading = False

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
        message._reading = True
        return message

    def _read(self, target: JmsType) -> Any:
        """Return the next value, read as a type."""
        raise NotImplementedError

    def _write(self, kind: type, value: object) -> None:
        """Write a value of a type, named by its class as in ``jmsaio.model.typed``."""
        raise NotImplementedError

    def reset(self) -> None:
        """Make the body read-only and move to its start."""
        self._reading = True
        self._position = 0

    def clear_body(self) -> None:
        """Remove the body and make it write-only."""
        super().clear_body()
        self._position = 0
        self._reading = False

    def _check_readable(self) -> None:
        if not self._reading:
            raise MessageNotReadableError("the body is write-only; call reset first")

    def _check_writable(self) -> None:
        if self._reading:
            raise MessageNotWriteableError("the body is read-only; clear_body first")

    def read_boolean(self) -> bool:
        """Read a boolean. In a bytes message it takes 1 byte, and any value but 0 is True."""
        return bool(self._read(JmsType.BOOLEAN))

    def read_byte(self) -> int:
        """Read a byte. In a bytes message it is signed."""
        return int(self._read(JmsType.BYTE))

    def read_short(self) -> int:
        """Read a short. In a bytes message it takes 2 bytes, signed."""
        return int(self._read(JmsType.SHORT))

    def read_char(self) -> str:
        """Read a char. In a bytes message it takes 2 bytes, one UTF-16 unit."""
        return str(self._read(JmsType.CHAR))

    def read_int(self) -> int:
        """Read an int. In a bytes message it takes 4 bytes."""
        return int(self._read(JmsType.INT))

    def read_long(self) -> int:
        """Read a long. In a bytes message it takes 8 bytes."""
        return int(self._read(JmsType.LONG))

    def read_float(self) -> float:
        """Read a float. In a bytes message it takes 4 bytes, IEEE 754."""
        return float(self._read(JmsType.FLOAT))

    def read_double(self) -> float:
        """Read a double. In a bytes message it takes 8 bytes, IEEE 754."""
        return float(self._read(JmsType.DOUBLE))

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
        self._write(Int, value)

    def write_long(self, value: int) -> None:
        """Write a long: 8 bytes in a bytes message."""
        self._write(Long, value)

    def write_float(self, value: float) -> None:
        """Write a float, rounded to 32 bits: 4 bytes in a bytes message, IEEE 754."""
        self._write(Float, value)

    def write_double(self, value: float) -> None:
        """Write a double: 8 bytes in a bytes message, IEEE 754."""
        self._write(float, value)
