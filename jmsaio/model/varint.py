"""Protobuf's numbers of variable length: seven bits in each byte, the lowest ones first."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

#: Encodings of the one-byte numbers, which nearly all lengths are.
SHORT: Final = tuple(bytes((number,)) for number in range(128))
_SHORTS: Final = len(SHORT)
#: Bytes of the longest number, of 64 bits.
_LONGEST: Final = 10


def varint(number: int) -> bytes:
    """Encode a non-negative number."""
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
    """Decode the number at ``place``; return it and the position after it.

    Raises:
        ValueError: it does not end before ``end``, or is longer than 64 bits.
    """
    number = 0
    for count, byte in enumerate(data[place : min(place + _LONGEST, end)]):
        number |= (byte & 127) << 7 * count
        if byte < 128:
            return number, place + count + 1
    raise ValueError(f"a number without an end at byte {place}")
