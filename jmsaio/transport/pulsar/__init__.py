"""Transports to a Pulsar broker, and the only module that knows which there are.

What they share lies beside them and in ``admin``. Importing this package or
``admin`` imports no client.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

from jmsaio.config import Configuration
from jmsaio.transport.base import Transport

__all__ = ["collect_facts", "open_transport"]

#: Modules of the clients, by the names of their transports.
_CLIENTS = {"pulsar-client": f"{__name__}.native", "wire": f"{__name__}.wire"}
_log = logging.getLogger(__name__)


async def open_transport(config: Configuration) -> Transport:
    """Connect to a Pulsar broker, which must answer within ``config.connect_timeout`` seconds.

    Raises BrokerUnavailableError with host, port and cause, JMSSecurityError, and ConfigurationError if pulsar-client
    is not installed and the configuration names it. Cancelling leaves nothing open.
    """
    if config.transport == "auto" and config.used_transport == "wire":
        reason = "for enableTransaction=true" if config.enable_transaction else "because pulsar-client is not installed"
        _log.info("%s uses transport=wire, %s", config.service_url, reason)
    transport: Transport = await import_module(_CLIENTS[config.used_transport]).open_transport(config)
    return transport


async def collect_facts(config: Configuration, topic: str | None) -> dict[str, Any]:
    facts: dict[str, Any] = await import_module(f"{__name__}.admin.facts").collect_facts(config, topic, open_transport)
    return facts
