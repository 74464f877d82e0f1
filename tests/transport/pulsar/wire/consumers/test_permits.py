"""Permits: never 0 at a time, never more than the queue and the bytes allow, and never too few to go on."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.protocol.commands import Command
from jmsaio.protocol.framing import Framing
from jmsaio.rules.share import Share
from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.pulsar.wire.consumers import permits as silence
from jmsaio.transport.pulsar.wire.consumers.permits import Permits
from jmsaio.transport.pulsar.wire.consumers.receiver import WireReceiver
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.kit.records import texts
from tests.protocol.all_commands import decode_command, encode_command
from tests.transport.pulsar.wire.consumers.test_consumer import subscribe
from tests.transport.pulsar.wire.peer import Fields, Link, Peer


class Connection:
    """Counts the permits that the broker has, and takes them back."""

    max_message_size = 1000

    def __init__(self) -> None:
        self.flows: list[int] = []

    def write(self, data: bytes) -> None:
        [frame] = Framing().feed(data)
        assert frame.kind == Command.FLOW
        self.flows.append(decode_command(frame.kind, frame.data, frame.command, frame.rest)["message_permits"])


def permits(size: int, total: int = 10**9) -> tuple[Permits, Connection]:
    connection = Connection()
    return Permits(at(connection), size, Share(total)), connection


def at(connection: Connection | None = None) -> Any:
    return SimpleNamespace(connection=connection, number=1)


def test_half_of_the_queue_is_given_at_a_time() -> None:
    given, connection = permits(4)
    given.fill(0)
    given.used(3, 30)
    for queued in (3, 2, 1, 0):
        given.fill(queued)
    assert connection.flows == [4, 2]


def test_without_a_queue_one_is_given_when_a_receive_waits() -> None:
    given, connection = permits(0)
    given.fill(0)
    assert connection.flows == []
    given.fill(0, waiting=True)
    given.fill(0, waiting=True)
    assert connection.flows == [1]
    given.used(10, 100)  # a batch comes whole
    given.fill(10)
    given.fill(5, waiting=False)
    assert connection.flows == [1]
    given.fill(0, waiting=True)
    assert sum(connection.flows) == 11


def test_a_receive_that_waits_is_not_forgotten() -> None:
    """Over a reconnect, or an entry of which nothing can be delivered."""
    given, connection = permits(0)
    given.fill(0, waiting=True)
    given.restart()
    given.fill(0)
    given.used(3, 30)
    given.fill(0)
    assert connection.flows == [1, 1, 3]


def test_the_bytes_of_a_connection_are_divided_and_follow_the_sizes_that_arrive() -> None:
    share = Share(10_000)
    other, connection = Permits(at(), 1000, share), Connection()
    given = Permits(at(connection), 1000, share)
    given.fill(0)
    assert connection.flows == [5]  # of 1000 bytes, of which none is larger
    given.used(1, 9)
    given.fill(0)
    assert sum(connection.flows) - 1 == 500
    other.close()
    given.used(250, 2500)
    given.fill(0)
    assert sum(connection.flows) - 251 > 800
    given.used(1, 4000)
    for _ in range(1000):
        given.fill(0)
    before = sum(connection.flows)
    given.used(1, 4000)
    given.fill(0)
    assert sum(connection.flows) == before  # it has far more than 2 now


def test_while_held_and_without_a_connection_none_are_given() -> None:
    connection, registration = Connection(), at()
    given = Permits(registration, 4, Share(10**9))
    given.fill(0)
    registration.connection = connection
    given.fill(0, held=True)
    assert connection.flows == []
    given.fill(0)
    assert connection.flows == [4]


@given(
    st.integers(0, 8), st.sampled_from([1, 50, 10**9]),
    st.lists(st.tuples(st.sampled_from(["arrive", "take", "damage", "again", "hold"]), st.integers(1, 5)), max_size=40),
)  # fmt: skip
def test_whatever_happens_it_goes_on_and_no_more_than_the_queue_is_sent_ahead(
    size: int, total: int, steps: list[tuple[str, int]]
) -> None:
    """The broker of this model sends entries of up to 5 records while it has permits."""
    given, connection = permits(size, total)
    queued = sent = lost = 0
    held = False
    for step, number in [*steps, ("release", 1), ("take", 10**6)]:
        if step == "arrive" and sum(connection.flows) > sent:
            sent, queued = sent + number, queued + number
            given.used(number, 10 * number)
        elif step == "damage" and sum(connection.flows) > sent:
            sent, lost = sent + number, lost + 1
            given.used(number + 1, 0)  # it announces too many
        elif step == "take":
            queued -= min(queued, number)
        elif step == "again":
            connection.flows.clear()
            sent = queued = lost = 0
            given.restart()
        elif step in ("hold", "release"):
            held = step == "hold"
        given.fill(queued, not queued if step == "take" else None, held)
        assert 0 not in connection.flows
        assert queued + sum(connection.flows) - sent <= max(1, size) + lost
    assert sum(connection.flows) > sent


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_each_size_starts(size: int) -> None:
    given, connection = permits(size)
    given.fill(0)
    assert connection.flows == [size]


@pytest.mark.parametrize(
    "why", ["forgotten", "nothing is stored", "not active", "something arrived", "no longer active"]
)
async def test_only_an_active_consumer_whose_messages_are_withheld_subscribes_again(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    def end(link: Link, fields: Fields) -> bytes:
        return encode_command(
            Command.GET_LAST_MESSAGE_ID_RESPONSE, request_id=fields["request_id"],
            last_message_id={"ledger_id": 1, "entry_id": 5},
            consumer_mark_delete_position={"ledger_id": 1, "entry_id": 5 if why == "nothing is stored" else 4},
        )  # fmt: skip

    monkeypatch.setattr(silence, "_FIRST", 0.05)
    peer.script(Command.GET_LAST_MESSAGE_ID, *[end] * 100)
    box = await subscribe(transport, SubscriptionType.FAILOVER)
    await peer.seen(Command.FLOW)
    peer.links[-1].send(Command.ACTIVE_CONSUMER_CHANGE, consumer_id=peer.consumer, is_active=why != "not active")
    if why == "something arrived":
        peer.deliver(0, "x")
    elif why == "no longer active":
        peer.links[-1].send(Command.ACTIVE_CONSUMER_CHANGE, consumer_id=peer.consumer, is_active=False)
    if why in ("forgotten", "nothing is stored"):
        await peer.seen(Command.GET_LAST_MESSAGE_ID, 1 if why == "forgotten" else 2)
    if why == "forgotten":
        await peer.seen(Command.SUBSCRIBE, 2)
        peer.deliver(0, "x")
        assert texts(await box.take(1)) == ["x"]
    await asyncio.sleep(0.1)
    assert len(peer.all(Command.CLOSE_CONSUMER)) == (why == "forgotten")
    if why not in ("forgotten", "nothing is stored"):
        assert peer.all(Command.GET_LAST_MESSAGE_ID) == []


async def test_a_consumer_that_becomes_active_while_it_closes_watches_nothing(
    peer: Peer, transport: WireTransport
) -> None:
    receiver = (await subscribe(transport, SubscriptionType.FAILOVER)).receiver
    assert isinstance(receiver, WireReceiver)
    await peer.seen(Command.FLOW)
    at = receiver._consumers[0]._at
    connection, registering = at.connection, at._task
    assert connection is not None and registering is not None
    active = encode_command(Command.ACTIVE_CONSUMER_CHANGE, consumer_id=peer.consumer, is_active=True)
    registering.add_done_callback(lambda _: connection.data_received(active))
    await receiver.aclose(2.0)
    assert "Silence._watch" not in " ".join(map(repr, asyncio.all_tasks()))
