"""StreamMessage bodies: a tag byte and a value for each field (Starlight 2.7)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

from jmsaio.errors import MessageFormatError
from jmsaio.model.mutf8 import decode_mutf8, encode_mutf8
from jmsaio.model.values import Byte, Char, Float, Long, Short, Value

_U16 = struct.Struct(">H")
_I32 = struct.Struct(">i")
_STRING, _BYTES, _NULL = 2, 10, 11
_MAX_UTF: Final = 0xFFFF

#: class -> tag, layout, conversion to what the layout packs
_FIXED: Final[dict[type, tuple[int, struct.Struct, Any]]] = {
    bool: (1, struct.Struct(">?"), bool),
    int: (3, _I32, int),
    Short: (4, struct.Struct(">h"), int),
    Long: (5, struct.Struct(">q"), int),
    Float: (6, struct.Struct(">f"), float),
    float: (7, struct.Struct(">d"), float),
    Byte: (8, struct.Struct(">b"), int),
    Char: (9, _U16, ord),
}
_BY_TAG: Final[dict[int, tuple[struct.Struct, Any]]] = {
    1: (struct.Struct(">B"), bool),
    3: (_I32, int),
    4: (struct.Struct(">h"), Short),
    5: (struct.Struct(">q"), Long),
    6: (struct.Struct(">f"), Float),
    7: (struct.Struct(">d"), float),
    8: (struct.Struct(">b"), Byte),
    9: (_U16, lambda unit: Char(chr(unit))),
}


def write_stream(values: Sequence[Value]) -> bytes:
    """The bytes of a stream body. Raises MessageFormatError for a text above 65535 bytes."""
    out = bytearray()
    for value in values:
        fixed = _FIXED.get(type(value))
        if fixed is not None:
            tag, layout, prepare = fixed
            out.append(tag)
            out += layout.pack(prepare(value))
        elif value is None:
            out.append(_NULL)
        elif isinstance(value, str):
            data = encode_mutf8(value)
            if len(data) > _MAX_UTF:
                raise MessageFormatError(f"a text in a stream message has {_MAX_UTF} bytes at most, not {len(data)}")
            out.append(_STRING)
            out += _U16.pack(len(data)) + data
        elif isinstance(value, bytes):
            out.append(_BYTES)
            out += _I32.pack(len(value)) + value
        else:
            raise MessageFormatError(f"a stream message can't hold a {type(value).__name__}")
    return bytes(out)


def read_stream(data: bytes) -> list[Value]:
    """The values of a stream body. Raises MessageFormatError for bytes that are none; lengths are checked first."""
    values: list[Value] = []
    position, end = 0, len(data)
    while position < end:
        tag = data[position]
        position += 1
        fixed = _BY_TAG.get(tag)
        if fixed is not None:
            layout, make = fixed
            if position + layout.size > end:
                raise _broken(position, end)
            values.append(make(layout.unpack_from(data, position)[0]))
            position += layout.size
        elif tag == _NULL:
            values.append(None)
        elif tag in (_STRING, _BYTES):
            prefix = _U16 if tag == _STRING else _I32
            if position + prefix.size > end:
                raise _broken(position, end)
            length = prefix.unpack_from(data, position)[0]
            position += prefix.size
            if not 0 <= length <= end - position:
                raise MessageFormatError(f"a stream field claims {length} bytes at {position}, {end - position} are left")
            field = data[position : position + length]
            values.append(decode_mutf8(field) if tag == _STRING else bytes(field))
            position += length
        else:
            raise MessageFormatError(f"a stream message has the unknown tag {tag} at {position - 1}")
    return values


def _broken(position: int, end: int) -> MessageFormatError:
    return MessageFormatError(f"a stream message breaks off: a field at {position} of {end} bytes")
