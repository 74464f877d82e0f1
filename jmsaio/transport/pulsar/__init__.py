"""The transport based on pulsar-client: ``pulsar://`` and ``pulsar+ssl://``."""

from __future__ import annotations

import anyio

from jmsaio.config import Configuration
from jmsaio.transport.base import Transport
from jmsaio.transport.pulsar.transport import PulsarTransport

__all__ = ["open_transport"]


async def open_transport(config: Configuration) -> Transport:
    """Connect to a Pulsar broker.

    Args:
        config: configuration with scheme ``pulsar`` or ``pulsar+ssl``.

    Raises:
        BrokerUnavailableError: no broker answers within ``config.connect_timeout`` seconds; has host, port and cause.
        JMSSecurityError: the credentials were refused.
        ConfigurationError: an option is invalid.

    Cancellation: nothing stays open.
    """
    transport = PulsarTransport(config)
    try:
        await transport.check_reachable()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await transport.aclose(1.0)
        raise
    return transport
