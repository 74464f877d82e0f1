"""What the contract suite runs on: the real broker of the whole run."""

from __future__ import annotations

import pytest

from jmsaio.config import Configuration, load

MARKS = (pytest.mark.broker,)


def configuration(request: pytest.FixtureRequest) -> Configuration:
    """How to reach the broker."""
    return load(request.getfixturevalue("pulsar_broker").url)
