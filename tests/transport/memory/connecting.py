"""Clients of an embedded broker."""

from __future__ import annotations

from typing import Any

from jmsaio.config import load
from jmsaio.testing import EmbeddedBroker
from tests.transport.contract.harness import Harness


async def connect(broker: EmbeddedBroker, **options: Any) -> Harness:
    """A client of ``broker``."""
    return await Harness.start(load(broker.url, **options))
