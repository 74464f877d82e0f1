"""TextMessage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pytest

from jmsaio.errors import MessageFormatError, MessageNotWriteableError
from jmsaio.model.messages.message import TextMessage
from jmsaio.model.values import Char
from tests.model.support import received


class Unchecked(Protocol):
    """A protocol that isinstance can't check."""


@pytest.mark.parametrize("text", [None, "", "x", "\x00\U0001f600\ud800", "x" * 100_000])
def test_texts_are_kept_sent_and_replaced(text: str | None) -> None:
    message = TextMessage(text)
    assert message.text == message.get_text() == message.get_body(str) == text
    again = received(message)
    assert again.text == text and again.get_body(str) == text
    other = TextMessage("other")
    other.set_text(text)
    assert other.text == text


@pytest.mark.parametrize("value", [b"x", 5, True, ["x"]])
def test_what_is_no_text_is_refused_and_the_text_stays(value: Any) -> None:
    message = TextMessage("kept")
    with pytest.raises(MessageFormatError, match=type(value).__name__):
        TextMessage(value)
    with pytest.raises(MessageFormatError):
        message.text = value
    with pytest.raises(MessageFormatError):
        message.set_text(value)
    assert message.text == "kept"


def test_a_text_of_another_class_becomes_a_plain_one() -> None:
    message = TextMessage(Char("x"))
    assert type(message.text) is str
    message.text = Char("y")
    assert type(message.text) is str and message.text == "y"


def test_received_is_read_only_until_cleared() -> None:
    message = received(TextMessage("x", properties={"a": 1}))
    for write in (lambda: message.set_text("y"), lambda: setattr(message, "text", None)):
        with pytest.raises(MessageNotWriteableError):
            write()
    message.clear_body()
    assert message.text is None
    message.text = "y"
    assert message.text == "y"


@pytest.mark.parametrize(
    ("kind", "assignable"),
    [(str, True), (object, True), (Sequence, True), (bytes, False), (dict, False), (bool, False), (Mapping, False),
     (list[str], False), (Unchecked, False), ("str", False), (None, False)],
)  # fmt: skip
def test_the_body_is_assignable_to_text_and_its_supertypes_only(kind: Any, assignable: bool) -> None:
    message = TextMessage("x")
    assert message.is_body_assignable_to(kind) is assignable
    if assignable:
        assert message.get_body(kind) == "x"
    else:
        with pytest.raises(MessageFormatError, match="TextMessage"):
            message.get_body(kind)
    empty = TextMessage()
    assert empty.is_body_assignable_to(kind) and empty.get_body(kind) is None


def test_an_empty_text_is_a_body() -> None:
    message = TextMessage("")
    assert message.get_body(str) == "" and not message.is_body_assignable_to(bytes)
