"""Completion listeners (jms-spec 10)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import jmsaio

Name = Callable[[str], str]


class Listener:
    """Collects what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, Exception | None]] = []
        self.inside: list[object] = []

    async def on_completion(self, message: jmsaio.Message) -> None:
        await asyncio.sleep(0)
        self.told.append((message, None))

    def on_exception(self, message: jmsaio.Message, error: Exception) -> None:
        self.told.append((message, error))


async def test_completion_listeners_in_order(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("completion"))
    listener = Listener()
    messages = [jmsaio.BytesMessage(bytes([number])) for number in range(50)]
    async with session.create_producer(queue) as producer:
        for message in messages:
            await producer.send_async(message, completion_listener=listener)
        assert listener.told == []
    assert [message for message, _ in listener.told] == messages
    assert [error for _, error in listener.told] == [None] * 50
    assert messages[3].read_byte() == 3


async def test_calls_from_a_completion_listener(
    session: jmsaio.Session, connection: jmsaio.Connection, name: Name
) -> None:
    refused: list[jmsaio.IllegalStateError] = []

    class Closing(Listener):
        async def on_completion(self, message: jmsaio.Message) -> None:
            for call in (producer.close, session.close, connection.close):
                try:
                    await call()
                except jmsaio.IllegalStateError as error:
                    refused.append(error)
            await connection.stop()
            await connection.start()
            self.told.append((message, None))

    listener = Closing()
    producer = await session.create_producer(session.create_queue(name("closing")))
    await producer.send_async("x", completion_listener=listener)
    await producer.close()
    assert len(refused) == 3 and len(listener.told) == 1


async def test_close_waits_for_a_listener_whose_outcome_came_in_the_same_turn(
    session: jmsaio.Session, name: Name
) -> None:
    told = []

    class Listener:
        def on_completion(self, message: jmsaio.Message) -> None:
            told.append(message)

        def on_exception(self, message: jmsaio.Message, error: Exception) -> None:
            raise error

    async with session.create_producer(jmsaio.Queue(name("turn"))) as producer:
        first = await producer.send_async("a")
        await producer.send_async("b", completion_listener=Listener())
        await first
    assert len(told) == 1


async def test_a_listener_that_can_not_be_told_is_refused(session: jmsaio.Session, name: Name) -> None:
    producer = await session.create_producer(jmsaio.Queue(name("refused")))
    for wrong in (5, None):
        with pytest.raises(jmsaio.IllegalArgumentError, match="on_completion"):
            await producer.send_async("a", completion_listener=wrong)  # type: ignore[arg-type]  # callers may do so
    await producer.send("the session goes on")
