"""Whatever a stream says, reading it gives a value or an error, within its own length."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, strategies as st

from jmsaio.codec.javaser import read_map, read_object, write_map, write_object
from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model.messages.object_message import JavaObject
from jmsaio.model.values import Long, Value
from tests.codec.java_streams import BOOLEAN, BYTES, INTEGER, LIST, NUMBER, stream
from tests.codec.strategies import bodies, loose_texts, same


@pytest.mark.parametrize(
    ("values", "data"),
    [
        ({}, "77 04 00000000"),
        ({"k": "v"}, "77 07 00000001 0001 6b 74 0001 76"),
        ({"k": None}, "77 07 00000001 0001 6b 70"),
        ({"k": 1}, f"77 07 00000001 0001 6b 73 {INTEGER} {NUMBER} 00000001"),
        ({"k": True}, f"77 07 00000001 0001 6b 73 {BOOLEAN} 01"),
        (
            {"a": 1, "b": 2},
            f"77 07 00000002 0001 61 73 {INTEGER} {NUMBER} 00000001 77 03 0001 62 73 71 007e0000 00000002",
        ),
        (
            {"a": b"\1", "b": b""},
            f"77 07 00000002 0001 61 75 {BYTES} 00000001 01 77 03 0001 62 75 71 007e0000 00000000",
        ),
    ],
)
def test_a_map_is_written_and_read_as_java_does(values: dict[str, Value], data: str) -> None:
    assert write_map(values) == stream(data)
    assert read_map(stream(data)) == values


@pytest.mark.parametrize(
    ("value", "data"), [("foo", "74 0003 666f6f"), (7, f"73 {INTEGER} {NUMBER} 00000007"), (None, "70")]
)
def test_an_object_is_written_and_read_as_java_does(value: Value, data: str) -> None:
    assert write_object(value) == stream(data)
    assert same(read_object(stream(data)), value)


@given(bodies)
def test_object_round_trip(value: Value) -> None:
    assert same(read_object(write_object(value)), value)


@given(st.dictionaries(loose_texts, bodies, max_size=12))
def test_map_round_trip(values: dict[str, Value]) -> None:
    found = read_map(write_map(values))
    assert list(found) == list(values) and all(map(same, found.values(), values.values()))


def test_a_class_above_is_referred_to() -> None:
    data = write_map({"a": 1, "b": Long(2)})
    assert data.endswith(bytes.fromhex("0005 76616c7565 78 71 007e0001 0000000000000002"))
    assert all(map(same, read_map(data).values(), [1, Long(2)]))


def test_classes_are_referred_to_past_texts_bytes_and_boxes() -> None:
    """Each of them takes a number of its own."""
    values: dict[str, Value] = {
        "a": "x",
        "b": b"y",
        "c": 1,
        "d": True,
        "e": "z",
        "f": Long(2),
        "g": Long(3),
        "h": b"w",
        "i": False,
    }
    found = read_map(write_map(values))
    assert list(found) == list(values) and all(map(same, found.values(), values.values()))


def test_long_names_and_texts() -> None:
    assert write_map({"k" * 1500: None})[4:9].hex() == "7a00000400"
    assert read_map(write_map({"k" * 65_535: 1})) == {"k" * 65_535: 1}
    with pytest.raises(MessageFormatError, match="up to 65535 bytes"):
        write_map({"k" * 65_536: 1})
    assert write_object("x" * 65_535)[4] == 0x74
    assert write_object("x" * 65_536)[4:13].hex() == "7c" + "0000000000010000"
    assert read_object(write_object("é" * 70_000)) == "é" * 70_000


def test_values_without_a_class() -> None:
    with pytest.raises(MessageFormatError, match="no Java class for a list"):
        write_object([])  # type: ignore[arg-type]  # that is the test


@given(st.dictionaries(loose_texts, bodies, min_size=1, max_size=5), st.data())
def test_a_truncated_map_is_malformed(values: dict[str, Value], data: st.DataObject) -> None:
    payload = write_map(values)
    with pytest.raises(MalformedMessageError):
        read_map(payload[: data.draw(st.integers(0, len(payload) - 1))])


@given(bodies, st.data())
def test_a_truncated_object_is_malformed(value: Value, data: st.DataObject) -> None:
    payload = write_object(value)
    with pytest.raises(MalformedMessageError):
        read_object(payload[: data.draw(st.integers(0, len(payload) - 1))])


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_raise_a_format_error(data: bytes, magic: bool) -> None:
    payload = b"\xac\xed\x00\x05" + data if magic else data
    for read in (read_map, read_object):
        try:
            read(payload)
        except MessageFormatError:
            continue


@pytest.mark.slow
@pytest.mark.parametrize("length", [248, 249, 250, 255, 1018, 1019, 5000, 65_535])
@pytest.mark.parametrize("step", [1, 7, 255, 1024, 70_000])
def test_block_data_may_be_split_anywhere(length: int, step: int) -> None:
    name = "k" * length
    data = (1).to_bytes(4, "big") + length.to_bytes(2, "big") + name.encode()
    blocks = b""
    for start in range(0, len(data), step):
        part = data[start : start + step]
        blocks += b"\x7a" + len(part).to_bytes(4, "big") + part + b"\x77\x00"
    blocks = blocks.removesuffix(b"\x77\x00")
    assert read_map(b"\xac\xed\x00\x05" + blocks + b"\x70") == {name: None}


def test_a_reset_forgets_the_classes() -> None:
    one = f"73 {INTEGER} {NUMBER} 00000001"
    assert read_map(stream(f"77 07 00000002 0001 61 {one} 79 77 03 0001 62 {one}")) == {"a": 1, "b": 1}
    with pytest.raises(MalformedMessageError, match="leads to no class"):
        read_map(stream(f"77 07 00000002 0001 61 {one} 79 77 03 0001 62 73 71 007e0000 00000002"))


@pytest.mark.parametrize(
    ("data", "class_name"),
    [
        (f"73 {LIST}", "java.util.ArrayList"),
        ("75 72 0002 5b49 4dba602676eab2a5 02 0000 78 70 00000000", "[I"),
        ("76 70", "java.lang.Class"),
        ("73 7d 00000000", "java.lang.reflect.Proxy"),
        ("7e 72 0007 612e436f6c6f72 0000000000000000 12 0000 78 70", "a.Color"),
        ("7e 70", "java.lang.Enum"),
        ("73 72 0003 6e6577", "new"),
    ],
)
def test_other_classes_stay_unread(data: str, class_name: str) -> None:
    assert read_object(stream(data)) == JavaObject(class_name, stream(data))
    with pytest.raises(MalformedMessageError, match="which a map can't hold"):
        read_map(stream("77 07 00000001 0001 6b" + data))


@pytest.mark.parametrize(
    "data",
    [
        "",
        "78",
        "71 007e0000",
        "77 01 00",
        "74 0003 6162",
        "7c ffffffffffffffff 61",
        "7c 7fffffffffffffff 61",
        f"75 {BYTES} 7fffffff 00",
        f"75 {BYTES} ffffffff",
        f"75 {INTEGER} {NUMBER} 00000001 00",
        f"73 {BYTES} 00000000",
        f"73 {NUMBER}",
        "73 70",
        "75 70 00000000",
        f"73 {INTEGER} 70 00000001",
        f"73 {INTEGER} {BOOLEAN} 00000001",
        f"73 {INTEGER} {LIST} 00000001",
        f"73 {INTEGER} {INTEGER}",
        f"73 {INTEGER} 71 007e0000 00000001",
        f"73 {INTEGER} 71 007e0001 00000001",
        f"73 {INTEGER} 71 007e0009 00000001",
        f"73 {INTEGER} 71 00000000 00000001",
        f"73 {INTEGER} 7d 00000000",
        f"73 {BOOLEAN[:-3]} {NUMBER} 01",
        f"73 {INTEGER.replace(' 02 0001', ' 03 0001')} {NUMBER} 00000001",
        f"73 {INTEGER.replace('12e2a0a4', '12e2a0a5')} {NUMBER} 00000001",
        "73 74 0001 61",
    ],
)
def test_a_malformed_object_is_refused(data: str) -> None:
    with pytest.raises(MalformedMessageError):
        read_object(stream(data))


@pytest.mark.parametrize(
    "data",
    [
        "",
        "70",
        "77 04 00000001",
        "77 08 00000001 0001 6b 00 70",
        "77 07 00000001 0005 6b 70",
        "77 07 7fffffff 0001 6b 70",
        "7a 7fffffff 00000001",
        "7a ffffffff 00000001",
        "77 07 00000002 0001 6b 74 0001 76 77 03 0001 6c 71 007e0000",
    ],
)
def test_a_malformed_map_is_refused(data: str) -> None:
    with pytest.raises(MalformedMessageError):
        read_map(stream(data))


@pytest.mark.parametrize("data", [b"", b"\xac\xed", b"\xac\xed\x00\x06\x70", b"hello"])
def test_no_stream_at_all(data: bytes) -> None:
    for read in (read_map, read_object):
        with pytest.raises(MalformedMessageError, match="not a Java serialization stream"):
            read(data)


def test_what_stands_behind_the_last_entry_is_not_looked_at() -> None:
    assert read_map(stream("77 04 00000000 ff")) == {}
    assert read_map(stream("77 04 ffffffff")) == {}


def test_an_announced_length_allocates_nothing() -> None:
    hostile = [
        "77 07 7fffffff 0001 6b 70",
        f"77 07 00000001 0001 6b 75 {BYTES} 7fffffff 00",
        "77 07 00000001 0001 6b 7c 00000000ffffffff 00",
        "7a 7fffffff 00000001",
    ]
    for data in hostile:
        tracemalloc.start()
        try:
            with pytest.raises(MalformedMessageError):
                read_map(stream(data))
            assert tracemalloc.get_traced_memory()[1] < 100_000
        finally:
            tracemalloc.stop()


def test_deep_superclass_chains_need_no_stack() -> None:
    """Classes are read in a loop, and the first unknown one ends it."""
    chain = "".join(f"72 0001 {0x41 + number % 26:02x} {0:016x} 02 0000 78" for number in range(100_000))
    assert isinstance(read_object(stream("73" + chain)), JavaObject)


def test_block_data_that_is_left_before_an_object_is_refused() -> None:
    entry = b"\x00\x00\x00\x01" + b"\x00\x01a" + b"left"
    with pytest.raises(MalformedMessageError, match="4 bytes of block data stand before an object"):
        read_map(b"\xac\xed\x00\x05" + bytes((0x77, len(entry))) + entry + b"\x70")
