"""Open the transport registered for a configuration's URL scheme (``jmsaio/config/schemes.py``)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module

from jmsaio.config import Configuration
from jmsaio.config.schemes import SCHEMES
from jmsaio.transport.base import Transport


async def open_transport(config: Configuration) -> Transport:
    """Connect to the configuration's broker. Only the transport in use is imported.

    Raises:
        BrokerUnavailableError: the broker does not answer within ``config.connect_timeout`` seconds.
        JMSSecurityError: it refuses the credentials.
        ConfigurationError: an option is invalid for this transport.

    Cancelling leaves nothing open.
    """
    module = import_module(SCHEMES[config.scheme].transport(config.transport).module)
    open_it: Callable[[Configuration], Awaitable[Transport]] = module.open_transport
    return await open_it(config)


@asynccontextmanager
async def connected(config: Configuration) -> AsyncIterator[Transport]:
    """Open a transport for a block, and close it afterwards within ``config.close_timeout`` seconds.

    Raises as ``open_transport``.
    """
    transport = await open_transport(config)
    try:
        yield transport
    finally:
        await transport.aclose(config.close_timeout)
