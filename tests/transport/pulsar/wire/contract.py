"""What the contract suite runs on: the real broker of the whole run, by our own client of its protocol."""

from __future__ import annotations

import pytest

from jmsaio.config import Configuration, load
from jmsaio.errors import TransportError
from jmsaio.transport.base import Transport
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.transport.pulsar.native import contract as native

MARKS = (*native.MARKS, pytest.mark.slow)
TRANSACTIONS = True
deduplicating_namespace = native.deduplicating_namespace


def configuration(request: pytest.FixtureRequest) -> Configuration:
    """How to reach the broker."""
    return load(f"{request.getfixturevalue('pulsar_broker').url}&transport=wire")


async def crash(transport: Transport) -> None:
    """Let a client end as its process does when it is killed: its connections break."""
    assert isinstance(transport, WireTransport)
    for connection in transport._client.pool.connections:
        connection.close(TransportError("killed"))
