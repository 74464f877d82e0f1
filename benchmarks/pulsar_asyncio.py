"""``pulsar.asyncio``, the asyncio interface that pulsar-client brings: workers that await ``send``, serial receive."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pulsar
import pulsar.asyncio

from benchmarks.meter import Meter, Metrics, latency_metrics
from benchmarks.properties import raw_properties
from benchmarks.raw import GUARD, consumer_options, producer_options
from benchmarks.scenarios import paced
from benchmarks.workload import AMOUNT, Task

_SUBSCRIPTION = "benchmark"


def open_client(task: Task) -> Any:
    """Return a quiet asyncio client of the task's broker."""
    return pulsar.asyncio.Client(task.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


async def send(task: Task) -> Metrics:
    """Workers that each await one ``send`` at a time; ends when the last is confirmed."""
    work = task.workload
    client = open_client(task)
    producer = await client.create_producer(task.topic, **producer_options(work))
    text, numbers = work.text, iter(range(work.messages))

    async def worker() -> None:
        for number in numbers:
            await producer.send(text.encode(), properties=raw_properties(number))

    with Meter() as meter:
        async with asyncio.timeout(GUARD):
            await asyncio.gather(*(worker() for _ in range(work.workers)))
    await client.close()
    return meter.metrics(work.messages)


async def receive(task: Task) -> Metrics:
    """``receive``, text and int read, ``acknowledge``; first to last message of a backlog."""
    work = task.workload
    client = open_client(task)
    consumer = await client.subscribe(task.topic, _SUBSCRIPTION, **consumer_options(work))
    total, meter = 0, Meter()
    async with asyncio.timeout(GUARD):
        for number in range(work.messages):
            message = await consumer.receive()
            if number == 0:
                meter.start()
            text = message.data().decode()
            total += int(message.properties()[AMOUNT])
            await consumer.acknowledge(message)
            if len(text) != work.characters:
                raise RuntimeError(f"text of {len(text)} characters")
    meter.stop()
    await client.close()
    if total != work.check_sum():
        raise RuntimeError(f"sum {total} instead of {work.check_sum()}")
    return meter.metrics(work.messages)


async def latency(task: Task) -> Metrics:
    """Return a task a message sends at a fixed rate, another task receives, in one process."""
    work = task.workload
    client = open_client(task)
    consumer = await client.subscribe(task.topic, _SUBSCRIPTION, **consumer_options(work))
    producer = await client.create_producer(task.topic, **producer_options(work))
    count = work.warm_messages + int(work.rate * work.seconds)
    clock = time.perf_counter
    sent, late, latencies = [0.0] * count, [0.0] * count, [0.0] * count

    async def take() -> None:
        for _ in range(count):
            message = await consumer.receive()
            message.data().decode()
            number = int(message.properties()[AMOUNT])
            latencies[number] = clock() - sent[number]
            await consumer.acknowledge(message)

    meter, sends = Meter(), set()
    async with asyncio.timeout(GUARD), asyncio.TaskGroup() as group:
        group.create_task(take())
        async for number in paced(work, meter, sent, late):
            task_of_send = group.create_task(producer.send(work.text.encode(), properties=raw_properties(number)))
            sends.add(task_of_send)
            task_of_send.add_done_callback(sends.discard)
    meter.stop()
    await client.close()
    return latency_metrics(latencies[work.warm_messages :], late[work.warm_messages :], meter)
