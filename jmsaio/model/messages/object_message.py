"""ObjectMessage and JavaObject. Neither pickle nor Java's deserialization is ever used."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from jmsaio.errors import MessageFormatError
from jmsaio.model.arguments import check_text, wrong_type
from jmsaio.model.messages.message import Message, Property
from jmsaio.model.values import Byte, Char, Double, Float, Int, Long, Short, canonical, is_kind

#: Maximum nesting of lists and dicts.
MAX_DEPTH = 100
_WRAPPERS = (Byte, Short, Int, Long, Float, Double, Char)


@attrs.frozen
class JavaObject:
    """A received Java object, never deserialized.

    Attributes:
        class_name: name of its class, from the stream.
        data: the complete serialization stream.
    """

    class_name: str
    data: bytes = attrs.field(repr=False)

    def __attrs_post_init__(self) -> None:
        check_text(self.class_name, "class_name")
        if not isinstance(self.data, bytes):
            raise wrong_type(self.data, "data", "bytes")


def snapshot(value: Any) -> Any:
    """Copy a value that an object message can hold: bytes, JavaObject, JMS values, or JSON-serializable values."""
    if isinstance(value, JavaObject):
        return value
    if value is None or isinstance(value, bool | int | float | str | bytes | bytearray | memoryview):
        return canonical(value, "object")
    _check_json(value, 0)
    return json.loads(json.dumps(value))


def _check_json(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise MessageFormatError(f"an object message holds lists and dicts nested up to {MAX_DEPTH} deep")
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, _WRAPPERS)):
        if isinstance(value, int):
            canonical(value, "object")  # refuses an int that does not fit in a long, as everywhere else
        return
    if isinstance(value, list | tuple):
        for item in value:
            _check_json(item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise MessageFormatError(f"an object message takes dicts with text keys, not {type(key).__name__}")
            _check_json(item, depth + 1)
    else:
        raise MessageFormatError(
            f"an object message holds bytes or JSON-able values, not {type(value).__name__}; convert it to bytes"
        )


def is_shallow(value: Any) -> bool:
    """Return whether lists and dicts are nested shallowly enough to copy and write the value."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH + 2):
        if not level:
            return True
        level = inner_containers(level)
    return False


def inner_containers(level: list[Any]) -> list[Any]:
    """Return the lists and dicts in the lists and dicts of ``level``."""
    return [
        inner
        for item in level
        for inner in (item.values() if isinstance(item, dict) else item)
        if isinstance(inner, (dict, list))
    ]


class ObjectMessage(Message):
    """A message with an object: bytes, a JMS value, or a JSON-serializable value; JavaObject if Java sent it.

    The value is copied when it is set and when it is read, so later changes have no effect.

    Args:
        value: the object, or None.
        properties: as for ``Message``.
    """

    __slots__ = ()
    KIND: ClassVar[str] = "object"

    def __init__(self, value: Any = None, *, properties: Mapping[str, Property] | None = None) -> None:
        super().__init__(properties=properties)
        self._content = snapshot(value)

    def get_object(self) -> Any:
        """Return a copy of the object, or None."""
        return self._body_copy()

    def set_object(self, value: Any) -> None:
        """Set the object. Raises MessageFormatError, MessageNotWriteableError."""
        self._check_body_writable()
        self._content = snapshot(value)

    object = property(get_object, set_object, doc="The object; reading gives a copy.")

    def _body_copy(self) -> Any:
        value = self._content
        return copy.deepcopy(value) if isinstance(value, list | dict) else value

    def is_body_assignable_to(self, body_type: type) -> bool:
        """Return True for the object's class and its base classes, and for any type if there is no object."""
        return self._content is None or is_kind(type(self._content), body_type)
