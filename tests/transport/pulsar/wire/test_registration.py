"""A request waits until the consumer is registered; what is sent for entries is dropped while it is not."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.errors import OperationTimeoutError, TransportError
from jmsaio.protocol.commands import Command
from jmsaio.transport.pulsar.wire.connection import Connection
from jmsaio.transport.pulsar.wire.registration import MOST_IDS, Registration
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.peer import Peer


async def connected(transport: WireTransport) -> tuple[Registration, Connection]:
    connection = await transport._client.topics.owner(TOPIC)
    return Registration(transport._client, TOPIC, "s", 7), connection


async def test_a_request_waits_for_the_next_registration(peer: Peer, transport: WireTransport) -> None:
    at, connection = await connected(transport)
    asked = asyncio.create_task(at.request("unsubscribe", 5, Command.UNSUBSCRIBE))
    await asyncio.sleep(0)
    at.connection = connection
    at.changed.wake()
    await asked
    assert [each["consumer_id"] for each in peer.all(Command.UNSUBSCRIBE)] == [7]


async def test_a_request_ends_with_the_time_or_the_consumer(peer: Peer, transport: WireTransport) -> None:
    at, _ = await connected(transport)
    with pytest.raises(OperationTimeoutError, match=f"seek s of {TOPIC}: not connected to the broker within 0 s"):
        await at.request("seek", 0, Command.SEEK)
    at.failure = TransportError("gone")
    with pytest.raises(TransportError, match="gone"):
        await at.request("seek", 5, Command.SEEK)


async def test_many_entries_are_redelivered_and_acknowledged_by_several_frames(
    peer: Peer, transport: WireTransport
) -> None:
    at, connection = await connected(transport)
    places = [(1, number) for number in range(MOST_IDS + 1)]
    at.redeliver(places)
    at.acknowledge(places)
    at.connection = connection
    at.redeliver(places)
    at.acknowledge(places)
    await transport.ping(5)
    for command, field in ((Command.REDELIVER_UNACKNOWLEDGED_MESSAGES, "message_ids"), (Command.ACK, "message_id")):
        frames = [[(one["ledger_id"], one["entry_id"]) for one in each[field]] for each in peer.all(command)]
        assert frames == [places[:-1], places[-1:]]
