"""MapMessage: every setter and getter, names, states, the mapping."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from jmsaio.errors import (
    IllegalArgumentError,
    MessageFormatError,
    MessageNotWriteableError,
    NullValueError,
    NumberFormatError,
    UnsupportedOperationError,
)
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.values import TYPE_NAMES, Long
from tests.model.support import BY_NAME, READABLE, SAMPLES, expected, received

SETTERS = [*BY_NAME, "object"]


def put(message: MapMessage, kind: str, name: Any, value: Any) -> None:
    getattr(message, f"set_{kind}")(name, value)


@pytest.mark.parametrize(("source", "target"), list(product(SAMPLES, SAMPLES)))
def test_set_and_get(source: type, target: type) -> None:
    message = MapMessage()
    put(message, TYPE_NAMES[source], "n", SAMPLES[source])
    put(message, "object", "o", SAMPLES[source])
    for one in (message, received(message)):
        for name in ("n", "o"):
            stored = one.get_object(name)
            assert stored == SAMPLES[source] and type(stored) is type(SAMPLES[source])
            if target in READABLE[source]:
                value = getattr(one, f"get_{TYPE_NAMES[target]}")(name)
                assert value == expected(source, target) and type(value) in (bool, int, float, str, bytes)
            else:
                with pytest.raises(MessageFormatError, match=f"'{name}'"):
                    getattr(one, f"get_{TYPE_NAMES[target]}")(name)


@pytest.mark.parametrize("kind", SETTERS)
@pytest.mark.parametrize("name", ["", None, 1])
def test_a_name_must_be_a_string_that_is_not_empty(kind: str, name: Any) -> None:
    for message in (MapMessage(), received(MapMessage())):
        with pytest.raises(IllegalArgumentError):
            put(message, kind, name, SAMPLES[int])
        with pytest.raises(IllegalArgumentError):
            message.set_bytes(name, b"abc", 1, 1)


@pytest.mark.parametrize("kind", SETTERS)
def test_received_is_read_only_until_cleared(kind: str) -> None:
    value = SAMPLES[BY_NAME[kind]] if kind != "object" else object()
    message = received(MapMessage({"a": 1}))
    with pytest.raises(MessageNotWriteableError):
        put(message, kind, "a", value)
    with pytest.raises(MessageNotWriteableError):
        message["a"] = 2
    with pytest.raises(MessageNotWriteableError):
        message.set_string("a", None)
    message.clear_body()
    assert message.get_map_names() == []
    message.set_int("b", 2)
    assert message.get_int("b") == 2


@pytest.mark.parametrize("stored", [True, False], ids=["None", "missing"])
def test_missing_and_null(stored: bool) -> None:
    message = MapMessage({"n": None} if stored else None)
    assert message.item_exists("n") is stored
    assert message.get_boolean("n") is False
    assert message.get_string("n") is None and message.get_bytes("n") is None and message.get_object("n") is None
    for kind in ("byte", "short", "int", "long"):
        with pytest.raises(NumberFormatError):
            getattr(message, f"get_{kind}")("n")
    for kind in ("float", "double", "char"):
        with pytest.raises(NullValueError):
            getattr(message, f"get_{kind}")("n")


def test_null_through_setters() -> None:
    message = MapMessage()
    message.set_string("s", None)
    message.set_bytes("b", None)
    message.set_object("o", None)
    assert dict(message) == {"s": None, "b": None, "o": None}
    for kind in ("boolean", "byte", "short", "char", "int", "long", "float", "double"):
        with pytest.raises(NullValueError):
            put(message, kind, "n", None)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("boolean", 1), ("byte", 128), ("short", 2**15), ("char", "ab"), ("char", ""), ("char", 65), ("int", 2**31),
     ("long", 2**63), ("float", "1"), ("double", True), ("string", b""), ("bytes", "x"), ("object", []),
     ("object", {})],
)  # fmt: skip
def test_values_of_another_type(kind: str, value: Any) -> None:
    message = MapMessage({"n": "kept"})
    with pytest.raises(MessageFormatError):
        put(message, kind, "n", value)
    assert message["n"] == "kept"


def test_bytes_are_copied_and_sliced() -> None:
    data = bytearray(b"abcdef")
    message = MapMessage()
    message.set_bytes("all", data)
    message.set_bytes("part", data, 1, 3)
    message.set_bytes("rest", data, 4)
    message.set_bytes("none", data, 6, 0)
    message.set_object("object", data)
    data[:] = b"......"
    assert dict(message) == {"all": b"abcdef", "part": b"bcd", "rest": b"ef", "none": b"", "object": b"abcdef"}
    assert all(type(value) is bytes for value in message.values())


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, -1), (0, 7), (6, 1), (7, 0), (7, None), (2**70, 1)])
def test_a_slice_outside_of_its_bytes_is_refused_and_sets_nothing(offset: int, length: int | None) -> None:
    message = MapMessage()
    with pytest.raises(IndexError):
        message.set_bytes("n", b"abcdef", offset, length)
    assert not message.item_exists("n")


def test_it_is_a_mapping() -> None:
    message = MapMessage({"a": 1, "b": "x"})
    assert isinstance(message, Mapping) and dict(message) == {"a": 1, "b": "x"} and len(message) == 2 and "a" in message
    message["big"] = 2**40
    assert type(message["big"]) is Long and message.get("c") is None
    message.update({"c": b"x"})
    with pytest.raises(KeyError):
        message["zz"]
    for remove in (
        lambda: message.pop("a"),
        message.popitem,
        lambda: message.__delitem__("a"),
    ):
        with pytest.raises(UnsupportedOperationError):
            remove()
    message.clear()
    assert len(message) == 0 and message, "an empty map message is still a message"


def test_two_messages_are_two() -> None:
    one, two = MapMessage({"a": 1}), MapMessage({"a": 1})
    assert one == one and one != two and len({one, two}) == 2


@pytest.mark.parametrize("mapping", [{"a": []}, {"a": 1, "b": {}}, {"a": 2**63}])
def test_values_without_a_type(mapping: Any) -> None:
    with pytest.raises(MessageFormatError):
        MapMessage(mapping)


@pytest.mark.parametrize(
    ("kind", "assignable"), [(dict, True), (Mapping, True), (object, True), (str, False), (list, False)]
)
def test_the_body_is_a_copy_of_the_map_and_no_other_type(kind: type, assignable: bool) -> None:
    message = MapMessage({"a": 1})
    assert message.is_body_assignable_to(kind) is assignable
    if assignable:
        body: Any = message.get_body(kind)
        assert body == {"a": 1} and type(body) is dict
        body["a"] = 2
        assert message["a"] == 1, "the body is a copy"
    else:
        with pytest.raises(MessageFormatError):
            message.get_body(kind)
    empty = MapMessage()
    assert empty.is_body_assignable_to(kind) and empty.get_body(kind) is None
