"""What all parts of a transport share is of one process and one loop, and refuses work after the close."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jmsaio.config import load
from jmsaio.errors import BrokerUnavailableError, ForkError, ObjectClosedError, ProtocolError, TransportError
from jmsaio.protocol.commands import Command, LookupType
from jmsaio.transport.base import LinkChange
from jmsaio.transport.pulsar.wire.connections.answers import Backoff
from jmsaio.transport.pulsar.wire.connections.client import Client
from jmsaio.transport.pulsar.wire.connections.connection import Address
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.protocol.all_commands import encode_command
from tests.transport.pulsar.wire.peer import Fields, Link, Peer, Script, listening


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


TOPIC = "persistent://public/default/t"


@pytest.fixture
async def client(peer: Peer) -> AsyncIterator[Client]:
    client = Client(peer.config())
    yield client
    await client.pool.aclose(1)
    await client.tasks.aclose(1)


def answer(kind: LookupType, url: str, **fields: Any) -> Script:
    def script(link: Link, asked: Fields) -> bytes:
        return encode_command(
            Command.LOOKUP_RESPONSE, request_id=asked["request_id"], response=kind, broker_service_url=url, **fields
        )

    return script


@pytest.mark.parametrize("authoritative", [True, False])
async def test_a_redirect_is_followed_to_the_broker_that_serves_the_topic(
    peer: Peer, client: Client, authoritative: bool
) -> None:
    async with listening() as other:
        peer.script(Command.LOOKUP, answer(LookupType.Redirect, other.url, authoritative=authoritative))
        found = await client.topics.owner(TOPIC)
        assert found.address == Address(other.url)
        assert peer.all(Command.LOOKUP)[0]["authoritative"] is False
        assert other.all(Command.LOOKUP)[0]["authoritative"] is authoritative


async def test_endless_redirects_are_an_error_and_the_last_broker_asked_can_answer(peer: Peer, client: Client) -> None:
    peer.script(Command.LOOKUP, *[answer(LookupType.Redirect, peer.url)] * 21)
    with pytest.raises(TransportError, match=f"look up {TOPIC}: passed on 21 times") as raised:
        await client.topics.owner(TOPIC)
    assert raised.value.error_code == "LookupError"
    peer.script(Command.LOOKUP, *[answer(LookupType.Redirect, peer.url)] * 20)
    assert (await client.topics.owner(TOPIC)).address == Address(peer.url)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"response": LookupType.Connect, "broker_service_url": ""}, "names no address for connections without TLS"),
        ({"response": LookupType.Redirect}, "names no address for connections without TLS"),
        ({"response": LookupType.Failed}, "an answer of unknown kind 2"),
        ({"response": 7}, "an answer of unknown kind 7"),
        ({}, "an answer of unknown kind None"),
    ],
)
async def test_an_answer_without_sense_is_an_error(peer: Peer, client: Client, fields: Fields, text: str) -> None:
    peer.script(
        Command.LOOKUP,
        lambda link, asked: encode_command(Command.LOOKUP_RESPONSE, request_id=asked["request_id"], **fields),
    )
    with pytest.raises(TransportError, match=text):
        await client.topics.owner(TOPIC)


async def test_a_broker_behind_a_proxy_is_reached_through_it(peer: Peer, client: Client) -> None:
    broker = "pulsar://broker-7.internal:6650"
    peer.script(Command.LOOKUP, answer(LookupType.Connect, broker, proxy_through_service_url=True))
    found = await client.topics.owner(TOPIC)
    assert found.address == Address(broker, peer.url)
    assert peer.all(Command.CONNECT)[1]["proxy_to_broker_url"] == "broker-7.internal:6650"


async def test_partitions_have_names_and_a_partition_is_not_asked_for(peer: Peer, client: Client) -> None:
    assert await client.topics.partitions(TOPIC) == [TOPIC]
    peer.partitions = 2
    assert await client.topics.partitions(TOPIC) == [f"{TOPIC}-partition-0", f"{TOPIC}-partition-1"]
    assert await client.topics.partitions(f"{TOPIC}-partition-1") == [f"{TOPIC}-partition-1"]
    assert len(peer.all(Command.PARTITIONED_METADATA)) == 2


async def test_a_pattern_matches_topics_without_their_partitions(peer: Peer, client: Client) -> None:
    names = [f"{TOPIC}-partition-0", f"{TOPIC}-partition-1", "persistent://public/default/other"]
    peer.script(
        Command.GET_TOPICS_OF_NAMESPACE,
        lambda link, fields: encode_command(
            Command.GET_TOPICS_OF_NAMESPACE_RESPONSE, request_id=fields["request_id"], topics=names
        ),
    )
    assert await client.topics.matching("persistent://public/default/t.*", "PersistentOnly") == [TOPIC]
    assert peer.all(Command.GET_TOPICS_OF_NAMESPACE)[0]["namespace"] == "public/default"


async def test_options_bound_look_ups_and_spread_connections(peer: Peer) -> None:
    client = Client(
        peer.config(
            max_lookup_redirects=0,
            connections_per_broker=2,
            concurrent_lookup_requests=1,
            lookup_properties={"zone": "a"},
        )
    )
    waiting: list[Fields] = []

    def late(link: Link, asked: Fields) -> bytes:
        waiting.append(asked)
        return b""

    peer.script(Command.LOOKUP, answer(LookupType.Redirect, peer.url), late)
    with pytest.raises(TransportError, match="passed on 1 times"):
        await client.topics.owner(TOPIC)
    both = asyncio.gather(client.topics.owner(TOPIC), client.topics.owner(f"{TOPIC}-2"))
    await peer.seen(Command.LOOKUP, 2)
    await client.topics.partitions(TOPIC)  # enough time for a second look-up, if it did not wait
    assert [asked["properties"] for asked in peer.all(Command.LOOKUP)] == [[{"key": "zone", "value": "a"}]] * 2
    peer.links[-1].write(peer.usual(peer.links[-1], Command.LOOKUP, waiting[0]))
    one, other = await both
    assert one is not other and one.address.broker == other.address.broker == peer.url
    await client.pool.aclose(1)
    await client.tasks.aclose(1)


@pytest.mark.parametrize("command", [Command.PARTITIONED_METADATA, Command.GET_TOPICS_OF_NAMESPACE])
async def test_a_question_that_is_cut_is_asked_again(peer: Peer, client: Client, command: Command) -> None:
    def cut(link: Link, fields: Fields) -> bytes:
        link.cut()
        return b""

    names = Command.GET_TOPICS_OF_NAMESPACE_RESPONSE
    peer.script(command, cut, cut)
    if command is Command.PARTITIONED_METADATA:
        assert await client.topics.partitions(TOPIC) == [TOPIC]
    else:
        peer.script(
            command, lambda link, fields: encode_command(names, request_id=fields["request_id"], topics=[TOPIC])
        )
        assert await client.topics.matching(f"{TOPIC}.*", "AllTopics") == [TOPIC]
    assert len(peer.all(command)) == 3


async def test_a_number_of_partitions_that_no_topic_has_is_an_error(peer: Peer) -> None:
    """The names of four thousand million partitions would fill the memory."""
    client = Client(peer.config())
    client.topics._timeout = 0.05
    peer.partitions = 2**32 - 1
    with pytest.raises(ProtocolError, match="announces 4294967295"):
        await client.topics.partitions(TOPIC)
    await client.pool.aclose(1)
