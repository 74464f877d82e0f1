"""Names: Java identifiers for properties and selectors, and the names of map entries.

Jakarta Messaging 3.1, 3.5.1 Property names; 3.8.1.1 Message selector syntax.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from jmsaio.errors import IllegalArgumentError
from jmsaio.model.arguments import WIDTH, check_text, shown, wrong_type
from jmsaio.model.headers import NOT_PROPERTIES
from jmsaio.model.wire import TYPE_SUFFIX, TYPE_SUFFIX_READ

#: Words of the selector language, in any letter case; never a property name.
RESERVED_WORDS: Final = frozenset(
    {"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"}
)
_START: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"})
_PART: Final = _START | {"Nd", "Mn", "Mc", "Cf"}


def is_identifier_start(character: str) -> bool:
    return unicodedata.category(character) in _START


def is_identifier_part(character: str) -> bool:
    if unicodedata.category(character) in _PART:
        return True
    code = ord(character)
    return code <= 0x08 or 0x0E <= code <= 0x1B or 0x7F <= code <= 0x9F


#: Cache of names known to be allowed, bounded; setters check it first, because a set is much faster than the rules.
allowed_names: Final[set[str]] = set()
_MOST_REMEMBERED: Final = 4096


def _property_name_problem(name: str) -> str | None:
    if not name:
        return "is empty"
    if name in NOT_PROPERTIES:
        return "is that of a header; use the header's own attribute"
    if name.endswith((TYPE_SUFFIX, TYPE_SUFFIX_READ)):
        return "has the ending that marks a property's type on the wire"
    if name.upper() in RESERVED_WORDS:
        return "is a word of the selector language"
    if not is_identifier_start(name[0]) or not all(map(is_identifier_part, set(name))):
        return "is not an identifier (letters, digits, _ and $, not a digit first)"
    return None


def check_property_name(name: object) -> None:
    if not isinstance(name, str):
        raise wrong_type(name, "the property name", "a text")
    problem = _property_name_problem(name)
    if problem is not None:
        raise IllegalArgumentError(f"the property name {shown(name)} {problem}")
    if len(allowed_names) < _MOST_REMEMBERED and len(name) <= WIDTH:
        allowed_names.add(name)


def check_map_name(name: object) -> None:
    check_text(name, "the name of a map entry")
    if not name:
        raise IllegalArgumentError("the name of a map entry must not be empty")
