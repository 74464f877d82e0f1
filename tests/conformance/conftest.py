"""Clients for the conformance tests: whose transactions are emulated over pulsar-client, which has none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import transactions


@pytest.fixture
async def factory(url: str, broker_kind: str) -> AsyncIterator[jmsaio.ConnectionFactory]:
    """A factory on the broker, whose transactions are emulated over pulsar-client only."""
    async with jmsaio.ConnectionFactory(url, **transactions(broker_kind == "pulsar")) as factory:
        yield factory


@pytest.fixture
async def connection(factory: jmsaio.ConnectionFactory) -> AsyncIterator[jmsaio.Connection]:
    """A started connection."""
    async with await factory.create_connection() as connection:
        await connection.start()
        yield connection


@pytest.fixture
async def own(factory: jmsaio.ConnectionFactory, name: Callable[[str], str]) -> AsyncIterator[jmsaio.Session]:
    """A session of another connection, which has a client id."""
    async with await factory.create_connection(client_id=name("client")) as connection:
        await connection.start()
        async with connection.create_session() as session:
            yield session


@pytest.fixture
async def context(factory: jmsaio.ConnectionFactory) -> AsyncIterator[jmsaio.Context]:
    """A context in AUTO mode."""
    async with await factory.create_context(AcknowledgeMode.AUTO) as context:
        yield context


@pytest.fixture(params=["queue", "topic"])
def kind(request: pytest.FixtureRequest) -> str:
    """Both kinds of destination, for lines that have a twin."""
    return str(request.param)
