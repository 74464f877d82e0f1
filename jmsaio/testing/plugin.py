"""Pytest fixtures: ``pytest_plugins = ["jmsaio.testing.plugin"]`` in the topmost conftest.

``jms_broker`` is a separate embedded broker for each test. In a test that also uses ``jms_clock``, the broker's time
stands still until ``jms_clock.advance(seconds)``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jmsaio.testing.embedded import EmbeddedBroker, embedded_broker
from jmsaio.transport.clock import ManualClock


@pytest.fixture
def jms_clock() -> ManualClock:
    """Provide the clock of the test's broker, which stands still until it is advanced."""
    return ManualClock()


@pytest.fixture
def jms_broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    """Provide a separate embedded broker for the test: connect to ``jms_broker.url``."""
    clock = request.getfixturevalue("jms_clock") if "jms_clock" in request.fixturenames else None
    with embedded_broker(clock=clock) as broker:
        yield broker
