"""How tests with Spark send, receive, and make DataFrames."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import anyio
import httpx
from pyspark.sql import DataFrame, SparkSession

import jmsaio
from tests.support.broker import TestBroker


def send(url: str | dict[str, object], queue: str, messages: Iterable[jmsaio.Message | str]) -> list[str | None]:
    """Send to a queue. Returns the message ids."""

    async def run() -> list[str | None]:
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            producer = await session.create_producer(session.create_queue(queue))
            ids = []
            for each in messages:
                message = jmsaio.TextMessage(each) if isinstance(each, str) else each
                await producer.send(message)
                ids.append(message.jms_message_id)
            return ids

    return anyio.run(run)


def read(spark: SparkSession, broker: TestBroker, **options: object) -> DataFrame:
    """A DataFrame of the source."""
    return spark.read.format("jms").options(url=broker.url, **options).load()  # type: ignore[arg-type] # stubs: no object


def receive(url: str, queue: str, count: int) -> list[jmsaio.Message]:
    """Receive from a queue, at most ``count`` messages and as long as they come."""

    async def run() -> list[jmsaio.Message]:
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            consumer = await session.create_consumer(session.create_queue(queue))
            found: list[jmsaio.Message] = []
            while len(found) < count and (message := await consumer.receive(10)) is not None:
                found.append(message)
            return found

    return anyio.run(run)


def backlog(broker: TestBroker, queue: str, subscription: str) -> int:
    """Messages of a queue without partitions that a subscription has left."""
    stats = httpx.get(f"{broker.web_service_url}/admin/v2/persistent/public/default/{queue}/stats").json()
    return int(stats["subscriptions"][subscription]["msgBacklog"])


def deduplicate(broker: TestBroker, queue: str) -> None:
    """Let the broker drop what a queue has already."""
    url = f"{broker.web_service_url}/admin/v2/persistent/public/default/{queue}/deduplicationEnabled"
    httpx.post(url, json=True, timeout=30).raise_for_status()
    end = time.monotonic() + 60
    while httpx.get(url, params={"applied": True}, timeout=30).json() is not True:
        assert time.monotonic() < end, f"the broker does not deduplicate {queue}"


def send_values(url: str, queue: str, *values: tuple[jmsaio.Schema | None, Any]) -> None:
    """Send bodies, each with a schema or with none."""

    async def run() -> None:
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            for schema, body in values:
                async with session.create_producer(session.create_queue(queue), schema=schema) as producer:
                    await producer.send(body)

    anyio.run(run)


def receive_values(url: str, queue: str, count: int) -> list[Any]:
    """Receive bodies, each decoded by its schema."""

    async def run() -> list[Any]:
        async with jmsaio.connect(url, consumer={"use_schema": True}) as connection:
            async with connection.create_session() as session:
                consumer = await session.create_consumer(session.create_queue(queue))
                found = [await consumer.receive(10) for _ in range(count)]
                return [None if message is None else message.get_body(object) for message in found]

    return anyio.run(run)
