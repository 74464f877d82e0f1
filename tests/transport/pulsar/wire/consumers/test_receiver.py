"""A receiver takes from its consumers in turn, and settles each record with its own."""

from __future__ import annotations

import asyncio
import uuid

import anyio
import pytest

from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.errors import IllegalStateError, JMSSecurityError, ObjectClosedError, TransportError
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.protocol.commands import Command
from jmsaio.transport.base import Receiver, SenderOptions, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar.wire.transport import WireTransport, open_transport
from tests.kit.records import record, texts
from tests.protocol.all_commands import encode_command
from tests.protocol.server_errors import ServerError
from tests.support.broker import TestBroker
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.peer import Fields, Link, Peer, error_answer

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


async def test_a_cancelled_opening_closes_each_consumer_when_the_broker_has_answered(
    peer: Peer, transport: WireTransport
) -> None:
    """A subscription that is to end could not be deleted before; and a scope of anyio cancels each wait in it."""

    def silent(link: Link, fields: Fields) -> bytes:
        late.append((link, fields))
        return b""

    def closed() -> set[int]:
        return {fields["consumer_id"] for fields in peer.all(Command.CLOSE_CONSUMER)}

    async def opening() -> None:
        with scope:
            await transport.open_receiver(wanted, lambda: None)

    peer.partitions, late, scope = 2, list[tuple[Link, Fields]](), anyio.CancelScope()
    peer.script(Command.SUBSCRIBE, lambda link, fields: peer.usual(link, Command.SUBSCRIBE, fields), silent)
    shared = SubscriptionType.SHARED
    wanted = Subscription((TOPIC,), "s", shared, ConsumerConfig(), StartPosition.EARLIEST, durable=False)
    task = asyncio.ensure_future(opening())
    await peer.seen(Command.SUBSCRIBE, 2)
    await asyncio.sleep(0.05)
    scope.cancel()
    await asyncio.sleep(0.05)
    [(link, fields)] = late
    assert fields["consumer_id"] not in closed()
    link.send(Command.SUCCESS, request_id=fields["request_id"])
    await task
    assert closed() == {fields["consumer_id"] for fields in peer.all(Command.SUBSCRIBE)}


@pytest.mark.parametrize("update", [True, False])
async def test_new_partitions_are_received_from_if_asked_for(
    peer: Peer, transport: WireTransport, update: bool
) -> None:
    def topics(link: Link, fields: Fields) -> bytes:
        return encode_command(
            Command.GET_TOPICS_OF_NAMESPACE_RESPONSE, request_id=fields["request_id"], topics=[TOPIC, OTHER][:found]
        )

    found, peer.partitions = 1, 2
    peer.script(Command.GET_TOPICS_OF_NAMESPACE, *[topics] * 100)
    config = ConsumerConfig(
        auto_update_partitions=update, auto_update_partitions_interval=1.0, pattern_auto_discovery_period=1.0
    )
    pattern = Subscription((), "s", SubscriptionType.SHARED, config, StartPosition.EARLIEST, pattern=f"{TOPIC}.*")
    await transport.open_receiver(pattern, lambda: None)
    found, peer.partitions = 2, 3
    await peer.seen(Command.SUBSCRIBE, 6 if update else 5)
    names = sorted(fields["topic"] for fields in peer.all(Command.SUBSCRIBE))
    parts = [f"{OTHER}-partition-{index}" for index in range(3)]
    parts += [f"{TOPIC}-partition-{index}" for index in range(3 if update else 2)]
    assert names == sorted(parts)


def pattern_of(topic: str, period: float = 3600.0) -> Subscription:
    config = ConsumerConfig(pattern_auto_discovery_period=period, auto_update_partitions=False)
    return Subscription((), "s", SubscriptionType.SHARED, config, StartPosition.EARLIEST, pattern=f"{topic}.*")


async def test_a_new_topic_of_a_pattern_is_found_within_the_period(peer: Peer) -> None:
    """Also one that was new while the link was lost."""

    def topics(link: Link, fields: Fields) -> bytes:
        return encode_command(
            Command.GET_TOPICS_OF_NAMESPACE_RESPONSE, request_id=fields["request_id"],
            topics=[f"{TOPIC}-{number}" for number in range(found)],
        )  # fmt: skip

    found = 1
    peer.script(Command.GET_TOPICS_OF_NAMESPACE, *[topics] * 100)
    transport = await open_transport(peer.config())
    receiver = await transport.open_receiver(pattern_of(TOPIC, 1.0), lambda: None)
    found = 2
    assert (await peer.seen(Command.SUBSCRIBE, 2))[1]["topic"] == f"{TOPIC}-1"
    peer.links[-1].cut()
    found = 3
    assert f"{TOPIC}-2" in {fields["topic"] for fields in await peer.seen(Command.SUBSCRIBE, 5)}
    await receiver.aclose(5)
    await transport.aclose(5)


async def test_a_new_topic_that_is_refused_keeps_no_other_from_being_received(
    peer: Peer, transport: WireTransport
) -> None:
    """It is tried again in the next period, not earlier."""

    def topics(link: Link, fields: Fields) -> bytes:
        return encode_command(Command.GET_TOPICS_OF_NAMESPACE_RESPONSE, request_id=fields["request_id"], topics=found)

    def refuse(link: Link, fields: Fields) -> bytes:
        if fields["topic"] == OTHER:
            return error_answer(Command.SUBSCRIBE, fields, ServerError.ConsumerBusy)
        return peer.usual(link, Command.SUBSCRIBE, fields)

    found = [TOPIC]
    peer.script(Command.GET_TOPICS_OF_NAMESPACE, *[topics] * 100)
    await transport.open_receiver(pattern_of("persistent://public/default/", 2.0), lambda: None)
    peer.script(Command.SUBSCRIBE, *[refuse] * 100)
    found = [TOPIC, OTHER, f"{TOPIC}-new"]
    await peer.seen(Command.GET_TOPICS_OF_NAMESPACE, 3)
    numbers = [(fields["topic"], fields["consumer_id"]) for fields in peer.all(Command.SUBSCRIBE)]
    assert sorted(topic for topic, _ in numbers) == sorted([TOPIC, OTHER, f"{TOPIC}-new"]), "one attempt in a period"
    closed = [fields["consumer_id"] for fields in peer.all(Command.CLOSE_CONSUMER)]
    assert [topic for topic, number in numbers if number in closed] == [OTHER]


@pytest.mark.broker
async def test_new_topics_of_a_pattern_are_found_on_a_broker(pulsar_broker: TestBroker) -> None:
    transport = await open_transport(load(pulsar_broker.url))
    stem = f"persistent://public/default/wire-watch-{uuid.uuid4().hex}"
    receiver = await transport.open_receiver(pattern_of(stem, 1.0), lambda: None)
    sender = await transport.open_sender(f"{stem}-new", SenderOptions(ProducerConfig(), lambda *outcome: None))
    sender.send(record("x"), 0)
    found: list[ReceivedRecord] = []
    async with asyncio.timeout(60):
        while not found:
            await asyncio.sleep(0.05)
            found = receiver.receive(1)
    assert texts(found) == ["x"]
    await transport.aclose(5)


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


@pytest.mark.parametrize("end", ["fails", "is stopped"])
async def test_a_resume_that_does_not_succeed_leaves_all_consumers_stopped(
    peer: Peer, transport: WireTransport, end: str
) -> None:
    """The first one was resumed when the second one is refused, or when the receiver is stopped."""
    wanted = Subscription(
        (TOPIC, OTHER), "s", SubscriptionType.KEY_SHARED, ConsumerConfig(), StartPosition.EARLIEST, durable=False
    )
    receiver = await transport.open_receiver(wanted, lambda: None)
    await receiver.stop(5)

    def late(link: Link, fields: Fields) -> bytes:
        refused = error_answer(Command.SUBSCRIBE, fields, ServerError.AuthorizationError)
        answer = refused if end == "fails" else peer.usual(link, Command.SUBSCRIBE, fields)
        asyncio.get_running_loop().call_later(0.1, link.write, answer)
        return b""

    peer.script(Command.SUBSCRIBE, lambda link, fields: peer.usual(link, Command.SUBSCRIBE, fields), late)
    resuming = asyncio.ensure_future(receiver.resume(5))
    await peer.seen(Command.FLOW, 3)
    if end == "fails":
        with pytest.raises(JMSSecurityError):
            await resuming
    else:
        await receiver.stop(5)
        await resuming
    closed = {fields["consumer_id"] for fields in peer.all(Command.CLOSE_CONSUMER)}
    assert {fields["consumer_id"] for fields in peer.all(Command.SUBSCRIBE)[: 3 if end == "fails" else 4]} <= closed
    await receiver.aclose(60)
    assert len(peer.all(Command.UNSUBSCRIBE)) == 2, "subscribed again for it"


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
