"""Transactions that are begun ahead, their end with the transport, and many of them at the same time."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable

import pytest

from jmsaio.config import load
from jmsaio.errors import ObjectClosedError, TransactionRolledBackError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.protocol.codes import TxnAction
from jmsaio.protocol.commands import Command
from jmsaio.transport.base import SenderOptions
from jmsaio.transport.pulsar.wire import transactions
from jmsaio.transport.pulsar.wire.transport import WireTransport
from jmsaio.transport.registry import connected
from tests.kit.records import Outcomes, tell_each
from tests.support.broker import TestBroker
from tests.transport.pulsar.wire.peer import Peer


async def test_the_next_transaction_is_begun_when_one_ends(peer: Peer, transport: WireTransport) -> None:
    for number in range(1, 4):
        transaction = await transport.begin(60)
        assert len(peer.all(Command.NEW_TXN)) == number
        await transaction.commit()
        await peer.seen(Command.NEW_TXN, number + 1)
    other = await transport.begin(50)  # has another time-out
    assert len(peer.all(Command.NEW_TXN)) == 5
    await other.abort()


async def test_what_is_begun_ahead_and_not_used_is_rolled_back(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "_KEPT", 0.02)
    await (await transport.begin(60)).commit()
    assert [fields["txn_action"] for fields in await peer.seen(Command.END_TXN, 2)] == [
        TxnAction.COMMIT, TxnAction.ABORT,
    ]  # fmt: skip
    assert len(peer.all(Command.NEW_TXN)) == 2


async def test_a_cancelled_begin_leaves_its_transaction_to_the_next(peer: Peer, transport: WireTransport) -> None:
    peer.answer(Command.NEW_TXN, 0.05)
    beginning = asyncio.ensure_future(transport.begin(60))
    await peer.seen(Command.NEW_TXN)
    beginning.cancel()
    await asyncio.wait({beginning})
    await transport.begin(60)
    assert len(peer.all(Command.NEW_TXN)) == 1


async def test_closing_the_transport_rolls_back(peer: Peer, transport: WireTransport) -> None:
    for _ in range(3):
        await transport.begin(60)
    await transport.aclose(5)
    assert [fields["txn_action"] for fields in peer.all(Command.END_TXN)] == [TxnAction.ABORT] * 3


@pytest.mark.slow
async def test_a_thousand_open_transactions_cost_little_and_end_in_time(
    pulsar_broker: TestBroker, name: Callable[[str], str]
) -> None:
    """Less than 5 MB in the client, with a message in each."""
    configuration = load(f"{pulsar_broker.url}&transport=wire&enableTransaction=true")
    async with connected(configuration) as transport:
        options = SenderOptions(configuration.producer, tell_each, transacted=True)
        sender = await transport.open_sender(f"persistent://public/default/{name('thousand')}", options)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        opened = [await transport.begin(30) for _ in range(1000)]
        outcomes = Outcomes()
        for each in opened:
            sender.send(OutgoingRecord(b"x" * 100, {}), outcomes, each)
        await sender.drain(60)
        gc.collect()
        used = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert outcomes.failures == []
        assert used < 5_000_000
        await asyncio.sleep(31)
        for each in opened:
            with pytest.raises(TransactionRolledBackError, match="time is over"):
                await each.commit()


async def test_closing_the_transport_rolls_back_what_is_being_begun(peer: Peer, transport: WireTransport) -> None:
    peer.answer(Command.NEW_TXN, 0.1)
    beginning = asyncio.ensure_future(transport.begin(60))
    await peer.seen(Command.NEW_TXN)
    beginning.cancel()
    await transport.aclose(5)
    assert peer.open == {}


async def test_a_begin_that_the_close_of_the_connection_ends_is_told(peer: Peer, transport: WireTransport) -> None:
    peer.answer(Command.NEW_TXN, "never")
    beginning = asyncio.ensure_future(transport.begin(60))
    await peer.seen(Command.NEW_TXN)
    await transport.aclose(0.2)
    with pytest.raises(ObjectClosedError):
        await beginning
