"""The table of kinds is whole: its classes are public, and what can't be derived from it has an entry for each."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import jmsaio
from jmsaio.client.context import Context
from jmsaio.client.session import Session
from jmsaio.codec import Stamp, bodies, encode
from jmsaio.errors import MessageFormatError
from jmsaio.model.messages.kinds import KINDS, MessageKind, message_for, outgoing
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.object_message import JavaObject, ObjectMessage
from jmsaio.model.messages.sequential import SequentialMessage
from jmsaio.model.messages.text_message import TextMessage
from jmsaio.model.values import Byte, Char
from tests.kit.records import Record, decode
from tests.model.messages.test_foreign import Foreign

BODIES: dict[type | None, object] = {
    str: "tea",
    bytes: b"tea",
    dict: {"a": 1},
    list: [1, "a"],
    object: True,
    None: None,
}


def test_the_table_has_each_class_of_messages() -> None:
    classes = {Message, *Message.__subclasses__(), *SequentialMessage.__subclasses__()} - {SequentialMessage}
    assert {kind.message for kind in KINDS.values()} == classes
    assert list(KINDS) == ["text", "bytes", "map", "stream", "object", "header"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_each_kind_is_public_and_can_be_created(kind: MessageKind) -> None:
    name = kind.message.__name__
    assert getattr(jmsaio, name) is kind.message
    create = "create_message" if kind.holds is None else f"create_{kind.name}_message"
    assert callable(getattr(Session, create)) and callable(getattr(Context, create))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_each_kind_has_a_layout_that_holds_its_body(kind: MessageKind) -> None:
    body = BODIES[kind.holds]
    message = Message() if kind.holds is None else kind.message(body)
    record = Record.sent(encode(message, Stamp("ID:1", "c", 1, 1, 1)))
    found = decode(record, None)
    assert type(found) is kind.message
    assert found._body() == bodies.decode_body(kind.name, record.payload, record) == body


def test_structured_bodies_are_more_than_text_or_bytes() -> None:
    assert {"map", "stream", "object"} == bodies.STRUCTURED


def test_no_body_is_given_for_two_kinds() -> None:
    given = [body for kind in KINDS.values() for body in kind.given]
    assert len(set(given)) == len(given)


@pytest.mark.parametrize(
    ("body", "kind", "content"),
    [
        ("x", "text", "x"),
        ("", "text", ""),
        (None, "text", None),
        (b"x", "bytes", b"x"),
        (bytearray(b"x"), "bytes", b"x"),
        (memoryview(b"x"), "bytes", b"x"),
        ({}, "map", {}),
        ({"a": 1, "b": b"x", "c": None}, "map", {"a": 1, "b": b"x", "c": None}),
        (OrderedDict(a=Byte(1)), "map", {"a": 1}),
        ([], "stream", []),
        ([1, "a", None, Char("x")], "stream", [1, "a", None, "x"]),
        ((1, 2), "stream", [1, 2]),
        (JavaObject("a.B", b""), "object", JavaObject("a.B", b"")),
    ],
)
def test_each_python_type_becomes_its_kind_of_message(body: Any, kind: str, content: Any) -> None:
    message = message_for(body)
    assert kind == message.KIND and message._body() == content


def test_a_message_stays_as_it_is() -> None:
    message = MapMessage({"a": 1})
    assert message_for(message) is message


@pytest.mark.parametrize(
    "body", [object(), {1, 2}, {1: 2}, {"a": object()}, [object()], [b"x", []], 1j, 2**63, range(3)]
)
def test_bodies_that_no_message_holds(body: Any) -> None:
    with pytest.raises(MessageFormatError):
        message_for(body)


@pytest.mark.parametrize("body", [{"a": [1]}, {"": 1}, {"a": {"b": 1}}, [1, {"a": 2}], [[]], True, False, 5, 1.5])
def test_what_only_an_object_message_holds_has_to_be_asked_for(body: Any) -> None:
    """A dict that is no map, a list that is no stream, a number and a boolean: the refusal says how to send them."""
    with pytest.raises(MessageFormatError, match=r"send ObjectMessage\(value\)"):
        message_for(body)
    assert message_for(ObjectMessage(body)).get_body(object) == body


def test_a_number_that_is_too_long_to_be_written() -> None:
    with pytest.raises(MessageFormatError, match=r"19932 bits.*send ObjectMessage\(value\)"):
        message_for(10**6000)


def test_what_is_sent_is_a_message() -> None:
    own = MapMessage({"a": 1})
    assert outgoing(own) == (own, False)
    text, foreign = outgoing("x")
    assert isinstance(text, TextMessage) and text.text == "x" and not foreign
    assert outgoing({"a": 1})[0].get_body(dict) == {"a": 1}


def test_a_foreign_message_is_copied_and_said_to_be_one() -> None:
    copy, foreign = outgoing(Foreign(colour="red"))
    assert type(copy) is Message and copy.properties == {"colour": "red"} and foreign


def test_nothing_is_no_message() -> None:
    with pytest.raises(MessageFormatError, match=r"send TextMessage\(None\)"):
        outgoing(None)
