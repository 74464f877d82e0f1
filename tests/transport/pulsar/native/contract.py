"""What the contract suite runs on: the real broker of the whole run."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import httpx
import pytest

from jmsaio.config import Configuration, load
from jmsaio.transport.base import Transport

MARKS = (pytest.mark.broker,)
TRANSACTIONS = False


def configuration(request: pytest.FixtureRequest) -> Configuration:
    """How to reach the broker."""
    return load(request.getfixturevalue("pulsar_broker").url)


def deduplicating_namespace(request: pytest.FixtureRequest) -> str:
    """A new namespace where the broker leaves out duplicates."""
    namespace = f"public/{uuid.uuid4().hex[:12]}"
    address = f"{request.getfixturevalue('pulsar_broker').web_service_url}/admin/v2/namespaces/{namespace}"
    httpx.put(address, timeout=30).raise_for_status()
    httpx.post(f"{address}/deduplication", json=True, timeout=30).raise_for_status()
    return namespace


async def crash(transport: Transport) -> None:
    """Let a client end as its process does when it is killed: pulsar-client cuts its connections."""
    from jmsaio.transport.pulsar.native.transport import PulsarTransport  # not every Python has pulsar-client

    assert isinstance(transport, PulsarTransport)
    client: Any = transport._client
    await asyncio.to_thread(client.shutdown)
