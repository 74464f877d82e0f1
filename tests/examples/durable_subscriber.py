"""Receive what was published while the subscriber was away: ``python durable_subscriber.py URL``."""

import asyncio
import sys
from collections.abc import Sequence

import jmsaio


async def collect(url: str) -> list[str | None]:
    """Return the news since the last call; the first call creates the subscription."""
    news = []
    async with jmsaio.connect(url, client_id="reader") as connection, connection.create_session() as session:
        async with session.create_durable_consumer(session.create_topic("news"), "daily") as consumer:
            while (message := await consumer.receive(timeout=1)) is not None:
                news.append(message.text)
    return news


async def publish(url: str, texts: Sequence[str]) -> None:
    """Publish news, whether or not a subscriber is connected."""
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        async with session.create_producer(session.create_topic("news")) as producer:
            for text in texts:
                await producer.send(text)


if __name__ == "__main__":
    print(asyncio.run(collect(sys.argv[1])))
