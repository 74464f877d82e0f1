"""The transports that the contract suite runs on: every one in the registry.

Each has a module ``tests/transport/<name>/contract.py`` with ``MARKS`` for its runs and
``configuration(request) -> Configuration``, which starts or finds a broker.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib import import_module

import pytest

from jmsaio.config import Configuration
from jmsaio.config.schemes import SCHEMES
from tests.transport.contract.harness import Harness

NAMES = dict.fromkeys(scheme.transport.rpartition(".")[2] for scheme in SCHEMES.values())
CONTRACTS = {name: import_module(f"tests.transport.{name}.contract") for name in NAMES}


@pytest.fixture(params=[pytest.param(name, marks=contract.MARKS) for name, contract in CONTRACTS.items()])
def configuration(request: pytest.FixtureRequest) -> Configuration:
    """How to reach the broker of this run."""
    found: Configuration = CONTRACTS[request.param].configuration(request)
    return found


@pytest.fixture
async def harness(configuration: Configuration) -> AsyncIterator[Harness]:
    """A client of the transport, and short ways to use it."""
    harness = await Harness.start(configuration)
    yield harness
    await harness.stop()
