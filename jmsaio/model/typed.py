"""Checks and conversions of values for setters that name a type."""

from __future__ import annotations

from typing import Any

from jmsaio.errors import MessageFormatError, NullValueError
from jmsaio.model.arguments import shown, with_article, wrong_type
from jmsaio.model.values import Int


def typed(kind: type, value: Any, name: str) -> Any:
    """Convert ``value`` to the canonical form of a JMS type.

    Args:
        kind: bool, str, float, or one of the wrappers in ``model.values``.
        value: the application's value.
        name: the value's name, for the error.

    Raises:
        MessageFormatError: the value is of another type, or out of range.
        NullValueError: None for a type that has no null.
    """
    if value is None:
        raise NullValueError(f"{shown(name)} can't be None as {kind.__name__.lower()}")
    try:
        if kind is bool or kind is str:
            if not isinstance(value, kind):
                raise TypeError(f"needs {with_article(kind.__name__)}, not {type(value).__name__} {shown(value)}")
            return value if type(value) is kind else str.__str__(value)
        if isinstance(value, bool):
            raise TypeError(f"needs a number, not a bool: {shown(value)}")
        if kind is float:
            if not isinstance(value, int | float):
                raise TypeError(f"needs a number, not {type(value).__name__} {shown(value)}")
            return float(value)
        made = kind(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise MessageFormatError(f"{shown(name)}: {error}") from error
    return int(made) if kind is Int else made


def cut(value: object, offset: int, length: int | None) -> bytes:
    """Copy ``length`` bytes of ``value`` from ``offset``; without ``length`` up to its end.

    Raises:
        MessageFormatError: ``value`` is not bytes.
        IllegalArgumentTypeError: an offset or length that is not an int.
        IndexError: the part is not inside of ``value`` (IndexOutOfBoundsException).
    """
    if not isinstance(value, bytes | bytearray | memoryview):
        raise MessageFormatError(f"the data or value must be bytes, not {type(value).__name__}")
    data = bytes(value)
    for argument, number in (("offset", offset), ("length", 0 if length is None else length)):
        if not isinstance(number, int) or isinstance(number, bool):
            raise wrong_type(number, argument, "an int")
    size = len(data) - offset if length is None else length
    if offset < 0 or size < 0 or offset + size > len(data):
        raise IndexError(f"offset {offset} and length {length} are outside {len(data)} bytes")
    return data[offset : offset + size]


def writable_bytes(buffer: Any) -> memoryview:
    """Return a writable view of the bytes of a buffer.

    Raises:
        NullValueError: None.
        TypeError: not a buffer of bytes, or a read-only one.
    """
    if buffer is None:
        raise NullValueError("read_bytes needs a buffer, not None")
    try:
        view = memoryview(buffer).cast("B")
    except TypeError:
        raise wrong_type(buffer, "buffer", "a bytearray, or another buffer of bytes") from None
    if view.readonly:
        raise wrong_type(buffer, "buffer", "one that can be written, such as a bytearray")
    return view


def is_kind(kind: type, body_type: object) -> bool:
    """Return whether ``body_type`` is a class with ``kind`` as a subclass; False for anything that is not a class."""
    try:
        return isinstance(body_type, type) and issubclass(kind, body_type)
    except TypeError:  # a protocol that can't be checked
        return False
