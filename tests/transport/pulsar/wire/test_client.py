"""What all parts of a transport share is of one process and one loop, and refuses work after the close."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.config import load
from jmsaio.errors import ForkError, ObjectClosedError
from jmsaio.transport.pulsar.wire.client import Client

pytestmark = pytest.mark.fast


async def test_a_new_client_is_of_this_loop_and_checks_well() -> None:
    client = Client(load("pulsar://localhost:6650"))
    client.check()
    assert client.loop is asyncio.get_running_loop()
    assert [next(client.ids), next(client.ids)] == [1, 2]
    assert client.pool.connections == []


async def test_a_closed_client_refuses() -> None:
    client = Client(load("pulsar://localhost:6650"))
    client.closed = True
    with pytest.raises(ObjectClosedError, match="is closed"):
        client.check()


async def test_a_child_process_must_connect_again() -> None:
    """Also after the close: what is wrong in a child is that it has the object at all."""
    client = Client(load("pulsar://localhost:6650"))
    client.closed = True
    client._forks -= 1  # as if this were a child
    with pytest.raises(ForkError, match="connect again in the child"):
        client.check()
