"""Transports to a Pulsar broker, and the only module that knows which there are.

What they share is in ``admin``, ``sending`` and ``subscriptions``. Importing this package or
``admin`` imports no client.
"""

from __future__ import annotations

from jmsaio.config import Configuration
from jmsaio.transport.base import Transport

__all__ = ["open_transport"]


async def open_transport(config: Configuration) -> Transport:
    """Connect to a Pulsar broker.

    Args:
        config: configuration with scheme ``pulsar`` or ``pulsar+ssl``.

    Raises:
        BrokerUnavailableError: no broker answers within ``config.connect_timeout`` seconds; has host, port and cause.
        JMSSecurityError: the credentials were refused.
        ConfigurationError: an option is invalid, or pulsar-client is not installed.

    Cancellation: nothing stays open.
    """
    from jmsaio.transport.pulsar import native

    return await native.open_transport(config)
