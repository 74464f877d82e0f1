"""A loss of the whole connection is told once, and its end."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.errors import BrokerUnavailableError
from jmsaio.protocol.commands import Command
from jmsaio.transport.base import LinkChange
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.transport.pulsar.wire.peer import Peer


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
