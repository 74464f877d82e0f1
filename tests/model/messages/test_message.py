"""Headers, states and the empty body of a plain message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from jmsaio.errors import IllegalStateError, InvalidDestinationError, MessageFormatError, MessageNotWriteableError
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.headers import Headers
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.messages.sequential import BytesMessage, StreamMessage
from tests.model.support import Source, received

KINDS: dict[str, type[Message]] = {
    "header": Message,
    "text": TextMessage,
    "bytes": BytesMessage,
    "map": MapMessage,
    "stream": StreamMessage,
    "object": ObjectMessage,
}
HEADERS = {
    "jms_message_id": (None, "ID:x"),
    "jms_timestamp": (0, 5),
    "jms_correlation_id": (None, "c"),
    "jms_reply_to": (None, Queue("q")),
    "jms_destination": (None, Topic("t")),
    "jms_delivery_mode": (2, 1),
    "jms_redelivered": (False, True),
    "jms_type": (None, "t"),
    "jms_expiration": (0, 5),
    "jms_delivery_time": (0, 5),
    "jms_priority": (4, 9),
}


@pytest.mark.parametrize(("word", "kind"), KINDS.items())
def test_a_new_message_is_writable_and_a_received_one_is_not(word: str, kind: type[Message]) -> None:
    assert word == kind.KIND
    message = kind()
    message.set_int_property("b", 1)
    again = received(message)
    assert type(again) is kind and (message._read_only_body, again._read_only_body) == (False, True)
    with pytest.raises(MessageNotWriteableError):
        again.set_int_property("b", 2)
    assert repr(message) == f"<{kind.__name__}>"
    with_properties = kind(properties={"a": 1})
    assert with_properties.get_int_property("a") == 1


@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize(("header", "values"), HEADERS.items())
def test_headers_are_never_read_only(kind: type[Message], header: str, values: tuple[Any, Any]) -> None:
    before, after = values
    for message in (kind(), received(kind())):
        assert getattr(message, header) == before
        setattr(message, header, after)
        assert getattr(message, header) == after
        message.clear_body()
        message.clear_properties()
        assert getattr(message, header) == after, "clearing leaves the headers"


def test_headers_of_a_received_message() -> None:
    message = received(TextMessage("x"), Source(Headers(type="t", redelivered=True, message_id="ID:1")))
    assert message.jms_type == "t" and message.jms_redelivered is True
    assert repr(message) == "<TextMessage ID:1>"


def test_correlation_id_as_text_and_bytes() -> None:
    message = Message()
    message.jms_correlation_id = "é"
    assert message.jms_correlation_id_as_bytes == b"\xc3\xa9"
    message.jms_correlation_id_as_bytes = bytearray(b"a\xff")  # type: ignore[assignment]  # any bytes are taken
    assert message.jms_correlation_id_as_bytes == b"a\xff" and message.jms_correlation_id == "a\ufffd"
    message.jms_correlation_id = ""
    assert message.jms_correlation_id == "" and message.jms_correlation_id_as_bytes == b""
    message.jms_correlation_id_as_bytes = None
    assert message.jms_correlation_id is None and message.jms_correlation_id_as_bytes is None


@pytest.mark.parametrize(
    ("header", "value", "error"),
    [
        ("jms_correlation_id", b"x", MessageFormatError),
        ("jms_correlation_id_as_bytes", "x", MessageFormatError),
        ("jms_type", 5, MessageFormatError),
        ("jms_reply_to", "q", InvalidDestinationError),
    ],
)
def test_headers_of_the_client_are_checked(header: str, value: Any, error: type[Exception]) -> None:
    message = Message()
    with pytest.raises(error):
        setattr(message, header, value)
    assert getattr(message, header) is None


@pytest.mark.parametrize("kind", [str, bytes, dict, list, bool, object])
def test_a_plain_message_has_no_body(kind: type) -> None:
    for message in (Message(), received(Message())):
        assert message.is_body_assignable_to(kind) and message.get_body(kind) is None
        message.clear_body()


def test_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        Message().jms_typ = "x"  # type: ignore[attr-defined]  # what is tested


async def test_acknowledge_calls_the_session_each_time_or_does_nothing() -> None:
    message = Message()
    await message.acknowledge()
    calls = []

    class Taken:
        async def acknowledge(self, number: int) -> None:
            calls.append(number)

        async def reply(self, request: Message, body: Any, options: Mapping[str, Any]) -> Any:
            raise AssertionError

    message._session, message._delivery = Taken(), 7
    await message.acknowledge()
    await message.acknowledge()
    assert calls == [7, 7]


async def test_only_a_received_message_is_answered() -> None:
    with pytest.raises(IllegalStateError, match="not received by a consumer"):
        await Message().reply("too soon")


def test_a_correlation_id_with_half_a_surrogate_pair_has_bytes() -> None:
    message = Message()
    message.jms_correlation_id = "a\ud800"
    assert message.jms_correlation_id_as_bytes == b"a\xed\xa0\x80"
