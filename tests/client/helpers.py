"""What several tests of the client do."""

from __future__ import annotations

import jmsaio


async def fill(connection: jmsaio.Connection, queue: jmsaio.Queue, count: int) -> None:
    async with connection.create_session() as session, session.create_producer(queue) as producer:
        for number in range(count):
            await producer.send(str(number))


async def take(consumer: jmsaio.MessageConsumer, count: int) -> list[jmsaio.Message]:
    found = []
    for _ in range(count):
        message = await consumer.receive(timeout=20)
        assert message is not None
        found.append(message)
    return found


def texts(messages: list[jmsaio.Message]) -> list[str]:
    return [message.get_body(str) for message in messages]


async def drain(consumer: jmsaio.MessageConsumer, least: int = 0, wait: float = 2.0) -> list[jmsaio.Message]:
    """What a consumer gets: ``least`` messages, however slow the broker is, and those that come within ``wait``."""
    found: list[jmsaio.Message] = []
    while (message := await consumer.receive(timeout=20 if len(found) < least else wait)) is not None:
        found.append(message)
    return found


async def rest(
    connection: jmsaio.Connection, queue: jmsaio.Queue, least: int = 0, wait: float = 2.0
) -> list[jmsaio.Message]:
    """What a queue still has for a new consumer, see ``drain``."""
    async with connection.create_session() as session, session.create_consumer(queue) as consumer:
        return await drain(consumer, least, wait)
