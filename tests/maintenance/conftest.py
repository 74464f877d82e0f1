"""Clients at the seam, and real dead letters: those of consumers that give messages back too often."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from jmsaio.config import load
from tests.maintenance.letters import Letters


@pytest.fixture
async def letters(url: str) -> AsyncIterator[Letters]:
    """A queue whose consumers fail, on each kind of broker."""
    letters = await Letters.start(load(url))
    yield letters
    await letters.stop()
