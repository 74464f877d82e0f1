"""Protobuf's numbers of variable length, and properties of a record as bytes of Pulsar's protocol.

The properties are a list of ``KeyValue``, field 1 of a message in a batch (``SingleMessageMetadata.properties``)::

    0A <length> ( 0A <length> name 12 <length> value )        for each property

A transport that implements the protocol itself copies these bytes to the wire, without building a map first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from jmsaio.errors import MessageFormatError
from jmsaio.model.arguments import shown

#: Encodings of the one-byte numbers, which nearly all lengths are.
SHORT: Final = tuple(bytes((number,)) for number in range(128))
_SHORTS: Final = len(SHORT)
#: Bytes of the longest number, of 64 bits.
_LONGEST: Final = 10


def varint(number: int) -> bytes:
    return SHORT[number] if number < _SHORTS else _long(number)


@lru_cache(maxsize=256)  # of sizes and times, which recur
def _long(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def read_varint(data: bytes, place: int, end: int) -> tuple[int, int]:
    """Decode the number at ``place``; return it and the position after it. Raises ValueError."""
    number = 0
    for count, byte in enumerate(data[place : min(place + _LONGEST, end)]):
        number |= (byte & 127) << 7 * count
        if byte < 128:
            return number, place + count + 1
    raise ValueError(f"a number without an end at byte {place}")


_PROPERTY, _NAME, _VALUE = b"\x0a", b"\x0a", b"\x12"


def pack_name(name: str) -> bytes:
    """Encode a name with its tags: the bytes of a property between its total length and the length of its value."""
    encoded = name.encode()
    return _NAME + varint(len(encoded)) + encoded + _VALUE


class _Names(dict[str, bytes]):
    """Packed names, each made once: an application has few, and always the same ones."""

    def __missing__(self, name: str) -> bytes:
        packed = pack_name(name)
        if len(self) < _MOST_NAMES and len(packed) < _SHORTS:
            self[name] = packed
        return packed


_MOST_NAMES: Final = 1000
#: ``pack_name`` of each name that occurred.
PACKED_NAMES: Final = _Names()


def pack_value(packed_name: bytes, value: bytes) -> bytes:
    """Encode one property; callers cache ``packed_name``, because names recur in every message."""
    length = len(value)
    size = len(packed_name) + length
    if length < _SHORTS and size < _SHORTS - 1:  # the value's length takes one byte
        return _PROPERTY + SHORT[size + 1] + packed_name + SHORT[length] + value
    written = varint(length)
    return _PROPERTY + varint(size + len(written)) + packed_name + written + value


def pack(properties: Mapping[str, str]) -> bytes:
    made: list[bytes] = []
    for name, value in properties.items():
        try:
            packed_name, encoded = PACKED_NAMES[name], value.encode()
        except UnicodeEncodeError as error:
            raise MessageFormatError(f"property {shown(name)} has a lone surrogate at {error.start}") from error
        length = len(encoded)
        size = len(packed_name) + length + 1
        if length < _SHORTS and size < _SHORTS:  # as ``pack_value``, without its call and its join
            made += _PROPERTY, SHORT[size], packed_name, SHORT[length], encoded
        else:
            made.append(pack_value(packed_name, encoded))
    return b"".join(made)


def unpack(packed: bytes) -> dict[str, str]:
    """Decode a list of properties; raises MessageFormatError. For a repeated name the last value counts, as in Java."""
    properties: dict[str, str] = {}
    place, end = 0, len(packed)
    while place < end:
        # Nearly every property is shorter than 128 bytes, so that its three lengths have one byte each.
        if place + 4 <= end and packed[place] == packed[place + 2] == 10 and packed[place + 1] < _SHORTS:
            stop, middle = place + 2 + packed[place + 1], place + 4 + packed[place + 3]
            if middle + 2 <= stop <= end and packed[middle] == 18 and packed[middle + 1] == stop - middle - 2:
                try:
                    properties[packed[place + 4 : middle].decode()] = packed[middle + 2 : stop].decode()
                except UnicodeDecodeError as error:
                    raise MessageFormatError(f"packed properties: no UTF-8 before byte {stop}") from error
                place = stop
                continue
        name, value, place = _property(packed, place, end)
        properties[_text(name, place)] = _text(value, place)
    return properties


def _text(text: bytes, stop: int) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise MessageFormatError(f"packed properties: no UTF-8 before byte {stop}") from error


def _property(packed: bytes, place: int, end: int) -> tuple[bytes, bytes, int]:
    part, stop = _field(packed, place, end, _PROPERTY)
    name, middle = _field(packed, stop - len(part), stop, _NAME)
    value, last = _field(packed, middle, stop, _VALUE)
    if last != stop:
        raise MessageFormatError(f"packed properties: {stop - last} bytes too many before byte {stop}")
    return name, value, stop


class Shape(NamedTuple):
    """What a list of properties shares with others that have the same names, and values of the same lengths.

    ``places`` says where each value starts and ends, counted from the start of the list. ``heads`` are the bytes
    between the values; if ``heads_at`` returns them for a place in the data, such a list starts there.
    """

    places: Mapping[str, tuple[int, int]]
    size: int
    heads: tuple[bytes, ...]
    heads_at: Callable[[bytes, int], tuple[bytes, ...]]


def shape_of(data: bytes, place: int, end: int) -> Shape:
    """Return the shape of the list of properties ``data[place:end]``; raises MessageFormatError."""
    start, places, heads, form = place, dict[str, tuple[int, int]](), list[bytes](), list[str]()
    while place < end:
        name, value, stop = _property(data, place, end)
        middle = stop - len(value)
        heads.append(data[place:middle])
        form.append(f"{middle - place}s{len(value)}x")
        places[_text(name, stop)] = middle - start, stop - start
        place = stop
    return Shape(places, end - start, tuple(heads), Struct("".join(form)).unpack_from)


def _field(packed: bytes, place: int, end: int, tag: bytes) -> tuple[bytes, int]:
    if packed[place : place + 1] != tag or place >= end:
        raise MessageFormatError(f"packed properties: no tag {tag.hex()} at byte {place}")
    try:
        length, place = read_varint(packed, place + 1, end)
    except ValueError as error:
        raise MessageFormatError(f"packed properties: {error}") from None
    if length > end - place:
        raise MessageFormatError(
            f"packed properties: {length} bytes at byte {place}, where only {end - place} are left"
        )
    return packed[place : place + length], place + length
