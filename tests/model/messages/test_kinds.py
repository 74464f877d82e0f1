"""The table of kinds is whole: its classes are public, and what can't be derived from it has an entry for each."""

from __future__ import annotations

import pytest

import jmsaio
from jmsaio.client.context import Context
from jmsaio.client.session import Session
from jmsaio.codec import Stamp, bodies, encode
from jmsaio.model.messages.kinds import KINDS, MessageKind
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.sequential import SequentialMessage
from tests.kit.records import Record, decode

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
