"""StreamMessage: every writer and reader, positions, byte fields in parts, states."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import (
    MessageEOFError,
    MessageFormatError,
    MessageNotReadableError,
    MessageNotWriteableError,
    NullValueError,
    NumberFormatError,
)
from jmsaio.model.messages.sequential import StreamMessage
from jmsaio.model.values import TYPE_NAMES
from tests.model.support import BY_NAME, READABLE, SAMPLES, expected, received

SCALARS = [kind for kind in SAMPLES if kind is not bytes]
WRITERS = [*BY_NAME, "object"]
READERS = [*(TYPE_NAMES[kind] for kind in SCALARS), "object"]


def read(message: StreamMessage, kind: str) -> Any:
    return getattr(message, f"read_{kind}")()


def fields(message: StreamMessage) -> list[Any]:
    """Its fields, after which it is read-only."""
    message.reset()
    found: list[Any] = []
    with suppress(MessageEOFError):
        while True:
            found.append(message.read_object())
    return found


def write(message: StreamMessage, kind: str, value: Any) -> None:
    getattr(message, f"write_{kind}")(value)


@pytest.mark.parametrize(("source", "target"), list(product(SAMPLES, SCALARS)))
@pytest.mark.parametrize("through_object", [False, True])
def test_write_and_read(source: type, target: type, through_object: bool) -> None:
    message = StreamMessage()
    write(message, "object" if through_object else TYPE_NAMES[source], SAMPLES[source])
    again = received(message)
    if target in READABLE[source]:
        value = read(again, TYPE_NAMES[target])
        assert value == expected(source, target) and type(value) in (bool, int, float, str)
    else:
        with pytest.raises(MessageFormatError):
            read(again, TYPE_NAMES[target])
        stored = again.read_object()
        assert stored == SAMPLES[source] and type(stored) is type(SAMPLES[source]), "the position was kept"
    with pytest.raises(MessageEOFError):
        again.read_object()


@pytest.mark.parametrize("source", list(SAMPLES))
def test_bytes_are_read_from_bytes_only(source: type) -> None:
    message = received(StreamMessage([SAMPLES[source]]))
    buffer = bytearray(5)
    if source is bytes:
        assert message.read_bytes(buffer) == 2 and buffer[:2] == SAMPLES[source]
    else:
        with pytest.raises(MessageFormatError):
            message.read_bytes(buffer)
        assert message.read_object() == SAMPLES[source]


def test_a_failed_read_keeps_the_position() -> None:
    message = received(StreamMessage(["mytest string", None, 5]))
    for kind in ("byte", "short", "int", "long", "float", "double"):
        with pytest.raises(NumberFormatError):
            read(message, kind)
    with pytest.raises(MessageFormatError):
        message.read_char()
    assert message.read_string() == "mytest string"
    for kind in ("byte", "short", "int", "long"):
        with pytest.raises(NumberFormatError):
            read(message, kind)
    for kind in ("float", "double", "char"):
        with pytest.raises(NullValueError):
            read(message, kind)
    assert message.read_string() is None and message.read_int() == 5
    for kind in READERS:
        with pytest.raises(MessageEOFError):
            read(message, kind)
    with pytest.raises(MessageEOFError):
        message.read_bytes(bytearray(1))


def test_null_is_written_by_object_types_and_read_as_such() -> None:
    message = StreamMessage()
    message.write_string(None)
    message.write_object(None)
    message.write_bytes(None)
    message.write_object(None)
    for kind in ("boolean", "byte", "short", "char", "int", "long", "float", "double"):
        with pytest.raises(NullValueError):
            write(message, kind, None)
    again = received(message)
    assert again.read_boolean() is False and again.read_object() is None
    assert again.read_bytes(bytearray(2)) == -1 and again.read_string() is None


@pytest.mark.parametrize("kind", READERS)
def test_write_only_when_new_and_after_clear_body(kind: str) -> None:
    cleared = received(StreamMessage([1]))
    cleared.clear_body()
    for message in (StreamMessage([1]), cleared):
        with pytest.raises(MessageNotReadableError):
            read(message, kind)
        with pytest.raises(MessageNotReadableError):
            message.read_bytes(bytearray(1))
    cleared.write_int(7)
    cleared.reset()
    assert cleared.read_int() == 7


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("right", [True, False])
def test_read_only_when_received_and_after_reset(kind: str, right: bool) -> None:
    value = SAMPLES[BY_NAME[kind]] if right and kind != "object" else object()
    after_reset = StreamMessage([1])
    after_reset.reset()
    for message in (received(StreamMessage([1])), after_reset):
        with pytest.raises(MessageNotWriteableError):
            write(message, kind, value)
        assert fields(message) == [1]


def test_reset_goes_back_also_in_a_byte_field() -> None:
    message = received(StreamMessage([b"abcd", 1]))
    message.read_bytes(bytearray(2))
    message.reset()
    assert message.read_object() == b"abcd" and message.read_int() == 1


def test_a_field_shorter_than_the_buffer_is_done_at_once() -> None:
    message = received(StreamMessage([b"abc", b"de", 1]))
    buffer = bytearray(5)
    assert message.read_bytes(buffer) == 3 and buffer[:3] == b"abc"
    assert message.read_bytes(buffer) == 2 and buffer[:2] == b"de", "two fields stay two"
    assert message.read_int() == 1


def test_a_field_that_fills_the_buffer_ends_with_minus_one() -> None:
    message = received(StreamMessage([b"abcd", 1]))
    buffer = bytearray(2)
    assert [message.read_bytes(buffer), bytes(buffer)] == [2, b"ab"]
    assert [message.read_bytes(buffer), bytes(buffer)] == [2, b"cd"]
    with pytest.raises(MessageFormatError, match="partly read"):
        message.read_int()
    assert message.read_bytes(buffer) == -1
    assert message.read_int() == 1


def test_a_field_that_ends_inside_the_buffer() -> None:
    message = received(StreamMessage([b"abc", 1]))
    buffer = bytearray(2)
    assert [message.read_bytes(buffer), message.read_bytes(buffer), bytes(buffer)] == [2, 1, b"cb"]
    assert message.read_int() == 1


@pytest.mark.parametrize("kind", READERS)
def test_an_unfinished_field_refuses_other_reads(kind: str) -> None:
    message = received(StreamMessage([b"abcd"]))
    buffer = bytearray(3)
    assert message.read_bytes(buffer) == 3
    with pytest.raises(MessageFormatError):
        read(message, kind)
    assert message.read_bytes(buffer) == 1 and buffer[:1] == b"d"


def test_an_empty_field() -> None:
    message = received(StreamMessage([b"", 1]))
    assert message.read_bytes(bytearray()) == 0
    assert message.read_bytes(bytearray(2)) == 0
    assert message.read_int() == 1


def test_an_empty_buffer_takes_nothing() -> None:
    message = received(StreamMessage([b"abcd", 1]))
    assert message.read_bytes(bytearray()) == 0
    assert message.read_bytes(bytearray(4)) == 4
    assert message.read_bytes(bytearray()) == 0
    assert message.read_bytes(bytearray(4)) == -1
    assert message.read_int() == 1


@pytest.mark.parametrize(("buffer", "error"), [(None, NullValueError), (b"abc", TypeError), ("abc", TypeError)])
def test_reading_into_what_is_no_buffer_keeps_the_place_in_the_field(buffer: Any, error: type[Exception]) -> None:
    message = received(StreamMessage([b"abcd"]))
    assert message.read_bytes(bytearray(1)) == 1
    with pytest.raises(error):
        message.read_bytes(buffer)
    rest = bytearray(9)
    assert message.read_bytes(rest) == 3 and rest[:3] == b"bcd", "the place in the field was kept"


@pytest.mark.slow
@given(st.lists(st.one_of(st.binary(max_size=9), st.integers(0, 9))), st.integers(1, 5))
def test_byte_fields_through_any_buffer(values: list[Any], size: int) -> None:
    message, found = received(StreamMessage(values)), []
    for value in values:
        if isinstance(value, int):
            found.append(message.read_int())
            continue
        data, buffer = b"", bytearray(size)
        while True:
            count = message.read_bytes(buffer)
            data += buffer[: max(count, 0)]
            if count < size:
                break
        found.append(data)
    assert found == values


@pytest.mark.parametrize(
    ("kind", "value"),
    [("boolean", 1), ("byte", 128), ("short", 2**15), ("char", "ab"), ("int", 2**31), ("long", 2**63), ("float", "1"),
     ("double", True), ("string", b""), ("bytes", "x"), ("object", []), ("object", {}), ("object", 2**63)],
)  # fmt: skip
def test_values_of_another_type(kind: str, value: Any) -> None:
    message = StreamMessage([1])
    with pytest.raises(MessageFormatError):
        write(message, kind, value)
    assert fields(message) == [1]


@pytest.mark.parametrize("values", ["abc", b"abc", bytearray(b"abc"), [[]], [{}], [2**63], (1, object())])
def test_values_that_make_no_stream(values: Any) -> None:
    with pytest.raises(MessageFormatError):
        StreamMessage(values)


def test_bytes_are_copied_and_sliced() -> None:
    data = bytearray(b"abcdef")
    message = StreamMessage()
    message.write_bytes(data)
    message.write_bytes(data, 1, 3)
    message.write_bytes(data, 4)
    message.write_object(data)
    data[:] = b"......"
    for offset, length in ((-1, 1), (0, 7), (7, None)):
        with pytest.raises(IndexError):
            message.write_bytes(data, offset, length)
    assert fields(message) == [b"abcdef", b"bcd", b"ef", b"abcdef"]


@pytest.mark.parametrize("kind", [str, bytes, list, object])
def test_a_stream_has_no_body_type(kind: type) -> None:
    for message in (StreamMessage([1]), StreamMessage(), received(StreamMessage())):
        assert not message.is_body_assignable_to(kind)
        with pytest.raises(MessageFormatError):
            message.get_body(kind)
