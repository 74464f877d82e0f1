"""A sender routes to one producer for each partition, within one window."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jmsaio.config import ProducerConfig
from jmsaio.errors import (
    BrokerUnavailableError,
    JMSError,
    ObjectClosedError,
    OperationTimeoutError,
    SendError,
    SendInDoubtError,
)
from jmsaio.protocol.commands import Command
from jmsaio.transport.base import Sender, SenderOptions
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.kit.records import record
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.peer import Peer


async def open_sender(transport: WireTransport, window: int = 5000, **options: Any) -> Sender:
    config = ProducerConfig(**options)
    return await transport.open_sender(TOPIC, SenderOptions(config, lambda *_: None, window_records=window))


async def test_records_of_a_key_go_to_one_partition_and_others_in_turn(peer: Peer, transport: WireTransport) -> None:
    peer.partitions = 3
    sender = await open_sender(transport, batching_enabled=False)
    topics = {fields["producer_id"]: fields["topic"] for fields in peer.all(Command.PRODUCER)}
    assert sorted(topics.values()) == [f"{TOPIC}-partition-{index}" for index in range(3)]
    for _ in range(6):
        sender.send(record("x"), None)
    await sender.drain(5)
    turns = [topics[fields["producer_id"]] for fields in peer.all(Command.SEND)]
    assert len(turns) == 6 and {turns.count(topic) for topic in turns} == {2}
    for _ in range(4):
        sender.send(record("x", key="k"), None)
    await sender.drain(5)
    assert len({fields["producer_id"] for fields in peer.all(Command.SEND)[6:]}) == 1
    assert set(sender.last_sequence_ids) == set(topics.values())


async def test_the_window_is_full_until_there_are_answers(peer: Peer, transport: WireTransport) -> None:
    sender = await open_sender(transport, window=2, send_timeout=0.1)
    peer.script(Command.SEND, lambda link, fields: b"")
    for _ in range(2):
        sender.send(record("x"), None)
    assert sender.full
    with pytest.raises(OperationTimeoutError):
        await sender.drain(0.01)
    await sender.ready()  # the send time-out has ended both
    assert not sender.full


async def test_new_partitions_are_sent_to(peer: Peer, transport: WireTransport) -> None:
    peer.partitions = 2
    sender = await open_sender(transport, auto_update_partitions_interval=1.0)
    peer.partitions = 3
    await asyncio.sleep(1.05)
    sender.send(record("x"), None)
    await sender.drain(5)
    assert len(await peer.seen(Command.PRODUCER, 3)) == 3


async def test_a_closed_sender_sends_nothing(peer: Peer, transport: WireTransport) -> None:
    sender = await open_sender(transport)
    await sender.aclose(5)
    await sender.aclose(5)
    with pytest.raises(ObjectClosedError):
        sender.send(record("x"), None)
    assert len(peer.all(Command.CLOSE_PRODUCER)) == 1


async def test_sends_that_end_in_an_outage_name_it(peer: Peer, transport: WireTransport) -> None:
    """One that left before might be stored; one that did not leave is not."""
    outcomes: list[JMSError | None] = []
    options = SenderOptions(ProducerConfig(), lambda tokens, place, error: outcomes.append(error))
    sender = await transport.open_sender(TOPIC, options)
    peer.script(Command.SEND, lambda link, fields: b"")
    peer.script(Command.CONNECT, *[lambda link, fields: link.cut() or b""] * 100)
    sender.send(record("left"), None)
    await peer.seen(Command.SEND)
    peer.links[-1].cut()
    await peer.seen(Command.CONNECT, 2)
    sender.send(record("stayed"), None)
    await sender.aclose(0.01)
    assert [type(error) for error in outcomes] == [SendInDoubtError, SendError]
    for error in outcomes:
        assert error is not None and error.error_code == "AlreadyClosed"
        assert "is lost" in str(error) and isinstance(error.__cause__, BrokerUnavailableError)


async def test_an_opening_that_fails_on_one_partition_closes_the_others(peer: Peer, transport: WireTransport) -> None:
    peer.partitions = 2
    peer.script(Command.PRODUCER, lambda link, fields: link.cut() or b"")  # type: ignore[func-returns-value]  # cuts
    sender = await open_sender(transport)
    assert len(peer.all(Command.PRODUCER)) >= 3  # both were opened anew
    await sender.aclose(5)
