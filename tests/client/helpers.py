"""Sends messages to a destination, receives them, and reads their texts; listens to what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypedDict

import attrs

import jmsaio

#: Seconds for a message that is on its way.
SOON = 20


async def until(connection: jmsaio.Connection, state: jmsaio.ConnectionState) -> jmsaio.StateChange:
    """Wait for a state of a connection: 10 seconds after its cause, and more on a crowded machine."""
    changes: asyncio.Queue[jmsaio.StateChange] = asyncio.Queue()
    stop, change = connection.on_state(changes.put_nowait), connection.last_change
    try:
        async with asyncio.timeout(60):
            while change.state is not state:
                change = await changes.get()
    finally:
        stop()
    return change


class Listener:
    """A completion listener that collects its calls: each message, and its error or None."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, Exception | None]] = []

    async def on_completion(self, message: jmsaio.Message) -> None:
        await asyncio.sleep(0)
        self.told.append((message, None))

    def on_exception(self, message: jmsaio.Message, error: Exception) -> None:
        self.told.append((message, error))


class Transactions(TypedDict, total=False):
    """Options of transacted sessions."""

    enable_transaction: bool
    emulate_transactions: bool


def transactions(emulated: bool) -> Transactions:
    """The option for transacted sessions: emulated, or with transactions of the broker."""
    return {"emulate_transactions": True} if emulated else {"enable_transaction": True}


def full_name(connection: jmsaio.Connection, destination: jmsaio.Destination) -> str:
    """The topic of a destination in the namespace of a connection, as Pulsar names it."""
    return f"persistent://{connection.configuration.system_namespace}/{destination.name}"


async def fill(connection: jmsaio.Connection, destination: jmsaio.Destination, count: int) -> None:
    """Send the texts "0", "1" and so on to a destination."""
    async with connection.create_session() as session, session.create_producer(destination) as producer:
        for number in range(count):
            await producer.send(str(number))


async def take(consumer: jmsaio.MessageConsumer, count: int) -> list[jmsaio.Message]:
    """The next ``count`` messages of a consumer."""
    found = []
    for _ in range(count):
        message = await consumer.receive(timeout=SOON)
        assert message is not None
        found.append(message)
    return found


def text(message: jmsaio.Message | None) -> str:
    """The text of a message that must be there and have one."""
    assert message is not None
    body = message.get_body(str)
    assert body is not None
    return body


def texts(messages: Iterable[jmsaio.Message]) -> list[str]:
    """The text of each message."""
    return [text(message) for message in messages]


async def drain(consumer: jmsaio.MessageConsumer, least: int = 0, wait: float = 2.0) -> list[jmsaio.Message]:
    """What a consumer gets: ``least`` messages, however slow the broker is, and those that come within ``wait``."""
    found: list[jmsaio.Message] = []
    while (message := await consumer.receive(timeout=SOON if len(found) < least else wait)) is not None:
        found.append(message)
    return found


async def rest(
    connection: jmsaio.Connection, queue: jmsaio.Queue, least: int = 0, wait: float = 2.0
) -> list[jmsaio.Message]:
    """What a queue still has for a new consumer, see `drain`."""
    async with connection.create_session() as session, session.create_consumer(queue) as consumer:
        return await drain(consumer, least, wait)


@attrs.frozen(eq=False)
class Functions:
    """A completion listener of two functions."""

    on_completion: Callable[[jmsaio.Message], Any]
    on_exception: Callable[[jmsaio.Message, Exception], Any]
