"""Temporary destinations (jms-spec 13)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import jmsaio

Name = Callable[[str], str]


async def text(consumer: jmsaio.MessageConsumer, wait: float = 20) -> str | None:
    message = await consumer.receive(timeout=wait)
    return None if message is None else message.get_body(str)


async def test_temporary_destinations(url: str, session: jmsaio.Session, name: Name) -> None:
    queue = await session.create_temporary_queue()
    async with jmsaio.connect(url) as other, other.create_session() as session2:
        producer = await session2.create_producer(queue)
        await producer.send("to the owner")
        with pytest.raises(jmsaio.InvalidDestinationError):
            await session2.create_consumer(queue)
        with pytest.raises(jmsaio.InvalidDestinationError):
            await session2.create_consumer(jmsaio.Queue(queue.name))
    async with session.create_consumer(queue) as consumer:
        assert await text(consumer) == "to the owner"
        with pytest.raises(jmsaio.JMSError):
            await queue.delete()
    await queue.delete()
    with pytest.raises(jmsaio.InvalidDestinationError):
        await session.create_consumer(queue)
    with pytest.raises(jmsaio.InvalidDestinationError):
        await session.create_producer(queue)


async def test_a_producer_does_not_revive_a_deleted_one(session: jmsaio.Session) -> None:
    queue = await session.create_temporary_queue()
    producer = await session.create_producer(queue)
    await producer.send("x")
    await queue.delete()
    with pytest.raises(jmsaio.InvalidDestinationError, match="deleted"):
        await producer.send("y")


async def test_a_delete_that_failed_may_be_repeated(
    connection: jmsaio.Connection, session: jmsaio.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = await session.create_temporary_queue()

    async def refuse(*arguments: object) -> None:
        raise jmsaio.AdminError("not now")

    with monkeypatch.context() as patched:
        patched.setattr(connection.temporaries.__class__, "_delete", refuse)
        with pytest.raises(jmsaio.AdminError):
            await queue.delete()
    await queue.delete()
    with pytest.raises(jmsaio.InvalidDestinationError):
        await session.create_consumer(queue)
