"""The transaction coordinators: where they are, and requests that are repeated until they are answered."""

from __future__ import annotations

import pytest

from jmsaio.errors import IllegalStateError, JMSSecurityError, TransportError
from jmsaio.protocol.commands import Command, TxnAction
from jmsaio.transport.pulsar.wire.transactions import coordinators
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.protocol.server_errors import ServerError
from tests.transport.pulsar.wire.peer import Peer, listening

MISSING = ServerError.TransactionCoordinatorNotFound


async def test_transactions_are_spread_over_the_coordinators(peer: Peer, transport: WireTransport) -> None:
    peer.coordinators = 3
    await transport.ready_for_transactions(5)
    for _ in range(4):
        await transport.begin(60)
    assert [fields["tc_id"] for fields in peer.all(Command.NEW_TXN)] == [0, 1, 2, 0]
    assert [fields["tc_id"] for fields in peer.all(Command.TC_CLIENT_CONNECT_REQUEST)] == [0, 1, 2]
    assert {fields["txn_ttl_seconds"] for fields in peer.all(Command.NEW_TXN)} == {65_000}  # in milliseconds


async def test_a_coordinator_that_has_moved_is_found_again(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinators, "_PAUSE", 0.01)
    peer.answer(Command.NEW_TXN, MISSING, MISSING, "cut")
    await transport.begin(60)
    assert len(peer.all(Command.TC_CLIENT_CONNECT_REQUEST)) == 4


async def test_a_commit_follows_its_coordinator_to_another_broker(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinators, "_PAUSE", 0.01)
    transaction = await transport.begin(60)
    async with listening() as other:
        other.open = peer.open
        peer.answer(Command.END_TXN, MISSING)
        peer.script(Command.LOOKUP, lambda link, fields: other.usual(link, Command.LOOKUP, fields))
        await transaction.commit()
        assert (list(peer.outcomes.values()), list(other.outcomes.values())) == ([], [TxnAction.COMMIT])
        await transport.aclose(2)


async def test_the_time_of_a_transaction_begins_with_the_request_that_is_answered(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinators, "_PAUSE", 0.5)
    peer.answer(Command.NEW_TXN, MISSING, MISSING)
    await (await transport.begin(0.9)).commit()


@pytest.mark.parametrize("coordinators", [0, 1])
async def test_a_broker_without_coordinators_has_no_transactions(
    peer: Peer, transport: WireTransport, coordinators: int
) -> None:
    """Their topic's partitions stay when transactions are switched off."""
    peer.coordinators = coordinators
    peer.answer(Command.TC_CLIENT_CONNECT_REQUEST, ServerError.NotAllowedError)
    with pytest.raises(IllegalStateError, match="transactionCoordinatorEnabled=true"):
        await transport.ready_for_transactions(5)


async def test_a_client_without_the_right_to_find_the_coordinators(peer: Peer, transport: WireTransport) -> None:
    peer.answer(Command.PARTITIONED_METADATA, ServerError.AuthorizationError)
    with pytest.raises(JMSSecurityError, match="grant-permission pulsar/system"):
        await transport.ready_for_transactions(5)


async def test_a_coordinator_that_stays_away_is_asked_ten_times(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert coordinators._PAUSE == 1.0
    monkeypatch.setattr(coordinators, "_PAUSE", 0.001)
    peer.answer(Command.NEW_TXN, *[MISSING] * 20)
    with pytest.raises(TransportError, match="begin a transaction"):
        await transport.begin(60)
    assert len(peer.all(Command.NEW_TXN)) == 10


async def test_each_new_connection_is_introduced_to_its_coordinator(peer: Peer, transport: WireTransport) -> None:
    transaction = await transport.begin(60)
    for link in peer.links:
        link.cut()
    await transaction.commit()
    assert list(peer.outcomes.values()) == [TxnAction.COMMIT]
    assert len(peer.all(Command.TC_CLIENT_CONNECT_REQUEST)) == 2
