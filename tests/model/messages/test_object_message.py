"""ObjectMessage and JavaObject."""

from __future__ import annotations

from typing import Any

import pytest

from jmsaio.errors import MessageFormatError, MessageNotWriteableError
from jmsaio.model.messages.object_message import JavaObject, ObjectMessage
from jmsaio.model.values import Byte, Char, Float, Int, Long
from tests.model.support import received

JAVA = JavaObject("com.acme.Order", b"\xac\xed\x00\x05")
VALUES = [
    None, True, 5, 2**40, 1.5, "", "x", b"", b"\x00", Byte(1), Float(1.1), Char("x"), JAVA, [], {}, [1, "a",
        None, [True]],
    {"a": {"b": [1.5, None]}},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_objects_are_kept_sent_and_replaced(value: Any) -> None:
    message = ObjectMessage(value)
    assert message.get_object() == message.object == message.get_body(object) == value
    again = received(message)
    assert again.get_object() == value
    other = ObjectMessage()
    other.set_object(value)
    assert other.object == value
    other.object = None
    assert other.object is None


@pytest.mark.parametrize(("value", "kind"), [(2**31, Long), (Int(5), int), (bytearray(b"x"), bytes), ((1, 2), list)])
def test_objects_are_brought_into_form(value: Any, kind: type) -> None:
    assert type(ObjectMessage(value).object) is kind


DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "value",
    [object(), {1: "a"}, {"a": object()}, [b"x"], [Byte(1)], {"a": 2**63}, 2**63, {1, 2}, 1j, DEEP, CIRCLE, [10**5000],
     {10**5000: 1}, int, lambda: None],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_objects_that_are_refused(value: Any) -> None:
    message = ObjectMessage("kept")
    with pytest.raises(MessageFormatError):
        ObjectMessage(value)
    with pytest.raises(MessageFormatError):
        message.set_object(value)
    assert message.object == "kept"


def test_it_is_a_snapshot() -> None:
    value = {"a": [1]}
    message = ObjectMessage(value)
    value["a"].append(2)
    assert message.object == {"a": [1]}
    message.object["a"].append(3)
    message.get_body(dict)["a"].append(4)  # type: ignore[index]  # there is a body
    assert message.object == {"a": [1]}


def test_received_is_read_only_until_cleared() -> None:
    message = received(ObjectMessage([1]))
    for write in (lambda: message.set_object(1), lambda: setattr(message, "object", object())):
        with pytest.raises(MessageNotWriteableError):
            write()
    message.clear_body()
    assert message.object is None
    message.object = 5
    assert message.object == 5


@pytest.mark.parametrize(
    ("value", "kind", "assignable"),
    [([1], list, True), ([1], object, True), ([1], dict, False), ({"a": 1}, dict, True), (True, bool, True),
     (True, str, False), (5, int, True), (5, bool, False), ("x", str, True), (b"x", bytes, True), (JAVA,
     JavaObject, True),
     (JAVA, bytes, False), ([1], list[int], False)],
)  # fmt: skip
def test_the_body_is_assignable_to_the_types_of_its_value_only(value: Any, kind: Any, assignable: bool) -> None:
    message = ObjectMessage(value)
    assert message.is_body_assignable_to(kind) is assignable
    if assignable:
        assert message.get_body(kind) == value
    else:
        with pytest.raises(MessageFormatError):
            message.get_body(kind)
    empty = ObjectMessage()
    assert empty.is_body_assignable_to(kind) and empty.get_body(kind) is None


def test_bytes_of_a_java_object_are_not_shown() -> None:
    assert repr(JAVA) == "JavaObject(class_name='com.acme.Order')"
