"""Texts sent and received, listeners that remember what they are told, rows for lines that queue and topic share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import jmsaio
from tests.conformance.kit import row

Name = Callable[[str], str]
Maker = jmsaio.Session | jmsaio.Context


def twins(key: str, *values: object) -> list[object]:
    """Two rows: ``{kind}`` and ``{Kind}`` in the key are filled in, the kind of destination goes first."""
    return [row(kind, *values, key=key.format(kind=kind, Kind=kind.title())) for kind in ("queue", "topic")]


def destination(maker: Maker, kind: str, name: str) -> Any:
    """A queue or a topic."""
    return maker.create_queue(name) if kind == "queue" else maker.create_topic(name)


async def send_text(session: jmsaio.Session, where: Any, text: str, **properties: Any) -> None:
    """Send one text with a producer of its own."""
    async with session.create_producer(where) as producer:
        await producer.send(text, properties=properties)


async def next_text(consumer: jmsaio.MessageConsumer) -> str | None:
    """The text of the next message."""
    return await consumer.receive_body(str, timeout=20)


class Told:
    """A completion listener: remembers messages and errors in order; ``within`` runs inside ``on_completion``."""

    def __init__(self, within: Callable[[jmsaio.Message], Awaitable[None]] | None = None) -> None:
        self.messages: list[jmsaio.Message] = []
        self.errors: list[Exception] = []
        self._within = within

    async def on_completion(self, message: jmsaio.Message) -> None:
        if self._within is not None:
            await self._within(message)
        self.messages.append(message)

    def on_exception(self, message: jmsaio.Message, error: Exception) -> None:
        self.errors.append(error)

    async def one(self) -> jmsaio.Message:
        """The first message that was told."""
        return (await self.until(1))[0]

    async def until(self, count: int) -> list[jmsaio.Message]:
        """Wait until ``count`` messages were told."""
        async with asyncio.timeout(30):
            while len(self.messages) < count:
                assert self.errors == []
                await asyncio.sleep(0.005)
        return self.messages


class Heard:
    """A message listener: remembers messages in order; ``within`` runs inside of it."""

    def __init__(self, within: Callable[[jmsaio.Message], Awaitable[None]] | None = None) -> None:
        self.messages: list[jmsaio.Message] = []
        self._within = within

    async def __call__(self, message: jmsaio.Message) -> None:
        if self._within is not None:
            await self._within(message)
        self.messages.append(message)

    async def until(self, count: int) -> list[jmsaio.Message]:
        """Wait until ``count`` messages came."""
        async with asyncio.timeout(30):
            while len(self.messages) < count:
                await asyncio.sleep(0.005)
        return self.messages


class Broken:
    """A message of another library that raises when it is read."""

    def get_property_names(self) -> list[str]:
        raise RuntimeError("broken")

    def get_object_property(self, name: str) -> object:
        raise RuntimeError("broken")
