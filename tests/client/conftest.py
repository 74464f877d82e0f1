"""The contract suite of the client: each test runs on the embedded broker and on a real Pulsar broker."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable

import pytest

import jmsaio


@pytest.fixture(params=["memory", pytest.param("pulsar", marks=pytest.mark.broker)])
def url(request: pytest.FixtureRequest) -> str:
    """The broker that a test runs on."""
    if request.param == "memory":
        return f"memory://{uuid.uuid4()}"
    broker = request.getfixturevalue("pulsar_broker")
    return f"{broker.service_url}?webServiceUrl={broker.web_service_url}"


@pytest.fixture
def name() -> Callable[[str], str]:
    """Gives destination names that no other test has."""
    tail = uuid.uuid4().hex[:12]
    return lambda stem: f"{stem}-{tail}"


@pytest.fixture
async def connection(url: str) -> AsyncIterator[jmsaio.Connection]:
    """A started connection."""
    async with jmsaio.connect(url) as connection:
        yield connection


@pytest.fixture
async def session(connection: jmsaio.Connection) -> AsyncIterator[jmsaio.Session]:
    """A session in AUTO mode."""
    async with connection.create_session() as session:
        yield session
