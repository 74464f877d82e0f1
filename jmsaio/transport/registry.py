"""Open the transport registered for a configuration's URL scheme (``jmsaio/config/schemes.py``)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from jmsaio.config import Configuration
from jmsaio.transport.base import Transport


async def open_transport(config: Configuration) -> Transport:
    """Connect to the configuration's broker; only the transport in use is imported. Cancelling leaves nothing open.

    Raises:
        BrokerUnavailableError: the broker does not answer within ``config.connect_timeout`` seconds.
        JMSSecurityError: it refuses the credentials.
        ConfigurationError: an option is invalid for this transport.
    """
    module = import_module(config.transport_entry.module)
    transport: Transport = await module.open_transport(config)
    return transport


async def collect_facts(config: Configuration, topic: str | None) -> dict[str, Any]:
    """Collect facts about a broker that is not embedded, as ``jmsaio.maintenance.diagnosis.Facts.found`` lists them.

    A producer and a reader of ``topic``, which exists, are opened, or else of one that stores nothing. Raises
    ConfigurationError: an option is invalid, or the transport is not installed.
    """
    module = import_module(config.transport_entry.module)
    found: dict[str, Any] = await module.collect_facts(config, topic)
    return found


@asynccontextmanager
async def connected(config: Configuration) -> AsyncIterator[Transport]:
    """Open a transport for a block, as ``open_transport``; then close it within ``config.close_timeout`` seconds."""
    transport = await open_transport(config)
    try:
        yield transport
    finally:
        await transport.aclose(config.close_timeout)
