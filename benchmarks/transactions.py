"""Transactions: sessions that receive, send, and commit, as the Java peer does in threads.

Each session has an input queue of its own; all send to one queue, whose messages are counted at the end.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Final

import attrs

import jmsaio
from benchmarks.meter import Meter, Metrics
from benchmarks.scenarios import tuned_url
from benchmarks.workload import Task

#: Options of a URL that select transactions of the broker.
NATIVE: Final = "transport=wire&enableTransaction=true"
#: Name of the task's extra that holds the last part of the row's name.
SHAPE: Final = "shape"
#: Seconds after which a missing message is reported.
_GUARD: Final = 30.0


@attrs.frozen
class Shape:
    """Amounts of one row.

    Attributes:
        sessions: sessions at the same time.
        each: measured transactions of a session.
        messages: messages that a transaction receives and sends.
    """

    sessions: int
    each: int
    messages: int

    @classmethod
    def of(cls, task: Task) -> Shape:
        """Return the amounts of a task."""
        count = task.workload.transactions
        shapes = {"": cls(1, count, 1), "-50": cls(50, count // 10, 1), "-messages": cls(1, count // 10, 100)}
        return shapes[task.extra[SHAPE]]

    @property
    def received(self) -> int:
        """Messages of a session, with its first transaction, which is not measured."""
        return (self.each + 1) * self.messages


async def transactions(task: Task) -> Metrics:
    """Measure the transactions of all sessions after the first of each.

    With several messages per transaction, the messages are counted. Raises RuntimeError if one is missing at the end.
    """
    shape = Shape.of(task)
    out = f"{task.topic}-out"
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(jmsaio.connect(tuned_url(task)))
        plain = await stack.enter_async_context(connection.create_session())
        receiver = await plain.create_consumer(plain.create_queue(out))
        units = [await _Unit.open(stack, connection, plain, task, number) for number in range(shape.sessions)]
        await asyncio.gather(*(unit.run(1) for unit in units))
        with Meter() as meter:
            await asyncio.gather(*(unit.run(shape.each) for unit in units))
        for number in range(shape.sessions * shape.received):
            if await receiver.receive(_GUARD) is None:
                raise RuntimeError(f"message {number} was not received")
    return meter.metrics(shape.sessions * shape.each * shape.messages)


@attrs.frozen
class _Unit:
    """A transacted session with a consumer of its queue and a producer."""

    session: jmsaio.Session
    consumer: jmsaio.MessageConsumer
    producer: jmsaio.MessageProducer
    messages: int

    @classmethod
    async def open(
        cls, stack: AsyncExitStack, connection: jmsaio.Connection, plain: jmsaio.Session, task: Task, number: int
    ) -> _Unit:
        shape, name = Shape.of(task), f"{task.topic}-{number}"
        session = await stack.enter_async_context(connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED))
        consumer = await session.create_consumer(session.create_queue(name))
        async with plain.create_producer(plain.create_queue(name)) as producer:
            text = task.workload.text
            for sent in [await producer.send_async(text) for _ in range(shape.received)]:
                await sent
        return cls(session, consumer, await session.create_producer(session.create_queue(f"{task.topic}-out")),
                   shape.messages)  # fmt: skip

    async def run(self, count: int) -> None:
        for _ in range(count):
            sends = []
            for _ in range(self.messages):
                message = await self.consumer.receive(_GUARD)
                if not isinstance(message, jmsaio.TextMessage):
                    raise RuntimeError(f"not the message that was sent: {message!r}")
                sends.append(await self.producer.send_async(message.text or ""))
            await asyncio.gather(*sends)
            await self.session.commit()
