"""Pulsar's binary protocol on asyncio: the transport ``wire``."""

from jmsaio.transport.pulsar.wire.transport import open_transport

__all__ = ["open_transport"]
