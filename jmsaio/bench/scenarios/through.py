"""The row from send to acknowledge: one task sends, another receives, in one loop."""

from __future__ import annotations

import asyncio

import jmsaio
from jmsaio.bench.meter import Meter, Metrics
from jmsaio.bench.scenarios.receiving import receive_all
from jmsaio.bench.scenarios.sending import send_all
from jmsaio.bench.scenarios.setting import tuned_url
from jmsaio.bench.workload import Task


async def through(task: Task) -> Metrics:
    """Send and receive concurrently; measures from the first send to the last message, acknowledged."""
    work = task.workload
    async with (
        jmsaio.connect(tuned_url(task), send_window_messages=work.window) as connection,
        connection.create_session() as sending,
        connection.create_session() as receiving,
        sending.create_producer(sending.create_queue(task.topic)) as producer,
    ):
        consumer = await receiving.create_consumer(receiving.create_queue(task.topic))
        with Meter() as meter:
            async with asyncio.TaskGroup() as group:
                group.create_task(send_all(producer, work))
                group.create_task(receive_all(consumer, work))
            await consumer.close()
    return meter.metrics(work.messages)
