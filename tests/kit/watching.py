"""A watch over receivers and senders whose connection a test decides, and the changes that it reports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import _pulsar
import anyio
import attrs

from jmsaio.config import ConsumerConfig, load
from jmsaio.errors import AdminError, JMSSecurityError
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import LinkChange, Subscription, SubscriptionStats, SubscriptionType, TopicStats
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.watch import Watch
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, new_topic

EXCLUSIVE = Subscription(("persistent://a/b/c",), "s", SubscriptionType.EXCLUSIVE, ConsumerConfig())
OK, NOT_CONNECTED = _pulsar.Result.Ok, _pulsar.Result.NotConnected


@attrs.define(eq=False)
class Native:
    """``_pulsar.Consumer`` or ``_pulsar.Producer``: connected or not, and what it was asked."""

    connected: bool = True
    asked: list[Callable[..., None]] = attrs.field(factory=list)

    def is_connected(self) -> bool:
        return self.connected

    def topic(self) -> str:
        return "persistent://a/b/c"

    def consumer_name(self) -> str:
        return "me"

    def get_last_message_id_async(self, callback: Callable[..., None]) -> None:
        self.asked.append(callback)


@attrs.define(eq=False)
class Part:
    """A sender or receiver with its natives."""

    natives: list[Native]
    received_count: int = 0
    subscription: Subscription = EXCLUSIVE
    refusals: list[JMSSecurityError | None] = attrs.field(factory=list)

    renewed: int = 0

    @property
    def waiting(self) -> list[tuple[Native, int]]:
        return [(native, self.received_count) for native in self.natives]

    def renew(self) -> None:
        self.renewed += 1

    def refuse(self, refusal: JMSSecurityError | None) -> None:
        self.refusals.append(refusal)


@attrs.define(eq=False)
class Admin:
    """The broker's statistics: how many consumers the subscription has; None: it can't tell."""

    consumers: int | None = 0

    async def stats(self, topic: str) -> TopicStats:
        if self.consumers is None:
            raise AdminError("not now")
        return TopicStats(0, {"s": SubscriptionStats("s", "Exclusive", 0, self.consumers)})


@attrs.define(eq=False)
class Scene:
    """A watch over one receiver with one consumer, looked at by hand."""

    native: Native = attrs.field(factory=Native)
    receivers: list[Part] = attrs.field(factory=list)
    senders: list[Part] = attrs.field(factory=list)
    admin: Admin = attrs.field(factory=Admin)
    asked: list[Callable[..., None]] = attrs.field(factory=list)
    told: list[LinkChange] = attrs.field(factory=list)
    watch: Any = None

    def __attrs_post_init__(self) -> None:
        self.receivers.append(Part([self.native]))
        admin: Any = self.admin  # a watch asks for nothing but statistics
        self.watch = Watch(
            Bridge(),
            "pulsar://there",
            lambda: cast(Any, self.senders),
            lambda: cast(Any, self.receivers),
            self.asked.append,
            admin,
        )
        self.watch.listeners.add(self.told.append)

    def look(self, *times: float) -> list[str]:
        """Look at these times; what was told since: ``lost`` or ``back``."""
        before = len(self.told)
        for now in times:
            self.watch.check(now)
        return ["back" if change.error is None else "lost" for change in self.told[before:]]

    async def answer(self, asked: list[Callable[..., None]], result: Any = OK) -> None:
        asked.pop()(result, None)
        await asyncio.sleep(0)

    async def miss(self) -> None:
        """Its consumer is not connected, though the broker answers, as is known after second 2."""
        self.native.connected = False
        self.look(1)
        await self.answer(self.asked)
        self.look(2)


async def changes(proxy: FaultProxy, broker: TestBroker) -> AsyncIterator[tuple[Kit, list[LinkChange]]]:
    """A kit whose transport goes through the proxy, and what is told of its link."""
    transport = await open_transport(load(proxy.url, web_service_url=broker.web_service_url))
    told: list[LinkChange] = []
    transport.link_listeners.add(told.append)
    yield Kit(transport, new_topic()), told
    await transport.aclose(10)


async def until(told: list[LinkChange], count: int) -> None:
    with anyio.fail_after(HANG):
        while len(told) < count:
            await asyncio.sleep(0.05)
