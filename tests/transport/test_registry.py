"""Another transport needs ``transport/base.py``, the contract suite and a row of the registry, nothing else."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest

import jmsaio
from jmsaio.config import load
from jmsaio.config.schemes import SCHEMES
from jmsaio.transport.memory.broker.broker import forget_broker
from jmsaio.transport.registry import connected
from tests.transport import loopback


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Add the tests' own transport to the registry."""
    monkeypatch.setitem(SCHEMES, loopback.SCHEME.name, loopback.SCHEME)
    monkeypatch.setattr(loopback, "OPENED", [])
    request.addfinalizer(lambda: forget_broker(loopback.BEHIND))


async def test_messages_go_through_a_transport_that_only_the_registry_names() -> None:
    name = str(uuid.uuid4())
    async with jmsaio.connect("loopback://?jms.clientId=billing") as connection:
        assert connection.get_client_id() == "billing"
        session = await connection.create_session()
        queue = session.create_queue(name)
        await (await session.create_producer(queue)).send("text")
        message = await (await session.create_consumer(queue)).receive(10)
    assert isinstance(message, jmsaio.TextMessage) and message.get_text() == "text"
    assert [config.scheme for config in loopback.OPENED] == ["loopback"]


async def test_a_transport_refuses_urls_itself() -> None:
    with pytest.raises(jmsaio.ConfigurationError, match="nothing behind it"):
        jmsaio.ConnectionFactory("loopback://host:1")
    assert loopback.OPENED == []


def test_an_unknown_scheme_is_refused_with_the_ones_that_exist() -> None:
    with pytest.raises(jmsaio.ConfigurationError, match=r"did you mean 'loopback'.* or loopback://"):
        jmsaio.ConnectionFactory("lopback://")


def test_only_the_transport_in_use_is_imported() -> None:
    code = (
        "import asyncio, sys, jmsaio\n"
        "async def main():\n"
        "    async with jmsaio.connect('memory://alone'): pass\n"
        "asyncio.run(main())\n"
        "assert 'jmsaio.transport.memory' in sys.modules\n"
        "assert 'jmsaio.transport.pulsar' not in sys.modules and '_pulsar' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


async def test_a_transport_is_closed_with_its_block_whatever_ends_it() -> None:
    with pytest.raises(LookupError):
        async with connected(load(f"memory://{uuid.uuid4()}")) as transport:
            await transport.end("persistent://public/default/any")
            raise LookupError
    with pytest.raises(jmsaio.ObjectClosedError):
        await transport.end("persistent://public/default/any")
