"""What the contract suite runs on: the embedded broker, a new one for each test."""

from __future__ import annotations

import pytest

from jmsaio.config import Configuration, load
from jmsaio.testing import EmbeddedBroker
from jmsaio.transport.base import Transport
from jmsaio.transport.memory.broker.broker import broker_named, forget_broker
from jmsaio.transport.memory.transport import MemoryTransport

MARKS: tuple[pytest.MarkDecorator, ...] = ()
TRANSACTIONS = True


def configuration(request: pytest.FixtureRequest) -> Configuration:
    """How to reach the broker of this test."""
    request.addfinalizer(lambda: forget_broker("contract"))
    return load("memory://contract")


def deduplicating_namespace(request: pytest.FixtureRequest) -> str:
    """A namespace where the broker leaves out duplicates: any one."""
    EmbeddedBroker(broker_named("contract")).deduplicate()
    return "public/default"


async def crash(transport: Transport) -> None:
    """Let a client end as its process does when it is killed."""
    assert isinstance(transport, MemoryTransport)
    with broker_named("contract").lock:
        transport.abandon()
