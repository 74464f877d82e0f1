"""The engines that the contract suite runs on: the embedded broker always, real Pulsar where there is one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from jmsaio.config import Configuration, load
from jmsaio.transport.memory.broker.broker import forget_broker
from tests.transport.contract.harness import Harness


@pytest.fixture(params=["memory", pytest.param("pulsar", marks=pytest.mark.broker)])
def engine(request: pytest.FixtureRequest) -> str:
    """Which engine this run of a test is on."""
    return str(request.param)


@pytest.fixture
def configuration(engine: str, request: pytest.FixtureRequest) -> Configuration:
    """How to reach the broker of this run."""
    if engine == "memory":
        request.addfinalizer(lambda: forget_broker("contract"))
        return load("memory://contract")
    broker = request.getfixturevalue("pulsar_broker")
    return load(broker.service_url, web_service_url=broker.web_service_url)


@pytest.fixture
async def harness(engine: str, configuration: Configuration) -> AsyncIterator[Harness]:
    """A client of the engine, and short ways to use it."""
    harness = await Harness.start(engine, configuration)
    yield harness
    await harness.stop()
