"""Cancellation at any await of any public coroutine loses no message.

A worker sends, receives, acknowledges and closes; it is cancelled after a random number of steps of the event loop, at
whatever await that hits, and goes on. At the end everything whose send was confirmed has arrived.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import text

#: Cancellations on each broker.
POINTS = {"memory": 2000, "pulsar": 200}


async def cancelled_after(steps: int, pause: float, coroutine: Awaitable[Any]) -> Any:
    """Run a coroutine and cancel it after ``steps`` turns of the loop of ``pause`` seconds, if it still runs."""
    task = asyncio.ensure_future(coroutine)
    for _ in range(steps):
        await asyncio.sleep(pause)
        if task.done():
            break
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None


class Worker:
    """Sends numbered messages and takes them back, through calls that are cancelled anywhere."""

    def __init__(self, url: str, mode: AcknowledgeMode, seed: int) -> None:
        self.random = random.Random(seed)
        self.url = url
        self.mode = mode
        self.queue = jmsaio.Queue(f"cancel-{uuid.uuid4()}")
        self.confirmed: set[str] = set()
        self.tried: set[str] = set()
        self.received: set[str] = set()
        self.number = 0

    def pause(self) -> float:
        """Between two turns: none on the embedded broker, sometimes the time of an answer on Pulsar."""
        return 0 if self.url.startswith("memory") else self.random.choice([0, 0.003])

    async def send(self, producer: jmsaio.MessageProducer) -> None:
        self.number += 1
        text = str(self.number)
        self.tried.add(text)
        await producer.send(text)
        self.confirmed.add(text)

    async def send_async(self, producer: jmsaio.MessageProducer) -> None:
        self.number += 1
        text = str(self.number)
        self.tried.add(text)
        future = await producer.send_async(text)

        def note(done: asyncio.Future[Any]) -> None:
            if not done.cancelled() and done.exception() is None:
                self.confirmed.add(text)

        future.add_done_callback(note)

    def take(self, message: jmsaio.Message | None) -> None:
        if message is not None:
            self.received.add(text(message))

    async def receive(self, consumer: jmsaio.MessageConsumer) -> None:
        self.take(await consumer.receive(timeout=0.05))

    async def acknowledged(self, consumer: jmsaio.MessageConsumer) -> None:
        message = await consumer.receive(timeout=0.05)
        if message is not None:
            await message.acknowledge()
            self.take(message)

    async def process(self, consumer: jmsaio.MessageConsumer) -> None:
        async with consumer.process(timeout=0.05) as message:
            await asyncio.sleep(0)
        self.take(message)

    async def body(self, consumer: jmsaio.MessageConsumer) -> None:
        text = await consumer.receive_body(str, timeout=0.05)
        if text is not None:
            self.received.add(text)

    async def consumer_for_a_while(self, session: jmsaio.Session) -> None:
        async with session.create_consumer(self.queue):
            await asyncio.sleep(0)

    async def run(self, points: int) -> None:
        async with jmsaio.connect(self.url) as connection, connection.create_session(self.mode) as session:
            producer = await session.create_producer(self.queue)
            consumer = await session.create_consumer(self.queue)
            own = self.receive if self.mode is AcknowledgeMode.AUTO else self.acknowledged
            for _ in range(points):
                steps: list[tuple[Callable[[Any], Awaitable[None]], object]] = [
                    (self.send, producer),
                    (self.send, producer),
                    (self.send_async, producer),
                    (own, consumer),
                    (own, consumer),
                    (self.process, consumer),
                    (self.body if self.mode is AcknowledgeMode.AUTO else own, consumer),
                    (self.consumer_for_a_while, session),
                ]
                step, argument = self.random.choice(steps)
                try:
                    await cancelled_after(self.random.randrange(12), self.pause(), step(argument))
                except TimeoutError:
                    continue  # process found nothing
                if self.random.random() < 0.02:
                    await cancelled_after(self.random.randrange(12), self.pause(), consumer.close())
                    consumer = await session.create_consumer(self.queue)
        await self.take_rest()

    async def take_rest(self) -> None:
        async with jmsaio.connect(self.url) as connection, connection.create_session() as session:
            async with session.create_consumer(self.queue) as consumer:
                while not self.confirmed <= self.received:
                    message = await consumer.receive(timeout=10)
                    assert message is not None, f"lost: {sorted(self.confirmed - self.received)[:10]}"
                    self.take(message)
        assert self.received <= self.tried


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT])
async def test_nothing_is_lost(url: str, mode: AcknowledgeMode) -> None:
    points = POINTS["memory" if url.startswith("memory") else "pulsar"] // 2
    worker = Worker(url, mode, seed=int(mode))
    await worker.run(points)
    assert worker.confirmed
