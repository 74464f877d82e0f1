"""Rows that send: futures of ``send_async``, and workers that each await ``send``."""

from __future__ import annotations

import asyncio
from collections import deque

import jmsaio
from jmsaio.bench.meter import Meter, Metrics
from jmsaio.bench.scenarios.setting import tuned_url, typed_properties
from jmsaio.bench.workload import Task, Workload
from jmsaio.client.producer import MessageProducer
from jmsaio.client.senders.pending import Receipt


async def send_all(producer: MessageProducer, work: Workload) -> None:
    """Send the workload with ``send_async`` and wait for every confirmation. Raises the errors of sends."""
    text = work.text
    waiting: deque[asyncio.Future[Receipt]] = deque()
    for number in range(work.messages):
        waiting.append(await producer.send_async(text, properties=typed_properties(number)))
        while waiting and waiting[0].done():
            waiting.popleft().result()
    for future in waiting:
        await future


async def futures(task: Task) -> Metrics:
    """Send with ``send_async`` from one coroutine; ends when the last message is confirmed."""
    work = task.workload
    async with (
        jmsaio.connect(tuned_url(task), send_window_messages=work.window) as connection,
        connection.create_session() as session,
        session.create_producer(session.create_queue(task.topic)) as producer,
    ):
        await producer.send(work.text, properties=typed_properties(0))  # opens the sender
        with Meter() as meter:
            await send_all(producer, work)
    return meter.metrics(work.messages)


async def workers(task: Task) -> Metrics:
    """Send from workers that each await one ``send`` at a time; ends when the last message is confirmed."""
    work = task.workload
    text, numbers = work.text, iter(range(work.messages))
    async with (
        jmsaio.connect(tuned_url(task), send_window_messages=work.window) as connection,
        connection.create_session() as session,
        session.create_producer(session.create_queue(task.topic)) as producer,
    ):
        await producer.send(text, properties=typed_properties(0))  # opens the sender

        async def worker() -> None:
            for number in numbers:
                await producer.send(text, properties=typed_properties(number))

        with Meter() as meter:
            await asyncio.gather(*(worker() for _ in range(work.workers)))
    return meter.metrics(work.messages)
