"""Bodies of each kind: empty, null, and what an object message makes of Python's values."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.codec import bodies
from jmsaio.codec.bodies import decode_stream, encode_stream
from jmsaio.codec.javaser import read_object, write_object
from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model.messages.object_message import JavaObject, ObjectMessage
from jmsaio.model.values import Byte, Char, Double, Float, Int, Long, Short, Value
from tests.codec import strategies
from tests.codec.strategies import same

json_able = st.recursive(
    st.none() | st.booleans() | strategies.ints | st.floats(allow_nan=False) | strategies.loose_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strategies.texts, inner, max_size=4),
    max_leaves=12,
)


def encoded(kind: str, body: Any) -> bytes | None:
    """The payload of a body."""
    return bodies.encode_body(kind, body, {})


def test_text_is_utf_8_and_lone_surrogates_are_refused() -> None:
    assert bodies.encode_text("é😀\0") == "é😀\0".encode()
    with pytest.raises(MessageFormatError, match="lone surrogate at 1"):
        bodies.encode_text("a\ud800")


def test_null_and_empty_bodies() -> None:
    assert encoded("bytes", b"") == b"" and encoded("stream", []) == b""
    assert encoded("map", {}) is None and encoded("object", None) is None and encoded("header", None) is None
    for payload in (None, b""):
        assert bodies.decode_body("map", payload, {}) == {}
        assert bodies.decode_body("stream", payload, {}) == []
        assert bodies.decode_body("object", payload, {}) is None


def test_a_bytes_body_is_a_copy() -> None:
    body = bytearray(b"one")
    payload = encoded("bytes", body)
    body[:] = b"two"
    assert payload == b"one" and type(payload) is bytes


@pytest.mark.parametrize(
    ("value", "java"),
    [
        ("x", "x"), (b"x", b"x"), (True, True), (5, 5), (1 << 40, Long(1 << 40)), (1.5, 1.5), (Float(0.1), Float(0.1)),
        (Int(3), 3), (Double(2.5), 2.5), (Char("c"), Char("c")),
    ],
)  # fmt: skip
def test_a_simple_object_is_written_as_its_java_object(value: Value, java: Value) -> None:
    payload = encoded("object", value)
    assert payload == write_object(java)
    assert strategies.same(bodies.decode_body("object", payload, {}), java)


@given(json_able.filter(lambda value: isinstance(value, list | dict)))
def test_lists_and_dicts_are_written_as_marked_json(value: Any) -> None:
    properties: dict[str, str] = {}
    payload = bodies.encode_body("object", value, properties)
    assert properties == {"JMS_jmsaio_object": "json"}
    assert payload is not None and isinstance(read_object(payload), str)
    assert bodies.decode_body("object", payload, properties) == value


def test_json_has_no_spaces_and_no_escapes_for_letters() -> None:
    assert encoded("object", [1, {"größe": None}]) == write_object('[1,{"größe":null}]')


def test_objects_that_are_not_json_able() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value in ([object()], {"a": b"bytes"}, endless, {(1,): 2}, object()):
        with pytest.raises(MessageFormatError):
            encoded("object", value)


@pytest.mark.parametrize("text", ["not json", "", "[" * 100_000, "[1", "9" * 5000])
def test_an_old_mark_on_another_text(text: str) -> None:
    """A Java service may put another String under the mark that came to it."""
    assert bodies.decode_body("object", write_object(text), {"JMS_jmsaio_object": "json"}) == text


def test_nesting_is_bounded() -> None:
    """What a message can hold when it is made is read; what would exhaust the stack later stays a text."""
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    wide = [[number] for number in range(1000)]
    for value in (ObjectMessage(deep).get_object(), wide):
        properties: dict[str, str] = {}
        payload = bodies.encode_body("object", value, properties)
        assert bodies.decode_body("object", payload, properties) == value
    for text in ("[" * 500 + "]" * 500, '{"a":' * 500 + "1" + "}" * 500):
        assert bodies.decode_body("object", write_object(text), {"JMS_jmsaio_object": "json"}) == text


def test_what_is_nested_101_deep_is_read_however_much_stands_beside_it() -> None:
    for depth, is_read in ((101, True), (102, False)):
        text = "[" * depth + "1" + "]" * (depth - 1) + ",[],{}]"
        found = bodies.decode_body("object", write_object(text), {"JMS_jmsaio_object": "json"})
        assert isinstance(found, list) is is_read and isinstance(found, str) is not is_read


def test_the_mark_says_nothing_about_other_objects() -> None:
    assert bodies.decode_body("object", write_object(5), {"JMS_jmsaio_object": "json"}) == 5
    assert bodies.decode_body("object", write_object("[1]"), {"JMS_jmsaio_object": "xml"}) == "[1]"


def test_a_java_object_goes_out_as_it_came() -> None:
    assert encoded("object", JavaObject("a.B", b"raw")) == b"raw"


@pytest.mark.parametrize("kind", ["map", "stream", "object"])
def test_a_body_that_cannot_be_read_is_malformed(kind: str) -> None:
    with pytest.raises(MalformedMessageError):
        bodies.decode_body(kind, b"\xff", {})


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


@given(st.lists(strategies.bodies, max_size=20))
def test_a_stream_is_read_as_it_was_written(values: list[Value]) -> None:
    found = decode_stream(encode_stream(values))
    assert len(found) == len(values) and all(map(same, found, values))


@given(st.lists(strategies.bodies, min_size=1, max_size=6), st.data())
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
