"""A consumer that the broker forgot to serve subscribes again, and no other does."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.protocol.commands import Command
from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.pulsar.wire.consumers import silence
from jmsaio.transport.pulsar.wire.consumers.receiver import WireReceiver
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.kit.records import texts
from tests.protocol.all_commands import encode_command
from tests.transport.pulsar.wire.consumers.test_consumer import subscribe
from tests.transport.pulsar.wire.peer import Fields, Link, Peer


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
