"""A transport on the real broker, topics of one's own, and a box that waits for records."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import anyio
import attrs
import pytest

from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.model.wire import ReceivedRecord
from jmsaio.transport.base import (
    Receiver,
    Sender,
    SenderOptions,
    StartPosition,
    Subscription,
    SubscriptionType,
    Transport,
)
from jmsaio.transport.pulsar import open_transport
from tests.kit.records import Outcomes, record, tell_each
from tests.support.broker import TestBroker

#: Seconds after which a test hangs.
HANG = 30


@attrs.define
class Box:
    """One receiver, and what it gives."""

    receiver: Any = None
    event: anyio.Event = attrs.field(factory=anyio.Event)

    def wake(self) -> None:
        self.event.set()
        self.event = anyio.Event()

    async def take(self, count: int, timeout: float = HANG, limit: int = 100) -> list[ReceivedRecord]:
        """Wait for ``count`` records."""
        found: list[ReceivedRecord] = []
        with anyio.fail_after(timeout):
            while len(found) < count:
                event = self.event
                records = self.receiver.receive(min(limit, count - len(found)))
                found += records
                if not records:
                    await event.wait()
        return found

    async def nothing(self, seconds: float = 0.7) -> None:
        """Assert that nothing comes for a while."""
        with anyio.move_on_after(seconds):
            while True:
                event = self.event
                records = self.receiver.receive(10)
                assert records == [], [record.payload for record in records]
                await event.wait()


@attrs.define
class SlowLook:
    """A look after partitions that never ends by itself, and takes a while to be cancelled: what became of it."""

    told: list[str] = attrs.field(factory=list)

    async def look(self) -> list[str]:
        try:
            self.told.append("begun")
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.2)
            self.told.append("ended")
        return []


async def send(sender: Sender, *payloads: str) -> Outcomes:
    """Send and wait for all outcomes."""
    outcomes = Outcomes()
    for payload in payloads:
        sender.send(record(payload), outcomes)
    await sender.drain(HANG)
    return outcomes


@attrs.define
class Kit:
    """One transport and its usual parts."""

    transport: Transport
    topic: str

    async def sender(self, topic: str = "", **options: Any) -> Sender:
        config = options.pop("config", ProducerConfig())
        return await self.transport.open_sender(
            topic or self.topic, SenderOptions(config=config, settled=tell_each, **options)
        )

    async def box(
        self,
        kind: SubscriptionType = SubscriptionType.SHARED,
        *topics: str,
        name: str = "sub",
        position: StartPosition = StartPosition.EARLIEST,
        pattern: str | None = None,
        metadata: Mapping[str, str] = {},
        selective: bool = False,
        **config: Any,
    ) -> Box:
        box = Box()
        subscription = Subscription(
            topics=topics or (() if pattern is not None else (self.topic,)),
            name=name,
            type=kind,
            config=ConsumerConfig(**config),
            position=position,
            pattern=pattern,
            metadata=metadata,
            selective=selective,
        )
        box.receiver = await self.transport.open_receiver(subscription, lambda: box.wake())
        return box


def new_topic(what: str = "t") -> str:
    return f"persistent://public/default/{what}-{uuid.uuid4()}"


@pytest.fixture
async def kit(pulsar_broker: TestBroker) -> AsyncIterator[Kit]:
    """An open transport on the broker, closed at the end."""
    transport = await open_transport(load(pulsar_broker.service_url, web_service_url=pulsar_broker.web_service_url))
    yield Kit(transport, new_topic())
    with anyio.fail_after(HANG):
        await transport.aclose(10)


Connect = Callable[..., Awaitable[Kit]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """``await connect(broker, **options)``: a kit on any broker, closed at the end."""
    opened: list[Transport] = []

    async def run(broker: TestBroker, **options: Any) -> Kit:
        options.setdefault("operation_timeout", 90)  # a broker that has just started is slow on a crowded machine
        transport = await open_transport(load(broker.service_url, web_service_url=broker.web_service_url, **options))
        opened.append(transport)
        return Kit(transport, new_topic())

    yield run
    for transport in opened:
        await transport.aclose(5)


def receiver_of(box: Box) -> Receiver:
    return box.receiver  # type: ignore[no-any-return]  # filled right after it was made
