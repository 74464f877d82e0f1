"""BytesMessage: the layout of Java's DataOutput, states, positions."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import (
    MessageEOFError,
    MessageFormatError,
    MessageNotReadableError,
    MessageNotWriteableError,
    NullValueError,
)
from jmsaio.model.messages.sequential import BytesMessage
from jmsaio.model.values import Byte, Char, Double, Float, Int, Long, Short
from tests.model.support import received

#: writer, value, bytes, reader.
LAYOUT: list[tuple[str, Any, str, str]] = [
    ("boolean", True, "01", "boolean"),
    ("boolean", False, "00", "boolean"),
    ("byte", -128, "80", "byte"),
    ("byte", 127, "7f", "unsigned_byte"),
    ("short", -2, "fffe", "short"),
    ("short", 32767, "7fff", "unsigned_short"),
    ("char", "A", "0041", "char"),
    ("char", "\ud800", "d800", "char"),
    ("int", 1, "00000001", "int"),
    ("int", -(2**31), "80000000", "int"),
    ("long", -2, "fffffffffffffffe", "long"),
    ("float", 1.5, "3fc00000", "float"),
    ("float", -math.inf, "ff800000", "float"),
    ("double", 1.5, "3ff8000000000000", "double"),
    ("utf", "hi", "00026869", "utf"),
    ("utf", "", "0000", "utf"),
    ("utf", "\x00é\U0001f600", "000ac080c3a9eda0bdedb880", "utf"),
]
READERS = [
    "boolean",
    "byte",
    "unsigned_byte",
    "short",
    "unsigned_short",
    "char",
    "int",
    "long",
    "float",
    "double",
    "utf",
]
WRITERS: dict[str, Any] = {name: value for name, value, _, _ in LAYOUT} | {"bytes": b"x", "object": 5}


def read(message: BytesMessage, kind: str) -> Any:
    return getattr(message, f"read_{kind}")()


def content(message: BytesMessage) -> bytes:
    """Its bytes, after which it is read-only."""
    return message.get_body(bytes) or b""


def write(message: BytesMessage, kind: str, value: Any) -> None:
    getattr(message, f"write_{kind}")(value)


@pytest.mark.parametrize(("writer", "value", "data", "reader"), LAYOUT)
def test_each_type_is_written_in_javas_layout_and_read_back(writer: str, value: Any, data: str, reader: str) -> None:
    message = BytesMessage()
    write(message, writer, value)
    assert content(message).hex() == data
    again = received(message)
    found = read(again, reader)
    assert found == value and type(found) is type(value)
    with pytest.raises(MessageEOFError):
        again.read_byte()


def test_the_example_of_the_wire_notes() -> None:
    message = BytesMessage()
    message.write_utf("hi")
    message.write_int(1)
    message.write_boolean(True)
    message.write_char("A")
    message.write_double(1.5)
    assert content(message).hex() == "00026869000000010100413ff8000000000000"
    message.reset()
    assert (message.read_utf(), message.read_int(), message.read_boolean(), message.read_char()) == ("hi", 1, True, "A")
    assert message.read_double() == 1.5


@pytest.mark.parametrize(
    ("value", "data"),
    [(True, "01"), (Byte(1), "01"), (Short(1), "0001"), (1, "00000001"), (Int(1), "00000001"), (Long(1),
     "00" * 7 + "01"),
     (2**40, "0000010000000000"), (Char("A"), "0041"), (Float(1.5), "3fc00000"), (1.5, "3ff8000000000000"),
     (Double(1.5), "3ff8000000000000"), ("A", "000141"), (b"A", "41"), (bytearray(b"A"), "41"),
     (memoryview(b"A"), "41")],
)  # fmt: skip
def test_an_object_is_written_with_the_width_of_its_type(value: Any, data: str) -> None:
    message = BytesMessage()
    message.write_object(value)
    assert content(message).hex() == data


def test_unsigned_and_reinterpreted() -> None:
    message = BytesMessage(b"\xff\xff\xff\x02")
    message.reset()
    assert (message.read_unsigned_byte(), message.read_unsigned_short(), message.read_boolean()) == (255, 65535, True)
    message.reset()
    assert message.read_int() == -254


@pytest.mark.parametrize("kind", READERS)
def test_write_only_when_new_and_after_clear_body(kind: str) -> None:
    cleared = received(BytesMessage(b"abc"))
    cleared.clear_body()
    for message in (BytesMessage(b"\x00" * 10), cleared):
        with pytest.raises(MessageNotReadableError):
            read(message, kind)
        with pytest.raises(MessageNotReadableError):
            message.read_bytes(bytearray(3))
        with pytest.raises(MessageNotReadableError):
            message.get_body_length()
    cleared.write_byte(1)
    assert content(cleared) == b"\x01"


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("value", [True, False], ids=["right", "wrong"])
def test_read_only_when_received_and_after_reset(kind: str, value: bool) -> None:
    after_reset = BytesMessage(b"abc")
    after_reset.reset()
    for message in (received(BytesMessage(b"abc")), after_reset):
        with pytest.raises(MessageNotWriteableError):
            write(message, kind, WRITERS[kind] if value else [])
        assert message.get_body_length() == 3


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("length", range(8))
def test_the_end_moves_nothing(kind: str, length: int) -> None:
    message = received(BytesMessage(b"\x00\x09" + b"a" * length))
    message.read_short()
    try:
        read(message, kind)
    except MessageEOFError:
        buffer = bytearray(10)
        assert message.read_bytes(buffer) == (length or -1)


def test_body_length_is_the_whole() -> None:
    message = received(BytesMessage(b"abcdef"))
    message.read_int()
    assert message.get_body_length() == message.body_length == 6


def test_a_second_reset_goes_back() -> None:
    message = BytesMessage(b"ab")
    message.reset()
    assert message.read_byte() == 97
    message.reset()
    assert message.read_byte() == 97


def test_read_bytes_in_parts() -> None:
    message = received(BytesMessage(b"abcdefg"))
    buffer = bytearray(3)
    assert (message.read_bytes(buffer), bytes(buffer)) == (3, b"abc")
    assert (message.read_bytes(buffer, 2), bytes(buffer)) == (2, b"dec")
    assert message.read_bytes(buffer, 0) == 0 and message.read_bytes(bytearray()) == 0
    assert (message.read_bytes(buffer), bytes(buffer)) == (2, b"fgc")
    assert message.read_bytes(buffer) == -1 and message.read_bytes(buffer, 1) == -1
    assert message.read_bytes(buffer, 0) == 0 and message.read_bytes(bytearray()) == 0  # nothing was asked for
    assert bytes(buffer) == b"fgc"


def test_nothing_there_at_first() -> None:
    assert received(BytesMessage()).read_bytes(bytearray(3)) == -1


@pytest.mark.parametrize("length", [-1, 4, 2**70])
def test_read_bytes_outside_of_the_buffer(length: int) -> None:
    message = received(BytesMessage(b"abc"))
    with pytest.raises(IndexError):
        message.read_bytes(bytearray(3), length)
    buffer = bytearray(3)
    assert message.read_bytes(buffer) == 3 and buffer == b"abc"


@pytest.mark.parametrize(
    ("buffer", "error"), [(None, NullValueError), (b"abc", TypeError), ("abc", TypeError), (3, TypeError)]
)
def test_reading_into_what_is_no_buffer_is_refused_and_reads_nothing(buffer: Any, error: type[Exception]) -> None:
    message = received(BytesMessage(b"abc"))
    with pytest.raises(error):
        message.read_bytes(buffer)
    assert message.read_byte() == 97


def test_read_into_a_view() -> None:
    data = bytearray(6)
    assert received(BytesMessage(b"abc")).read_bytes(memoryview(data)[2:5]) == 3
    assert data == b"\x00\x00abc\x00"


@pytest.mark.parametrize(
    ("offset", "length", "data"), [(0, None, b"abcd"), (1, 2, b"bc"), (3, None, b"d"), (4, 0, b""), (4, None, b"")]
)
def test_a_slice_of_bytes_is_appended(offset: int, length: int | None, data: bytes) -> None:
    message = BytesMessage(b"x")
    message.write_bytes(b"abcd", offset, length)
    assert content(message) == b"x" + data


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, -1), (0, 5), (4, 1), (5, 0), (5, None), (2**70, 1)])
def test_write_bytes_outside(offset: int, length: int | None) -> None:
    message = BytesMessage(b"x")
    with pytest.raises(IndexError):
        message.write_bytes(b"abcd", offset, length)
    assert content(message) == b"x"


@pytest.mark.parametrize("kind", [name for name in WRITERS if name not in ("utf",)] + ["utf"])
def test_null_cannot_be_written(kind: str) -> None:
    message = BytesMessage()
    with pytest.raises(NullValueError):
        write(message, kind, None)
    assert content(message) == b""


@pytest.mark.parametrize(
    ("kind", "value"),
    [("boolean", 1), ("byte", 128), ("short", 2**15), ("char", "ab"), ("char", 65), ("int", 2**31), ("int", True),
     ("long", 2**63), ("float", "1"), ("double", 10**400), ("utf", b"x"), ("utf", "x" * 65536), ("utf", "é" * 32768),
     ("bytes", "x"), ("bytes", [1]), ("object", []), ("object", object()), ("object", 2**63)],
    ids=lambda value: repr(value)[:12],
)  # fmt: skip
def test_values_of_another_type(kind: str, value: Any) -> None:
    message = BytesMessage(b"x")
    with pytest.raises(MessageFormatError):
        write(message, kind, value)
    assert content(message) == b"x"


def test_the_longest_utf() -> None:
    message = BytesMessage()
    message.write_utf("é" * 32767)
    message.reset()
    assert message.read_utf() == "é" * 32767


@pytest.mark.parametrize("data", ["0001ff", "0002c341", "0001c3", "0003e280e2", "0004f09f9880", "000180"])
def test_malformed_utf_moves_nothing(data: str) -> None:
    message = received(BytesMessage(bytes.fromhex(data)))
    with pytest.raises(MessageFormatError):
        message.read_utf()
    assert message.read_unsigned_short() == int(data[:4], 16)


@pytest.mark.parametrize("value", ["x", None, [1], 5])
def test_only_bytes_make_one(value: Any) -> None:
    with pytest.raises(MessageFormatError):
        BytesMessage(value)


def test_what_was_sent_does_not_change() -> None:
    data = bytearray(b"abc")
    message = BytesMessage(data)
    sent = message._body()
    data[0] = 0
    message.write_byte(1)
    assert sent == b"abc" and message._body() == b"abc\x01"


@pytest.mark.parametrize(
    ("kind", "assignable"),
    [(bytes, True), (object, True), (Sequence, True), (str, False), (bytearray, False), (dict, False)],
)
def test_the_body_is_bytes_and_reading_it_rewinds(kind: type, assignable: bool) -> None:
    message = received(BytesMessage(b"abc"))
    message.read_byte()
    assert message.is_body_assignable_to(kind) is assignable
    if assignable:
        assert message.get_body(kind) == b"abc"
        assert message.read_byte() == 97, "reset afterwards"
    else:
        with pytest.raises(MessageFormatError):
            message.get_body(kind)
    new = BytesMessage(b"abc")
    assert new.is_body_assignable_to(kind) is assignable
    empty = received(BytesMessage())
    assert empty.is_body_assignable_to(kind) and empty.get_body(kind) is None


@given(st.lists(st.one_of(
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("byte"), st.integers(-128, 127)),
    st.tuples(st.just("short"), st.integers(-(2**15), 2**15 - 1)),
    st.tuples(st.just("char"), st.characters(max_codepoint=0xFFFF)),
    st.tuples(st.just("int"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("long"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("float"), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just("double"), st.floats(allow_nan=False)),
    st.tuples(st.just("utf"), st.text()),
)))  # fmt: skip
def test_what_is_written_is_read(values: list[tuple[str, Any]]) -> None:
    message = BytesMessage()
    for kind, value in values:
        write(message, kind, value)
    message.reset()
    assert [read(message, kind) for kind, _ in values] == [value for _, value in values]
    assert message.read_bytes(bytearray(1)) == -1


@given(st.binary(), st.lists(st.sampled_from([*READERS, "bytes"]), max_size=20))
def test_any_bytes_give_values_or_clear_errors(data: bytes, kinds: list[str]) -> None:
    """Against a position kept beside: a read takes exactly its bytes, or none."""
    message, place = received(BytesMessage(data)), 0
    sizes = {"boolean": 1, "byte": 1, "unsigned_byte": 1, "long": 8, "double": 8, "int": 4, "float": 4}
    for kind in kinds:
        if kind == "bytes":
            buffer = bytearray(3)
            count = message.read_bytes(buffer)
            assert count == (min(3, len(data) - place) or -1)
            place += max(count, 0)
            continue
        try:
            read(message, kind)
        except (MessageEOFError, MessageFormatError):
            assert message._position == place
            continue
        length = struct.unpack_from(">H", data, place)[0] if kind == "utf" else 0
        place += sizes.get(kind, 2) + length
        assert message._position == place


def test_write_utf_takes_as_many_bytes_as_its_length_can_say() -> None:
    message = BytesMessage()
    message.write_utf("a" * 0xFFFF)
    message.reset()
    assert message.read_utf() == "a" * 0xFFFF
    with pytest.raises(MessageFormatError, match=r"65535 bytes.*65536"):
        BytesMessage().write_utf("a" * 0x10000)
