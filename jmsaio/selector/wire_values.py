"""Values of names: from a record's raw properties, a mapping, or a Message.

The compiled function reads raw properties itself if possible; the functions here handle all other cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final

from jmsaio.errors import MessageFormatError
from jmsaio.model.headers import FIELDS, FOR_SELECTORS, JMSX, Header, Headers
from jmsaio.model.messages.message import Message
from jmsaio.model.text import parse_wire
from jmsaio.model.values import Byte, Float, Long, Short, canonical_property
from jmsaio.selector.numbers import MISMATCH

#: Properties that the provider sets for each delivery; on a record they are read as headers are.
PROVIDED: Final = frozenset(JMSX)

Get = Callable[[str], object]


def typed(get: Callable[[str], str | None], text: str, mark: str, old_mark: str) -> object:
    """Convert a raw property by its type mark; None (so UNKNOWN) if the text is not a number of that type.

    Args:
        get: looks up a property of the record.
        text: the property's text.
        mark: name of the property with the type, in Starlight's spelling, which takes precedence.
        old_mark: its name in the documented spelling.
    """
    name = get(mark)
    if name is None:
        name = get(old_mark)
        if name is None:
            return text
    if name == "int" and len(text) < 10 and text.isdecimal():
        return int(text)
    try:
        return parse_wire(text, name)
    except MessageFormatError:
        return None


def load(get: Callable[[str], str | None], name: str, mark: str, old_mark: str) -> object:
    """Look up a property and convert it as `typed`; None if it is missing."""
    text = get(name)
    return None if text is None else typed(get, text, mark, old_mark)


def plain(value: object) -> object:
    """Convert a caller's value to a canonical one: subclasses to their base; MISMATCH unless a JMS property value."""
    kind = type(value)
    if value is None or kind in _CANONICAL:
        return value
    try:
        return canonical_property(value)
    except MessageFormatError:
        return MISMATCH


_CANONICAL: Final = frozenset({bool, str, Byte, Short, Long, Float, float})


def of_mapping(mapping: Mapping[str, object]) -> tuple[Get, Get]:
    """Return look-ups of properties and of headers in a mapping that has both under their JMS names."""

    def header(name: str) -> object:
        value, convert = mapping.get(name), _CONVERTERS.get(name)
        return value if convert is None else convert(value)

    return mapping.get, header


def of_message(message: Message) -> tuple[Get, Get]:
    """Return look-ups of properties and of headers of a message."""

    def header(name: str) -> object:
        return _READERS[name](message._headers())

    return message._property_map().get, header


def _reader(header: Header) -> Callable[[Headers], object]:
    read, convert = attrgetter(header.field), FOR_SELECTORS.get(header.holds)
    return read if convert is None else lambda head: convert(read(head))


_CONVERTERS: Final = {each.name: FOR_SELECTORS[each.holds] for each in FIELDS if each.holds in FOR_SELECTORS}
_READERS: Final = {each.name: _reader(each) for each in FIELDS if each.selectable}
#: Headers that selectors can use.
HEADERS: Final = frozenset(_READERS)
