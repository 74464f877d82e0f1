"""Transactions with the scripted peer; the contract suite has them on a real broker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jmsaio.config import ConsumerConfig, ProducerConfig
from jmsaio.errors import IllegalStateError, TransactionInDoubtError, TransactionRolledBackError
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.protocol.codes import ServerError, TxnAction
from jmsaio.protocol.commands import Command, encode_command
from jmsaio.transport.base import SenderOptions, StartPosition, Subscription, SubscriptionType, Transaction
from jmsaio.transport.pulsar.admin.transactions import TransactionOutcome
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.peer import Peer


@pytest.fixture
async def transaction(peer: Peer, transport: WireTransport) -> AsyncIterator[Transaction]:
    yield await transport.begin(60)


async def send(transport: WireTransport, transaction: Transaction) -> asyncio.Future[Any]:
    """Send a message in it; return the future of its outcome."""
    outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    options = SenderOptions(ProducerConfig(), lambda tokens, place, error: outcome.set_result(error), transacted=True)
    sender = await transport.open_sender("persistent://public/default/t", options)
    sender.send(OutgoingRecord(b"x", {}), "x", transaction)
    return outcome


async def test_a_message_leaves_when_its_topic_is_registered(
    peer: Peer, transport: WireTransport, transaction: Transaction
) -> None:
    peer.answer(Command.ADD_PARTITION_TO_TXN, 0.1)
    outcome = await send(transport, transaction)
    await peer.seen(Command.ADD_PARTITION_TO_TXN)
    committing = asyncio.ensure_future(transaction.commit())
    await asyncio.sleep(0.02)
    assert not peer.all(Command.SEND)
    assert not peer.all(Command.END_TXN)
    await committing
    assert await outcome is None
    [sent] = peer.all(Command.SEND)
    assert (sent["txnid_most_bits"], sent["txnid_least_bits"]) == (0, 0)
    assert sent["metadata"].txn == (0, 0)


async def test_a_lost_answer_to_a_send_rolls_back(
    peer: Peer, transport: WireTransport, transaction: Transaction
) -> None:
    peer.answer(Command.SEND, "cut")
    outcome = await send(transport, transaction)
    with pytest.raises(TransactionRolledBackError):
        await transaction.commit()
    assert "the message was not sent" in str(await outcome)
    assert len(peer.all(Command.SEND)) == 1
    assert [fields["txn_action"] for fields in peer.all(Command.END_TXN)] == [TxnAction.ABORT]


async def test_a_lost_answer_to_the_commit_is_asked_for_again(peer: Peer, transaction: Transaction) -> None:
    peer.answer(Command.END_TXN, "cut")
    await transaction.commit()
    assert len(peer.all(Command.END_TXN)) == 2


async def test_a_forgotten_transaction_is_in_doubt_if_an_answer_was_lost(peer: Peer, transaction: Transaction) -> None:
    peer.answer(Command.END_TXN, "lost")
    with pytest.raises(TransactionInDoubtError):
        await transaction.commit()


async def test_a_forgotten_transaction_was_rolled_back_before(peer: Peer, transaction: Transaction) -> None:
    peer.answer(Command.END_TXN, ServerError.TransactionNotFound)
    with pytest.raises(TransactionRolledBackError):
        await transaction.commit()


async def test_a_commit_that_is_cancelled_before_the_broker_is_asked_rolls_back(
    peer: Peer, transport: WireTransport, transaction: Transaction
) -> None:
    peer.answer(Command.ADD_PARTITION_TO_TXN, 0.1)
    await send(transport, transaction)
    await peer.seen(Command.ADD_PARTITION_TO_TXN)
    committing = asyncio.ensure_future(transaction.commit())
    await asyncio.sleep(0)
    committing.cancel()
    await asyncio.wait({committing})
    [ended] = await peer.seen(Command.END_TXN)
    assert ended["txn_action"] == TxnAction.ABORT


async def test_a_topic_that_stores_nothing_takes_no_part(
    peer: Peer, transport: WireTransport, transaction: Transaction
) -> None:
    options = SenderOptions(ProducerConfig(), lambda *outcome: None, transacted=True)
    sender = await transport.open_sender("non-persistent://public/default/t", options)
    with pytest.raises(IllegalStateError, match="takes no part in transactions"):
        sender.send(OutgoingRecord(b"x", {}), "x", transaction)


async def test_a_duplicate_is_no_part_of_it(peer: Peer, transport: WireTransport, transaction: Transaction) -> None:
    """A broker that deduplicates has the sequence ids of what was rolled back, too, and drops what repeats them."""
    place = {"ledger_id": (1 << 64) - 1, "entry_id": (1 << 64) - 1}
    names = ("producer_id", "sequence_id")
    peer.script(
        Command.SEND,
        lambda link, fields: encode_command(
            Command.SEND_RECEIPT, message_id=place, **{name: fields[name] for name in names}
        ),
    )
    outcome = await send(transport, transaction)
    with pytest.raises(TransactionRolledBackError, match="sequence id"):
        await transaction.commit()
    assert await outcome is not None


@pytest.mark.parametrize("outcome", TransactionOutcome)
async def test_topics_and_subscriptions_decide_a_commit_without_an_answer(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch, outcome: TransactionOutcome
) -> None:
    asked: list[dict[str, Any]] = []

    async def find(txn_id: tuple[int, int], **known: Any) -> TransactionOutcome:
        asked.append({"txn_id": txn_id, **known})
        return outcome

    monkeypatch.setattr(transport._transactions, "_find", find)
    transaction = await transport.begin(60)
    wanted = Subscription((TOPIC,), "s", SubscriptionType.SHARED, ConsumerConfig(), StartPosition.EARLIEST)
    woken = asyncio.Event()
    receiver = await transport.open_receiver(wanted, woken.set)
    peer.deliver(0, "a", "b")
    await woken.wait()
    receiver.acknowledge(receiver.receive(1), transaction)
    await (await send(transport, transaction))
    peer.answer(Command.END_TXN, "lost")
    kind = TransactionRolledBackError if outcome is TransactionOutcome.ABORTED else TransactionInDoubtError
    with contextlib.nullcontext() if outcome is TransactionOutcome.COMMITTED else pytest.raises(kind):
        await transaction.commit()
    assert asked == [
        {
            "txn_id": (0, 0), "sent": {"persistent://public/default/t": WireId(1, 0, -1, -1)},
            "acknowledged": {(TOPIC, "s"): WireId(1, 0, -1, 0)}, "expired": False, "timeout": 5.0,
        }
    ]  # fmt: skip
