"""Rows that receive a full backlog in AUTO mode and read its text and int."""

from __future__ import annotations

import jmsaio
from jmsaio.bench.meter import Meter, Metrics
from jmsaio.bench.scenarios.sending import send_all
from jmsaio.bench.scenarios.setting import tuned_url
from jmsaio.bench.workload import AMOUNT, Task, Workload
from jmsaio.client.consumer import MessageConsumer

#: Seconds after which a missing message is reported.
_GUARD = 30.0


async def fill(task: Task) -> Metrics:
    """Fill the queue; its subscription is created first, so that nothing is lost."""
    work = task.workload
    async with jmsaio.connect(tuned_url(task)) as connection, connection.create_session() as session:
        queue = session.create_queue(task.topic)
        await (await session.create_consumer(queue)).close()
        async with session.create_producer(queue) as producer:
            with Meter() as meter:
                await send_all(producer, work)
    return meter.metrics(work.messages)


async def receive(task: Task) -> Metrics:
    """Receive the messages of ``fill`` with one consumer; measures from the first message to the last."""
    async with (
        jmsaio.connect(tuned_url(task)) as connection,
        connection.create_session() as session,
        session.create_consumer(session.create_queue(task.topic)) as consumer,
    ):
        meter = await receive_all(consumer, task.workload)
    return meter.metrics(task.workload.messages)


async def fill_and_receive(task: Task) -> Metrics:
    """Fill and receive in one process, for the embedded broker."""
    work = task.workload
    async with jmsaio.connect(tuned_url(task)) as connection, connection.create_session() as session:
        queue = session.create_queue(task.topic)
        async with session.create_producer(queue) as producer:
            await send_all(producer, work)
        async with session.create_consumer(queue) as consumer:
            meter = await receive_all(consumer, work)
    return meter.metrics(work.messages)


async def receive_all(consumer: MessageConsumer, work: Workload) -> Meter:
    """Receive the workload. Raises RuntimeError if a message is missing, duplicated or wrong."""
    total = characters = 0
    meter = Meter()
    for number in range(work.messages):
        message = await consumer.receive(_GUARD)
        if number == 0:
            meter.start()
        if not isinstance(message, jmsaio.TextMessage):
            raise RuntimeError(f"message {number} was not received, or is not text: {message!r}")
        characters += len(message.text or "")
        total += message.get_int_property(AMOUNT)
    meter.stop()
    if total != work.check_sum() or characters != work.messages * work.characters:
        raise RuntimeError(f"sum {total} instead of {work.check_sum()}, {characters} characters")
    return meter
