"""Numbers of variable length are as protobuf has them, and bytes that are none are refused."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from jmsaio.model.varint import read_varint, varint


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_a_number_is_read_as_it_was_written(number: int, behind: bytes) -> None:
    data = b"\xff" + varint(number) + behind
    assert read_varint(data, 1, len(data)) == (number, len(data) - len(behind))


def test_the_bytes_are_those_of_the_protocol() -> None:
    assert [varint(number).hex() for number in (0, 1, 127, 128, 300, 2**64 - 1)] == [
        "00", "01", "7f", "8001", "ac02", "ffffffffffffffffff01",
    ]  # fmt: skip


@pytest.mark.parametrize(("data", "end"), [(b"", 0), (b"\x80", 1), (b"\x80\x01", 1), (b"\xff" * 100_000, 100_000)])
def test_a_number_that_does_not_end_is_refused(data: bytes, end: int) -> None:
    with pytest.raises(ValueError, match="without an end at byte 0"):
        read_varint(data, 0, end)
