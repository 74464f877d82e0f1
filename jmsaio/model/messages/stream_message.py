"""StreamMessage: a sequence of values with JMS types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from jmsaio.errors import MessageEOFError, MessageFormatError
from jmsaio.model.arguments import wrong_type
from jmsaio.model.conversion import convert_body
from jmsaio.model.messages.message import MessageSource, Property
from jmsaio.model.messages.sequential import SequentialMessage
from jmsaio.model.typed import cut, typed, writable_bytes
from jmsaio.model.values import JmsType, Value, canonical


class StreamMessage(SequentialMessage):
    """A message with a sequence of values: write-only when new, read-only after ``reset`` and when received.

    The reads convert as described in ``model.conversion``, and raise its errors.

    Args:
        values: initial values; more can be appended.
        properties: as for ``Message``.
    """

    __slots__ = ("_offset",)
    KIND: ClassVar[str] = "stream"
    _EMPTY = list
    _content: list[Value]
    _offset: int

    def __init__(self, values: Iterable[object] = (), *, properties: Mapping[str, Property] | None = None) -> None:
        if isinstance(values, str | bytes | bytearray | memoryview):  # each would be split into its elements
            raise MessageFormatError(f"a stream message holds a list of values, not one {type(values).__name__}")
        if not isinstance(values, Iterable):
            raise wrong_type(values, "values", "a list or another iterable of values")
        super().__init__([canonical(value, "stream") for value in values], properties)
        self._offset = -1

    @classmethod
    def _received(cls, source: MessageSource, record: Any, body: Any) -> Self:
        message = super()._received(source, record, body)
        message._offset = -1
        return message

    def reset(self) -> None:
        """Make the body read-only and move to its start."""
        super().reset()
        self._offset = -1

    def clear_body(self) -> None:
        """Remove the values and make the body write-only."""
        super().clear_body()
        self._offset = -1

    def is_body_assignable_to(self, body_type: type) -> bool:
        """Return False: a stream has no body type."""
        return False

    def _current(self) -> Value:
        if not self._reading:
            self._check_readable()
        if self._position >= len(self._content):
            raise MessageEOFError("the stream message has no more values")
        return self._content[self._position]

    def _next(self) -> Value:
        value = self._current()
        if self._offset >= 0:
            raise MessageFormatError("a bytes value is partly read; read_bytes until it returns less than the buffer")
        return value

    def _read(self, target: JmsType) -> Any:
        value = convert_body(self._next(), target, f"number {self._position + 1} of the stream")
        self._position += 1
        return value

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
