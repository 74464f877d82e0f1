"""Properties of a record as bytes of Pulsar's protocol: a list of ``KeyValue``, in protobuf.

The list is field 1 of a message in a batch (``SingleMessageMetadata.properties``)::

    0A <length> ( 0A <length> name 12 <length> value )        for each property

A transport that implements the protocol itself copies these bytes to the wire, without building a map first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jmsaio.errors import MessageFormatError
from jmsaio.model.arguments import shown
from jmsaio.model.varint import SHORT, read_varint, varint

_PROPERTY, _NAME, _VALUE = b"\x0a", b"\x0a", b"\x12"
_SHORTS: Final = len(SHORT)


def pack_name(name: str) -> bytes:
    """Encode a name with its tags: the bytes of a property between its total length and the length of its value.

    Raises:
        UnicodeEncodeError: a lone surrogate.
    """
    encoded = name.encode()
    return _NAME + varint(len(encoded)) + encoded + _VALUE


def pack_value(packed_name: bytes, value: bytes) -> bytes:
    """Encode one property.

    Args:
        packed_name: as returned by ``pack_name``; callers cache it, because names recur in every message.
        value: in UTF-8.
    """
    length = len(value)
    size = len(packed_name) + length
    if length < _SHORTS and size < _SHORTS - 1:  # the value's length takes one byte
        return _PROPERTY + SHORT[size + 1] + packed_name + SHORT[length] + value
    written = varint(length)
    return _PROPERTY + varint(size + len(written)) + packed_name + written + value


def pack(properties: Mapping[str, str]) -> bytes:
    """Encode a list of properties, in the order of the mapping.

    Raises:
        MessageFormatError: a name or value that is not Unicode (a lone surrogate).
    """
    made = []
    for name, value in properties.items():
        try:
            made.append(pack_value(pack_name(name), value.encode()))
        except UnicodeEncodeError as error:
            raise MessageFormatError(f"property {shown(name)} has a lone surrogate at {error.start}") from error
    return b"".join(made)


def unpack(packed: bytes) -> dict[str, str]:
    """Decode a list of properties. For a repeated name the last value counts, as in Java.

    Raises:
        MessageFormatError: the bytes are not such a list, or a text is not UTF-8.
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
    """Return the content of a field with this tag, and its end."""
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
