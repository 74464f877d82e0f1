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


async def rest(connection: jmsaio.Connection, queue: jmsaio.Queue, wait: float = 2.0) -> list[jmsaio.Message]:
    found = []
    async with connection.create_session() as session, session.create_consumer(queue) as consumer:
        while (message := await consumer.receive(timeout=wait)) is not None:
            found.append(message)
    return found
