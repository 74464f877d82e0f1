"""A transport of the tests' own: everything goes to one embedded broker, which its URL does not name."""

from __future__ import annotations

from jmsaio.config import Configuration, load
from jmsaio.config.schemes import BrokerAddress, Scheme, TransportEntry
from jmsaio.errors import ConfigurationError
from jmsaio.transport import memory
from jmsaio.transport.base import Transport

#: Configurations that it was opened with.
OPENED: list[Configuration] = []
#: Name of the embedded broker behind it.
BEHIND = "behind-loopback"


def read(rest: str) -> BrokerAddress:
    """Read ``loopback://``; more is refused."""
    if rest != "//":
        raise ConfigurationError("write loopback:// and nothing behind it", key="brokerServiceUrl")
    return BrokerAddress("loopback", "", "loopback://", "")


async def open_transport(config: Configuration) -> Transport:
    """A client of the embedded broker behind it."""
    OPENED.append(config)
    return await memory.open_transport(load(f"memory://{BEHIND}"))


SCHEME = Scheme("loopback", (TransportEntry("loopback", __name__),), read, "loopback://")
