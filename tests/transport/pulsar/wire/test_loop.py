"""Under load no step of the event loop takes long: other tasks of the application go on."""

from __future__ import annotations

import asyncio
import gc
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

import jmsaio
from tests.support.broker import TestBroker

pytestmark = [pytest.mark.broker, pytest.mark.slow]
#: Seconds of the processor that one step may take: not elapsed time, and without Python's garbage collector.
MOST = 0.05
MESSAGES, HELD, HANG = 20_000, 2000, 60


class Watch:
    """Measures each step of the loop, from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[tuple[float, str]] = []
        self._collecting = self._begun = 0.0
        real = asyncio.events.Handle._run

        def run(handle: asyncio.events.Handle) -> None:
            before, collecting, what = time.thread_time(), self._collecting, repr(handle)
            real(handle)
            taken = time.thread_time() - before - (self._collecting - collecting)
            if taken > MOST:
                self.steps.append((taken, what))

        monkeypatch.setattr(asyncio.events.Handle, "_run", run)
        gc.callbacks.append(self._collected)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        now = time.thread_time()
        if phase == "stop":
            self._collecting += now - self._begun
        self._begun = now


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Watch]]:
    """Begins to watch the loop."""
    callbacks = list(gc.callbacks)
    yield lambda: Watch(monkeypatch)
    gc.callbacks[:] = callbacks


async def test_no_step_takes_long_while_messages_are_sent_received_and_recovered(
    pulsar_broker: TestBroker, watch: Callable[[], Watch]
) -> None:
    url, queue = f"{pulsar_broker.url}&transport=wire", jmsaio.Queue(f"load-{uuid.uuid4()}")
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        async with session.create_producer(queue) as producer, session.create_consumer(queue) as consumer:
            await producer.send("the first send and receive import modules")
            assert await consumer.receive(timeout=HANG) is not None
        watching = watch()
        await _load(connection, session, queue)
    assert watching.steps == []


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
async def test_no_step_takes_long_for_a_body_of_5_mb_with_a_schema(
    pulsar_broker: TestBroker, watch: Callable[[], Watch], kind: str
) -> None:
    url, queue = f"{pulsar_broker.url}&transport=wire", jmsaio.Queue(f"load-{uuid.uuid4()}")
    schema = jmsaio.Schema(kind, '{"type": "array", "items": {"type": "map", "values": "long"}}')
    body = [{"a": 1 << 40, "b": number} for number in range({"AVRO": 300_000, "JSON": 170_000}[kind])]
    producing = {"chunking_enabled": True, "batching_enabled": False}
    async with (
        jmsaio.connect(url, consumer={"use_schema": True}, producer=producing) as connection,
        connection.create_session() as session,
        session.create_consumer(queue) as consumer,
        session.create_producer(queue, schema=schema) as producer,
    ):
        await producer.send(body[:1])
        assert await consumer.receive(timeout=HANG) is not None
        watching = watch()
        await asyncio.sleep(0)  # the step that began before is not measured
        await producer.send(body)
        message = await consumer.receive(timeout=HANG)
        await asyncio.sleep(0)
    assert watching.steps == []
    assert message is not None and message.get_body(object) == body


async def _load(connection: jmsaio.Connection, session: jmsaio.Session, queue: jmsaio.Queue) -> None:
    async with session.create_producer(queue) as producer:
        for number in range(MESSAGES):
            last = await producer.send_async("x" * 100, properties={"n": number})
        for _ in range(10):
            last = await producer.send_async(b"y" * 4_000_000)
        await last
    async with session.create_consumer(queue) as consumer:
        for _ in range(MESSAGES - HELD):
            assert await consumer.receive(timeout=HANG) is not None
    async with (
        connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as holding,
        holding.create_consumer(queue) as one,
        holding.create_producer(queue) as producer,
    ):
        await producer.send("else Pulsar 4.0.7 can leave the backlog until the next message is sent")
        for last_time in (False, True):
            for _ in range(HELD + 11):
                assert await one.receive(timeout=HANG) is not None
            await (holding.acknowledge() if last_time else holding.recover())
