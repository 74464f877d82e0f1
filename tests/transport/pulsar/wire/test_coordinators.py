"""The transaction coordinators: where they are, and requests that are repeated until they are answered."""

from __future__ import annotations

import pytest

from jmsaio.errors import IllegalStateError
from jmsaio.protocol.codes import ServerError
from jmsaio.protocol.commands import Command, encode_command
from jmsaio.transport.pulsar.wire import coordinators
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.transport.pulsar.wire.peer import Fields, Link, Peer


def knows(link: Link, fields: Fields) -> bytes:
    return encode_command(Command.TC_CLIENT_CONNECT_RESPONSE, request_id=fields["request_id"])


def not_found(link: Link, fields: Fields) -> bytes:
    error = ServerError.TransactionCoordinatorNotFound
    return encode_command(Command.NEW_TXN_RESPONSE, request_id=fields["request_id"], error=error, message="moved")


def begun(link: Link, fields: Fields) -> bytes:
    ids = {"txnid_most_bits": fields["tc_id"], "txnid_least_bits": 7}
    return encode_command(Command.NEW_TXN_RESPONSE, request_id=fields["request_id"], **ids)


def cut(link: Link, fields: Fields) -> bytes:
    link.cut()
    return b""


async def test_transactions_are_spread_over_the_coordinators(peer: Peer, transport: WireTransport) -> None:
    peer.partitions = 3
    peer.script(Command.TC_CLIENT_CONNECT_REQUEST, knows, knows, knows)
    peer.script(Command.NEW_TXN, *[begun] * 4)
    await transport.ready_for_transactions(5)
    for _ in range(4):
        await transport.begin(60)
    assert [fields["tc_id"] for fields in peer.all(Command.NEW_TXN)] == [0, 1, 2, 0]
    assert [fields["tc_id"] for fields in peer.all(Command.TC_CLIENT_CONNECT_REQUEST)] == [0, 1, 2]
    assert {fields["txn_ttl_seconds"] for fields in peer.all(Command.NEW_TXN)} == {60_000}  # in milliseconds


async def test_a_coordinator_that_has_moved_is_found_again(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinators, "_PAUSE", 0.01)
    peer.partitions = 1
    peer.script(Command.TC_CLIENT_CONNECT_REQUEST, *[knows] * 4)
    peer.script(Command.NEW_TXN, not_found, not_found, cut, begun)
    await transport.begin(60)
    assert len(peer.all(Command.TC_CLIENT_CONNECT_REQUEST)) == 4


async def test_a_broker_without_coordinators_has_no_transactions(peer: Peer, transport: WireTransport) -> None:
    with pytest.raises(IllegalStateError, match="transactionCoordinatorEnabled=true"):
        await transport.ready_for_transactions(5)
