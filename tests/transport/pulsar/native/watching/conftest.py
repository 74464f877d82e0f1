"""What is watched, with and without a broker."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from jmsaio.testing import FaultProxy
from tests.kit.watching import Scene
from tests.support.broker import TestBroker


@pytest.fixture
async def scene() -> Scene:
    return Scene()


@pytest.fixture
async def proxy(pulsar_broker: TestBroker) -> AsyncIterator[FaultProxy]:
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        yield proxy
