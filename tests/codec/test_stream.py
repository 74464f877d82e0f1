"""StreamMessage bodies."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, strategies as st

from jmsaio.codec.stream import decode_stream, encode_stream
from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model.values import Byte, Char, Long, Short, Value
from tests.codec.strategies import bodies, same


@pytest.mark.parametrize(
    ("values", "data"),
    [
        ([42, "hi", True, b"\xca\xfe", None], "03 0000002a 02 0002 6869 01 01 0a 00000002 cafe 0b"),
        (
            [Short(-2), Long(1), -2.0, Byte(127), Char("A")],
            "04 fffe 05 0000000000000001 07 c000000000000000 08 7f 09 0041",
        ),
        (["\0é😀"], "02 000a c080c3a9eda0bdedb880"),
        ([], ""),
    ],
)
def test_streams_have_the_bytes_that_java_writes(values: list[Value], data: str) -> None:
    assert encode_stream(values) == bytes.fromhex(data)
    assert all(map(same, decode_stream(bytes.fromhex(data)), values))


@given(st.lists(bodies, max_size=20))
def test_a_stream_is_read_as_it_was_written(values: list[Value]) -> None:
    found = decode_stream(encode_stream(values))
    assert len(found) == len(values) and all(map(same, found, values))


@given(st.lists(bodies, min_size=1, max_size=6), st.data())
def test_a_cut_stream_never_gives_a_wrong_value(values: list[Value], data: st.DataObject) -> None:
    """A cut gives the values before it, or an error; never another value in their place."""
    payload = encode_stream(values)
    cut = data.draw(st.integers(0, len(payload) - 1))
    try:
        found = decode_stream(payload[:cut])
    except MalformedMessageError:
        return
    assert all(map(same, found, values)) and len(found) < len(values)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_stream_or_raise_a_format_error(data: bytes) -> None:
    try:
        decode_stream(data)
    except MessageFormatError:
        return


@pytest.mark.parametrize(
    "data", ["00", "0c", "ff", "03 000000", "0a 7fffffff 00", "0a ffffffff", "0a 0000", "02 ffff 41", "02 00"]
)
def test_a_malformed_stream_is_refused(data: str) -> None:
    with pytest.raises(MalformedMessageError):
        decode_stream(bytes.fromhex(data))


def test_a_text_that_is_no_utf8_is_refused() -> None:
    with pytest.raises(MessageFormatError, match="UTF-8"):
        decode_stream(bytes.fromhex("02 0001 ff"))


def test_an_announced_length_allocates_nothing() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessageError, match="2147483647 bytes announced"):
            decode_stream(b"\x0a\x7f\xff\xff\xff" + bytes(100))
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_values_that_do_not_fit() -> None:
    assert len(encode_stream(["é" * 32_767])) == 3 + 65_534
    assert len(encode_stream(["x" * 65_535])) == 3 + 65_535
    with pytest.raises(MessageFormatError, match="up to 65535 bytes, not 65536"):
        encode_stream(["é" * 32_768])
    with pytest.raises(MessageFormatError):
        encode_stream([1 << 40])
    with pytest.raises(MessageFormatError):
        encode_stream([object()])  # type: ignore[list-item]  # that is the test


def test_a_tag_that_there_is_not_is_told_even_when_bytes_follow_that_look_like_a_length() -> None:
    with pytest.raises(MalformedMessageError, match="tag 99"):
        decode_stream(b"\x63\x00\x00\x00\x00")
