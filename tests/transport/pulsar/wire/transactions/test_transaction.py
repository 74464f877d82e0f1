"""Transactions with the scripted peer, which also fails on a client that breaks their rules; see ``Peer.wrong``.

The contract suite has them on a real broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import tracemalloc
from collections.abc import AsyncIterator, Callable
from typing import Any

import attrs
import pytest

from jmsaio.config import ConsumerConfig, DeadLetterPolicy, ProducerConfig, load
from jmsaio.errors import (
    IllegalStateError,
    JMSError,
    JMSSecurityError,
    ObjectClosedError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    TransportError,
)
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.protocol.commands import Command, TxnAction
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import Sender, SenderOptions, StartPosition, Subscription, SubscriptionType, Transaction
from jmsaio.transport.pulsar.admin.transactions import TransactionOutcome
from jmsaio.transport.pulsar.wire.transactions import transaction as coordinators, transaction as transactions
from jmsaio.transport.pulsar.wire.transport import WireTransport, open_transport
from jmsaio.transport.registry import connected
from tests.kit.records import Outcomes, record, tell_each, texts
from tests.protocol.server_errors import ServerError
from tests.support.broker import TestBroker
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.consumers.test_consumer import Box
from tests.transport.pulsar.wire.peer import Fields, Link, Peer, listening
from tests.transport.pulsar.wire.serving import Server, serving

ADD_TOPIC, ADD_SUBSCRIPTION = Command.ADD_PARTITION_TO_TXN, Command.ADD_SUBSCRIPTION_TO_TXN
CONFLICT, NOT_FOUND = ServerError.TransactionConflict, ServerError.TransactionNotFound


@attrs.define(eq=False)
class World:
    """A client and its broker."""

    server: Server
    transport: WireTransport
    outcomes: dict[str, JMSError | None] = attrs.field(factory=dict)

    def settled(self, tokens: Any, place: object, error: JMSError | None) -> None:
        self.outcomes.update(dict.fromkeys(tokens, error))

    async def sender(self, topic: str = TOPIC, **options: Any) -> Sender:
        wanted = SenderOptions(ProducerConfig(**options), self.settled, transacted=True)
        return await self.transport.open_sender(topic, wanted)

    async def box(self, type_: SubscriptionType = SubscriptionType.SHARED, **options: Any) -> Box:
        woken = asyncio.Event()
        wanted = Subscription((TOPIC,), "s", type_, ConsumerConfig(**options), StartPosition.EARLIEST)
        return Box(await self.transport.open_receiver(wanted, woken.set), woken)

    async def fill(self, *bodies: str) -> None:
        """Store messages, in one batch."""
        sender = await self.sender()
        for body in bodies:
            sender.send(record(body), body)
        await sender.aclose(5)

    async def both(self, timeout: float = 60.0) -> tuple[Transaction, Box]:
        """Begin a transaction, acknowledge a message in it, and send one."""
        await self.fill("in")
        box, sender = await self.box(), await self.sender()
        records = await box.take(1)
        transaction = await self.transport.begin(timeout)
        box.receiver.acknowledge(records, transaction)
        sender.send(record("out"), "out", transaction)
        return transaction, box


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with serving() as server:
        transport = await open_transport(server.config(operation_timeout=2.0))
        yield World(server, transport)
        await transport.aclose(2)
        assert server.open == {}, "left open"


async def nothing_more(box: Box) -> None:
    await asyncio.sleep(0.05)
    assert box.receiver.receive(10) == []


async def test_all_of_it_happens_at_the_commit(world: World) -> None:
    """The first transaction of a broker has the id (0, 0). END waits for what was sent a moment before."""
    transaction, box = await world.both()
    await world.server.seen(Command.ACK)
    await nothing_more(box)
    await transaction.commit()
    assert texts(await box.take(1)) == ["out"]
    assert world.outcomes["out"] is None
    assert list(world.server.outcomes.items()) == [((0, 0), TxnAction.COMMIT)]
    assert world.server.left.keys() == {1}


async def test_nothing_of_it_happens_after_an_abort(world: World) -> None:
    transaction, box = await world.both()
    await transaction.abort()
    [again] = await box.take(1)
    assert (texts([again]), again.redelivery_count) == (["in"], 1)
    await nothing_more(box)


@pytest.mark.parametrize("registration", [ADD_TOPIC, ADD_SUBSCRIPTION])
async def test_nothing_leaves_before_its_part_is_registered(world: World, registration: Command) -> None:
    world.server.answer(registration, 0.2)
    transaction, _ = await world.both()
    await transaction.commit()
    assert list(world.server.outcomes.values()) == [TxnAction.COMMIT]


async def test_each_partition_is_registered(world: World) -> None:
    world.server.partitions = 2
    world.server.answer(ADD_TOPIC, "usual", 0.2)
    sender = await world.sender(batching_enabled=False)
    transaction = await world.transport.begin(60)
    for number in range(6):
        sender.send(record(str(number)), str(number), transaction)
    await transaction.commit()
    assert len(world.server.all(ADD_TOPIC)) == 2
    assert list(world.server.outcomes.values()) == [TxnAction.COMMIT]


@pytest.mark.parametrize("commits", [True, False])
async def test_the_end_waits_for_all_answers(world: World, commits: bool) -> None:
    unanswered = []

    def end(link: Link, fields: Fields) -> bytes:
        unanswered.append(sum(txn.unanswered for txn in world.server.open.values()))
        return world.server.usual(link, Command.END_TXN, fields)

    world.server.script(Command.END_TXN, end)
    world.server.answer(Command.ACK, 0.1)
    transaction, _ = await world.both()
    world.server.answer(Command.SEND, 0.2)
    await (transaction.commit() if commits else transaction.abort())
    assert unanswered == [0]
    assert list(world.server.outcomes.values()) == [TxnAction.COMMIT if commits else TxnAction.ABORT]


@pytest.mark.parametrize("batcher", ["DEFAULT", "KEY_BASED"])
async def test_a_batch_never_mixes_transactions(world: World, batcher: str) -> None:
    first, second = await world.transport.begin(60), await world.transport.begin(60)
    sender = await world.sender(batcher_builder=batcher)
    for number, transaction in enumerate((first, second, None, first, None, second)):
        sender.send(record(str(number)), str(number), transaction)
    await first.commit()
    await second.abort()
    await sender.drain(5)
    sent = [fields["metadata"].txn for fields in world.server.all(Command.SEND)]
    assert (len(sent), set(sent)) == (3, {(0, 0), (0, 1), None})
    box = await world.box()
    assert sorted(texts(await box.take(4))) == ["0", "2", "3", "4"]
    await nothing_more(box)


@pytest.mark.parametrize("way", ["cut", "lost", "never", ServerError.PersistenceError, ServerError.NotAllowedError])
@pytest.mark.parametrize("command", [Command.SEND, Command.ACK])
async def test_what_has_no_answer_is_not_repeated_and_rolls_back(
    world: World, command: Command, way: str | ServerError
) -> None:
    transaction, box = await world.both()
    asked = len(world.server.all(command))
    world.server.answer(command, way)
    with pytest.raises(TransactionRolledBackError):
        await transaction.commit()
    assert list(world.server.outcomes.values()) == [TxnAction.ABORT]
    assert texts(await box.take(1)) == ["in"]
    await nothing_more(box)
    assert len(world.server.all(command)) == asked + 1
    if command is Command.SEND and way != "never":
        assert world.outcomes["out"] is not None


@pytest.mark.parametrize("way", ["cut", "lost", ServerError.ServiceNotReady])
@pytest.mark.parametrize("command", [ADD_TOPIC, ADD_SUBSCRIPTION, Command.END_TXN])
async def test_what_the_coordinator_does_not_answer_is_asked_again(
    world: World, command: Command, way: str | ServerError
) -> None:
    transaction, box = await world.both()
    world.server.answer(command, way)
    in_doubt = (command, way) == (Command.END_TXN, "lost")  # it was committed, and is forgotten
    rolled_back = command is not Command.END_TXN and way != ServerError.ServiceNotReady  # the message was in flight
    if in_doubt or rolled_back:
        with pytest.raises(TransactionInDoubtError if in_doubt else TransactionRolledBackError):
            await transaction.commit()
    else:
        await transaction.commit()
    assert len(world.server.all(command)) == 2
    assert list(world.server.outcomes.values()) != [TxnAction.ABORT] or rolled_back
    await box.take(1)


@pytest.mark.parametrize("error", [ServerError.TransactionNotFound, ServerError.InvalidTxnStatus])
async def test_a_transaction_that_has_ended_before_the_commit_was_rolled_back(world: World, error: ServerError) -> None:
    transaction = await world.transport.begin(60)
    world.server.answer(Command.END_TXN, error)
    with pytest.raises(TransactionRolledBackError):
        await transaction.commit()
    world.server.open.clear()


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (ServerError.TransactionCoordinatorNotFound, TransactionRolledBackError),
        (ServerError.ServiceNotReady, TransactionInDoubtError),
        (ServerError.PersistenceError, TransactionInDoubtError),
    ],
)
async def test_not_found_tells_nothing_after_an_error_with_which_the_broker_might_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch, first: ServerError, kind: type[JMSError]
) -> None:
    """It does after an unloaded topic, for example, and has then ended the transaction."""
    monkeypatch.setattr(coordinators, "_PAUSE", 0.01)
    transaction = await world.transport.begin(60)
    world.server.answer(Command.END_TXN, first, NOT_FOUND)
    with pytest.raises(kind):
        await transaction.commit()
    assert len(world.server.all(Command.END_TXN)) == 2
    world.server.open.clear()


@pytest.mark.parametrize(
    ("command", "kind"), [(Command.END_TXN, TransactionInDoubtError), (ADD_SUBSCRIPTION, TransactionRolledBackError)]
)
async def test_a_commit_that_the_close_of_the_connection_ends_raises_its_outcome(
    world: World, command: Command, kind: type[JMSError]
) -> None:
    world.server.answer(command, "never")
    transaction, _ = await world.both()
    committing = asyncio.ensure_future(transaction.commit())
    await world.server.seen(command)
    await world.transport.aclose(0.2)
    with pytest.raises(kind, match="connection to the broker was closed"):
        await committing
    world.server.open.clear()


async def test_nothing_is_sent_or_acknowledged_when_its_time_is_over(world: World) -> None:
    """A late message would hold its topic back, and a late acknowledgement its record, which comes again."""
    transaction, box = await world.both(0.3)
    await world.server.seen(Command.ACK)
    sender = await world.sender()
    await asyncio.sleep(0.35)
    commands = len(world.server.all(Command.SEND)), len(world.server.all(Command.ACK))
    [again] = await box.take(1)
    assert again.redelivery_count == 1
    sender.send(record("late"), "late", transaction)
    box.receiver.acknowledge([again], transaction)
    await sender.drain(5)
    assert "its time is over" in str(world.outcomes["late"])
    with pytest.raises(TransactionRolledBackError, match="its time is over"):
        await transaction.commit()
    assert (len(world.server.all(Command.SEND)), len(world.server.all(Command.ACK))) == commands
    assert texts(await box.take(1)) == ["in"]


async def test_a_conflict_is_reported_to_the_commit(world: World) -> None:
    transaction, _ = await world.both()
    world.server.answer(Command.ACK, CONFLICT)
    with pytest.raises(TransactionRolledBackError, match=r"[Cc]onflict"):
        await transaction.commit()


async def test_what_the_broker_refuses_to_acknowledge_comes_again(world: World) -> None:
    """A whole entry is then no longer the consumer's for the broker, which ignores that it is to be redelivered."""
    transaction, box = await world.both()
    world.server.answer(Command.ACK, ServerError.PersistenceError)
    world.server.script(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES, *[lambda link, fields: b""] * 3)
    with pytest.raises(TransactionRolledBackError, match="PersistenceError"):
        await transaction.commit()
    assert texts(await box.take(1)) == ["in"]


async def test_a_duplicate_is_no_part_of_it(world: World) -> None:
    """A broker that deduplicates has the sequence ids of what was rolled back, too, and drops what repeats them."""
    transaction = await world.transport.begin(60)
    sender = await world.sender()
    world.server.script(Command.SEND, lambda link, fields: world.server.receipt(fields, (1 << 64) - 1))
    sender.send(record("out"), "out", transaction)
    with pytest.raises(TransactionRolledBackError, match="sequence id"):
        await transaction.commit()
    assert world.outcomes["out"] is not None


async def test_what_waits_for_a_connection_does_not_leave_after_the_end(world: World) -> None:
    """The broker takes a message of a transaction that has ended, and its topic stalls."""
    transaction = await world.transport.begin(60)
    sender = await world.sender()
    sender.send(record("1"), "1", transaction)
    await sender.drain(5)
    world.server.answer(Command.PRODUCER, *["never"] * 2)
    world.server.close_parts()
    await world.server.seen(Command.PRODUCER, 2)
    sender.send(record("2"), "2", transaction)
    await transaction.abort()
    assert world.outcomes["2"] is not None
    await world.server.seen(Command.PRODUCER, 3)
    await sender.drain(5)
    assert len(world.server.all(Command.SEND)) == 1


async def test_nothing_else_happens_to_what_is_acknowledged_in_it(world: World) -> None:
    """No plain acknowledgement, no return, no time-out, no dead letter."""
    transaction = await world.transport.begin(60)
    await world.fill("in")
    box = await world.box(
        ack_timeout=0.1,
        dead_letter=DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic="dead"),
    )
    records = await box.take(1)
    box.receiver.acknowledge(records, transaction)
    box.receiver.acknowledge(records)
    box.receiver.negative_acknowledge(records, 0.0)
    await box.receiver.settle(5)
    await asyncio.sleep(0.3)
    await transaction.commit()
    assert len(world.server.all(Command.ACK)) == 1
    assert world.server.all(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES) == []
    assert len(world.server.all(Command.SEND)) == 1
    assert world.server.left == {}


@pytest.mark.parametrize("type_", [SubscriptionType.SHARED, SubscriptionType.FAILOVER])
async def test_after_an_abort_only_its_own_records_are_handed_out_again(world: World, type_: SubscriptionType) -> None:
    """The broker redelivers whole entries: their other records are held, or settled."""
    transaction = await world.transport.begin(60)
    await world.fill("settled", "in", "held")
    box = await world.box(type_)
    records = await box.take(3)
    box.receiver.acknowledge(records[:1])
    await box.receiver.settle(5, receipt=True)
    box.receiver.acknowledge(records[1:2], transaction)
    await transaction.abort()
    again = await box.take(1)
    assert (texts(again), again[0].redelivery_count) == (["in"], 1)
    await nothing_more(box)
    box.receiver.acknowledge([*again, records[2]])
    await box.receiver.settle(5, receipt=True)
    assert world.server.left == {}


@pytest.mark.parametrize("commits", [True, False])
async def test_two_transactions_acknowledge_parts_of_one_entry(world: World, commits: bool) -> None:
    """Also all of it is named by its parts: else a broker does not answer an acknowledgement of some that follows."""
    first, second = await world.transport.begin(60), await world.transport.begin(60)
    await world.fill("1", "2", "3")
    box = await world.box()
    records = await box.take(3)
    box.receiver.acknowledge(records[:1], first)
    box.receiver.acknowledge(records[1:], second)
    await first.abort()
    await (second.commit() if commits else second.abort())
    again = await box.take(1 if commits else 3)
    assert sorted(texts(again)) == (["1"] if commits else ["1", "2", "3"])
    third = await world.transport.begin(60)
    box.receiver.acknowledge(again, third)
    await third.commit()
    assert world.server.left == {}
    places = [place for fields in world.server.all(Command.ACK) for place in fields["message_id"]]
    assert [(bool(place["ack_set"]), place.get("batch_size")) for place in places] == [(True, 3)] * len(places)


async def test_a_closed_consumer_has_acknowledged_before_the_end(world: World) -> None:
    transaction, box = await world.both()
    await box.receiver.aclose(5)
    await transaction.commit()
    assert world.server.left.keys() == {1}


async def test_delayed_messages_and_chunks_are_part_of_it(world: World) -> None:
    transaction = await world.transport.begin(60)
    sender = await world.sender(batching_enabled=False, chunking_enabled=True)
    sender.send(record("later", deliver_at=1), "later", transaction)
    sender.send(record("x" * 150_000), "big", transaction)
    await transaction.commit()
    assert [fields["metadata"].txn for fields in world.server.all(Command.SEND)] == [(0, 0)] * 3
    box = await world.box()
    assert sorted(len(text) for text in texts(await box.take(2))) == [5, 150_000]


async def test_a_topic_that_stores_nothing_takes_no_part(world: World) -> None:
    transaction = await world.transport.begin(60)
    sender = await world.sender("non-persistent://public/default/t")
    with pytest.raises(IllegalStateError, match="takes no part in transactions"):
        sender.send(record("x"), "x", transaction)
    await transaction.abort()


async def test_a_commit_that_is_cancelled_before_the_broker_is_asked_rolls_back(world: World) -> None:
    world.server.answer(ADD_TOPIC, 0.1)
    transaction, _ = await world.both()
    committing = asyncio.ensure_future(transaction.commit())
    await world.server.seen(ADD_TOPIC)
    committing.cancel()
    await asyncio.wait({committing})
    [ended] = await world.server.seen(Command.END_TXN)
    assert ended["txn_action"] == TxnAction.ABORT


@pytest.mark.parametrize("way", [0.3, ServerError.NotAllowedError])
@pytest.mark.parametrize("command", [ADD_SUBSCRIPTION, Command.ACK])
async def test_what_a_consumer_had_that_closes_before_the_end_of_a_cancelled_commit_comes_again_marked(
    world: World, command: Command, way: float | ServerError
) -> None:
    world.server.answer(command, way)
    world.server.answer(Command.END_TXN, 0.3)
    transaction, box = await world.both()
    committing = asyncio.ensure_future(transaction.commit())
    await world.server.seen(command)
    committing.cancel()
    await asyncio.wait({committing})
    await box.receiver.aclose(0.1)
    [again] = await (await world.box()).take(1)
    assert (texts([again]), again.redelivery_count) == (["in"], 1)


@pytest.mark.parametrize("outcome", TransactionOutcome)
async def test_topics_and_subscriptions_decide_a_commit_without_an_answer(
    world: World, monkeypatch: pytest.MonkeyPatch, outcome: TransactionOutcome
) -> None:
    asked: list[dict[str, Any]] = []

    async def find(txn_id: tuple[int, int], **known: Any) -> TransactionOutcome:
        asked.append({"txn_id": txn_id, **known})
        return outcome

    monkeypatch.setattr(world.transport._transactions, "_find", find)
    transaction, _ = await world.both()
    world.server.answer(Command.END_TXN, "lost")
    kind = TransactionRolledBackError if outcome is TransactionOutcome.ABORTED else TransactionInDoubtError
    with contextlib.nullcontext() if outcome is TransactionOutcome.COMMITTED else pytest.raises(kind):
        await transaction.commit()
    assert asked[0].pop("expires") > asyncio.get_running_loop().time()
    assert asked == [
        {
            "txn_id": (0, 0), "sent": {TOPIC: WireId(1, 1, -1, -1)},
            "acknowledged": {(TOPIC, "s"): WireId(1, 0, -1, -1)}, "timeout": 2.0,
        }
    ]  # fmt: skip


@pytest.mark.slow
async def test_a_message_on_a_frozen_link_does_not_arrive_after_the_end(
    pulsar_broker: TestBroker, name: Callable[[str], str]
) -> None:
    """Its transaction ends over another link, once the broker has given up the frozen one."""
    topic, outcomes = f"persistent://public/default/{name('frozen')}", Outcomes()
    async with FaultProxy.of(pulsar_broker.service_url) as frozen, FaultProxy.of(pulsar_broker.service_url) as other:
        hosts = f"{frozen.url},{other.url.removeprefix('pulsar://')}?webServiceUrl={pulsar_broker.web_service_url}"
        configuration = load(f"{hosts}&transport=wire&enableTransaction=true&connectionTimeoutMs=300")
        async with connected(configuration) as transport:
            assert isinstance(transport, WireTransport)
            options = SenderOptions(configuration.producer, tell_each, transacted=True)
            sender = await transport.open_sender(topic, options)
            transaction = await transport.begin(60)
            sender.send(record("in time"), outcomes, transaction)
            await sender.drain(10)
            frozen.stall()
            sender.send(record("late"), outcomes, transaction)
            await asyncio.sleep(0.1)
            for connection in transport._client.pool.connections:
                connection.close(TransportError("frozen"))
            with pytest.raises(TransactionRolledBackError, match="frozen"):
                await transaction.commit()
            frozen.resume()
            await asyncio.sleep(0.5)
            assert transport.admin is not None
            assert await transport.admin.held_back(topic) is None


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
