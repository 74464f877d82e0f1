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
_TAG: Final = _PROPERTY[0]
_SHORTS: Final = len(SHORT)


def pack_name(name: str) -> bytes:
    """Encode a name with its tags: the bytes of a property between its total length and the length of its value.

    Raises:
        UnicodeEncodeError: a lone surrogate.
    """
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
    """Decode a list of properties. For a repeated name the last value counts, as in Java.

    Raises:
        MessageFormatError: the bytes are not such a list, or a text is not UTF-8.
    """
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
        properties[name] = value
    return properties


def _property(packed: bytes, place: int, end: int) -> tuple[str, str, int]:
    """Decode one property of any length; return its name, its value, and its end."""
    part, stop = _field(packed, place, end, _PROPERTY)
    inner = stop - len(part)
    name, inner = _field(packed, inner, stop, _NAME)
    value, inner = _field(packed, inner, stop, _VALUE)
    if inner != stop:
        raise MessageFormatError(f"packed properties: {stop - inner} bytes too many before byte {stop}")
    try:
        return name.decode(), value.decode(), stop
    except UnicodeDecodeError as error:
        raise MessageFormatError(f"packed properties: no UTF-8 before byte {stop}") from error


def find_packed(data: bytes, place: int, end: int, packed_name: bytes) -> str | None:
    """Return one property of the list ``data[place:end]``, or None; of a repeated name, the last.

    The properties before it are only stepped over.

    Args:
        data: bytes with the list.
        place: where it begins.
        end: where it ends.
        packed_name: of ``PACKED_NAMES``.

    Raises:
        MessageFormatError: the bytes are not such a list, or the value is not UTF-8. Damage behind the last place of
            the name is not noticed.
    """
    candidate = data.rfind(packed_name, place, end)
    if candidate < 0:
        return None
    value = _value_at(data, place, end, candidate, candidate + len(packed_name))
    if value is None:
        value = _last_value(data, place, end, packed_name)
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError as error:
        raise MessageFormatError(f"packed properties: no UTF-8 in the value of the name at byte {candidate}") from error


def _value_at(data: bytes, place: int, end: int, name: int, middle: int) -> bytes | None:
    """Return the value of the property whose packed name is ``data[name:middle]``, or None if another way must tell.

    A value can contain the bytes of a name: only steps from the beginning of the list tell whether it is one. All
    properties up to this one must be shorter than 128 bytes, as nearly all are.
    """
    inner = place + 2
    while inner < name and data[inner - 2] == _TAG and data[inner - 1] < _SHORTS:
        inner += data[inner - 1] + 2
    if inner == name and data[inner - 2] == _TAG and data[inner - 1] < _SHORTS:
        stop = name + data[inner - 1]
        if middle < stop <= end and data[middle] == stop - middle - 1:
            return data[middle + 1 : stop]
    return None


def _last_value(data: bytes, place: int, end: int, packed_name: bytes) -> bytes | None:
    """Return the value of the last property with this name, or None, in one pass over all."""
    value = None
    while place < end:
        part, place = _field(data, place, end, _PROPERTY)
        if part.startswith(packed_name):
            value, _ = _field(part, len(packed_name) - 1, len(part), _VALUE)
    return value


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
