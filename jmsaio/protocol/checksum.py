"""CRC-32C, the checksum of the metadata and payload of each message."""

from __future__ import annotations

from google_crc32c import extend, value


def crc32c(data: bytes, more: bytes = b"") -> int:
    """Return the CRC-32C of ``data`` followed by ``more``, without joining them."""
    first: int = value(data)
    return int(extend(first, more)) if more else first
