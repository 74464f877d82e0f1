"""Short ways to use a transport in the contract suite."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import attrs
import pytest

from jmsaio.config import Configuration, ConsumerConfig, ProducerConfig
from jmsaio.config.schemes import SCHEMES
from jmsaio.model.schema import Schema
from jmsaio.model.wire import OutgoingRecord, ReceivedRecord, WireId
from jmsaio.transport.base import (
    Admin,
    Capabilities,
    Reader,
    ReaderOptions,
    Receiver,
    Sender,
    SenderOptions,
    Settled,
    StartPosition,
    Subscription,
    SubscriptionType,
    Transaction,
    Transport,
)
from jmsaio.transport.registry import open_transport
from tests.kit.records import Outcomes, record, tell_each, texts

#: What `tests.transport.contract.conftest` asks for, by the names of the transports.
CONTRACTS = {
    name: import_module(f"tests.transport.{package}.contract")
    for name, package in {"memory": "memory", "pulsar-client": "pulsar.native", "wire": "pulsar.wire"}.items()
}
assert {each.name for scheme in SCHEMES.values() for each in scheme.transports} == set(CONTRACTS)
#: A hang guard: nothing takes that long, in seconds.
GUARD = 30.0
#: How long is waited to see that nothing comes, in seconds.
QUIET = 0.3


def params(names: Iterable[str]) -> list[object]:
    """Parameters of the fixture ``contract``: a run on each of these transports."""
    return [pytest.param(name, marks=CONTRACTS[name].MARKS) for name in names]


@attrs.define(eq=False)
class Inbox:
    """A receiver and its wake-ups."""

    receiver: Receiver
    woken: asyncio.Event

    async def take(self, number: int, timeout: float = GUARD) -> list[ReceivedRecord]:
        """The next ``number`` records."""
        records: list[ReceivedRecord] = []
        try:
            async with asyncio.timeout(timeout):
                while True:
                    self.woken.clear()
                    records += self.receiver.receive(number - len(records))
                    if len(records) == number:
                        return records
                    await self.woken.wait()
        except TimeoutError:
            raise AssertionError(f"{len(records)} of {number} records came: {texts(records)}") from None

    async def consume(self, number: int) -> list[str]:
        """The payloads of the next ``number`` records, which are acknowledged."""
        records = await self.take(number)
        self.receiver.acknowledge(records)
        return texts(records)

    async def rest(self, seconds: float = QUIET) -> list[ReceivedRecord]:
        """What comes in some time."""
        records: list[ReceivedRecord] = []
        try:
            async with asyncio.timeout(seconds):
                while True:
                    self.woken.clear()
                    records += self.receiver.receive(100)
                    await self.woken.wait()
        except TimeoutError:
            return records + self.receiver.receive(100)

    async def close(self) -> None:
        """Close the receiver."""
        await self.receiver.aclose(GUARD)


@attrs.define(eq=False)
class Harness:
    """A client of a broker.

    Attributes:
        configuration: how to reach the broker.
        transport: the client.
    """

    configuration: Configuration
    transport: Transport
    _unique: str = attrs.field(factory=lambda: uuid.uuid4().hex[:12])
    _count: itertools.count[int] = attrs.field(factory=itertools.count)

    @classmethod
    async def start(cls, configuration: Configuration) -> Harness:
        """Make a client."""
        return cls(configuration, await open_transport(configuration))

    async def other(self) -> Harness:
        """One more client of the same broker."""
        return await Harness.start(self.configuration)

    async def stop(self) -> None:
        """Close the client."""
        await self.transport.aclose(GUARD)

    @property
    def capabilities(self) -> Capabilities:
        """What the engine can do."""
        return self.transport.capabilities

    @property
    def admin(self) -> Admin:
        """The administration."""
        assert self.transport.admin is not None
        return self.transport.admin

    def topic(self, name: str = "t") -> str:
        """A full topic name that nobody used."""
        return f"persistent://public/default/contract-{self._unique}-{next(self._count)}-{name}"

    async def sender(
        self,
        topic: str,
        *,
        route: Callable[[OutgoingRecord, int], int | None] | None = None,
        window_records: int = 5000,
        window_bytes: int = 64 * 1024 * 1024,
        settled: Settled = tell_each,
        transacted: bool = False,
        schema: Schema | None = None,
        **producer: Any,
    ) -> Sender:
        """A sender to ``topic``; its tokens are called with their outcomes unless ``settled`` does otherwise."""
        options = SenderOptions(
            ProducerConfig(**producer), settled, route=route, window_records=window_records,
            window_bytes=window_bytes, transacted=transacted, schema=schema,
        )  # fmt: skip
        return await self.transport.open_sender(topic, options)

    async def send(
        self, sender: Sender, *records: OutgoingRecord | str, transaction: Transaction | None = None
    ) -> list[WireId | None]:
        """Send records and wait for their places."""
        outcomes = Outcomes()
        for each in records:
            sender.send(record(each) if isinstance(each, str) else each, outcomes, transaction)
        await sender.drain(GUARD)
        assert outcomes.errors == [None] * len(records)
        return outcomes.places

    async def fill(self, topic: str, *records: OutgoingRecord | str) -> list[WireId | None]:
        """Send records with a sender made for it."""
        sender = await self.sender(topic)
        try:
            return await self.send(sender, *records)
        finally:
            await sender.aclose(GUARD)

    async def inbox(
        self,
        *topics: str,
        name: str = "s",
        type: SubscriptionType = SubscriptionType.SHARED,
        position: StartPosition = StartPosition.EARLIEST,
        pattern: str | None = None,
        durable: bool = True,
        properties: Mapping[str, str] | None = None,
        replace: bool = False,
        **consumer: Any,
    ) -> Inbox:
        """Subscribe."""
        woken = asyncio.Event()
        subscription = Subscription(
            topics=topics, name=name, type=type, config=ConsumerConfig(**consumer), position=position, pattern=pattern,
            durable=durable, properties=properties or {}, replace=replace,
        )  # fmt: skip
        return Inbox(await self.transport.open_receiver(subscription, woken.set), woken)

    async def reader(
        self, topic: str, start: StartPosition | WireId | int = StartPosition.EARLIEST, inclusive: bool = True
    ) -> Reader:
        """Read ``topic``."""
        return await self.transport.open_reader(ReaderOptions(topic, ConsumerConfig(), start, inclusive))
