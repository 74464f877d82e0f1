"""Compression of payloads, in the formats of Pulsar's other clients.

ZLIB is part of Python. LZ4 (a block without its size), ZSTD (frames) and SNAPPY (no frames) need cramjam, which is
imported when it is used.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Final, Literal, NamedTuple

from jmsaio.errors import ProtocolError
from jmsaio.protocol.commands import CompressionType

#: Maximum bytes of an expanded payload; for the payload of many chunks ``RATIO`` times what arrived, if that is more.
LARGEST: Final = 128 * 1024 * 1024
RATIO: Final = 20


class _Codec(NamedTuple):
    compress: Callable[[bytes], object]
    expand: Callable[[bytes, bytearray], int]  # never writes beyond the end


def _codec(kind: CompressionType, library: ModuleType) -> _Codec:
    if kind is CompressionType.LZ4:
        block = library.lz4
        return _Codec(
            lambda data: block.compress_block(data, store_size=False),
            lambda data, made: block.decompress_block_into(data, made, output_len=len(made)),
        )
    if kind is CompressionType.ZSTD:
        return _Codec(library.zstd.compress, library.zstd.decompress_into)
    return _Codec(library.snappy.compress_raw, library.snappy.decompress_raw_into)


def _library(kind: CompressionType) -> ModuleType:
    try:
        return import_module("cramjam")
    except ImportError:
        raise ImportError(
            f"{kind.name} needs cramjam: pip install 'jmsaio[compression]'; transport=pulsar-client has it built in"
        ) from None


def compressor(kind: CompressionType) -> Callable[[bytes], bytes]:
    """Return the function that compresses payloads. Raises ImportError, which says how to get its library."""
    if kind is CompressionType.NONE:
        return bytes
    if kind is CompressionType.ZLIB:
        return zlib.compress
    compress = _codec(kind, _library(kind)).compress
    return lambda data: bytes(compress(data))  # type: ignore[call-overload]  # a buffer


def fast() -> Literal["LZ4", "ZLIB"]:
    """Return the name of the fastest compression that every transport of this process can send with."""
    try:
        compressor(CompressionType.LZ4)
    except ImportError:
        return "ZLIB"
    return "LZ4"


def expand(kind: int, data: bytes, size: int) -> bytes:
    """Return a payload without its compression, with exactly the ``size`` that it announces.

    Raises ProtocolError if it is damaged, has another size, announces too much, or its library is missing.
    """
    if kind == CompressionType.NONE:
        return data
    if kind not in _KINDS:
        raise ProtocolError(f"it is compressed with {kind}, which is unknown")
    if size > max(LARGEST, RATIO * len(data)):
        raise ProtocolError(f"it has {len(data)} bytes and announces {size}: too many to be expanded")
    kind = CompressionType(kind)
    try:
        made = _expanded_by_zlib(data, size) if kind is CompressionType.ZLIB else _expanded(kind, data, size)
    except ImportError as error:
        raise ProtocolError(f"it is compressed: {error}") from error
    if len(made) != size:
        raise ProtocolError(f"it announces {size} bytes, and has {'more' if len(made) > size else len(made)}")
    return made


_KINDS: Final = frozenset(CompressionType)


def _expanded_by_zlib(data: bytes, size: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, size + 1)  # Java's has no end
    except zlib.error as error:
        raise ProtocolError(f"it is not compressed with ZLIB: {error}") from error


def _expanded(kind: CompressionType, data: bytes, size: int) -> bytes:
    library = _library(kind)
    made = bytearray(size)
    try:
        count = _codec(kind, library).expand(data, made)
    except library.DecompressionError as error:
        raise ProtocolError(f"it is not {size} bytes compressed with {kind.name}: {error}") from error
    del made[count:]
    return bytes(made)
