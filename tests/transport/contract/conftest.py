"""The transports that the contract suite runs on: every one in the registry.

Each has a module ``contract.py`` in its folder with ``MARKS`` for its runs, ``TRANSACTIONS``, whether it has
them, ``configuration(request) -> Configuration``, which starts or finds a broker, ``deduplicating_namespace(request) ->
str``, a namespace where that broker leaves out records whose sequence id their producer has sent before, and
``crash(transport)``, a coroutine function that ends a client as a crash of its process does; and, if
needed, ``NOT_YET``: names of tests that it does not pass yet, with the reasons.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import ModuleType

import pytest

from jmsaio.config import Configuration
from tests.transport.contract.harness import CONTRACTS, Harness, params


@pytest.fixture(params=params(CONTRACTS))
def contract(request: pytest.FixtureRequest) -> ModuleType:
    """The transport of this run."""
    contract = CONTRACTS[request.param]
    reason = getattr(contract, "NOT_YET", {}).get(request.node.originalname)
    if reason is not None:
        request.applymarker(pytest.mark.xfail(run=False, reason=reason))
    return contract


@pytest.fixture
def configuration(contract: ModuleType, request: pytest.FixtureRequest) -> Configuration:
    """How to reach the broker of this run."""
    found: Configuration = contract.configuration(request)
    return found


@pytest.fixture
def deduplicating_namespace(contract: ModuleType, harness: Harness, request: pytest.FixtureRequest) -> str:
    """A namespace of that broker where it leaves out duplicates."""
    found: str = contract.deduplicating_namespace(request)
    return found


@pytest.fixture
async def harness(configuration: Configuration) -> AsyncIterator[Harness]:
    """A client of the transport, and short ways to use it."""
    harness = await Harness.start(configuration)
    yield harness
    await harness.stop()
