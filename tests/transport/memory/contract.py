"""What the contract suite runs on: the embedded broker, a new one for each test."""

from __future__ import annotations

import pytest

from jmsaio.config import Configuration, load
from jmsaio.transport.memory.broker.broker import forget_broker

MARKS: tuple[pytest.MarkDecorator, ...] = ()


def configuration(request: pytest.FixtureRequest) -> Configuration:
    """How to reach the broker of this test."""
    request.addfinalizer(lambda: forget_broker("contract"))
    return load("memory://contract")
