"""Java's modified UTF-8: U+0000 is C0 80, characters above U+FFFF are two 3-byte surrogates."""

from __future__ import annotations

import re

from jmsaio.errors import MessageFormatError

_ABOVE_BMP = re.compile("[\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def encode_mutf8(text: str) -> bytes:
    """Encode text as modified UTF-8; lone surrogates are kept."""
    if text.isascii():
        data = text.encode("ascii")
        return data.replace(b"\x00", b"\xc0\x80") if b"\x00" in data else data
    split = _ABOVE_BMP.sub(_surrogates, text)
    return split.encode("utf-8", "surrogatepass").replace(b"\x00", b"\xc0\x80")


def _surrogates(match: re.Match[str]) -> str:
    code = ord(match.group()) - 0x10000
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))


def decode_mutf8(data: bytes) -> str:
    """Decode modified UTF-8 as strictly as Java's ``DataInput.readUTF``: overlong forms are read, 4-byte forms are not.

    Raises:
        MessageFormatError: bytes that are not modified UTF-8.
    """
    if data.isascii():
        return data.decode("ascii")
    try:
        text = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return _decode_slowly(data)  # malformed, or a form that Java reads and Python does not
    if _SURROGATE.search(text):
        return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    return text if not _ABOVE_BMP.search(text) else _decode_slowly(data)


def _decode_slowly(data: bytes) -> str:
    """Decode byte by byte, as Java does."""
    units: list[int] = []
    index, length = 0, len(data)
    while index < length:
        first = data[index]
        if first < 0x80:
            units.append(first)
            index += 1
        elif first >> 5 == 0b110:
            units.append((first & 0x1F) << 6 | _tail(data, index + 1))
            index += 2
        elif first >> 4 == 0b1110:
            units.append((first & 0x0F) << 12 | _tail(data, index + 1) << 6 | _tail(data, index + 2))
            index += 3
        else:
            raise MessageFormatError(f"malformed modified UTF-8: byte {first:#04x} at {index}")
    return b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be", "surrogatepass")


def _tail(data: bytes, index: int) -> int:
    if index >= len(data) or data[index] >> 6 != 0b10:
        raise MessageFormatError(f"malformed modified UTF-8: a character is cut off at {index}")
    return data[index] & 0x3F
