"""CRC-32C, as RFC 3720 gives it."""

from __future__ import annotations

import pytest

from jmsaio.protocol.checksum import crc32c

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)],
)
def test_known_checksums_in_one_part_or_two(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected
    assert {crc32c(data[:at], data[at:]) for at in range(len(data) + 1)} == {expected}
