"""JMSProducer: bodies of what it sends, read with ``get_body`` (checklist.txt, group 13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import jmsaio
from tests.conformance.recording import Name, destination, twins

CLIENT = "core20/jmsproducer{kind}tests/ClientIT"
ENTRIES = {"t": "text", "l": jmsaio.Long(5), "b": b"bytes", "f": jmsaio.Float(0.5)}
#: Kind of message: its body, the types as which it can be had, and types as which it can't.
BODIES: dict[str, tuple[Any, list[type], list[type]]] = {
    "text": ("text", [str, object], [bytes, dict, list, bool, int]),
    "object": ([1, {"a": None}], [list, object], [str, bytes, dict, bool, int]),
    "bytes": (b"bytes", [bytes, object], [str, dict, list, bool, bytearray]),
    "map": (ENTRIES, [dict, Mapping, object], [str, bytes, list, bool]),
}


def message_of(context: jmsaio.Context, word: str) -> jmsaio.Message:
    """A message of a kind with its body."""
    made: jmsaio.Message = getattr(context, f"create_{word}_message")(BODIES[word][0])
    return made


async def sent(context: jmsaio.Context, where: Any, messages: list[jmsaio.Message]) -> list[jmsaio.Message]:
    """Send messages and receive them."""
    producer, received = context.create_producer(), []
    async with context.create_consumer(where) as consumer:
        for message in messages:
            await producer.send(where, message)
            received.append(await consumer.receive(timeout=20))
    return [message for message in received if message is not None]


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.getBodyTests"))
async def test_a_body_is_read_as_each_type_it_has_as_often_as_asked(
    context: jmsaio.Context, name: Name, kind: str
) -> None:
    own = [message_of(context, word) for word in BODIES]
    received = await sent(context, destination(context, kind, name("body")), own)
    assert [message.KIND for message in received] == [*BODIES]
    for message in (*own, *received):
        body, readable, _ = BODIES[message.KIND]
        for wanted in readable:
            assert message.get_body(wanted) == body
            assert type(message.get_body(wanted)) is type(body)
            assert message.get_body(wanted) == body, "as often as one likes"


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.getBodyExceptionTests"))
async def test_get_body_as_another_type(context: jmsaio.Context, name: Name, kind: str) -> None:
    stream = context.create_stream_message(["value"])
    unsent = context.create_bytes_message()
    unsent.write_int(5)
    with pytest.raises(jmsaio.MessageFormatError):
        unsent.get_body(str)
    own = [message_of(context, word) for word in BODIES]
    received = await sent(context, destination(context, kind, name("other")), [*own, stream])
    assert len(received) == 5
    for message in (*own, *received[:4]):
        for unwanted in BODIES[message.KIND][2]:
            with pytest.raises(jmsaio.MessageFormatError):
                message.get_body(unwanted)
    for message in (stream, received[4], context.create_stream_message()):
        for wanted in (str, bytes, dict, list, bool, object):
            with pytest.raises(jmsaio.MessageFormatError):
                message.get_body(wanted)


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.isBodyAssignableToTest"))
async def test_is_body_assignable_to(context: jmsaio.Context, name: Name, kind: str) -> None:
    own = [message_of(context, word) for word in BODIES]
    stream = context.create_stream_message(["value"])
    received = await sent(context, destination(context, kind, name("assignable")), [*own, stream])
    assert len(received) == 5
    for message in (*own, *received[:4]):
        _, readable, unreadable = BODIES[message.KIND]
        assert [message.is_body_assignable_to(wanted) for wanted in readable] == [True] * len(readable)
        assert [message.is_body_assignable_to(wanted) for wanted in unreadable] == [False] * len(unreadable)
    for message in (stream, received[4]):
        assert not any(message.is_body_assignable_to(wanted) for wanted in (str, bytes, dict, list, bool, object))
