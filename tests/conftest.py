"""Fixtures for every test."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """jmsaio runs on asyncio."""
    return "asyncio"
