"""What is returned is redelivered once, here or by the broker, and marked; what fails too often dies."""

from __future__ import annotations

import asyncio
import weakref

import pytest

from jmsaio.config import DeadLetterPolicy
from jmsaio.protocol.commands import Command
from jmsaio.transport.base import (
    SubscriptionType,
)
from jmsaio.transport.pulsar.wire.consumers import returning as module
from jmsaio.transport.pulsar.wire.records.record import WireRecord
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.kit.records import texts
from tests.transport.pulsar.wire.consumers.test_consumer import batch_of, subscribe
from tests.transport.pulsar.wire.peer import Peer


async def test_an_entry_is_returned_once_for_all_its_records(peer: Peer, transport: WireTransport) -> None:
    """The broker counts one return, and more would hide the count of what another client had."""
    box = await subscribe(transport)
    box.receiver.negative_acknowledge((await batch_of(peer, box, 3))[1:], 0.0)
    await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    peer.deliver(0, "0", "1", "2", count=1)
    records = await box.take(2)
    box.receiver.negative_acknowledge(records, 0.0)
    await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES, 2)
    await asyncio.sleep(0.01)
    assert len(peer.all(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)) == 2


async def test_returning_one_record_of_a_batch_keeps_its_neighbours_out(peer: Peer, transport: WireTransport) -> None:
    """The broker redelivers whole entries."""
    box = await subscribe(transport)
    peer.deliver(0, "a", "b", "c")
    records = await box.take(3)
    box.receiver.acknowledge(records[2:])
    box.receiver.negative_acknowledge(records[:1], 0.0)
    [again] = await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    assert [one["entry_id"] for one in again["message_ids"]] == [0]
    assert [kind for kind, _ in peer.received if kind in (Command.ACK, Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)] == [
        Command.ACK, Command.REDELIVER_UNACKNOWLEDGED_MESSAGES,
    ]  # fmt: skip
    peer.deliver(0, "a", "b", "c", count=1)
    [returned] = await box.take(1)
    assert texts([returned]) == ["a"] and returned.redelivery_count == 1
    assert box.receiver.receive(10) == []


async def test_an_ordered_subscription_redelivers_here(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport, SubscriptionType.EXCLUSIVE)
    peer.deliver(0, "a")
    peer.deliver(1, "b")
    [first] = await box.take(1)
    box.receiver.negative_acknowledge([first], 0.0)
    await asyncio.sleep(0.02)
    records = await box.take(2)
    assert texts(records) == ["a", "b"] and [one.redelivery_count for one in records] == [1, 0]
    assert peer.all(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES) == []


async def test_what_selectors_rejected_is_no_failure_for_dead_letters(peer: Peer, transport: WireTransport) -> None:
    """The broker counts each rejection."""
    box = await subscribe(transport, selective=True, dead_letter=DeadLetterPolicy(max_redeliver_count=1))
    peer.deliver(0, "a", count=5)
    for count in (5, 6):
        [record] = await box.take(1)
        assert record.redelivery_count == count
        box.receiver.negative_acknowledge([record], 0.0)
        if count == 5:
            await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)
            peer.deliver(0, "a", count=6)
    await peer.seen(Command.PRODUCER)  # of the dead letters


async def test_an_ack_timeout_returns_a_record(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport, ack_timeout=0.05)
    peer.deliver(0, "slow")
    peer.deliver(1, "quick")
    records = await box.take(2)
    box.receiver.acknowledge(records[1:])
    [again] = await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    assert [one["entry_id"] for one in again["message_ids"]] == [0]


async def test_an_ack_timeout_counts_from_the_last_delivery(peer: Peer, transport: WireTransport) -> None:
    """And holds no entry that is settled."""
    box = await subscribe(transport, SubscriptionType.EXCLUSIVE, ack_timeout=0.2)
    peer.deliver(0, "a")
    peer.deliver(1, "b")
    first, settled = await box.take(2)
    assert isinstance(settled, WireRecord)
    entry = weakref.ref(settled.entry)
    box.receiver.acknowledge([settled])
    await box.receiver.settle(5, receipt=True)
    del settled
    assert entry() is None
    box.receiver.negative_acknowledge([first], 0.1)
    [second] = await box.take(1)
    begun = asyncio.get_running_loop().time()
    [third] = await box.take(1)
    assert asyncio.get_running_loop().time() - begun > 0.15, "it counted from the first delivery"
    assert [second.redelivery_count, third.redelivery_count] == [1, 2]


async def test_records_returned_together_are_redelivered_by_one_command(peer: Peer, transport: WireTransport) -> None:
    """The broker counts each redelivery of an entry."""
    box = await subscribe(transport)
    peer.deliver(0, "a", "b", "c")
    peer.deliver(1, "d")
    box.receiver.negative_acknowledge(await box.take(4), 0.01)
    [again] = await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    assert [one["entry_id"] for one in again["message_ids"]] == [0, 1]
    peer.deliver(0, "a", "b", "c", count=2)
    records = await box.take(3)
    assert [one.redelivery_count for one in records] == [2, 2, 2], "another process returned it once"
    assert len(peer.all(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)) == 1


async def test_what_is_returned_just_before_the_close_is_returned_by_it(peer: Peer, transport: WireTransport) -> None:
    """A broker that is redelivering when its last consumer leaves forgets the rest of the backlog."""
    box = await subscribe(transport)
    peer.deliver(0, "a")
    box.receiver.negative_acknowledge(await box.take(1), 0.0, counted=False)
    await asyncio.sleep(0)
    await box.receiver.aclose(5)
    await peer.seen(Command.CLOSE_CONSUMER)
    assert not peer.all(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)


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
