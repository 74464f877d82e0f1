"""Exceptions (checklist.txt, group 10): what the calls of sessions, producers and received messages raise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

import jmsaio
from tests.conformance.kit import row, tck

QUEUE = "core/exceptionQueue/ExceptionQueueTestsIT"
TOPIC = "core/exceptionTopic/ExceptionTopicTestsIT"

Name = Callable[[str], str]
Make = Callable[[jmsaio.Session], Awaitable[Any]]


def make(kind: str, name: Name) -> Any:
    return (jmsaio.Queue if kind == "queue" else jmsaio.Topic)(name("exceptions"))


async def sent(session: jmsaio.Session, kind: str, name: Name, message: jmsaio.Message) -> Any:
    """The message as it arrives."""
    destination = make(kind, name)
    consumer = await session.create_consumer(destination)
    await (await session.create_producer(destination)).send(message)
    received = await consumer.receive(timeout=20)
    assert type(received) is type(message)
    return received


def stream(*values: Any) -> jmsaio.StreamMessage:
    return jmsaio.StreamMessage(values)


#: The message, the end of the methods' names of the queue's line and the topic's, what writes.
WRITES: list[tuple[Callable[[], jmsaio.Message], str, str, Callable[[Any], None]]] = [
    (lambda: jmsaio.TextMessage("a"), "QTestforTextMessage", "TTestforTextMessage", lambda it: it.set_text("b")),
    (lambda: jmsaio.BytesMessage(b"a"), "QTestforBytesMessage", "TestforBytesMessage", lambda it: it.write_byte(1)),
    (lambda: stream("a"), "QTestforStreamMessage", "TTestforStreamMessage", lambda it: it.write_string("b")),
    (lambda: jmsaio.MapMessage({"a": 1}), "QTestforMapMessage", "TTestforMapMessage", lambda it: it.set_int("a", 2)),
]


def write_rows() -> Iterator[Any]:
    for message, queue, topic, write in WRITES:
        yield row("queue", message, write, key=f"{QUEUE}.xMessageNotWriteableException{queue}")
        yield row("topic", message, write, key=f"{TOPIC}.xMessageNotWriteableException{topic}")


@pytest.mark.parametrize(("kind", "message", "write"), list(write_rows()))
async def test_a_received_body_can_not_be_written(
    session: jmsaio.Session, name: Name, kind: str, message: Callable[[], Any], write: Callable[[Any], None]
) -> None:
    received = await sent(session, kind, name, message())
    with pytest.raises(jmsaio.MessageNotWriteableError):
        write(received)
    received.clear_body()
    write(received)


def one_byte() -> jmsaio.BytesMessage:
    message = jmsaio.BytesMessage()
    message.write_byte(1)
    return message


@pytest.mark.parametrize(
    ("kind", "message", "read"),
    [
        row("queue", one_byte, "read_byte", key=f"{QUEUE}.xMessageEOFExceptionQTestforBytesMessage"),
        row("topic", one_byte, "read_byte", key=f"{TOPIC}.xMessageEOFExceptionTTestforBytesMessage"),
        row("queue", lambda: stream("a"), "read_string", key=f"{QUEUE}.xMessageEOFExceptionQTestforStreamMessage"),
        row("topic", lambda: stream("a"), "read_string", key=f"{TOPIC}.xMessageEOFExceptionTTestforStreamMessage"),
    ],
)
async def test_reading_past_the_end(
    session: jmsaio.Session, name: Name, kind: str, message: Callable[[], jmsaio.Message], read: str
) -> None:
    received = await sent(session, kind, name, message())
    assert getattr(received, read)() in (1, "a")
    with pytest.raises(jmsaio.MessageEOFError):
        getattr(received, read)()


@pytest.mark.parametrize(
    "kind",
    [
        row("queue", key=f"{QUEUE}.xMessageFormatExceptionQTestforStreamMessage"),
        row("topic", key=f"{TOPIC}.xMessageFormatExceptionTTestforStreamMessage"),
    ],
)
async def test_bytes_are_no_string(session: jmsaio.Session, name: Name, kind: str) -> None:
    received = await sent(session, kind, name, stream(b"bytes"))
    with pytest.raises(jmsaio.MessageFormatError):
        received.read_string()
    assert received.read_object() == b"bytes"


READERS = ["boolean", "byte", "short", "char", "int", "long", "float", "double", "string", "object"]


@pytest.mark.parametrize(
    "kind",
    [
        row("queue", key=f"{QUEUE}.xMessageNotReadableExceptionQStreamMsgTest"),
        row("topic", key=f"{TOPIC}.xMessageNotReadableExceptionTStreamMsgTest"),
    ],
)
async def test_no_reader_reads_a_cleared_stream(session: jmsaio.Session, name: Name, kind: str) -> None:
    received = await sent(session, kind, name, stream("a", 1))
    assert received.read_string() == "a"
    received.clear_body()
    for reader in READERS:
        with pytest.raises(jmsaio.MessageNotReadableError):
            getattr(received, f"read_{reader}")()
    with pytest.raises(jmsaio.MessageNotReadableError):
        received.read_bytes(bytearray(1))


BROWSERS: list[Callable[[jmsaio.Session, Any, str], Any]] = [
    lambda session, queue, selector: session.create_browser(queue, selector),
]
CONSUMERS: list[Callable[[jmsaio.Session, Any, str], Any]] = [
    lambda session, where, selector: session.create_consumer(where, selector),
    lambda session, where, selector: session.create_consumer(where, selector, True),
]
DURABLE: list[Callable[[jmsaio.Session, Any, str], Any]] = [
    lambda session, where, selector: session.create_durable_consumer(where, "none", selector),
    lambda session, where, selector: session.create_durable_consumer(where, "none", selector, True),
]
SHARED: list[Callable[[jmsaio.Session, Any, str], Any]] = [
    lambda session, where, selector: session.create_shared_consumer(where, "none", selector),
    lambda session, where, selector: session.create_shared_durable_consumer(where, "none", selector),
]


@pytest.mark.parametrize(
    "calls",
    [
        row(BROWSERS + CONSUMERS, key=f"{QUEUE}.xInvalidDestinationExceptionQTest"),
        row(BROWSERS + CONSUMERS + DURABLE + SHARED, key=f"{QUEUE}.xInvalidDestinationExceptionQTests"),
        row(CONSUMERS + DURABLE, key=f"{TOPIC}.xInvalidDestinationExceptionTopicTest"),
        row(CONSUMERS + DURABLE + SHARED, key=f"{TOPIC}.xInvalidDestinationExceptionTTests"),
    ],
)
async def test_only_a_producer_may_have_no_destination(
    session: jmsaio.Session, name: Name, broker_kind: str, calls: list[Any]
) -> None:
    for call in calls:
        for selector in ("TEST = 'test'", "", None):
            with pytest.raises(jmsaio.InvalidDestinationError):
                await call(session, None, selector)
    with pytest.raises(jmsaio.InvalidDestinationError):
        # Pulsar has many topics to search after many tests
        await session.unsubscribe(name("unknown"), None if broker_kind == "memory" else jmsaio.Topic(name("unknown")))
    producer = await session.create_producer(None)
    assert producer.get_destination() is None


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        row("queue", BROWSERS + CONSUMERS, key=f"{QUEUE}.xInvalidSelectorExceptionQueueTest"),
        row("topic", CONSUMERS + DURABLE + SHARED, key=f"{TOPIC}.xInvalidSelectorExceptionTopicTest"),
    ],
)
async def test_a_selector_that_is_none(session: jmsaio.Session, name: Name, kind: str, calls: list[Any]) -> None:
    destination = make(kind, name)
    for call in calls:
        with pytest.raises(jmsaio.InvalidSelectorError) as caught:
            await call(session, destination, "=TEST 'test'")
        assert caught.value.text == "=TEST 'test'"


@tck(f"{QUEUE}.xIllegalStateExceptionQueueTest", f"{TOPIC}.xIllegalStateExceptionTopicTest")
async def test_commit_without_transaction(session: jmsaio.Session) -> None:
    with pytest.raises(jmsaio.IllegalStateError):
        await session.commit()


@tck(f"{QUEUE}.xIllegalStateExceptionTestRollbackQ")
async def test_rollback_without_transaction(session: jmsaio.Session) -> None:
    with pytest.raises(jmsaio.IllegalStateError):
        await session.rollback()


OPTIONS = {"delivery_mode": 1, "priority": 4, "time_to_live": 0}


@pytest.mark.parametrize(
    ("kind", "identified", "options"),
    [
        row("queue", False, OPTIONS, key=f"{QUEUE}.xUnsupportedOperationExceptionQTest1"),
        row("queue", False, {}, key=f"{QUEUE}.xUnsupportedOperationExceptionQTest2"),
        row("queue", True, {}, key=f"{QUEUE}.xUnsupportedOperationExceptionQTest3"),
        row("topic", False, OPTIONS, key=f"{TOPIC}.xUnsupportedOperationExceptionTTest1"),
    ],
)
async def test_a_send_that_the_producer_does_not_offer(
    session: jmsaio.Session, name: Name, kind: str, identified: bool, options: dict[str, Any]
) -> None:
    destination = make(kind, name)
    producer = await session.create_producer(destination if identified else None)
    message = session.create_text_message("unsent")
    given = (destination, message) if identified else (message,)
    for send in ({}, options, OPTIONS):
        with pytest.raises(jmsaio.UnsupportedOperationError):
            await producer.send(*given, **send)
    with pytest.raises(jmsaio.UnsupportedOperationError):
        await producer.send_async(*given)
