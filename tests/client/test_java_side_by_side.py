"""Where the Java client leaves the rules of JMS: its behaviour, seen live, beside ours on the same broker."""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import attrs
import pytest

import jmsaio
from jmsaio.config import load
from jmsaio.launcher import tools
from jmsaio.transport.pulsar.admin import RestAdmin
from tests.support.broker import TestBroker
from tests.support.java import class_path

pytestmark = [pytest.mark.broker, pytest.mark.java, pytest.mark.timeout(300)]


@attrs.define
class Both:
    """What ``Faults.java`` saw, and a Python session; queues of both begin with ``prefix``."""

    java: dict[str, Any]
    session: jmsaio.Session
    connection: jmsaio.Connection
    broker: TestBroker
    prefix: str

    def queue(self, name: str) -> jmsaio.Queue:
        return jmsaio.Queue(f"{self.prefix}ours-{name}")

    async def backlog(self, name: str) -> int:
        """Messages that a queue's subscription holds."""
        config = load(self.broker.service_url, web_service_url=self.broker.web_service_url)
        admin = RestAdmin(config)
        try:
            return await admin.backlog(f"persistent://public/default/{self.prefix}{name}", "jms-queue")
        finally:
            await admin.aclose()


async def run_java(broker: TestBroker, path: str, prefix: str) -> dict[str, Any]:
    """Run ``Faults.java``."""
    addresses = {"brokerServiceUrl": broker.service_url, "webServiceUrl": broker.web_service_url}
    process = await asyncio.create_subprocess_exec(
        str(tools.find("java")), "-cp", path, "Faults", json.dumps(addresses), prefix,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, errors.decode()[-3000:]
    found: dict[str, Any] = json.loads(output)
    return found


async def test_java_and_ours(pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path) -> None:
    prefix = f"faults-{uuid.uuid4().hex[:12]}-"
    java = await run_java(pulsar_broker, class_path(java_classpath, java_peer_dir), prefix)
    url = pulsar_broker.url
    async with jmsaio.connect(url, max_local_redeliveries=0) as connection, connection.create_session() as session:
        both = Both(java, session, connection, pulsar_broker, prefix)
        await the_exception_listener(both)
        await a_producers_time_to_live(both)
        await receive_zero(both)
        await listeners_of_one_session(both)
        await completions_at_close(both)
        await an_expired_message(both)


async def the_exception_listener(both: Both) -> None:
    """Java stores it and never calls it."""
    assert both.java["listenerThrew"] is True and both.java["exceptionListenerTold"] == 0
    told = asyncio.get_running_loop().create_future()
    both.connection.set_exception_listener(told.set_result)

    def failing(message: jmsaio.Message) -> None:
        raise RuntimeError("of the application")

    queue = both.queue("listener")
    async with both.session.create_consumer(queue) as consumer, both.session.create_producer(queue) as producer:
        consumer.set_message_listener(failing)
        await producer.send("fails")
        assert "of the application" in repr(await asyncio.wait_for(told, 20))
    both.connection.set_exception_listener(None)


async def a_producers_time_to_live(both: Both) -> None:
    """Java ignores the producer's time to live in ``send(message)``."""
    assert both.java["expiration"] == 0
    message = both.session.create_text_message("lives for a minute")
    async with both.session.create_producer(both.queue("ttl")) as producer:
        producer.set_time_to_live(60)
        await producer.send(message)
    assert message.jms_expiration == message.jms_timestamp + 60_000


async def receive_zero(both: Both) -> None:
    """Java's ``receive(0)`` comes back at once; JMS and ours wait without end."""
    assert both.java["receiveZeroCameBack"] is True
    queue = both.queue("zero")
    async with both.session.create_consumer(queue) as consumer, both.session.create_producer(queue) as producer:
        receiving = asyncio.ensure_future(consumer.receive(timeout=0))
        await asyncio.sleep(0.3)
        assert not receiving.done()
        await producer.send("worth waiting for")
        message = await asyncio.wait_for(receiving, 20)
    assert message is not None and message.get_body(str) == "worth waiting for"


async def listeners_of_one_session(both: Both) -> None:
    """Java runs the listeners of two consumers of one session at the same time."""
    assert both.java["listenersHeardAll"] is True and both.java["listenersAtOnce"] > 1
    running, most, heard = 0, 0, 0

    async def listener(_: jmsaio.Message) -> None:
        nonlocal running, most, heard
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        heard += 1

    consumers = []
    async with both.session.create_producer() as producer:
        for name in ("one", "two"):
            consumers.append(await both.session.create_consumer(both.queue(name)))
            for _ in range(10):
                await producer.send(both.queue(name), "overlaps")
    for consumer in consumers:
        consumer.set_message_listener(listener)
    async with asyncio.timeout(20):
        while heard < 20:
            await asyncio.sleep(0.01)
    assert most == 1
    for consumer in consumers:
        await consumer.close()


async def completions_at_close(both: Both) -> None:
    """Java's ``close`` does not wait for completions, and some are never told."""
    assert both.java["completionsTold"] < 1000
    told = []

    class Listener:
        def on_completion(self, message: jmsaio.Message) -> None:
            told.append(message)

        def on_exception(self, message: jmsaio.Message, error: Exception) -> None:
            told.append(message)

    session = await both.connection.create_session()
    producer = await session.create_producer(both.queue("completions"))
    for _ in range(200):
        await producer.send_async("completes", completion_listener=Listener())
    await session.close()
    assert len(told) == 200


async def an_expired_message(both: Both) -> None:
    """Java's consumer gives it back again and again; ours removes it."""
    assert both.java["expiredReceived"] is False
    assert await both.backlog("expired") == 1
    queue = both.queue("expired")
    async with both.session.create_consumer(queue) as consumer, both.session.create_producer(queue) as producer:
        await producer.send("expires", time_to_live=0.001)
        await asyncio.sleep(0.05)
        assert await consumer.receive(timeout=1) is None
        async with asyncio.timeout(20):
            while await both.backlog("ours-expired"):
                await asyncio.sleep(0.1)
