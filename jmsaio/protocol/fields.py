"""Protobuf messages described by tables of fields, with one encoder and one decoder for all of them.

A decoded message is a dict by field name. It has every required field, every repeated one (a list, perhaps empty) and
every optional one that is set or has a default. Unknown fields are skipped. Of a field that occurs twice the last
counts, as in Pulsar's own decoder. Messages nest only as deep as their tables do.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import attrs

from jmsaio.errors import ProtocolError
from jmsaio.model.arguments import shown
from jmsaio.model.packed import varint

#: Values of a decoded message by field name: numbers, texts, bytes, nested dicts and lists, as its table declares.
Values = dict[str, Any]

MASK_64: Final = (1 << 64) - 1
_MASK_32: Final = (1 << 32) - 1
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
#: Bytes of the longest varint.
_LONGEST: Final = 10
#: -1 of a signed type: the partition of every message of a topic without partitions.
_MINUS_ONE: Final = b"\xff" * 9 + b"\x01"


class FieldType(enum.Enum):
    """Type of a field that is not a message. Enumerations are INT32, as numbers."""

    UINT64 = enum.auto()
    UINT32 = enum.auto()
    INT64 = enum.auto()
    INT32 = enum.auto()
    BOOL = enum.auto()
    TEXT = enum.auto()
    DATA = enum.auto()


_RANGES: Final = {
    FieldType.UINT64: range(1 << 64),
    FieldType.UINT32: range(1 << 32),
    FieldType.INT64: range(-(1 << 63), 1 << 63),
    FieldType.INT32: range(-(1 << 31), 1 << 31),
    FieldType.BOOL: range(2),
}


@attrs.frozen(eq=False)
class Field:
    """One field of a message."""

    number: int
    name: str
    kind: FieldType | Table  # its type; the table of its fields if it is a message
    default: object = None  # value of an optional field that is not set; None leaves it out of the dict
    required: bool = False
    repeated: bool = False


required: Final = partial(Field, required=True)
optional: Final = Field
repeated: Final = partial(Field, repeated=True)


class Table:
    """The table of a message's fields, in the order in which they are written."""

    def __init__(self, *fields: Field) -> None:
        self.fields: Final = fields
        self.by_number: Final = {field.number: field for field in fields}
        self.names: Final = frozenset(field.name for field in fields)
        self.defaults: Final = {field.name: field.default for field in fields if field.default is not None}
        self.lists: Final = tuple(field.name for field in fields if field.repeated)
        self.required: Final = tuple(field.name for field in fields if field.required)


def number_at(data: bytes, place: int, end: int) -> tuple[int, int]:
    """Decode the varint at ``place``, cut to 64 bits; return the position after it. Raises ProtocolError."""
    number = shift = 0
    part = data[place : place + _LONGEST if place + _LONGEST < end else end]
    if part == _MINUS_ONE:
        return MASK_64, place + _LONGEST
    for byte in part:
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & MASK_64, place
        shift += 7
    place -= len(part)
    raise ProtocolError(f"a number without an end at byte {place}")


def walk(data: bytes, place: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the tag of each field of an encoded message, and for a varint its value and the position after it.

    For other types: where their bytes start and end. Raises ProtocolError.
    """
    while place < end:
        at = place
        tag = data[place]
        place += 1
        if tag > 127:
            tag, place = number_at(data, at, end)
        wire = tag & 7
        if tag > _MASK_32 or tag < 8:
            raise ProtocolError(f"field {tag >> 3} at byte {at}: there is no such number")
        if place == end:
            raise ProtocolError(f"field {tag >> 3} at byte {at} has no value")
        if wire == _VARINT:
            value = data[place]
            place += 1
            if value > 127:
                value, place = number_at(data, place - 1, end)
        elif wire == _BYTES:
            value = data[place]
            place += 1
            if value > 127:
                value, place = number_at(data, place - 1, end)
            value, place = place, place + value
        elif wire in (_FIXED_64, _FIXED_32):
            value, place = place, place + (8 if wire == _FIXED_64 else 4)
        else:
            raise ProtocolError(f"field {tag >> 3} at byte {at} has the unknown type {wire}")
        if place > end:
            raise ProtocolError(f"field {tag >> 3} at byte {at} ends {place - end} bytes after its message")
        yield tag, value, place


def text_at(data: bytes, start: int, end: int) -> str:
    """Decode a text. Raises ProtocolError if it is not UTF-8."""
    try:
        return data[start:end].decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"a text at byte {start} is not UTF-8: {error.reason} after {error.start} bytes") from None


def decode(table: Table, data: bytes, start: int, end: int) -> Values:
    """Decode the message in ``data[start:end]``. Raises ProtocolError, also if a required field is missing."""
    values: Values = dict(table.defaults)
    for name in table.lists:
        values[name] = []
    for tag, value, stop in walk(data, start, end):
        field = table.by_number.get(tag >> 3)
        if field is None:
            continue
        wire, kind = tag & 7, field.kind
        if wire == _BYTES and (kind in (FieldType.TEXT, FieldType.DATA) or isinstance(kind, Table)):
            found: object = _content(kind, data, value, stop)
        elif wire == _VARINT and kind in _RANGES:
            found = _number(kind, value)
        elif wire == _BYTES and kind in _RANGES and field.repeated:  # packed
            while value < stop:
                number, value = number_at(data, value, stop)
                values[field.name].append(_number(kind, number))
            continue
        else:
            continue  # another type than the table's: an unknown field
        if field.repeated:
            values[field.name].append(found)
        else:
            values[field.name] = found
    for name in table.required:
        if name not in values:
            raise ProtocolError(f"the required field {name} is missing")
    return values


def _content(kind: FieldType | Table, data: bytes, start: int, end: int) -> object:
    if isinstance(kind, Table):
        return decode(kind, data, start, end)
    return text_at(data, start, end) if kind is FieldType.TEXT else data[start:end]


def _number(kind: FieldType | Table, value: int) -> int | bool:
    """Convert a varint as protobuf does: 32-bit types are cut, signed ones are in two's complement."""
    if kind is FieldType.UINT64:
        return value
    if kind is FieldType.BOOL:
        return value != 0
    if kind is FieldType.INT64:
        return int64(value)
    return int32(value) if kind is FieldType.INT32 else value & _MASK_32


def int32(value: int) -> int:
    value &= _MASK_32
    return value - (1 << 32) if value >> 31 else value


def int64(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def encode(table: Table, values: Mapping[str, object]) -> bytes:
    """Encode a message. A field that is None is left out.

    Raises ValueError, or TypeError, which names only the class of a value: it can be huge or secret.
    """
    unknown = values.keys() - table.names
    if unknown:
        raise ValueError(f"unknown fields: {', '.join(sorted(unknown))}")
    made: list[bytes] = []
    for field in table.fields:
        value = values.get(field.name)
        if value is None:
            if field.required:
                raise ValueError(f"the required field {field.name} is missing")
        elif field.repeated:
            if not isinstance(value, list | tuple):
                raise TypeError(f"{field.name} is a list, not {type(value).__name__}")
            made += [_encoded(field, each) for each in value]
        else:
            made.append(_encoded(field, value))
    return b"".join(made)


def _encoded(field: Field, value: object) -> bytes:
    kind = field.kind
    if isinstance(kind, Table) and isinstance(value, Mapping):
        content = encode(kind, value)
    elif kind is FieldType.TEXT and isinstance(value, str):
        content = value.encode()
    elif kind is FieldType.DATA and isinstance(value, bytes):
        content = value
    elif isinstance(kind, FieldType) and kind in _RANGES and isinstance(value, int):
        if int(value) not in _RANGES[kind]:  # an enumeration's member would be compared with each number of the range
            raise ValueError(f"{field.name}: {shown(value)} is out of range")
        return varint(field.number << 3) + varint(value & MASK_64)
    else:
        words = {FieldType.TEXT: "a text", FieldType.DATA: "bytes"}
        expected = "a message" if isinstance(kind, Table) else words.get(kind, "a number")
        raise TypeError(f"{field.name} is {expected}, not {type(value).__name__}")
    return varint(field.number << 3 | _BYTES) + varint(len(content)) + content
