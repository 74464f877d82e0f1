"""Fixtures for the embedded broker's own tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from jmsaio.testing import EmbeddedBroker, ManualClock, embedded_broker
from tests.transport.contract.harness import Harness
from tests.transport.memory.bench import Bench
from tests.transport.memory.connecting import connect


@pytest.fixture
def bench() -> Bench:
    """A broker without an event loop."""
    return Bench()


@pytest.fixture
def clock() -> ManualClock:
    """The time of ``embedded``."""
    return ManualClock()


@pytest.fixture
def embedded(clock: ManualClock) -> Iterator[EmbeddedBroker]:
    """A broker whose time stands still."""
    with embedded_broker(clock=clock) as broker:
        yield broker


@pytest.fixture
async def harness(embedded: EmbeddedBroker) -> AsyncIterator[Harness]:
    """A client of ``embedded``."""
    harness = await connect(embedded)
    yield harness
    await harness.stop()
