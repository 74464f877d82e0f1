"""Properties of a record as the bytes that Pulsar's protocol has for them: a list of ``KeyValue``, in protobuf.

The list is field 1 of a message in a batch (``SingleMessageMetadata.properties``)::

    0A <length> ( 0A <length> name 12 <length> value )        for each property

A transport that speaks the protocol itself copies these bytes to the wire, so that no map is made only to be read once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jmsaio.errors import MessageFormatError

_PROPERTY, _NAME, _VALUE = b"\x0a", b"\x0a", b"\x12"
#: Lengths of one byte: those of nearly all names and values.
_SHORT: Final = tuple(bytes((length,)) for length in range(128))
_SHORTS: Final = len(_SHORT)
#: A length has so many bytes at most: no property is as long as 2^35 bytes.
_LONGEST_LENGTH: Final = 5


def length_bytes(length: int) -> bytes:
    """A length as a protobuf varint."""
    if length < _SHORTS:
        return _SHORT[length]
    made = bytearray()
    while length > 127:
        made.append(length & 127 | 128)
        length >>= 7
    made.append(length)
    return bytes(made)


def pack_name(name: str) -> bytes:
    """What stands before the length of a value: the name with its tags, without the length of the whole property.

    Raises:
        UnicodeEncodeError: a lone surrogate.
    """
    encoded = name.encode()
    return _NAME + length_bytes(len(encoded)) + encoded + _VALUE


def pack_value(packed_name: bytes, value: bytes) -> bytes:
    """One property.

    Args:
        packed_name: as ``pack_name`` returned it; callers keep it, because names recur in every message.
        value: in UTF-8.
    """
    length = len(value)
    size = len(packed_name) + length
    if length < _SHORTS and size < _SHORTS - 1:  # the length of the value is one byte of the property
        return _PROPERTY + _SHORT[size + 1] + packed_name + _SHORT[length] + value
    written = length_bytes(length)
    return _PROPERTY + length_bytes(size + len(written)) + packed_name + written + value


def pack(properties: Mapping[str, str]) -> bytes:
    """A list of properties, in the order of the mapping.

    Raises:
        MessageFormatError: a name or value that is not Unicode (a lone surrogate).
    """
    made = []
    for name, value in properties.items():
        try:
            made.append(pack_value(pack_name(name), value.encode()))
        except UnicodeEncodeError as error:
            raise MessageFormatError(f"property {name!r:.100} has a lone surrogate at {error.start}") from error
    return b"".join(made)


def unpack(packed: bytes) -> dict[str, str]:
    """The properties in a list. Of a name given twice the last value counts, as in Java.

    Raises:
        MessageFormatError: these bytes are not such a list, or a text is not UTF-8.
    """
    properties: dict[str, str] = {}
    place, end = 0, len(packed)
    while place < end:
        part, place = _field(packed, place, end, _PROPERTY)
        inner, inner_end = place - len(part), place
        name, inner = _field(packed, inner, inner_end, _NAME)
        value, inner = _field(packed, inner, inner_end, _VALUE)
        if inner != inner_end:
            raise MessageFormatError(f"packed properties: {inner_end - inner} bytes too many before byte {inner_end}")
        try:
            properties[name.decode()] = value.decode()
        except UnicodeDecodeError as error:
            raise MessageFormatError(f"packed properties: no UTF-8 before byte {inner_end}") from error
    return properties


def _field(packed: bytes, place: int, end: int, tag: bytes) -> tuple[bytes, int]:
    """The content of a field with this tag, and where it ends."""
    if packed[place : place + 1] != tag or place >= end:
        raise MessageFormatError(f"packed properties: no tag {tag.hex()} at byte {place}")
    length, place = _length(packed, place + 1, end)
    if length > end - place:
        raise MessageFormatError(
            f"packed properties: {length} bytes at byte {place}, where only {end - place} are left"
        )
    return packed[place : place + length], place + length


def _length(packed: bytes, place: int, end: int) -> tuple[int, int]:
    length = 0
    for number, byte in enumerate(packed[place : min(place + _LONGEST_LENGTH, end)]):
        length |= (byte & 127) << 7 * number
        if byte < 128:
            return length, place + number + 1
    raise MessageFormatError(f"packed properties: a length without an end at byte {place}")
