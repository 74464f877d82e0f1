"""The least that pulsar-client costs an asyncio client with our wire format: no JMS in it, only what can't be left out.

Each message carries the eight properties that a JMS text message with three of its own has on the wire; here they are
as good as ready. Sends go in groups with one callback and have a future each, receives are drained inline, as in
``jmsaio/transport/pulsar``. What a row of jmsaio needs more than these is the price of its own layers; what these
need more than the other rows is pulsar-client's price for a property, about the same for each.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import Any

import _pulsar
import pulsar

from benchmarks.meter import Meter, Metrics
from benchmarks.raw import GUARD, consumer_options, open_client, producer_options
from benchmarks.workload import AMOUNT, KIND, KIND_VALUE, REGION, REGION_VALUE, Task, Workload

_SUBSCRIPTION = "benchmark"
_GROUP = 1_000
_CONNECTION = "6ed4cbc1-4f0b-4d3c-9a4e-1d6b6f3e2a90"


def wire_properties(number: int, now: int) -> dict[str, str]:
    """Return the properties of a message of jmsaio's rows, as they are on the wire."""
    return {
        "JMSPulsarMessageType": "text",
        "JMSConnectionID": _CONNECTION,
        "JMSDeliveryTime": str(now),
        "JMSMessageId": f"ID:{_CONNECTION}:1:{number}",
        REGION: REGION_VALUE,
        AMOUNT: str(number),
        f"{AMOUNT}_jsmtype": "int",
        KIND: KIND_VALUE,
    }


def _native_producer(client: pulsar.Client, task: Task) -> Any:
    """Return a producer without limits of its own: the window is ours."""
    options = producer_options(task.workload) | {"max_pending_messages": 0, "block_if_queue_full": False}
    return client.create_producer(task.topic, **options)


def _build(text: str, number: int) -> Any:
    now = time.time_ns() // 1_000_000
    builder = _pulsar.MessageBuilder()
    builder.content(text)
    builder.properties(wire_properties(number, now))
    builder.event_timestamp(now)
    return builder.build()


class _Window:
    """Sends in groups with one callback, a future for each message, and room for ``window`` of them."""

    def __init__(self, native: Any, window: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._send = native.send_async
        self._window = window
        self._pending = 0
        self._messages: list[Any] = []
        self._futures: list[asyncio.Future[None]] = []
        self._room: asyncio.Future[None] | None = None

    def add(self, message: Any) -> asyncio.Future[None]:
        """Take a message; a full group leaves at once."""
        future = self._loop.create_future()
        self._messages.append(message)
        self._futures.append(future)
        if len(self._messages) == _GROUP:
            self.flush()
        return future

    def flush(self) -> None:
        """Hand the group to pulsar-client."""
        if not self._messages:
            return
        messages, futures = self._messages, self._futures
        self._messages, self._futures = [], []
        self._pending += len(futures)
        last = messages.pop()
        for message in messages:
            self._send(message, None)
        post, answered = self._loop.call_soon_threadsafe, self._answered
        self._send(last, lambda result, _place: post(answered, futures, result))

    def _answered(self, futures: list[asyncio.Future[None]], result: Any) -> None:
        self._pending -= len(futures)
        for future in futures:
            if result == _pulsar.Result.Ok:
                future.set_result(None)
            else:
                future.set_exception(RuntimeError(f"not sent: {result}"))
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    async def room(self) -> None:
        """Wait until one more group may leave."""
        while self._pending >= self._window:
            self._room = self._loop.create_future()
            await self._room


async def send(task: Task) -> Metrics:
    """Send groups with one callback and a future for each message until the last one is confirmed."""
    work = task.workload
    client = open_client(task)
    window = _Window(_native_producer(client, task)._producer, work.window)
    with Meter() as meter:
        futures = []
        for number in range(work.messages):
            futures.append(window.add(_build(work.text, number)))
            await window.room()
        window.flush()
        async with asyncio.timeout(GUARD):
            for future in futures:
                await future
    client.close()
    return meter.metrics(work.messages)


def fill(task: Task) -> Metrics:
    """Fill the topic for ``receive``; subscribes first, so that the backlog is kept."""
    work = task.workload
    client = open_client(task)
    client.subscribe(task.topic, _SUBSCRIPTION, **consumer_options(work)).close()
    producer = _native_producer(client, task)
    with Meter() as meter:
        for number in range(work.messages):
            producer._producer.send_async(_build(work.text, number), None)
        producer.flush()
    client.close()
    return meter.metrics(work.messages)


async def receive(task: Task) -> Metrics:
    """Inline drain from the loop's thread, text and int read, each message acknowledged."""
    work = task.workload
    client = open_client(task)
    consumer = client.subscribe(task.topic, _SUBSCRIPTION, **consumer_options(work))
    try:
        async with asyncio.timeout(GUARD):
            return (await _drain(consumer._consumer, work)).metrics(work.messages)
    finally:
        client.close()


async def _drain(native: Any, work: Workload) -> Meter:
    received, total, characters = 0, 0, 0
    meter = Meter()
    async for message in _messages(native):
        if received == 0:
            meter.start()
        characters += len(message.data().decode())
        total += int(message.properties()[AMOUNT])
        native.acknowledge_async(message, None)
        received += 1
        if received == work.messages:
            break
    meter.stop()
    _check(work, total, characters)
    return meter


def _check(work: Workload, total: int, characters: int) -> None:
    if total != work.check_sum() or characters != work.messages * work.characters:
        raise RuntimeError(f"sum {total} instead of {work.check_sum()}, {characters} characters")


async def _messages(native: Any) -> Any:
    """Native messages as they come; one receive outstanding at most."""
    loop, own = asyncio.get_running_loop(), threading.get_ident()
    slot: list[Any] = [None]

    while True:
        late: asyncio.Future[Any] = loop.create_future()

        def came(_result: Any, message: Any, late: asyncio.Future[Any] = late) -> None:
            if threading.get_ident() == own:
                slot[0] = message
            else:
                loop.call_soon_threadsafe(late.set_result, message)

        native.receive_async(came)
        if slot[0] is None:
            yield await late
            continue
        message, slot[0] = slot[0], None
        yield message
        with suppress(_pulsar.Timeout):
            while True:
                yield native.receive(0)
