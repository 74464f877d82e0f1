"""Bodies to payloads and back, in Starlight's layouts.

A Python ObjectMessage is written so that Java reads it without any class of ours: bytes as ``byte[]``, str as
``String``, bool and numbers as their boxes (``Integer`` or ``Long`` by size, ``Double``, or as selected by a wrapper).
A list or dict becomes a ``String`` of JSON with the property ``JMS_jmsaio_object`` = ``json``, by which Python restores
the list or dict; the property itself is hidden. A Java object of any other class is received as ``JavaObject`` and
forwarded unchanged.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs

from jmsaio.codec import javaser
from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model.messages.object_message import MAX_DEPTH, JavaObject, is_shallow
from jmsaio.model.text import decode_mutf8, encode_mutf8
from jmsaio.model.values import LAYOUTS, Byte, Char, Float, Long, Short, Value, canonical
from jmsaio.model.wire import Texts

#: Property that names the format of an object message's String, and its only value.
OBJECT_FORMAT: Final = "JMS_jmsaio_object"
JSON: Final = "json"


@attrs.frozen
class _Layout:
    """The layout of one kind of body; ``structured`` if the payload is more than a text or bytes."""

    write: Callable[[Any, dict[str, str]], bytes | None]
    read: Callable[[bytes | None, Texts], Any]
    structured: bool = False


def encode_body(kind: str, body: Any, wire: dict[str, str]) -> bytes | None:
    """Return the payload of what ``Message._body`` returns; the mark of a JSON body is added to ``wire``."""
    return _LAYOUTS[kind].write(body, wire)


def decode_body(kind: str, payload: bytes | None, wire: Texts) -> Any:
    """Return the body of a payload; None for Pulsar's null value of a text or object, else an empty body."""
    return _LAYOUTS[kind].read(payload, wire)


def encode_text(text: str) -> bytes:
    """Encode as UTF-8. Raises MessageFormatError for a lone surrogate, which Java would turn into a question mark."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"the text has a lone surrogate at {error.start}; send it as bytes") from error


def _decode_text(payload: bytes | None, wire: Texts) -> str | None:
    try:
        return None if payload is None else payload.decode()
    except UnicodeDecodeError as error:
        raise MessageFormatError(str(error)) from error


def _encode_object(body: Any, wire: dict[str, str]) -> bytes | None:
    if body is None:
        return None
    if isinstance(body, JavaObject):
        return body.data
    if isinstance(body, list | tuple | dict):
        try:
            text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as error:
            raise MessageFormatError(f"the object is not JSON-able: {error}") from error
        wire[OBJECT_FORMAT] = JSON
        return javaser.write_object(text)
    return javaser.write_object(canonical(body, "object"))


def _decode_object(payload: bytes | None, wire: Texts) -> Any:
    if not payload:
        return None
    value = javaser.read_object(payload)
    if type(value) is str and wire.get(OBJECT_FORMAT) == JSON:
        return _from_json(value)
    return value


def _from_json(text: str) -> Any:
    """Parse a JSON text; return the text itself if it is not JSON, or nested so deeply that no copy could be made."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if text.count("[") + text.count("{") <= MAX_DEPTH or is_shallow(value) else text


# Streams: a tag byte and a value for each field; no header, count or end

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


_LAYOUTS: Final = {
    "text": _Layout(lambda body, wire: None if body is None else encode_text(body), _decode_text),
    "bytes": _Layout(lambda body, wire: bytes(body), lambda payload, wire: b"" if payload is None else payload),
    "map": _Layout(
        lambda body, wire: javaser.write_map(body) if body else None,
        lambda payload, wire: javaser.read_map(payload) if payload else {},
        structured=True,
    ),
    "stream": _Layout(
        lambda body, wire: encode_stream(body),
        lambda payload, wire: decode_stream(payload) if payload else [],
        structured=True,
    ),
    "object": _Layout(_encode_object, _decode_object, structured=True),
    "header": _Layout(lambda body, wire: None, lambda payload, wire: None),
}
#: Kinds whose payload is more than a text or bytes.
STRUCTURED: Final = frozenset(kind for kind, layout in _LAYOUTS.items() if layout.structured)
