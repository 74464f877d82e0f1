"""Rows that receive the few messages of a backlog that match a selector, which runs in the client or at the broker."""

from __future__ import annotations

import httpx

import jmsaio
from benchmarks.meter import Meter, Metrics
from benchmarks.scenarios import tuned_url
from benchmarks.workload import AMOUNT, Task
from jmsaio.client.delivery.inbox import BATCH
from jmsaio.client.lifetime.scope import Opening
from jmsaio.client.session import Session

#: Of so many messages one matches.
ONE_IN = 1_000
SUBSCRIPTION = "filtered"
#: Seconds after which a missing message is reported.
_GUARD = 60.0


async def fill(task: Task) -> Metrics:
    """Fill the topic, each message in an entry of its own: the broker sends a batch whole."""
    work = task.workload
    async with (
        jmsaio.connect(tuned_url(task), producer={"batching_enabled": False}) as connection,
        connection.create_session() as session,
    ):
        await (await _consumer(session, task)).close()
        async with session.create_producer(session.create_topic(task.topic)) as producer:
            with Meter() as meter:
                for start in range(0, work.filtered_messages, BATCH):
                    numbers = range(start, min(start + BATCH, work.filtered_messages))
                    sends = [producer.send_async(work.text, properties={AMOUNT: n % ONE_IN}) for n in numbers]
                    for sent in sends:
                        await sent
    return meter.metrics(work.filtered_messages)


async def in_client(task: Task) -> Metrics:
    """Receive the messages that match; the client looks at all."""
    return await _receive(task, at_broker=False)


async def at_broker(task: Task) -> Metrics:
    """Receive the messages that match; the broker sends no others."""
    return await _receive(task, at_broker=True)


async def _receive(task: Task, at_broker: bool) -> Metrics:
    count = len(range(0, task.workload.filtered_messages, ONE_IN))
    async with (
        jmsaio.connect(tuned_url(task), use_server_side_filtering=at_broker) as connection,
        connection.create_session() as session,
    ):
        with Meter() as meter:
            async with _consumer(session, task) as consumer:
                for _ in range(count):
                    if await consumer.receive(_GUARD) is None:
                        raise RuntimeError("a message that matches did not come")
        metrics = meter.metrics(task.workload.filtered_messages)
        web = connection.configuration.web_service_url
    if web:
        metrics["bytes_out"] = await _bytes_out(web, task.topic)
    return metrics


def _consumer(session: Session, task: Task) -> Opening[jmsaio.MessageConsumer]:
    return session.create_durable_consumer(session.create_topic(task.topic), SUBSCRIPTION, f"{AMOUNT} = 0")


async def _bytes_out(web: str, topic: str) -> float:
    """Bytes that the broker has sent to the consumers of a topic."""
    async with httpx.AsyncClient() as client:
        found = await client.get(f"{web}/admin/v2/persistent/public/default/{topic}/stats")
    return float(found.raise_for_status().json()["bytesOutCounter"])
