"""A receiver takes from its consumers in turn, and settles each record with its own."""

from __future__ import annotations

import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import IllegalStateError, ObjectClosedError, TransportError
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.protocol.commands import Command
from jmsaio.transport.base import Receiver, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.peer import Peer

OTHER = f"{TOPIC}-2"


async def subscribe(transport: WireTransport, *topics: str) -> Receiver:
    wanted = Subscription(topics, "s", SubscriptionType.SHARED, ConsumerConfig(), StartPosition.EARLIEST)
    return await transport.open_receiver(wanted, lambda: None)


async def test_each_topic_and_partition_has_a_consumer(peer: Peer, transport: WireTransport) -> None:
    peer.partitions = 2
    await subscribe(transport, TOPIC, OTHER)
    topics = [fields["topic"] for fields in peer.all(Command.SUBSCRIBE)]
    assert sorted(topics) == sorted(f"{topic}-partition-{index}" for topic in (TOPIC, OTHER) for index in range(2))
    assert {fields["consumer_name"] for fields in peer.all(Command.SUBSCRIBE)} == {
        peer.all(Command.SUBSCRIBE)[0]["consumer_name"]
    }


async def test_a_record_is_settled_with_its_consumer(peer: Peer, transport: WireTransport) -> None:
    receiver = await subscribe(transport, TOPIC, OTHER)
    await peer.seen(Command.FLOW, 2)
    numbers = {fields["topic"]: fields["consumer_id"] for fields in peer.all(Command.SUBSCRIBE)}
    peer.deliver(0, "x")  # to the consumer that subscribed last
    records: list[ReceivedRecord] = []
    while not records:
        await transport.ping(5)
        records = receiver.receive(1)
    receiver.acknowledge(records)
    await receiver.settle(5, receipt=True)
    [ack] = peer.all(Command.ACK)
    assert ack["consumer_id"] == numbers[records[0].topic] == peer.consumer


async def test_seek_needs_a_consumer_of_the_partition(peer: Peer, transport: WireTransport) -> None:
    receiver = await subscribe(transport, TOPIC)
    with pytest.raises(TransportError, match="partition 7 has no consumer"):
        await receiver.seek(WireId(1, 1, 7), 5)
    await receiver.stop(5)
    with pytest.raises(IllegalStateError, match="stopped"):
        await receiver.seek(StartPosition.EARLIEST, 5)


async def test_a_closed_receiver_receives_nothing(peer: Peer, transport: WireTransport) -> None:
    receiver = await subscribe(transport, TOPIC)
    await receiver.aclose(5)
    await receiver.aclose(5)
    with pytest.raises(ObjectClosedError):
        receiver.receive(1)
    assert len(peer.all(Command.CLOSE_CONSUMER)) == 1


async def test_closing_without_an_answer_is_bounded(peer: Peer, transport: WireTransport) -> None:
    receiver = await subscribe(transport, TOPIC)
    peer.script(Command.CLOSE_CONSUMER, lambda link, fields: b"")
    await receiver.aclose(0.1)
