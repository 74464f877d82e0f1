"""The transport based on pulsar-client, and what only that library needs.

Importing this package imports nothing of pulsar-client, which not every Python has.
"""

from __future__ import annotations

import anyio

from jmsaio.config import Configuration
from jmsaio.errors import ConfigurationError
from jmsaio.transport.base import Transport

__all__ = ["SUPPORTED", "open_transport"]

#: Supported versions of pulsar-client.
SUPPORTED = ">=3.13,<4"


async def open_transport(config: Configuration) -> Transport:
    """Connect to a Pulsar broker, as ``transport.pulsar.open_transport``."""
    try:
        from jmsaio.transport.pulsar.native.transport import PulsarTransport
    except ImportError as error:
        if error.name not in ("_pulsar", "pulsar"):
            raise
        reason = (
            f"transport=pulsar-client needs pulsar-client, which can't be imported here ({error}); pip install "
            f"'pulsar-client{SUPPORTED}', or use Python 3.11 to 3.14 if pip finds none for this one; transport=wire "
            "works without it, and so does memory:"
        )
        raise ConfigurationError(reason, key="transport") from error
    transport = PulsarTransport(config)
    try:
        await transport.check_reachable()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await transport.aclose(1.0)
        raise
    return transport
