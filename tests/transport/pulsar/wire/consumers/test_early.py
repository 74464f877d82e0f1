"""Delayed records that arrive early are kept until their times, up to a limit."""

from __future__ import annotations

import pytest

from jmsaio.protocol.commands import Command
from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.pulsar.wire.consumers import early as module
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.kit.records import texts
from tests.transport.pulsar.wire.consumers.test_consumer import subscribe
from tests.transport.pulsar.wire.peer import Peer


async def test_a_record_that_the_broker_sends_a_tick_early_waits_for_its_time(
    peer: Peer, transport: WireTransport
) -> None:
    """On a shared subscription Pulsar's tracker delivers up to ``delayedDeliveryTickTimeMillis`` early."""
    box = await subscribe(transport, SubscriptionType.SHARED)
    due = int(transport.clock.now() * 1000) + 100
    peer.deliver(0, "early", due=due)
    peer.deliver(1, "plain")
    assert texts(await box.take(1)) == ["plain"]
    assert texts(await box.take(1)) == ["early"]
    assert transport.clock.now() * 1000 >= due


async def test_too_many_delayed_records_pause_an_ordered_subscription(
    peer: Peer, transport: WireTransport, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST", 2)
    box = await subscribe(transport, SubscriptionType.EXCLUSIVE, receiver_queue_size=1)
    due = int(transport.clock.now() * 1000) + 100
    for number in range(2):
        peer.deliver(number, str(number), due=due)
    await peer.seen(Command.FLOW, 2)
    await transport.ping(5)
    assert len(peer.all(Command.FLOW)) == 2 and "receiving from" in caplog.text
    assert texts(await box.take(2)) == ["0", "1"]
    await peer.seen(Command.FLOW, 3)


async def test_a_pause_for_delayed_records_ends_with_the_link(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then none is kept here any more: the broker sends them again."""
    monkeypatch.setattr(module, "_MOST", 2)
    await subscribe(transport, SubscriptionType.EXCLUSIVE, receiver_queue_size=1)
    for number in range(2):
        peer.deliver(number, str(number), due=int(transport.clock.now() * 1000) + 3_600_000)
    await peer.seen(Command.FLOW, 2)
    peer.links[-1].cut()
    await peer.seen(Command.SUBSCRIBE, 2)
    await peer.seen(Command.FLOW, 3)
