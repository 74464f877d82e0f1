"""Encodes a message and the stamp of its send as a Pulsar record, and writes the stamp to the sender's object.

``encode`` handles every message. A ``PlainWriter`` writes the same record for a text or bytes that is sent without a
message, which most sends are, as a map or packed, whichever the transport requests; it declines whatever is not plain.
Recurring parts are cached: by name for the process; by the caller, for one millisecond, the wire form of a stamp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

import attrs

from jmsaio.codec import bodies, headers, properties
from jmsaio.codec.properties import HIDDEN, MARKS, remember
from jmsaio.codec.schemas.writing import SchemaWriter
from jmsaio.errors import IllegalArgumentError
from jmsaio.model.destinations import Destination
from jmsaio.model.headers import Headers
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
    TRANSACTION,
    TYPE_SUFFIX,
    OutgoingRecord,
    PackedRecord,
)


class Stamp(NamedTuple):
    """The headers that the provider sets (Jakarta Messaging 3.1, 3.4.11 How message header values are set).

    A named tuple, because every send creates one. Times are milliseconds since the epoch: JMSTimestamp on the sender's
    message and for receivers (both 0 if disabled), JMSDeliveryTime, and the earliest delivery by the broker (None
    without delay). ``sticky_key`` is JMSTX of a transacted session with sticky partitions; ``system_namespace`` is the
    ``tenant/namespace`` of a JMSReplyTo without one.
    """

    message_id: str | None
    connection_id: str
    timestamp: int
    event_time: int
    delivery_time: int
    deliver_at: int | None = None
    expiration: int = 0
    priority: int = 4
    delivery_mode: int = 2
    sticky_key: int | None = None
    system_namespace: str = "public/default"


def stamped(kind: str, stamp: Stamp) -> dict[str, str]:
    """Return the record's properties that result from a stamp and the kind of its message.

    JMSMessageId is always written unless the stamp has none, and JMSDeliveryTime includes the delay: in both points
    Java's client deviates from the JMS rules, but can read them.
    """
    own_id, connection, _, _, delivery_time, _, expiration, priority, mode, sticky, _ = stamp
    wire = {MESSAGE_TYPE: kind, CONNECTION_ID: connection, DELIVERY_TIME: str(delivery_time)}
    if own_id is not None:
        wire[MESSAGE_ID] = own_id
    if priority != 4 or mode != 2 or expiration:
        headers.write_delivery(priority, mode, expiration, wire)
    if sticky is not None:
        wire[TRANSACTION] = str(sticky)
    return wire


def encode(message: Message, stamp: Stamp, schema: SchemaWriter | None = None) -> OutgoingRecord:
    """Create the record of a message. The message can be changed right afterwards.

    A property that is None is omitted, because Pulsar has no such value. With the producer's ``schema``
    JMSPulsarMessageType is omitted, unless the body is a text: a JMS client that does not use schemas reads bytes.
    Raises MessageFormatError for what the layout can't hold.
    """
    kind = message.KIND
    wire = stamped(kind, stamp)
    # Unpacked at once, which is cheaper than reading five attributes.
    _, _, _, event_time, _, deliver_at, _, priority, _, sticky, namespace = stamp
    head = message._head
    if head is not None or message._source is not None:
        headers.write(head or message._headers(), namespace, wire)
    key = None
    values = message._property_map()
    if values:
        properties.write(values, wire)
        if GROUP_ID in values:
            key = _key(values[GROUP_ID])
    body = message._body()
    if schema is not None:
        payload = None if body is None else schema.write(body)
        if not schema.jms:
            del wire[MESSAGE_TYPE]
    elif kind == "text":  # as ``encode_body``, without its look-up: most bodies are texts
        payload = None if body is None else bodies.encode_text(body)
    else:
        payload = bodies.encode_body(kind, body, wire)
    return OutgoingRecord(payload, wire, key, event_time, deliver_at, priority, sticky)


def _key(group: bool | int | float | str | None) -> str | None:
    return None if group is None else to_java(group) or None


def with_sticky_key(record: OutgoingRecord, sticky_key: int) -> OutgoingRecord:
    """Return the record for another transaction: its stamp's transaction ended while the send waited."""
    properties = {**record.properties, TRANSACTION: str(sticky_key)}
    return OutgoingRecord(
        record.payload, properties, record.key, record.event_time, record.deliver_at, record.priority, sticky_key
    )


def stamp_sent(message: Message, stamp: Stamp, destination: Destination) -> None:
    """Write the headers of a send's stamp to the object that was passed to send; everything else is unchanged."""
    own_id, _, timestamp, _, delivery_time, _, expiration, priority, mode, _, _ = stamp
    head = message._head if message._source is None else message._headers()
    own = () if head is None else (head.correlation_id, head.reply_to, head.type)
    message._head = Headers(destination, mode, own_id, timestamp, expiration, delivery_time, priority, *own)


Written = TypeVar("Written")
Parts = TypeVar("Parts")

#: Properties, and the total length of all names and values.
Counted = tuple[dict[str, str], int]
#: Parts of a stamp that many records share: its properties before and after the id, the total length of both, event
#: time, delivery time, priority and sticky key.
MapParts = tuple[dict[str, str], dict[str, str], int, int, int | None, int, int | None]
#: ``MapParts`` with packed properties, without their length.
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
    """Return an application's properties as texts and marks on the wire; None requires the general path."""
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
    """Return what ``plain_properties`` does, packed as ``jmsaio.model.packed`` describes."""
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
    after = stamped(kind, stamp)
    characters = sum(len(name) + len(value) for name, value in after.items())
    before = {name: after.pop(name) for name in (MESSAGE_TYPE, CONNECTION_ID, DELIVERY_TIME)}
    return before, after, characters, stamp.event_time, stamp.deliver_at, stamp.priority, stamp.sticky_key


def packed_parts(kind: str, stamp: Stamp) -> PackedParts:
    before, after, _, event_time, deliver_at, priority, sticky = plain_parts(kind, stamp)
    return pack(before), pack(after), event_time, deliver_at, priority, sticky


def write_plain(payload: bytes, parts: MapParts, own_id: str | None, properties: Counted) -> OutgoingRecord:
    before, after, characters, event_time, deliver_at, priority, sticky = parts
    wire = before.copy()
    if own_id is not None:
        wire[MESSAGE_ID] = own_id
        characters += _LENGTH_OF_ID + len(own_id)
    if after:
        wire |= after
    given, more = properties
    if more:
        wire |= given
        characters += more
    return OutgoingRecord(payload, wire, None, event_time, deliver_at, priority, sticky, None, characters)


def write_packed(payload: bytes, parts: PackedParts, own_id: str | None, properties: bytes) -> PackedRecord:
    before, after, event_time, deliver_at, priority, sticky = parts
    if own_id is None:
        packed = b"".join((before, after, properties))
    else:
        text = own_id.encode()
        packed = b"".join((before, _ID[len(text)], text, after, properties))
    return PackedRecord(payload, packed, None, event_time, deliver_at, priority, sticky)


@attrs.frozen
class PlainWriter(Generic[Written, Parts]):
    """Functions that write plain bodies for one kind of transport; ``none`` is ``properties`` of no properties."""

    none: Written
    properties: Callable[[Mapping[str, object]], Written | None]
    parts: Callable[[str, Stamp], Parts]
    write: Callable[[bytes, Parts, str | None, Written], OutgoingRecord]


MAPS: Final[PlainWriter[Counted, MapParts]] = PlainWriter(({}, 0), plain_properties, plain_parts, write_plain)
PACKED: Final[PlainWriter[bytes, PackedParts]] = PlainWriter(b"", packed_properties, packed_parts, write_packed)


def _mark(name: str) -> str:
    """Return the name of a property's mark; "" requires the general path."""
    if name in HIDDEN:
        return ""
    try:
        check_property_name(name)
        name.encode()
    except (IllegalArgumentError, UnicodeEncodeError):
        return ""
    return remember(_PLAIN, name, "" if name == GROUP_ID else name + TYPE_SUFFIX)


def _names(name: object) -> _Names | None:
    """Return the packed name of a property and its marks; None requires the general path."""
    mark = _mark(name) if type(name) is str else ""
    if not mark or type(name) is not str:
        return None
    packed_mark = pack_name(mark)
    made = _Heads(name), {kind: pack_value(packed_mark, word.encode()) for kind, word in _WORDS.items()}
    if name in _PLAIN:  # within the bounds of the cache
        _PACKED[name] = made
    return made
