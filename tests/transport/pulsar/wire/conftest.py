"""A scripted peer, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from jmsaio.transport.pulsar.wire.transport import WireTransport, open_transport
from tests.transport.pulsar.wire.peer import Peer, listening

TOPIC = "persistent://public/default/t"


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A broker that a script controls."""
    async with listening() as peer:
        yield peer


@pytest.fixture
async def transport(peer: Peer) -> AsyncIterator[WireTransport]:
    """A client of it."""
    transport = await open_transport(peer.config())
    yield transport
    await transport.aclose(2.0)
