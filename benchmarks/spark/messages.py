"""The message that all rows of Spark carry: a text and five properties of JMS, which are 13 on the wire."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from typing import Any, Final

import _pulsar
import attrs

from benchmarks.meter import Meter, Metrics
from benchmarks.raw import open_client
from benchmarks.workload import AMOUNT, REGION, REGION_VALUE, Task, Workload
from jmsaio.config import load
from jmsaio.transport.registry import connected

#: Property that is the same for each hundredth message: what the selector asks for.
PERCENT: Final = "percent"
PRICE: Final = "price"
EXPRESS: Final = "express"
#: Type words of the properties that are no strings.
WORDS: Final = {AMOUNT: "int", PERCENT: "int", PRICE: "double", EXPRESS: "boolean"}
CONNECTION: Final = "6ed4cbc1-4f0b-4d3c-9a4e-1d6b6f3e2a90"
#: Key of ``Task.extra``: the queue that a row reads, which is filled once for all rows.
SOURCE: Final = "source"
#: Key of ``Task.extra``: characters of a text, where that is not the workload's.
CHARACTERS: Final = "characters"
#: Keys of ``Task.extra``: number of topics, or of partitions of one topic, among which ``SPREAD`` messages are divided.
TOPICS: Final = "topics"
PARTITIONS: Final = "partitions"
SPREAD: Final = 1_000
#: Messages in an entry, whatever the speed of the sender; of those that are divided, each is one.
ENTRY: Final = 100
_NAMESPACE: Final = "persistent://public/default/"
_SUBSCRIPTION: Final = "jms-queue"


def work_of(task: Task) -> Workload:
    """Return the workload of a row, its messages and characters those of Spark.

    Of longer texts there are fewer, but no less than an entry.
    """
    work = task.workload
    if is_spread(task):
        return attrs.evolve(work, messages=SPREAD, characters=work.spark_characters, spark_batch=SPREAD // 5)
    characters = int(task.extra.get(CHARACTERS, work.spark_characters))
    messages = max(ENTRY, work.spark_messages * work.spark_characters // characters)
    return attrs.evolve(work, messages=messages, characters=characters)


def is_spread(task: Task) -> bool:
    """Whether the messages of a row are divided among topics or partitions."""
    return TOPICS in task.extra or PARTITIONS in task.extra


def queues_of(task: Task) -> list[str]:
    """Return the queues that a row reads."""
    return [f"{task.extra[SOURCE]}-{number}" for number in range(int(task.extra.get(TOPICS, "1")))]


def topic_of(queue: str) -> str:
    """Return the full name of a queue's topic."""
    return _NAMESPACE + queue


def texts(number: int) -> dict[str, str]:
    """Return the properties of a message as text."""
    return {
        REGION: REGION_VALUE,
        AMOUNT: str(number),
        PERCENT: str(number % 100),
        PRICE: str(number * 0.25),
        EXPRESS: "false" if number % 2 else "true",
    }


def typed(number: int) -> dict[str, str | int | float | bool]:
    """Return the same properties as values."""
    return {
        REGION: REGION_VALUE,
        AMOUNT: number,
        PERCENT: number % 100,
        PRICE: number * 0.25,
        EXPRESS: number % 2 == 0,
    }


def wire_properties(number: int, now: int) -> dict[str, str]:
    """Return the 13 properties on the wire.

    Args:
        number: of the message, from 0.
        now: milliseconds since the epoch.
    """
    wire = {
        "JMSPulsarMessageType": "text",
        "JMSConnectionID": CONNECTION,
        "JMSDeliveryTime": str(now),
        "JMSMessageId": f"ID:{CONNECTION}:1:1:{number}",
    }
    for name, text in texts(number).items():
        wire[name] = text
        if name in WORDS:
            wire[f"{name}_jsmtype"] = WORDS[name]
    return wire


def native_messages(work: Workload) -> Iterator[Any]:
    """Return the messages of a workload as pulsar-client sends them."""
    for number in range(work.messages):
        now = time.time_ns() // 1_000_000
        builder = _pulsar.MessageBuilder()
        builder.content(work.text)
        builder.properties(wire_properties(number, now))
        builder.event_timestamp(now)
        yield builder.build()


def fill(task: Task) -> Metrics:
    """Fill the queue that a row reads, in entries of ``ENTRY`` messages; its subscription keeps them."""
    if is_spread(task):
        return _fill_all(task)
    work, topic = work_of(task), topic_of(task.extra[SOURCE])
    client = open_client(attrs.evolve(task, url=task.url.partition("?")[0]))  # that of jmsaio's rows, too
    client.subscribe(topic, _SUBSCRIPTION).close()
    producer = client.create_producer(
        topic,
        batching_enabled=True,
        batching_max_messages=ENTRY,
        batching_max_publish_delay_ms=10_000,  # an entry ends when it is full
        max_pending_messages=0,
    )
    with Meter() as meter:
        for message in native_messages(work):
            producer._producer.send_async(message, None)
        producer.flush()
    client.close()
    return meter.metrics(work.messages)


def _fill_all(task: Task) -> Metrics:
    """Divide messages among the queues that a row reads, or their partitions, one in an entry."""
    work, queues = work_of(task), queues_of(task)
    asyncio.run(_create(task.url, queues, int(task.extra.get(PARTITIONS, "0"))))
    client, messages = open_client(attrs.evolve(task, url=task.url.partition("?")[0])), native_messages(work)
    with Meter() as meter:
        for queue in queues:
            client.subscribe(topic_of(queue), _SUBSCRIPTION).close()
            producer = client.create_producer(topic_of(queue), batching_enabled=False, max_pending_messages=0)
            for message in itertools.islice(messages, work.messages // len(queues)):
                producer._producer.send_async(message, None)
            producer.flush()
            producer.close()
    client.close()
    return meter.metrics(work.messages)


async def _create(url: str, queues: list[str], partitions: int) -> None:
    async with connected(load(url)) as transport:
        assert transport.admin is not None
        for queue in queues:
            await transport.admin.create_topic(topic_of(queue), partitions)
