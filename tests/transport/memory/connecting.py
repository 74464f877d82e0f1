"""Clients of an embedded broker."""

from __future__ import annotations

import asyncio
from typing import Any

from jmsaio.config import load
from jmsaio.testing import EmbeddedBroker
from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.link import Deferred, Link
from tests.transport.contract.harness import Harness


async def connect(broker: EmbeddedBroker, **options: Any) -> Harness:
    """A client of ``broker``."""
    return await Harness.start(load(broker.url, **options))


class CountingLink(Link):
    """A link that counts the calls that were deferred."""

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(broker, loop)
        self.deferred = 0

    def defer(self, deferred: Deferred) -> None:
        self.deferred += 1
        super().defer(deferred)
