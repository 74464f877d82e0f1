"""What all parts of a transport share is of one process and one loop, and refuses work after the close."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.config import load
from jmsaio.errors import BrokerUnavailableError, ForkError, ObjectClosedError
from jmsaio.protocol.commands import Command
from jmsaio.transport.base import LinkChange
from jmsaio.transport.pulsar.wire.connections.answers import Backoff
from jmsaio.transport.pulsar.wire.connections.client import Client
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.transport.pulsar.wire.peer import Fields, Link, Peer


async def test_a_new_client_is_of_this_loop_and_checks_well() -> None:
    client = Client(load("pulsar://localhost:6650"))
    client.check()
    assert client.loop is asyncio.get_running_loop()
    assert [next(client.ids), next(client.ids)] == [1, 2]
    assert client.pool.connections == []


@pytest.mark.fast
async def test_a_closed_client_refuses() -> None:
    client = Client(load("pulsar://localhost:6650"))
    client.closed = True
    with pytest.raises(ObjectClosedError, match="is closed"):
        client.check()


@pytest.mark.fast
async def test_a_child_process_must_connect_again() -> None:
    """Also after the close: what is wrong in a child is that it has the object at all."""
    client = Client(load("pulsar://localhost:6650"))
    client.closed = True
    client._forks -= 1  # as if this were a child
    with pytest.raises(ForkError, match="connect again in the child"):
        client.check()


async def changes(told: list[LinkChange], count: int) -> None:
    async with asyncio.timeout(5):
        while len(told) < count:
            await asyncio.sleep(0.001)


async def test_a_loss_and_its_end_are_told_without_any_call(peer: Peer, transport: WireTransport) -> None:
    told: list[LinkChange] = []
    transport.link_listeners.add(told.append)
    peer.links[-1].cut()
    await changes(told, 2)
    assert [change.whole for change in told] == [True, True]
    assert isinstance(told[0].error, BrokerUnavailableError) and told[1].error is None
    assert peer.url in told[0].text and "is back" in told[1].text
    await transport.ping(5)


async def test_a_long_loss_is_told_once(peer: Peer, transport: WireTransport) -> None:
    told: list[LinkChange] = []
    transport.link_listeners.add(told.append)
    peer.script(Command.CONNECT, *[lambda link, fields: link.cut() or b""] * 3)
    peer.links[-1].cut()
    await changes(told, 2)
    await asyncio.sleep(0.01)
    assert [change.error is None for change in told] == [False, True]
    assert len(peer.all(Command.CONNECT)) == 5


async def test_a_close_tells_nothing(peer: Peer, transport: WireTransport) -> None:
    told: list[LinkChange] = []
    transport.link_listeners.add(told.append)
    await transport.aclose(5)
    assert told == []


async def test_a_listener_that_fails_keeps_nothing_from_the_others(
    peer: Peer, transport: WireTransport, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[LinkChange] = []

    def fails(change: LinkChange) -> None:
        raise ValueError("mine")

    transport.link_listeners.update((fails, told.append))
    peer.links[-1].cut()
    await changes(told, 2)
    assert "mine" in caplog.text


async def test_a_broker_that_accepts_and_drops_every_connection_is_asked_with_growing_pauses(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[int] = []

    def delay(backoff: Backoff, number: int, uniform: float) -> float:
        failures.append(number)
        return 0.0

    monkeypatch.setattr(Backoff, "delay", delay)
    told: list[LinkChange] = []
    transport.link_listeners.add(told.append)

    def accept_and_drop(link: Link, fields: Fields) -> bytes:
        asyncio.get_running_loop().call_later(0.01, link.write, b"\xff" * 8)
        return peer.usual(link, Command.CONNECT, fields)

    peer.script(Command.CONNECT, *[accept_and_drop] * 5)
    peer.links[-1].cut()
    await changes(told, 12)
    assert failures == [1, 2, 3, 4, 5]
