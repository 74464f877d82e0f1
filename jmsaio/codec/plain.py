"""Creates records of texts or bytes that are sent without a message: the fast path of most sends.

The record equals that of ``encode`` for a new TextMessage or BytesMessage with these properties. The message is
omitted: the caller never has it, so it has no headers except those of the stamp, none to be written back, and no state
to check. Everything that is not plain, and everything that ``encode`` refuses, is left to the general path, which
raises the errors.

Properties are checked and written in one pass, as a map or packed, whichever the transport requests. Recurring parts
are cached: by name for the process; by the caller, for one millisecond, the wire form of a stamp without an id, before
and after the id (``PlainWriter.parts`` and ``write``). A map is created with the count of its characters, from which
the transport computes the size of the record: the lengths are known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import attrs

from jmsaio.codec.bodies import encode_body
from jmsaio.codec.encode import Stamp, encode, stamped
from jmsaio.codec.properties import HIDDEN, MARKS, remember
from jmsaio.errors import IllegalArgumentError
from jmsaio.model.messages.message import Message
from jmsaio.model.names import check_property_name
from jmsaio.model.packed import pack, pack_name, pack_value
from jmsaio.model.text import to_java
from jmsaio.model.values import INT_MAX, INT_MIN
from jmsaio.model.wire import (
    CONNECTION_ID,
    DELIVERY_TIME,
    GROUP_ID,
    MESSAGE_ID,
    MESSAGE_TYPE,
    TYPE_SUFFIX,
    OutgoingRecord,
    PackedRecord,
)

Written = TypeVar("Written")
Parts = TypeVar("Parts")

#: Properties, and the total length of all names and values.
Counted = tuple[dict[str, str], int]
#: Parts of a stamp that many records share: its properties before and after the id, the total length of both, event
#: time, delivery time, priority and sticky key.
MapParts = tuple[dict[str, str], dict[str, str], int, int, int | None, int, int | None]
#: The same with packed properties, without their length.
PackedParts = tuple[bytes, bytes, int, int | None, int, int | None]

#: Name of a property to the name of its mark; "" for the group, which is the record's key.
_PLAIN: Final[dict[str, str]] = {}


class _Heads(dict[int, bytes]):
    """Bytes before the value in a packed property of one name, by the length of the value; created when missing."""

    def __init__(self, name: str) -> None:
        self._packed_name = pack_name(name)

    def __missing__(self, length: int) -> bytes:
        packed = pack_value(self._packed_name, bytes(length))
        head = packed[: len(packed) - length]
        if length <= _LONGEST_KEPT:
            self[length] = head
        return head


#: Maximum length of a value whose head is cached.
_LONGEST_KEPT: Final = 127
#: The heads of a property, and its packed marks by class of the value.
_Names = tuple[_Heads, dict[type, bytes]]
#: Heads and marks by the name of a property.
_PACKED: Final[dict[str, _Names]] = {}
_WORDS: Final = {**MARKS, int: "int"}
_ID: Final = _Heads(MESSAGE_ID)
_LENGTH_OF_ID: Final = len(MESSAGE_ID)


def plain_properties(given: Mapping[str, object]) -> Counted | None:
    """Return the record's properties for those of an application.

    Returns:
        Texts and marks as on the wire, and their total length; None if the general path has to be used.
    """
    if type(given) is not dict:
        return None
    known = _PLAIN.get
    wire: dict[str, str] = {}
    characters = 0
    for name, value in given.items():
        mark = known(name) if type(name) is str else ""
        if mark is None:
            mark = _mark(name)
        if not mark:
            return None
        kind = type(value)
        if kind is str:
            if not value.isascii():
                return None
            wire[name] = value
            characters += len(name) + len(value)
        elif kind is int:
            if not INT_MIN <= value <= INT_MAX:
                return None
            wire[name] = text = str(value)
            wire[mark] = "int"
            characters += len(name) + len(text) + len(mark) + 3
        elif value is not None:
            word = MARKS.get(kind)
            if word is None:
                return None
            wire[name] = text = to_java(value)
            wire[mark] = word
            characters += len(name) + len(text) + len(mark) + len(word)
    return wire, characters


def packed_properties(given: Mapping[str, object]) -> bytes | None:
    """Return the record's packed properties for those of an application.

    Returns:
        Texts and marks, see ``jmsaio.model.packed``; None if the general path has to be used.
    """
    if type(given) is not dict:
        return None
    known = _PACKED.get
    packed: list[bytes] = []
    for name, value in given.items():
        names = known(name) if type(name) is str else None
        if names is None:
            names = _names(name)
            if names is None:
                return None
        heads, marks = names
        kind = type(value)
        if kind is str:
            if not value.isascii():
                return None
            text = value.encode()
            packed += heads[len(text)], text
        elif kind is int:
            if not INT_MIN <= value <= INT_MAX:
                return None
            text = b"%d" % value
            packed += heads[len(text)], text, marks[int]
        elif value is not None:
            mark = marks.get(kind)
            if mark is None:
                return None
            text = to_java(value).encode()
            packed += heads[len(text)], text, mark
    return b"".join(packed)


def plain_parts(kind: str, stamp: Stamp) -> MapParts:
    """Return the parts of a stamp without an id; ``kind`` is the message's kind on the wire."""
    behind = stamped(kind, stamp)
    characters = sum(len(name) + len(value) for name, value in behind.items())
    before = {name: behind.pop(name) for name in (MESSAGE_TYPE, CONNECTION_ID, DELIVERY_TIME)}
    return before, behind, characters, stamp.event_time, stamp.deliver_at, stamp.priority, stamp.sticky_key


def packed_parts(kind: str, stamp: Stamp) -> PackedParts:
    """Return the parts of a stamp without an id, its properties packed."""
    before, behind, _, event_time, deliver_at, priority, sticky = plain_parts(kind, stamp)
    return pack(before), pack(behind), event_time, deliver_at, priority, sticky


def write_plain(payload: bytes, parts: MapParts, own_id: str | None, properties: Counted) -> OutgoingRecord:
    """Create the record of a payload from its stamp's parts, its id, or None, and the application's properties."""
    before, behind, characters, event_time, deliver_at, priority, sticky = parts
    wire = before.copy()
    if own_id is not None:
        wire[MESSAGE_ID] = own_id
        characters += _LENGTH_OF_ID + len(own_id)
    if behind:
        wire |= behind
    given, more = properties
    if more:
        wire |= given
        characters += more
    return OutgoingRecord(payload, wire, None, event_time, deliver_at, priority, sticky, None, characters)


def write_packed(payload: bytes | None, parts: PackedParts, own_id: str | None, properties: bytes) -> PackedRecord:
    """Create the record of a payload from its stamp's parts, its id, or None, and packed properties."""
    before, behind, event_time, deliver_at, priority, sticky = parts
    if own_id is None:
        packed = b"".join((before, behind, properties))
    else:
        text = own_id.encode()
        packed = b"".join((before, _ID[len(text)], text, behind, properties))
    return PackedRecord(payload, packed, None, event_time, deliver_at, priority, sticky)


@lru_cache(maxsize=32)
def _shared_parts(kind: str, headers: tuple[Any, ...]) -> PackedParts:
    """Return ``packed_parts`` of a stamp's values behind the id: the sends of one millisecond have the same."""
    return packed_parts(kind, Stamp(None, *headers))


def encode_packed(message: Message, stamp: Stamp) -> OutgoingRecord:
    """Return the record of ``encode``, packed at once if the message has plain properties and no headers of its own."""
    values = message._property_map()
    properties = packed_properties(values) if values else b""
    if properties is None or message._head is not None or message._source is not None:
        return encode(message, stamp)
    more: dict[str, str] = {}
    payload = encode_body(message.KIND, message._body(), more)
    parts = _shared_parts(message.KIND, stamp[1:])
    return write_packed(payload, parts, stamp.message_id, properties + pack(more) if more else properties)


@attrs.frozen
class PlainWriter(Generic[Written, Parts]):
    """Functions that write plain bodies for one kind of transport.

    Attributes:
        none: result of ``properties`` without properties.
        properties: converts an application's properties, see ``plain_properties``.
        parts: returns the parts of a stamp that many records share, see ``plain_parts``.
        write: creates a record with such parts, see ``write_plain``.
        encode: creates the record of a message, see ``encode``.
    """

    none: Written
    properties: Callable[[Mapping[str, object]], Written | None]
    parts: Callable[[str, Stamp], Parts]
    write: Callable[[bytes, Parts, str | None, Written], OutgoingRecord]
    encode: Callable[[Message, Stamp], OutgoingRecord]


MAPS: Final[PlainWriter[Counted, MapParts]] = PlainWriter(({}, 0), plain_properties, plain_parts, write_plain, encode)
PACKED: Final[PlainWriter[bytes, PackedParts]] = PlainWriter(
    b"", packed_properties, packed_parts, write_packed, encode_packed
)


def _mark(name: str) -> str:
    """Return the name of a property's mark, "" if the general path has to be used."""
    if name in HIDDEN:
        return ""
    try:
        check_property_name(name)
        name.encode()
    except (IllegalArgumentError, UnicodeEncodeError):
        return ""
    return remember(_PLAIN, name, "" if name == GROUP_ID else name + TYPE_SUFFIX)


def _names(name: object) -> _Names | None:
    """Return the packed name of a property and its marks, None if the general path has to be used."""
    mark = _mark(name) if type(name) is str else ""
    if not mark or type(name) is not str:
        return None
    packed_mark = pack_name(mark)
    made = _Heads(name), {kind: pack_value(packed_mark, word.encode()) for kind, word in _WORDS.items()}
    if name in _PLAIN:  # within the bounds of the cache
        _PACKED[name] = made
    return made
