"""Compression of payloads, in the formats of Pulsar's other clients.

ZLIB is part of Python. LZ4 (a block without its size), ZSTD (frames) and SNAPPY (no frames) need cramjam, which is
imported when it is used.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Final, Literal

from jmsaio.errors import ProtocolError
from jmsaio.protocol.commands import CompressionType

#: Maximum bytes of an expanded payload; for the payload of many chunks ``RATIO`` times what arrived, if that is more.
LARGEST: Final = 128 * 1024 * 1024
RATIO: Final = 20


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
    library = _library(kind)
    if kind is CompressionType.LZ4:
        return lambda data: bytes(library.lz4.compress_block(data, store_size=False))
    compress = library.zstd.compress if kind is CompressionType.ZSTD else library.snappy.compress_raw
    return lambda data: bytes(compress(data))


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
    made = _expanded(CompressionType(kind), data, size)
    if len(made) != size:
        raise ProtocolError(f"it announces {size} bytes, and has {'more' if len(made) > size else len(made)}")
    return made


_KINDS: Final = frozenset(CompressionType)


def _expanded(kind: CompressionType, data: bytes, size: int) -> bytes:
    """Expand a payload. Nothing is written beyond the end of ``made``."""
    failure: type[Exception] = zlib.error
    try:
        if kind is CompressionType.ZLIB:
            return zlib.decompressobj().decompress(data, size + 1)  # Java's has no end
        library = _library(kind)
        failure, made = library.DecompressionError, bytearray(size)
        if kind is CompressionType.LZ4:
            count = library.lz4.decompress_block_into(data, made, output_len=size)
        elif kind is CompressionType.ZSTD:
            count = library.zstd.decompress_into(data, made)
        else:
            count = library.snappy.decompress_raw_into(data, made)
    except ImportError as error:
        raise ProtocolError(f"it is compressed: {error}") from error
    except failure as error:
        raise ProtocolError(f"it is not {size} bytes compressed with {kind.name}: {error}") from error
    del made[count:]
    return bytes(made)
