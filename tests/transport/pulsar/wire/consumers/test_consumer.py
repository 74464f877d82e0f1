"""Receiving over any number of connections: nothing lost, nothing handed out twice unmarked."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import TransportError
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.protocol.commands import Command
from jmsaio.transport.base import (
    CLIENT_SELECTOR,
    Receiver,
    StartPosition,
    Subscription,
    SubscriptionType,
)
from jmsaio.transport.pulsar.wire.transport import WireTransport, open_transport
from tests.kit.records import texts
from tests.protocol.all_commands import encode_command
from tests.protocol.server_errors import ServerError
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.peer import Fields, Link, Peer


@attrs.define(eq=False)
class Box:
    """A receiver and its wake-ups."""

    receiver: Receiver
    woken: asyncio.Event

    async def take(self, number: int) -> list[ReceivedRecord]:
        """The next records."""
        found: list[ReceivedRecord] = []
        async with asyncio.timeout(5):
            while len(found) < number:
                self.woken.clear()
                found += self.receiver.receive(number - len(found))
                if len(found) < number:
                    await self.woken.wait()
        return found


async def subscribe(
    transport: WireTransport, type_: SubscriptionType = SubscriptionType.SHARED, *, selective: bool = False,
    **options: Any,
) -> Box:  # fmt: skip
    woken = asyncio.Event()
    wanted = Subscription((TOPIC,), "s", type_, ConsumerConfig(**options), StartPosition.EARLIEST, selective=selective)
    return Box(await transport.open_receiver(wanted, woken.set), woken)


async def test_permits_are_given_back_for_what_is_taken(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport, receiver_queue_size=4)
    peer.deliver(0, "a", "b")
    peer.deliver(1, "c")
    assert texts(await box.take(3)) == ["a", "b", "c"]
    await peer.seen(Command.FLOW, 2)
    assert [fields["message_permits"] for fields in peer.all(Command.FLOW)] in ([4, 3], [4, 2])
    assert 0 not in [fields["message_permits"] for fields in peer.all(Command.FLOW)]


async def test_what_was_acknowledged_of_a_batch_is_marked_if_another_consumer_receives_it(
    peer: Peer, transport: WireTransport
) -> None:
    """Without acknowledgements by index the broker does not know of it."""
    box = await subscribe(transport, batch_index_ack_enabled=False)
    first, second = await batch_of(peer, box, 2)
    box.receiver.acknowledge([first])
    box.receiver.negative_acknowledge([second], 0.0)
    await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    await box.receiver.aclose(5)
    box = await subscribe(transport, batch_index_ack_enabled=False)
    peer.deliver(0, "0", "1", count=1)
    assert [record.redelivery_count > 0 for record in await box.take(2)] == [True, True]


async def batch_of(peer: Peer, box: Box, size: int) -> list[ReceivedRecord]:
    """Receive a batch of numbers as entry 0."""
    peer.deliver(0, *map(str, range(size)))
    return await box.take(size)


async def test_what_the_application_holds_is_recognised_when_it_comes_again(
    peer: Peer, transport: WireTransport
) -> None:
    """An acknowledgement whose receipt was lost is repeated then, and what was queued comes."""
    box = await subscribe(transport)
    peer.deliver(0, "held", "queued")
    peer.deliver(1, "acknowledged")
    [held] = await box.take(1)
    peer.script(Command.ACK, lambda link, fields: b"")
    rest = await box.take(2)
    box.receiver.acknowledge([rest[1]])
    await peer.seen(Command.ACK)
    peer.links[-1].cut()
    await peer.seen(Command.FLOW, 2)
    peer.deliver(0, "held", "queued", count=1)
    peer.deliver(1, "acknowledged", count=1)
    await peer.seen(Command.ACK, 2)
    assert box.receiver.receive(10) == []
    assert [one["entry_id"] for one in peer.all(Command.ACK)[1]["message_id"]] == [1]
    box.receiver.acknowledge([held, rest[0]])
    await peer.seen(Command.ACK, 3)


async def test_what_was_not_handed_out_comes_again_unmarked(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport)
    peer.deliver(0, "a", "b")
    [first] = await box.take(1)
    peer.links[-1].cut()
    await peer.seen(Command.FLOW, 2)
    peer.deliver(0, "a", "b")
    [second] = await box.take(1)
    assert texts([first, second]) == ["a", "b"] and second.redelivery_count == 0


async def test_another_entry_under_a_known_id_is_new(peer: Peer, transport: WireTransport) -> None:
    """A topic that was deleted and made anew has the same ids."""
    box = await subscribe(transport)
    peer.deliver(0, "old", published=1)
    await box.take(1)
    peer.deliver(0, "new", published=2)
    assert texts(await box.take(1)) == ["new"]


async def test_what_compaction_left_out_of_a_batch_is_not_delivered(peer: Peer, transport: WireTransport) -> None:
    """And does not keep its batch unacknowledged."""
    box = await subscribe(transport, SubscriptionType.EXCLUSIVE, read_compacted=True, receiver_queue_size=2)
    peer.deliver(0, "old", "new", compacted=(0,))
    [record] = await box.take(1)
    assert texts([record]) == ["new"]
    box.receiver.acknowledge([record])
    await box.receiver.settle(5, receipt=True)
    assert peer.all(Command.ACK)[-1]["message_id"][0]["ack_set"] == []
    assert sum(fields["message_permits"] for fields in peer.all(Command.FLOW)) == 4


async def test_the_broker_charges_no_permit_for_what_is_acknowledged(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport, receiver_queue_size=4)
    peer.deliver(0, "a", "b", "c", "d", left=0b0010)
    assert texts(await box.take(1)) == ["b"]
    assert [fields["message_permits"] for fields in peer.all(Command.FLOW)] == [4]


async def test_without_a_queue_a_receive_gets_the_next_record(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport, receiver_queue_size=0)
    for number in range(3):
        await transport.ping(5)
        assert len(peer.all(Command.FLOW)) == number
        assert box.receiver.receive(1) == []
        await peer.seen(Command.FLOW, number + 1)
        peer.deliver(number, str(number))
        assert texts(await box.take(1)) == [str(number)]
    assert {fields["message_permits"] for fields in peer.all(Command.FLOW)} == {1}


async def test_a_stopped_consumer_returns_what_was_not_handed_out_and_gives_no_permits(
    peer: Peer, transport: WireTransport
) -> None:
    """What the broker still sends is returned at once, because others wait for it; slowly only if it comes again."""
    box = await subscribe(transport)
    peer.deliver(0, "held", "beside")
    peer.deliver(1, "queued")
    await box.take(1)
    await box.receiver.stop(5)
    [again] = await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    assert [one["entry_id"] for one in again["message_ids"]] == [0, 1]
    for entry in range(2, 10):
        peer.deliver(entry, "later")
        await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES, entry)
    assert len(peer.all(Command.FLOW)) == 1
    peer.deliver(0, "held", "beside", count=1)
    await transport.ping(5)
    assert box.receiver.receive(10) == []
    await box.receiver.resume(5)
    [beside] = await box.take(1)
    assert texts([beside]) == ["beside"] and beside.redelivery_count == 0


async def two_consumers(peer: Peer, transport: WireTransport) -> tuple[Box, Box, list[ReceivedRecord]]:
    """A stopped receiver that handed out the first record of an entry, and another that received the entry then."""
    first = await subscribe(transport)
    peer.deliver(0, "held", "other")
    held = await first.take(1)
    await first.receiver.stop(5)
    second = await subscribe(transport)
    peer.deliver(0, "held", "other", count=1)
    return first, second, held


async def test_consumers_of_a_connection_know_what_each_other_holds(peer: Peer, transport: WireTransport) -> None:
    first, second, held = await two_consumers(peer, transport)
    [other] = await second.take(1)
    assert texts([other]) == ["other"] and other.redelivery_count == 0
    first.receiver.acknowledge(held)
    await first.receiver.settle(5)
    [ack] = await peer.seen(Command.ACK)
    assert ack["consumer_id"] == peer.consumer, "the broker has the entry with the second one"
    assert ack["message_id"][0]["ack_set"] == [0b10]
    second.receiver.acknowledge([other])
    await second.receiver.settle(5)
    assert (await peer.seen(Command.ACK, 2))[-1]["message_id"][0]["ack_set"] == []


async def test_what_a_stopped_consumer_returns_later_comes_through_the_one_that_has_its_entry(
    peer: Peer, transport: WireTransport
) -> None:
    first, second, _ = await two_consumers(peer, transport)
    await second.take(1)
    await first.receiver.aclose(5)
    again = await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES, 2)
    assert again[-1]["consumer_id"] == peer.consumer
    peer.deliver(0, "held", "other", count=2)
    [back] = await second.take(1)
    assert texts([back]) == ["held"] and back.redelivery_count == 1


@pytest.mark.parametrize("same", [True, False])
async def test_what_was_handed_out_is_marked_for_the_next_consumer_of_the_process(
    peer: Peer, transport: WireTransport, same: bool
) -> None:
    """The broker does not count what closing returns; a connection later is the same."""
    box = await subscribe(transport)
    peer.deliver(0, "handed out", "not handed out")
    await box.take(1)
    await box.receiver.aclose(5)
    other = transport if same else await open_transport(peer.config())
    next_box = await subscribe(other)
    peer.deliver(0, "handed out", "not handed out")
    records = await next_box.take(2)
    assert [one.redelivery_count for one in records] == [1, 0]
    await next_box.receiver.seek(StartPosition.EARLIEST, 5)
    peer.deliver(0, "handed out", "not handed out")
    assert [one.redelivery_count for one in await next_box.take(2)] == [0, 0]
    await other.aclose(2)


async def test_a_consumer_that_the_broker_closes_subscribes_anew(peer: Peer, transport: WireTransport) -> None:
    """With another number, so that nothing of the earlier one is taken for it."""
    box = await subscribe(transport)
    peer.links[-1].send(Command.CLOSE_CONSUMER, consumer_id=peer.consumer, request_id=0)
    await peer.seen(Command.FLOW, 2)
    numbers = [fields["consumer_id"] for fields in peer.all(Command.SUBSCRIBE)]
    assert len(set(numbers)) == 2
    peer.deliver(0, "a")
    assert texts(await box.take(1)) == ["a"]


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("where", [Command.LOOKUP, Command.SUBSCRIBE])
async def test_subscribing_survives_garbage(
    peer: Peer, transport: WireTransport, where: Command, answered: bool
) -> None:
    """Instead of the answer, or in the same breath."""

    def garbage(link: Link, fields: Fields) -> bytes:
        return (peer.usual(link, where, fields) if answered else b"") + b"\xff" * 64

    peer.script(where, garbage)
    box = await subscribe(transport)
    await peer.seen(Command.FLOW)
    peer.deliver(0, "a")
    assert texts(await box.take(1)) == ["a"]
    assert len(peer.all(Command.CONNECT)) == 2


async def test_an_error_for_now_is_passed_over_and_a_final_one_ends_the_receiver(
    peer: Peer, transport: WireTransport
) -> None:
    box = await subscribe(transport)

    def refuse(error: ServerError) -> Any:
        return lambda link, fields: encode_command(
            Command.ERROR, request_id=fields["request_id"], error=error, message="no"
        )

    peer.script(Command.SUBSCRIBE, refuse(ServerError.ServiceNotReady), refuse(ServerError.TopicNotFound))
    peer.links[-1].cut()
    await peer.seen(Command.SUBSCRIBE, 3)
    async with asyncio.timeout(5):
        await box.woken.wait()
    with pytest.raises(TransportError, match="TopicNotFound"):
        await box.take(1)


async def test_an_opening_that_is_cancelled_is_closed_at_the_broker(peer: Peer, transport: WireTransport) -> None:
    """No ghost stays."""
    asked = asyncio.Event()

    def late(link: Link, fields: Fields) -> bytes:
        asked.set()
        return b""

    peer.script(Command.SUBSCRIBE, late)
    opening = asyncio.ensure_future(subscribe(transport))
    await asked.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    [closed] = await peer.seen(Command.CLOSE_CONSUMER)
    assert closed["consumer_id"] == peer.consumer


async def test_seek_forgets_what_came_before(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport)
    peer.deliver(0, "a")
    peer.deliver(1, "b")
    [first] = await box.take(1)
    await box.receiver.seek(StartPosition.EARLIEST, 5)
    assert box.receiver.receive(10) == []
    box.receiver.acknowledge([first])
    peer.deliver(0, "a")
    assert texts(await box.take(1)) == ["a"]


async def test_seek_frees_the_permits_of_what_was_queued(peer: Peer, transport: WireTransport) -> None:
    """Also with a broker that does not close the consumer that moves."""
    box = await subscribe(transport, SubscriptionType.EXCLUSIVE, receiver_queue_size=2)
    peer.deliver(0, "a", "b")
    await transport.ping(5)
    await box.receiver.seek(StartPosition.LATEST, 5)
    assert [fields["message_permits"] for fields in await peer.seen(Command.FLOW, 2)] == [2, 2]


async def test_a_receive_that_waits_without_a_queue_waits_on_after_a_reconnect(
    peer: Peer, transport: WireTransport
) -> None:
    box = await subscribe(transport, receiver_queue_size=0)
    assert box.receiver.receive(1) == []
    await peer.seen(Command.FLOW)
    peer.links[-1].cut()
    await peer.seen(Command.FLOW, 2)
    peer.deliver(0, "a")
    assert texts(await box.take(1)) == ["a"]


async def test_a_close_in_the_same_breath_as_the_answer_is_not_overlooked(peer: Peer, transport: WireTransport) -> None:
    def close(link: Link, fields: Fields) -> bytes:
        number = fields["consumer_id"]
        return peer.usual(link, Command.SUBSCRIBE, fields) + encode_command(
            Command.CLOSE_CONSUMER, consumer_id=number, request_id=0
        )

    peer.script(Command.SUBSCRIBE, close)
    box = await subscribe(transport)
    assert len(peer.all(Command.SUBSCRIBE)) == 2
    peer.deliver(0, "a")
    assert texts(await box.take(1)) == ["a"]


async def test_what_is_lost_while_it_is_stopped_receives_again_after_resume(
    peer: Peer, transport: WireTransport
) -> None:
    box = await subscribe(transport, receiver_queue_size=10)
    await box.receiver.stop(5)
    peer.links[-1].cut()
    await peer.seen(Command.SUBSCRIBE, 2)
    await transport.ping(5)
    await box.receiver.resume(5, "n = 2")
    assert [fields["message_permits"] for fields in await peer.seen(Command.FLOW, 2)] == [10, 10]
    peer.links[-1].cut()
    [*_, again] = await peer.seen(Command.SUBSCRIBE, 3)
    assert {"key": CLIENT_SELECTOR, "value": "n = 2"} in again["metadata"], "statistics show it"


async def test_a_seek_into_a_batch_that_fails_acknowledges_nothing_of_it(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport)
    peer.script(
        Command.SEEK,
        lambda link, fields: encode_command(
            Command.ERROR, request_id=fields["request_id"], error=ServerError.NotAllowedError, message="no"
        ),
    )
    with pytest.raises(TransportError):
        await box.receiver.seek(WireId(1, 0, -1, 2), 5)
    peer.deliver(0, "a", "b", "c")
    assert texts(await box.take(3)) == ["a", "b", "c"]
    await box.receiver.settle(5, receipt=True)
    assert peer.all(Command.ACK) == []


async def test_what_an_overtaken_attempt_still_brings_is_dropped(peer: Peer, transport: WireTransport) -> None:
    box = await subscribe(transport)
    peer.links[-1].send(Command.CLOSE_CONSUMER, consumer_id=peer.consumer, request_id=0)
    first = peer.consumer
    await peer.seen(Command.FLOW, 2)
    peer.deliver(0, "late", consumer=first)
    peer.links[-1].send(Command.CLOSE_CONSUMER, consumer_id=first, request_id=0)
    peer.deliver(1, "in time")
    assert texts(await box.take(1)) == ["in time"] and box.receiver.receive(10) == []
    assert len(peer.all(Command.SUBSCRIBE)) == 2


async def test_an_entry_that_arrives_with_another_number_of_records_is_another_one(
    peer: Peer, transport: WireTransport
) -> None:
    """Only a wrong broker sends it; what was returned of the first one can't be created from the bytes of the other."""
    box = await subscribe(transport, SubscriptionType.EXCLUSIVE)
    peer.deliver(0, "a", "b")
    records = await box.take(2)
    box.receiver.negative_acknowledge(records, 0.05)
    peer.deliver(0, "c")
    assert texts(await box.take(1)) == ["c"]
    await asyncio.sleep(0.1)
    assert box.receiver.receive(5) == []
