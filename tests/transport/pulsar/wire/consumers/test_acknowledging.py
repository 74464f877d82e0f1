"""Acknowledgements in groups, with receipts, over lost links, and in transactions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from jmsaio.errors import OperationTimeoutError, TransactionRolledBackError
from jmsaio.model.wire import ReceivedRecord
from jmsaio.protocol.commands import Command
from jmsaio.rules.record_life import TABLE, RecordEvent, RecordState
from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.pulsar.wire.records.record import WireRecord
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.kit.records import texts
from tests.protocol.all_commands import encode_command
from tests.protocol.server_errors import ServerError
from tests.transport.pulsar.wire.consumers.test_consumer import Box, batch_of, subscribe, two_consumers
from tests.transport.pulsar.wire.peer import Fields, Link, Peer


@pytest.mark.parametrize("at", ["sent", "queued", "lost"])
async def test_a_receipt_is_awaited_over_the_loss_of_the_consumer(
    peer: Peer, transport: WireTransport, at: str
) -> None:
    """A broker does not answer a consumer that it closed; what it redelivers is acknowledged again."""
    box = await subscribe(transport, acknowledgements_group_time=60 if at == "queued" else 0)
    records = await batch_of(peer, box, 2)
    closing = encode_command(Command.CLOSE_CONSUMER, consumer_id=peer.consumer, request_id=0)
    if at == "sent":
        peer.script(Command.ACK, lambda link, fields: closing)
        box.receiver.acknowledge(records)
    else:
        if at == "queued":
            box.receiver.acknowledge(records)
        peer.links[-1].write(closing)
        await peer.seen(Command.SUBSCRIBE, 2)
        await transport.ping(5)
        if at == "lost":
            box.receiver.acknowledge(records)
    settling = asyncio.ensure_future(box.receiver.settle(60, receipt=True))
    await peer.seen(Command.SUBSCRIBE, 2)
    await transport.ping(5)
    assert not settling.done()
    peer.deliver(0, "0", "1", count=1)
    await settling
    assert len(peer.all(Command.ACK)) == (2 if at == "sent" else 1)
    assert box.receiver.receive(10) == []


async def test_a_receipt_that_can_t_come_is_awaited_for_the_time_out_once(peer: Peer, transport: WireTransport) -> None:
    """Whether the broker had the acknowledgement is not known; it can have no receipt if it had."""
    box = await subscribe(transport)
    records = await batch_of(peer, box, 2)
    closing = encode_command(Command.CLOSE_CONSUMER, consumer_id=peer.consumer, request_id=0)
    peer.script(Command.ACK, lambda link, fields: closing)
    box.receiver.acknowledge(records)
    with pytest.raises(OperationTimeoutError, match="no receipt within"):
        await box.receiver.settle(0.3, receipt=True)
    await box.receiver.settle(5, receipt=True)


async def test_acknowledgements_are_grouped_and_parts_of_a_batch_have_their_set(
    peer: Peer, transport: WireTransport
) -> None:
    box = await subscribe(transport)
    peer.deliver(0, "a", "b", "c")
    peer.deliver(1, "d")
    records = await box.take(4)
    box.receiver.acknowledge([records[0], records[2], records[3]])
    await box.receiver.settle(5, receipt=True)
    [ack] = peer.all(Command.ACK)
    assert [(one["entry_id"], one["ack_set"], one.get("batch_size")) for one in ack["message_id"]] == [
        (0, [0b010], 3), (1, [], None),
    ]  # fmt: skip


async def test_the_plain_path_does_what_the_table_says_in_every_state(peer: Peer, transport: WireTransport) -> None:
    """Handing out and acknowledging compare the states and assign them, without the table."""
    box = await subscribe(transport)
    peer.deliver(0, *map(str, RecordState))
    [first] = await box.take(1)
    assert isinstance(first, WireRecord)
    entry = first.entry
    every = [WireRecord(entry, index, None, 0, False) for index in range(len(entry.states))]
    for event, call in (
        (RecordEvent.HANDED_OUT, lambda: box.receiver.receive(20)),
        (RecordEvent.ACKNOWLEDGED, lambda: box.receiver.acknowledge(every)),
    ):
        entry.states[:] = bytes(RecordState)
        call()
        assert list(entry.states) == [TABLE[state, event].state for state in RecordState]
    await box.receiver.settle(5, receipt=True)
    [sent] = [one["ack_set"][0] for ack in peer.all(Command.ACK) for one in ack["message_id"]]
    assert [sent >> state & 1 for state in RecordState] == [
        TABLE[state, RecordEvent.ACKNOWLEDGED].state not in (RecordState.ACKED, RecordState.SETTLED)
        for state in RecordState
    ]


async def test_a_stopped_consumer_acknowledges_when_the_one_that_had_its_entry_is_closed(
    peer: Peer, transport: WireTransport
) -> None:
    first, second, held = await two_consumers(peer, transport)
    await second.take(1)
    await second.receiver.aclose(5)
    first.receiver.acknowledge(held)
    await first.receiver.settle(5, receipt=True)
    [ack] = peer.all(Command.ACK)
    assert ack["consumer_id"] == peer.all(Command.SUBSCRIBE)[0]["consumer_id"]


async def test_a_stopped_key_shared_consumer_leaves_its_keys_and_still_acknowledges(
    peer: Peer, transport: WireTransport
) -> None:
    box = await subscribe(transport, SubscriptionType.KEY_SHARED)
    peer.deliver(0, "held", "beside")
    held = await box.take(1)
    await box.receiver.stop(5)
    assert len(peer.all(Command.CLOSE_CONSUMER)) == 1
    box.receiver.acknowledge(held)
    await box.receiver.settle(5, receipt=True)
    [ack] = peer.all(Command.ACK)
    assert ack["message_id"][0]["ack_set"] == [0b10]
    assert len(peer.all(Command.FLOW)) == 1 and len(peer.all(Command.CLOSE_CONSUMER)) == 2
    await box.receiver.resume(5)
    peer.deliver(0, "held", "beside")
    assert texts(await box.take(1)) == ["beside"]
    assert len(peer.all(Command.SUBSCRIBE)) == 3


async def stopped(peer: Peer, transport: WireTransport) -> tuple[Box, list[ReceivedRecord]]:
    """A receiver of a key-shared subscription that was stopped, and its record."""
    box = await subscribe(transport, SubscriptionType.KEY_SHARED)
    peer.deliver(0, "held")
    held = await box.take(1)
    await box.receiver.stop(5)
    return box, held


async def test_a_resume_beside_a_late_acknowledgement_registers_once(peer: Peer, transport: WireTransport) -> None:
    """The late one comes first; the resume fails if that takes too long."""
    box, held = await stopped(peer, transport)
    peer.answer(Command.SUBSCRIBE, "never")
    box.receiver.acknowledge(held)
    await peer.seen(Command.SUBSCRIBE, 2)
    with pytest.raises(OperationTimeoutError):
        await box.receiver.resume(0.05)
    await asyncio.sleep(0.05)
    assert len(peer.all(Command.SUBSCRIBE)) == 2
    peer.links[-1].cut()
    await box.receiver.resume(5)
    assert len(peer.all(Command.ACK)) == 1 and len(peer.links[-1].parts) == 2
    peer.deliver(1, "next")
    assert texts(await box.take(1)) == ["next"]


async def test_a_resume_before_the_stop_has_ended_stays_registered(peer: Peer, transport: WireTransport) -> None:
    """A stop that is cancelled continues; its end must not end what the resume has begun."""
    box = await subscribe(transport, SubscriptionType.KEY_SHARED)
    answers: list[Callable[[], None]] = []

    def late(link: Link, fields: Fields) -> bytes:
        answers.append(lambda: link.write(peer.usual(link, Command.CLOSE_CONSUMER, fields)))
        return b""

    peer.script(Command.CLOSE_CONSUMER, late)
    stopping = asyncio.ensure_future(box.receiver.stop(60))
    await peer.seen(Command.CLOSE_CONSUMER)
    stopping.cancel()
    await box.receiver.resume(5)
    answers[0]()
    await transport.ping(5)
    peer.links[-1].cut()
    await peer.seen(Command.SUBSCRIBE, 3)
    await peer.seen(Command.FLOW, 3)
    peer.deliver(0, "next")
    assert texts(await box.take(1)) == ["next"]


async def test_what_is_acknowledged_during_a_resume_is_sent_by_it(peer: Peer, transport: WireTransport) -> None:
    box, held = await stopped(peer, transport)
    peer.answer(Command.SUBSCRIBE, 0.1)
    resuming = asyncio.ensure_future(box.receiver.resume(5))
    await peer.seen(Command.SUBSCRIBE, 2)
    box.receiver.acknowledge(held)
    await box.receiver.settle(5)
    await resuming
    await box.receiver.settle(5, receipt=True)
    assert len(peer.all(Command.SUBSCRIBE)) == 2 and len(peer.all(Command.ACK)) == 1


@pytest.mark.parametrize("during", [Command.ACK, Command.CLOSE_CONSUMER])
async def test_what_is_acknowledged_during_a_late_acknowledgement_is_sent(
    peer: Peer, transport: WireTransport, during: Command
) -> None:
    """It waits for others while the receipt of the first one arrives, or while the consumer is closed again."""
    box = await subscribe(transport, SubscriptionType.KEY_SHARED, acknowledgements_group_time=0.2)
    for entry in range(2):
        peer.deliver(entry, str(entry))
    first, second = await box.take(2)
    await box.receiver.stop(5)
    peer.answer(during, 0.1 if during is Command.ACK else 0.4)
    box.receiver.acknowledge([first])
    await peer.seen(during, 1 if during is Command.ACK else 2)
    box.receiver.acknowledge([second])
    acked = [fields["message_id"][0]["entry_id"] for fields in await peer.seen(Command.ACK, 2)]
    assert acked == [0, 1]


async def test_acknowledgements_wait_for_others_as_configured(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport, acknowledgements_group_time=1000.0, priority_level=2)
    assert peer.all(Command.SUBSCRIBE)[-1]["priority_level"] == 2
    for entry in range(2):
        peer.deliver(entry, "x")
        box.receiver.acknowledge(await box.take(1))
        await asyncio.sleep(0.01)  # longer than they wait by default
    await box.receiver.settle(5, receipt=True)
    assert [len(fields["message_id"]) for fields in peer.all(Command.ACK)] == [2]


async def test_what_another_client_s_transaction_has_comes_when_that_is_rolled_back(
    peer: Peer, transport: WireTransport
) -> None:
    """The broker reports it as acknowledged until then."""
    box = await subscribe(transport)
    peer.deliver(0, "a", "b", left=0b10)
    [b] = await box.take(1)
    box.receiver.acknowledge([b])
    await peer.seen(Command.ACK)
    peer.deliver(0, "a", "b", count=1, left=0b01)
    assert texts(await box.take(1)) == ["a"]
    assert len(peer.all(Command.ACK)) == 1


@pytest.mark.parametrize("committed", [True, False])
async def test_a_key_shared_consumer_that_is_stopped_acknowledges_in_a_transaction(
    peer: Peer, transport: WireTransport, committed: bool
) -> None:
    box, records = await stopped(peer, transport)
    transaction = await transport.begin(60)
    if not committed:
        peer.answer(Command.SUBSCRIBE, ServerError.AuthorizationError)
    box.receiver.acknowledge(records, transaction)
    with contextlib.nullcontext() if committed else pytest.raises(TransactionRolledBackError):
        await transaction.commit()
    assert len(peer.all(Command.SUBSCRIBE)) == 2
    assert ["txnid_least_bits" in fields for fields in peer.all(Command.ACK)] == [True] * committed


async def test_a_late_acknowledgement_in_a_transaction_fails_with_the_link(
    peer: Peer, transport: WireTransport
) -> None:
    """Otherwise a broker that closes the consumer as soon as it has subscribed is asked again without a pause."""
    box, records = await stopped(peer, transport)
    transaction = await transport.begin(60)

    def close_at_once(link: Link, fields: Fields) -> bytes:
        close = encode_command(Command.CLOSE_CONSUMER, consumer_id=fields["consumer_id"], request_id=0)
        asyncio.get_running_loop().call_later(0, link.write, close)  # in the turn in which the client reads the answer
        return peer.usual(link, Command.SUBSCRIBE, fields)

    peer.script(Command.SUBSCRIBE, close_at_once)
    box.receiver.acknowledge(records, transaction)
    with pytest.raises(TransactionRolledBackError):
        await transaction.commit()
    assert len(peer.all(Command.SUBSCRIBE)) == 2


async def test_what_a_broker_rolled_back_by_itself_is_asked_for_again(peer: Peer, transport: WireTransport) -> None:
    """The record arrived while the transaction still had it, and was not handed out."""
    box = await subscribe(transport)
    peer.deliver(0, "a")
    transaction = await transport.begin(60)
    box.receiver.acknowledge(await box.take(1), transaction)
    await peer.seen(Command.ACK)
    peer.deliver(0, "a", count=1)
    peer.answer(Command.END_TXN, ServerError.TransactionNotFound)
    with pytest.raises(TransactionRolledBackError):
        await transaction.commit()
    [asked] = await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    assert [place["entry_id"] for place in asked["message_ids"]] == [0]
    peer.deliver(0, "a", count=2)
    [again] = await box.take(1)
    assert again.redelivery_count == 1


async def test_a_part_of_a_batch_has_an_acknowledgement_of_its_own_in_a_transaction(
    peer: Peer, transport: WireTransport
) -> None:
    """A broker that recovers ignores what is in one command with an entry that is acknowledged."""
    box = await subscribe(transport)
    peer.deliver(0, "a", "b")
    peer.deliver(1, "c")
    peer.deliver(2, "d", "e")
    records = await box.take(5)
    transaction = await transport.begin(60)
    box.receiver.acknowledge([records[0], *records[2:]], transaction)
    await transaction.commit()
    asked = [[place["entry_id"] for place in fields["message_id"]] for fields in peer.all(Command.ACK)]
    assert asked == [[1, 2], [0]]
