"""The properties of a message: typed, converted on reading, read-only when received.

Jakarta Messaging 3.1, 3.5 Message properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, overload

from jmsaio.errors import MessageNotWriteableError, UnsupportedOperationError
from jmsaio.model.arguments import check_mapping, check_text, shown
from jmsaio.model.headers import Headers
from jmsaio.model.names import allowed_names, check_property_name
from jmsaio.model.text import convert
from jmsaio.model.values import INT_MAX, INT_MIN, Byte, Float, Long, Short, canonical_property, typed
from jmsaio.model.wire import DELIVERY_COUNT

if TYPE_CHECKING:
    from _typeshed import SupportsKeysAndGetItem

#: Value of a property.
Property = bool | int | float | str | None

#: Classes of values that are stored unchanged; a plain int only if it fits in 32 bits.
_STORED: Final = frozenset({bool, Byte, Short, Long, Float, float, str, type(None)})


class MessageSource(Protocol):
    """Reads headers and properties of the received messages of one consumer from their records on first use."""

    def headers(self, record: Any, /) -> Headers:
        """Return a new Headers; called no more than once per message."""

    def properties(self, record: Any, /) -> dict[str, Property]:
        """Return a new dict of canonical values; called no more than once per message."""

    def property(self, record: Any, name: str, /) -> Property:
        """Return one property, or None; called on each access by the application, but not for JMSX properties."""


class TypedGetters:
    """JMS's getters of properties; a missing one is read as None. JMS decides what converts to what."""

    __slots__ = ()

    def _property(self, name: str) -> Property:
        raise NotImplementedError

    def get_object_property(self, name: str) -> Property:
        """Return a property in the type in which it was set, or None."""
        return self._property(name)

    def _converted(self, name: str, target: type) -> Any:
        return convert(self._property(name), target, name, "property")

    def get_boolean_property(self, name: str) -> bool:
        """Return a property as boolean; False if missing, or a text other than "true". Raises MessageFormatError."""
        return bool(self._converted(name, bool))

    def get_byte_property(self, name: str) -> int:
        """Return a property as byte. Raises MessageFormatError, and NumberFormatError even if missing."""
        return int(self._converted(name, Byte))

    def get_short_property(self, name: str) -> int:
        """Return a property as short. Raises MessageFormatError, and NumberFormatError even if missing."""
        return int(self._converted(name, Short))

    def get_int_property(self, name: str) -> int:
        """Return a property as int. Raises MessageFormatError, and NumberFormatError even if missing."""
        value = self._property(name)
        return value if type(value) is int else int(convert(value, int, name, "property"))

    def get_long_property(self, name: str) -> int:
        """Return a property as long. Raises MessageFormatError, and NumberFormatError even if missing."""
        return int(self._converted(name, Long))

    def get_float_property(self, name: str) -> float:
        """Return a property as float. Raises MessageFormatError, NumberFormatError, NullValueError (if missing)."""
        return float(self._converted(name, Float))

    def get_double_property(self, name: str) -> float:
        """Return a property as double. Raises MessageFormatError, NumberFormatError, NullValueError (if missing)."""
        return float(self._converted(name, float))

    def get_string_property(self, name: str) -> str | None:
        """Return a property as text, in Java's form; None if missing."""
        value: str | None = self._converted(name, str)
        return value


class Properties(TypedGetters):
    """The property part of every message.

    Getters accept the name of any property; a missing one is read as None. They raise MessageFormatError if JMS has no
    conversion. Setters raise IllegalArgumentError for a name that is not allowed, MessageNotWriteableError on a
    received message, MessageFormatError for a value of another type or out of range.
    """

    __slots__ = ("_count", "_properties", "_read_only_properties", "_record", "_source")

    _count: int
    _properties: dict[str, Property] | None
    _read_only_properties: bool
    _record: Any
    _source: MessageSource | None

    def _property_map(self) -> dict[str, Property]:
        properties = self._properties
        if properties is None:
            source = self._source
            if source is None:
                properties = {}
            else:
                properties = source.properties(self._record)
                properties[DELIVERY_COUNT] = self._count
            self._properties = properties
        return properties

    def _property(self, name: str) -> Property:
        """Return one property, or None; read from the record until all properties of a received message are decoded."""
        if type(name) is not str:
            check_text(name, "name")
        properties = self._properties
        if properties is None:
            source = self._source
            if source is not None and not name.startswith("JMSX"):
                return source.property(self._record, name)
            properties = self._property_map()
        return properties.get(name)

    def _one_property(self, name: object) -> Property:
        """Return one property as ``_property`` does. Raises KeyError if it is missing."""
        source = self._source
        if self._properties is not None or source is None or type(name) is not str or name.startswith("JMSX"):
            return self._property_map()[name]  # type: ignore[index]  # other classes are not in it
        found = source.property(self._record, name)
        if found is None:  # on the wire no property is None
            raise KeyError(name)
        return found

    def _writable_properties(self, name: object) -> dict[str, Property]:
        if type(name) is not str or name not in allowed_names:
            check_property_name(name)
        if self._read_only_properties:
            self._check_properties_writable()
        properties = self._properties
        return self._property_map() if properties is None else properties

    def _check_properties_writable(self) -> None:
        if self._read_only_properties:
            raise MessageNotWriteableError("the properties of a received message are read-only; clear_properties first")

    def _put_properties(self, values: Mapping[str, Any]) -> None:
        """Set several properties: all of them, or none if one is refused."""
        if not isinstance(values, dict):
            check_mapping(values, "properties")
        fresh: dict[str, Property] = {}
        for name, value in values.items():
            if name not in allowed_names:
                check_property_name(name)
            kind = type(value)
            if kind in _STORED or (kind is int and INT_MIN <= value <= INT_MAX):
                fresh[name] = value
            else:
                fresh[name] = canonical_property(value, name)
        if self._read_only_properties:
            self._check_properties_writable()
        if self._properties is None and self._source is None:
            self._properties = fresh
        else:
            self._property_map().update(fresh)

    @property
    def properties(self) -> PropertyView:
        """The properties as a mutable mapping with Python values; the wrappers of ``jmsaio`` select other JMS types.

        Assigning a mapping replaces all of them; raises as ``set_object_property``.
        """
        return PropertyView(self)

    @properties.setter
    def properties(self, values: Mapping[str, Property]) -> None:
        self._check_properties_writable()
        check_mapping(values, "properties")
        given, kept = dict(values), self._properties  # a copy, because the values can be the properties of this message
        self._properties = {}
        try:
            self._put_properties(given)
        except BaseException:
            self._properties = kept
            raise

    def property_exists(self, name: str) -> bool:
        """Return whether a property of that name exists, even if its value is None."""
        check_text(name, "name")
        return name in self.properties

    def get_property_names(self) -> list[str]:
        """Return the names of the properties, including JMSX properties but not headers."""
        return list(self._property_map())

    def clear_properties(self) -> None:
        """Remove all properties and make them writable; body and headers are kept."""
        self._properties = {}
        self._read_only_properties = False

    def set_object_property(self, name: str, value: Property) -> None:
        """Set a property in the type of ``value``: bool, int (int or long by size), float (double), str or None.

        The wrappers ``Byte, Short, Int, Long, Float, Double`` select the other types.

        Raises:
            MessageFormatError: a value of another type.
            IllegalArgumentError: a name that is not allowed.
            MessageNotWriteableError: a received message.
        """
        if type(value) not in _STORED and not (type(value) is int and INT_MIN <= value <= INT_MAX):
            writable = self._writable_properties(name)  # a wrong name or state is reported before a wrong value
            writable[name] = canonical_property(value, name)
        else:
            self._writable_properties(name)[name] = value

    def set_boolean_property(self, name: str, value: bool) -> None:
        """Set a boolean. Raises as ``set_object_property``."""
        self._set_property(name, bool, value)

    def set_byte_property(self, name: str, value: int) -> None:
        """Set a byte, -128 to 127. Raises as ``set_object_property``."""
        self._set_property(name, Byte, value)

    def set_short_property(self, name: str, value: int) -> None:
        """Set a short, 16 bits. Raises as ``set_object_property``."""
        self._set_property(name, Short, value)

    def set_int_property(self, name: str, value: int) -> None:
        """Set an int, 32 bits. Raises as ``set_object_property``."""
        self._set_property(name, int, value)

    def set_long_property(self, name: str, value: int) -> None:
        """Set a long, 64 bits. Raises as ``set_object_property``."""
        self._set_property(name, Long, value)

    def set_float_property(self, name: str, value: float) -> None:
        """Set a float, rounded to 32 bits. Raises as ``set_object_property``."""
        self._set_property(name, Float, value)

    def set_double_property(self, name: str, value: float) -> None:
        """Set a double. Raises as ``set_object_property``."""
        self._set_property(name, float, value)

    def set_string_property(self, name: str, value: str | None) -> None:
        """Set a text, or None. Raises as ``set_object_property``."""
        if value is None:
            self._writable_properties(name)[name] = None
        else:
            self._set_property(name, str, value)

    def _set_property(self, name: str, kind: type, value: object) -> None:
        writable = self._writable_properties(name)
        writable[name] = typed(kind, value, name)


class PropertyView(MutableMapping[str, Property]):
    """A message's properties as a mapping. JMS removes all properties or none, so ``del`` is refused."""

    __slots__ = ("_message",)

    def __init__(self, message: Properties) -> None:
        self._message = message

    def __getitem__(self, name: str) -> Property:
        return self._message._one_property(name)

    def __setitem__(self, name: str, value: Property) -> None:
        self._message.set_object_property(name, value)

    def __delitem__(self, name: str) -> NoReturn:
        raise UnsupportedOperationError(
            f"a single property can't be removed ({shown(name)}); clear_properties removes all"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._message._property_map())

    def __len__(self) -> int:
        return len(self._message._property_map())

    @overload
    def update(self, other: SupportsKeysAndGetItem[str, Property], /, **more: Property) -> None: ...
    @overload
    def update(self, other: Iterable[tuple[str, Property]] = (), /, **more: Property) -> None: ...
    def update(self, other: Any = (), /, **more: Property) -> None:
        """Set several properties: all of them, or none if one is refused. Raises as ``set_object_property``."""
        if type(other) is not dict or more:
            other = dict(other, **more)
        self._message._put_properties(other)

    def clear(self) -> None:
        """Remove all properties; see ``clear_properties``."""
        self._message.clear_properties()

    def __repr__(self) -> str:
        return repr(self._message._property_map())
