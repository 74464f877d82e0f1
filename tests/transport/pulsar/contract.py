"""What the contract suite runs on: the real broker of the whole run."""

from __future__ import annotations

import pytest

from jmsaio.config import Configuration, load

MARKS = (pytest.mark.broker,)


def configuration(request: pytest.FixtureRequest) -> Configuration:
    """How to reach the broker."""
    broker = request.getfixturevalue("pulsar_broker")
    return load(broker.service_url, web_service_url=broker.web_service_url)
