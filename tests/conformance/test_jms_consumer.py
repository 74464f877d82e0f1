"""JMSConsumer (checklist.txt, group 14): receive, receiveBody, selector and close of the simplified API's consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import pytest

import jmsaio
from tests.conformance.kit import row

FILE = "core20/jmsconsumertests/ClientIT"
T = TypeVar("T")


@pytest.fixture
def destination(kind: str, name: Callable[[str], str]) -> Any:
    """A queue or a topic of its own."""
    return (jmsaio.Queue if kind == "queue" else jmsaio.Topic)(name("consumer"))


async def polled(take: Callable[[], Awaitable[T | None]]) -> T:
    """What a call that does not wait gives in the end."""
    async with asyncio.timeout(20):
        while (found := await take()) is None:
            await asyncio.sleep(0.01)
    return found


def text_of(message: jmsaio.Message | None) -> str | None:
    return None if message is None else message.get_body(str)


@pytest.mark.parametrize(
    "kind", [row("queue", key=f"{FILE}.queueReceiveTests"), row("topic", key=f"{FILE}.topicReceiveTests")]
)
async def test_each_way_of_receiving_waits_as_long_as_it_says(context: jmsaio.Context, destination: Any) -> None:
    consumer = await context.create_consumer(destination)
    producer = context.create_producer()
    assert await consumer.receive_no_wait() is None
    await producer.send(destination, "waits")
    assert text_of(await consumer.receive()) == "waits"
    await producer.send(destination, "timed")
    assert text_of(await consumer.receive(timeout=20)) == "timed"
    await producer.send(destination, "at once")
    assert text_of(await polled(consumer.receive_no_wait)) == "at once"
    assert await consumer.receive(timeout=0.2) is None
    assert await consumer.receive_no_wait() is None


BODIES: list[tuple[type[Any], Any]] = [
    (str, "text"),
    (object, jmsaio.ObjectMessage([1, "two", None])),
    (dict, {"boolean": True, "string": "text", "double": 1.5}),
    (bytes, b"\x00\x7f\xff"),
]


@pytest.mark.parametrize(
    "kind", [row("queue", key=f"{FILE}.queueReceiveBodyTests"), row("topic", key=f"{FILE}.topicReceiveBodyTests")]
)
async def test_the_bodies_of_each_type_are_received_blocking_bounded_and_at_once(
    context: jmsaio.Context, destination: Any
) -> None:
    consumer = await context.create_consumer(destination)
    producer = context.create_producer()
    for body_type, body in BODIES:
        expected = body.get_object() if isinstance(body, jmsaio.ObjectMessage) else body
        for _ in range(3):
            await producer.send(destination, body)
        found = [
            await consumer.receive_body(body_type),
            await consumer.receive_body(body_type, timeout=20),
            await polled(partial(consumer.receive_body_no_wait, body_type)),
        ]
        assert found == [expected] * 3
    assert await consumer.receive_body_no_wait(str) is None
    assert await consumer.receive_body(str, timeout=0.2) is None


#: Messages, and a type that their body is not.
MISFITS: list[tuple[jmsaio.Message, type[Any]]] = [
    (jmsaio.TextMessage("text"), bool),
    (jmsaio.ObjectMessage([1, 2]), dict),
    (jmsaio.MapMessage({"a": 1}), str),
    (jmsaio.BytesMessage(b"bytes"), str),
    (jmsaio.StreamMessage(["a"]), list),
    (jmsaio.StreamMessage(["a"]), object),
    (jmsaio.Message(), str),
    (jmsaio.Message(), object),
]


@pytest.mark.parametrize(
    "kind",
    [
        row("queue", key=f"{FILE}.queueReceiveBodyExceptionTests"),
        row("topic", key=f"{FILE}.topicReceiveBodyExceptionTests"),
    ],
)
async def test_a_body_of_another_type(context: jmsaio.Context, destination: Any) -> None:
    consumer = await context.create_consumer(destination)
    producer = context.create_producer()
    for message, wrong in MISFITS:
        await producer.send(destination, message)
        with pytest.raises(jmsaio.MessageFormatError):
            await consumer.receive_body(wrong)
        with pytest.raises(jmsaio.MessageFormatError):
            await consumer.receive_body(wrong, timeout=20)
        with pytest.raises(jmsaio.MessageFormatError):
            await polled(partial(consumer.receive_body_no_wait, wrong))
        kept = await consumer.receive(timeout=20)  # AUTO: as if the calls that failed had not happened
        assert type(kept) is type(message) and kept.jms_message_id == message.jms_message_id


@pytest.mark.parametrize(
    "kind",
    [row("queue", key=f"{FILE}.queueGetMessageSelectorTest"), row("topic", key=f"{FILE}.topicGetMessageSelectorTest")],
)
async def test_the_selector_is_read_back(context: jmsaio.Context, destination: Any) -> None:
    for given, expected in ((None, None), ("", None), ("TEST = 'test'", "TEST = 'test'")):
        async with context.create_consumer(destination, given) as consumer:
            assert consumer.get_message_selector() == consumer.message_selector == expected


@pytest.mark.parametrize(
    "kind", [row("queue", key=f"{FILE}.queueCloseTest"), row("topic", key=f"{FILE}.topicCloseTest")]
)
async def test_receive_after_close(context: jmsaio.Context, destination: Any) -> None:
    consumer = await context.create_consumer(destination)
    await context.create_producer().send(destination, "late")
    await consumer.close()
    calls: list[Callable[[], Awaitable[Any]]] = [
        consumer.receive,
        lambda: consumer.receive(timeout=1),
        consumer.receive_no_wait,
        lambda: consumer.receive_body(str),
    ]
    for call in calls:
        with pytest.raises(jmsaio.ObjectClosedError):
            await call()
