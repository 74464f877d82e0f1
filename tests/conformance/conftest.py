"""The brokers that the conformance tests run on: the embedded one always, real Pulsar where there is one."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable

import pytest

import jmsaio
from jmsaio import AcknowledgeMode


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test runs on both brokers, unless it says that Pulsar can't keep what it shows."""
    if "engine" in metafunc.fixturenames:
        brokers: list[object] = ["memory"]
        if metafunc.definition.get_closest_marker("not_on_pulsar") is None:
            brokers.append(pytest.param("pulsar", marks=pytest.mark.broker))
        metafunc.parametrize("engine", brokers)


@pytest.fixture
def url(engine: str, request: pytest.FixtureRequest) -> str:
    """The broker that a test runs on."""
    if engine == "memory":
        return f"memory://{uuid.uuid4()}"
    broker = request.getfixturevalue("pulsar_broker")
    return f"{broker.service_url}?webServiceUrl={broker.web_service_url}"


@pytest.fixture
def name() -> Callable[[str], str]:
    """Gives destination and subscription names that no other test has."""
    tail = uuid.uuid4().hex[:12]
    return lambda stem: f"{stem}-{tail}"


@pytest.fixture
async def factory(url: str, engine: str) -> AsyncIterator[jmsaio.ConnectionFactory]:
    """A factory on the broker; transacted sessions are real on the embedded one, emulated on Pulsar."""
    async with jmsaio.ConnectionFactory(url, emulate_transactions=engine == "pulsar") as factory:
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
async def session(connection: jmsaio.Connection) -> AsyncIterator[jmsaio.Session]:
    """A session in AUTO mode."""
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
