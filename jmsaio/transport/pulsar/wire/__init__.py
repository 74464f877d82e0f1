"""Pulsar's binary protocol on asyncio: the transport ``wire``."""
