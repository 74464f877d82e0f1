"""What was confirmed is stored although the connection stalls: for each way of sending, and over partitions.

Dead letters are sent, too: each message of a queue is one of them, or is redelivered.
"""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from functools import partial
from typing import Any

import anyio
import attrs
import httpx
import pytest

import jmsaio
from jmsaio.config import ProducerConfig
from jmsaio.errors import JMSError, OperationTimeoutError, SendError
from jmsaio.testing import FaultProxy
from jmsaio.transport.pulsar import dead_letters
from tests.client.helpers import text
from tests.kit.virtual_time import steady
from tests.support.broker import TestBroker

#: Seconds of stalls; ``JMSAIO_TEST_FAULT_SECONDS`` sets it for longer runs.
SECONDS = float(os.environ.get("JMSAIO_TEST_FAULT_SECONDS", "4"))
#: Seconds after which a test hangs.
LONG = 120.0


@attrs.define
class Told:
    """What was said of the messages to one destination."""

    topic: jmsaio.Topic
    confirmed: set[str] = attrs.field(factory=set)
    failed: dict[str, Exception] = attrs.field(factory=dict)
    refused: int = 0

    def on_completion(self, message: jmsaio.Message) -> None:
        self.confirmed.add(text(message))

    def on_exception(self, message: jmsaio.Message, error: Exception) -> None:
        self.failed[text(message)] = error


async def send_and_wait(session: jmsaio.Session, told: Told, end: float) -> None:
    producer = await session.create_producer(told.topic)

    async def work() -> None:
        while steady() < end:
            text = str(uuid.uuid4())
            try:
                await producer.send(text)
                told.confirmed.add(text)
            except SendError as error:
                told.failed[text] = error
            except OperationTimeoutError:
                told.refused += 1

    await asyncio.gather(*(work() for _ in range(300)))


async def send_many(session: jmsaio.Session, told: Told, end: float) -> None:
    producer, futures = await session.create_producer(told.topic), {}
    while steady() < end:
        text = str(uuid.uuid4())
        try:
            futures[text] = await producer.send_async(text)
        except OperationTimeoutError:
            told.refused += 1
    for text, outcome in zip(futures, await asyncio.gather(*futures.values(), return_exceptions=True), strict=True):
        if isinstance(outcome, JMSError):
            told.failed[text] = outcome
        else:
            told.confirmed.add(text)


async def send_with_listener(session: jmsaio.Session, told: Told, end: float) -> None:
    producer = await session.create_producer(told.topic)
    while steady() < end:
        try:
            await producer.send_async(jmsaio.TextMessage(str(uuid.uuid4())), completion_listener=told)
        except OperationTimeoutError:
            told.refused += 1
    await producer.close()


async def all_of(session: jmsaio.Session, told: Told, consumer: jmsaio.MessageConsumer) -> set[str]:
    """The confirmed messages that do not come."""
    missing = set(told.confirmed)
    while missing:
        message = await consumer.receive(timeout=20)
        if message is None:
            break
        missing.discard(message.get_body(str))
    return missing


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("way", "partitions"), [(send_and_wait, 0), (send_many, 0), (send_many, 3), (send_with_listener, 0)]
)
async def test_every_confirmed_message_is_stored(pulsar_broker: TestBroker, way: Any, partitions: int) -> None:
    """Stalls are longer than the send time-out, while sends go on."""
    name = f"persistent://public/default/confirmed-{uuid.uuid4()}"
    if partitions:
        async with httpx.AsyncClient(base_url=pulsar_broker.web_service_url, timeout=LONG) as http:
            path = f"/admin/v2/{name.replace('://', '/')}/partitions"
            (await http.put(path, json=partitions)).raise_for_status()
    direct = pulsar_broker.url
    told = Told(jmsaio.Topic(name))
    async with FaultProxy.of(pulsar_broker.service_url) as proxy, jmsaio.connect(direct) as reading:
        session = await reading.create_session()
        consumer = await session.create_consumer(told.topic)
        options = f"webServiceUrl={pulsar_broker.web_service_url}&producerConfig.sendTimeoutMs=1000"
        async with jmsaio.connect(f"{proxy.url}?{options}", send_window_messages=100_000) as sending:
            async with anyio.create_task_group() as group:
                group.start_soon(way, await sending.create_session(), told, steady() + SECONDS / 2)
                await anyio.sleep(0.5)
                for _ in range(round(SECONDS / 4)):
                    seconds = random.uniform(1.1, 1.35)
                    proxy.stall(seconds=seconds)
                    await anyio.sleep(seconds + 0.2)
        assert told.confirmed and told.failed
        assert {type(error).__name__ for error in told.failed.values()} <= {"SendInDoubtError", "SendError"}
        assert await all_of(session, told, consumer) == set()


async def names_in(session: jmsaio.Session, place: jmsaio.Queue, wanted: set[str]) -> set[str]:
    """Receive until all that is wanted has come, or nothing comes for a long time."""
    consumer, found = await session.create_consumer(place), set[str]()
    while not wanted <= found:
        message = await consumer.receive(timeout=20)
        if message is None:
            break
        found.add(text(message))
    await consumer.close()
    return found


@pytest.mark.timeout(300)
async def test_every_dead_letter_is_stored_or_redelivered(
    pulsar_broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listener fails on each message, while the link stalls for longer than the dead letters' send time-out."""
    monkeypatch.setattr(dead_letters, "ProducerConfig", partial(ProducerConfig, send_timeout=1.0))
    name = f"persistent://public/default/dead-{uuid.uuid4()}"
    work, dead = jmsaio.Queue(name), jmsaio.Queue(f"{name}-dead")
    web = f"?webServiceUrl={pulsar_broker.web_service_url}"
    options = (
        f"{web}&consumerConfig.deadLetterPolicy.maxRedeliverCount=1&consumerConfig.deadLetterPolicy.deadLetterTopic="
        f"{name}-dead&consumerConfig.negativeAckRedeliveryDelayMicros=100000"
    )
    sent = {str(number) for number in range(3000)}

    def fail(message: jmsaio.Message) -> None:
        raise ValueError("no")

    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        async with jmsaio.connect(pulsar_broker.service_url + web) as direct, direct.create_session() as session:
            await (await session.create_consumer(dead)).close()  # its subscription keeps what comes
            producer = await session.create_producer(work)
            await asyncio.gather(*[await producer.send_async(one) for one in sorted(sent)])
            async with jmsaio.connect(proxy.url + options) as failing, failing.create_session() as listening:
                (await listening.create_consumer(work)).set_message_listener(fail)
                for _ in range(round(SECONDS / 0.8)):
                    seconds = random.uniform(1.1, 1.35)
                    proxy.stall(seconds=seconds)
                    await anyio.sleep(seconds + 0.4)
                async with session.create_consumer(dead) as consumer:  # a slow machine has stored no letter until now
                    letter = await consumer.receive(timeout=60)
            assert letter is not None
            letters = {text(letter)} | await names_in(session, dead, sent - {text(letter)})
            assert sent - letters - await names_in(session, work, sent - letters) == set()
