"""MapMessage: named values with JMS types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, ClassVar

from jmsaio.errors import UnsupportedOperationError
from jmsaio.model.arguments import check_mapping, check_text, shown
from jmsaio.model.messages.message import Message, Property
from jmsaio.model.names import check_map_name
from jmsaio.model.text import convert
from jmsaio.model.values import Byte, Char, Float, Long, Short, Value, canonical, cut, is_kind, typed


class MapMessage(Message, MutableMapping[str, Any]):
    """A message with named values. It is itself a mapping: ``message["name"]``, ``dict(message)``.

    Args:
        mapping: initial values; their types are inferred as for properties, with Char and bytes in addition.
        properties: as for ``Message``.

    Raises:
        MessageFormatError: a value without JMS type.
        IllegalArgumentError: an empty name.
    """

    __slots__ = ()
    KIND: ClassVar[str] = "map"
    _EMPTY = dict
    _content: dict[str, Value]

    def __init__(
        self, mapping: Mapping[str, Any] | None = None, *, properties: Mapping[str, Property] | None = None
    ) -> None:
        super().__init__(properties=properties)
        self._content = self._EMPTY()
        if mapping is not None:
            check_mapping(mapping, "mapping")
            for name, value in mapping.items():
                self.set_object(name, value)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __getitem__(self, name: str) -> Any:
        return self._content[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.set_object(name, value)

    def __delitem__(self, name: str) -> None:
        raise UnsupportedOperationError(f"a single entry can't be removed ({shown(name)}); clear_body removes all")

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __bool__(self) -> bool:
        return True

    def clear(self) -> None:
        """Remove all entries; see ``clear_body``."""
        self.clear_body()

    def get_map_names(self) -> list[str]:
        """Return the names of all entries."""
        return list(self._content)

    def item_exists(self, name: str) -> bool:
        """Return whether an entry of that name exists, even if its value is None."""
        check_text(name, "name")
        return name in self._content

    def get_object(self, name: str) -> Any:
        """Return a value in the type in which it was set, or None."""
        check_text(name, "name")
        return self._content.get(name)

    def _get(self, name: str, target: type) -> Any:
        check_text(name, "name")
        return convert(self._content.get(name), target, name)

    def get_boolean(self, name: str) -> bool:
        """Return a value as boolean; False if missing.

        These getters raise MessageFormatError, NumberFormatError and NullValueError as those of properties do.
        """
        return bool(self._get(name, bool))

    def get_byte(self, name: str) -> int:
        """Return a value as byte."""
        return int(self._get(name, Byte))

    def get_short(self, name: str) -> int:
        """Return a value as short."""
        return int(self._get(name, Short))

    def get_char(self, name: str) -> str:
        """Return a value as char."""
        return str(self._get(name, Char))

    def get_int(self, name: str) -> int:
        """Return a value as int."""
        return int(self._get(name, int))

    def get_long(self, name: str) -> int:
        """Return a value as long."""
        return int(self._get(name, Long))

    def get_float(self, name: str) -> float:
        """Return a value as float."""
        return float(self._get(name, Float))

    def get_double(self, name: str) -> float:
        """Return a value as double."""
        return float(self._get(name, float))

    def get_string(self, name: str) -> str | None:
        """Return a value as text, None if missing."""
        value: str | None = self._get(name, str)
        return value

    def get_bytes(self, name: str) -> bytes | None:
        """Return a value as bytes, None if missing."""
        value: bytes | None = self._get(name, bytes)
        return value

    def set_object(self, name: str, value: Any) -> None:
        """Set a value in its own type.

        Raises:
            MessageFormatError: a value without JMS type.
            IllegalArgumentError: an empty name.
            MessageNotWriteableError: a received message.
        """
        check_map_name(name)
        self._check_body_writable()
        self._content[name] = canonical(value, name)

    def _set(self, name: str, kind: type, value: Any) -> None:
        check_map_name(name)
        self._check_body_writable()
        self._content[name] = typed(kind, value, name)

    def set_boolean(self, name: str, value: bool) -> None:
        """Set a boolean. These setters raise as ``set_object``, and MessageFormatError if the value is out of range."""
        self._set(name, bool, value)

    def set_byte(self, name: str, value: int) -> None:
        """Set a byte."""
        self._set(name, Byte, value)

    def set_short(self, name: str, value: int) -> None:
        """Set a short."""
        self._set(name, Short, value)

    def set_char(self, name: str, value: str) -> None:
        """Set a char."""
        self._set(name, Char, value)

    def set_int(self, name: str, value: int) -> None:
        """Set an int."""
        self._set(name, int, value)

    def set_long(self, name: str, value: int) -> None:
        """Set a long."""
        self._set(name, Long, value)

    def set_float(self, name: str, value: float) -> None:
        """Set a float, rounded to 32 bits."""
        self._set(name, Float, value)

    def set_double(self, name: str, value: float) -> None:
        """Set a double."""
        self._set(name, float, value)

    def set_string(self, name: str, value: str | None) -> None:
        """Set a text, or None."""
        if value is None:
            self.set_object(name, None)  # a String is the only typed value that can be null
        else:
            self._set(name, str, value)

    def set_bytes(
        self, name: str, value: bytes | bytearray | memoryview | None, offset: int = 0, length: int | None = None
    ) -> None:
        """Set a copy of bytes, or of ``length`` of them from ``offset``. Raises IndexError out of bounds."""
        check_map_name(name)
        self._check_body_writable()
        self._content[name] = None if value is None else cut(value, offset, length)

    def _body_copy(self) -> dict[str, Value] | None:
        return dict(self._content) if self._content else None

    def is_body_assignable_to(self, body_type: type) -> bool:
        """Return True for dict, mappings and object, and for any type if there are no entries."""
        return not self._content or is_kind(dict, body_type)
