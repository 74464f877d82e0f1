"""Bodies of each kind: empty, null, and what an object message makes of Python's values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.codec import bodies
from jmsaio.codec.javaser import read_object, write_object
from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model.messages.object_message import JavaObject, ObjectMessage
from jmsaio.model.values import Char, Double, Float, Int, Long, Value
from tests.codec import strategies

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
