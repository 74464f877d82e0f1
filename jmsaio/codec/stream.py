"""StreamMessage bodies in Starlight's layout: a tag byte and a value for each field; no header, count or end."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model.text import decode_mutf8, encode_mutf8
from jmsaio.model.values import LAYOUTS, Byte, Char, Float, Long, Short, Value

_BOOLEAN, _STRING, _INT, _SHORT, _LONG, _FLOAT, _DOUBLE, _BYTE, _CHAR, _BYTES, _NULL = range(1, 12)
#: Types with a fixed size by their tags.
_KINDS: Final = {
    _BOOLEAN: bool, _INT: int, _SHORT: Short, _LONG: Long, _FLOAT: Float, _DOUBLE: float, _BYTE: Byte, _CHAR: Char,
}  # fmt: skip
_FIXED: Final = {tag: LAYOUTS[kind] for tag, kind in _KINDS.items()}
_MAX_UTF: Final = 0xFFFF
_LENGTH16, _LENGTH32 = struct.Struct(">H"), struct.Struct(">i")


def _number(tag: int, kind: type) -> Callable[[Any], bytes]:
    pack = struct.Struct(">B" + LAYOUTS[kind][0].format[1:]).pack
    return lambda value: pack(tag, value)


def _string(value: str) -> bytes:
    data = encode_mutf8(value)
    if len(data) > _MAX_UTF:
        raise MessageFormatError(
            f"a stream message holds texts of up to {_MAX_UTF} bytes, not {len(data)}; write it as bytes"
        )
    return b"\x02" + _LENGTH16.pack(len(data)) + data


_WRITERS: Final[dict[type, Callable[[Any], bytes]]] = {
    bool: lambda value: b"\x01\x01" if value else b"\x01\x00",
    str: _string,
    **{kind: _number(tag, kind) for tag, kind in _KINDS.items() if kind not in (bool, Char)},
    Char: lambda value: b"\x09" + _LENGTH16.pack(ord(value)),
    bytes: lambda value: b"\x0a" + _LENGTH32.pack(len(value)) + value,
    type(None): lambda value: b"\x0b",
}


def encode_stream(values: Iterable[Value]) -> bytes:
    """Return the payload of canonical values; raises MessageFormatError for a text above 65535 bytes."""
    try:
        return b"".join([_WRITERS[type(value)](value) for value in values])
    except (KeyError, struct.error) as error:
        raise MessageFormatError(f"a stream message can't hold a value: {error}") from error


def decode_stream(data: bytes) -> list[Value]:
    """Return the canonical values of a payload. Lengths are checked against the remaining bytes."""
    values: list[Value] = []
    position, end = 0, len(data)
    while position < end:
        tag = data[position]
        position += 1
        fixed = _FIXED.get(tag)
        if fixed is not None:
            layout, make = fixed
            if position + layout.size > end:
                raise MalformedMessageError(f"a value with tag {tag} breaks off at byte {position}")
            value = layout.unpack_from(data, position)[0]
            values.append(value if make is None else make(value))
            position += layout.size
        elif tag == _NULL:
            values.append(None)
        elif tag in (_STRING, _BYTES):
            start, position = _span(data, position, _LENGTH16 if tag == _STRING else _LENGTH32)
            part = data[start:position]
            values.append(decode_mutf8(part) if tag == _STRING else part)
        else:
            raise MalformedMessageError(f"there is no value with tag {tag} (byte {position - 1})")
    return values


def _span(data: bytes, position: int, layout: struct.Struct) -> tuple[int, int]:
    start = position + layout.size
    if start > len(data):
        raise MalformedMessageError(f"a length breaks off at byte {position}")
    length: int = layout.unpack_from(data, position)[0]
    if not 0 <= length <= len(data) - start:
        raise MalformedMessageError(f"{length} bytes announced at byte {position}, {len(data) - start} left")
    return start, start + length
