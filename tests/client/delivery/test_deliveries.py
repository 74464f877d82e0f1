"""Unsettled deliveries are redelivered, counted; undelivered messages go back uncounted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.client.delivery import settlement as settlement_module
from jmsaio.client.delivery.deliveries import Deliveries
from jmsaio.client.delivery.filter import Filter
from jmsaio.client.delivery.session_inboxes import SessionInboxes
from jmsaio.config import load
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.rules.ledger import DeliveryLedger, Scope
from tests.client.delivery.test_inbox import Receiver, inbox, numbered, numbers
from tests.client.helpers import fill, rest, take, texts, transactions

Name = Callable[[str], str]


@pytest.fixture
async def transacting(url: str) -> AsyncIterator[jmsaio.Connection]:
    """A connection that may have transacted sessions, of whatever kind its broker offers."""
    async with jmsaio.connect(url, **transactions(not url.startswith("memory"))) as connection:
        yield connection


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.TRANSACTED])
async def test_a_closed_consumer_takes_nothing_more(
    transacting: jmsaio.Connection, name: Name, mode: AcknowledgeMode
) -> None:
    """What it did not deliver, and what is sent later, comes to others in order, unseen; the rest stays its own."""
    connection, queue = transacting, jmsaio.Queue(name("closed"))
    await fill(connection, queue, 20)
    async with connection.create_session(mode) as session:
        consumer = await session.create_consumer(queue)
        kept = await take(consumer, 2)
        await consumer.close()
        async with connection.create_session() as other, other.create_consumer(queue) as taker:
            found = await take(taker, 18)
            assert texts(found) == [str(number) for number in range(2, 20)]
            await fill(connection, queue, 3)
            found += await take(taker, 3)
            assert {message.jms_redelivered for message in found} == {False}
            assert {message.get_int_property("JMSXDeliveryCount") for message in found} == {1}
            assert await taker.receive(timeout=0.5) is None
            if mode is AcknowledgeMode.TRANSACTED:
                await session.commit()
            else:
                for message in kept:
                    await message.acknowledge()
            assert await taker.receive(timeout=0.5) is None
    assert await rest(connection, queue, wait=0.5) == []


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.TRANSACTED])
@pytest.mark.parametrize("how", ["given back", "session closed"])
async def test_unsettled_deliveries_of_a_closed_consumer_are_redelivered_marked(
    transacting: jmsaio.Connection, name: Name, mode: AcknowledgeMode, how: str
) -> None:
    connection, queue = transacting, jmsaio.Queue(name("marked"))
    await fill(connection, queue, 5)
    session = await connection.create_session(mode)
    consumer = await session.create_consumer(queue)
    await take(consumer, 2)
    await consumer.close()
    async with connection.create_session() as other, other.create_consumer(queue) as taker:
        assert texts(await take(taker, 3)) == ["2", "3", "4"]
        if how == "session closed":
            await session.close()
        elif mode is AcknowledgeMode.TRANSACTED:
            await session.rollback()
        else:
            await session.recover()
        again = await take(taker, 2)
        assert sorted(texts(again)) == ["0", "1"]
        assert {message.jms_redelivered for message in again} == {True}
        assert {message.get_int_property("JMSXDeliveryCount") for message in again} == {2}
    await session.close()
    assert await rest(connection, queue, wait=0.5) == []


async def test_what_no_application_saw_is_no_dead_letter(connection: jmsaio.Connection, name: Name) -> None:
    """Consumers that close with prefetched messages and a delivery that is not settled count nothing for the rest."""
    policy = "consumerConfig.deadLetterPolicy.maxRedeliverCount=1&consumerConfig.deadLetterPolicy.deadLetterTopic="
    dead = jmsaio.Queue(name("unseen-dead"))
    queue = jmsaio.Queue(f"{name('unseen')}?{policy}{dead.name}")
    async with connection.create_session() as other:
        letters = await other.create_consumer(dead)
        await fill(connection, queue, 20)
        sessions = []
        for _ in range(4):
            session = await connection.create_session(AcknowledgeMode.CLIENT)
            sessions.append(session)
            consumer = await session.create_consumer(queue)
            await take(consumer, 1)
            await consumer.close()
        taker = await other.create_consumer(queue)
        assert sorted(texts(await take(taker, 16)), key=int) == [str(number) for number in range(4, 20)]
        assert await letters.receive(timeout=0.5) is None
        for session in sessions:
            await session.close()
        assert sorted(texts(await take(taker, 4)), key=int) == [str(number) for number in range(4)]


async def test_a_closed_sessions_deliveries_are_redelivered_marked(connection: jmsaio.Connection, name: Name) -> None:
    """To a consumer that lives; what its consumer had not delivered is not marked."""
    queue = jmsaio.Queue(name("session"))
    session = await connection.create_session(AcknowledgeMode.CLIENT)
    consumer = await session.create_consumer(queue)
    await fill(connection, queue, 5)
    await take(consumer, 2)
    async with connection.create_session() as other, other.create_consumer(queue) as taker:
        await session.close()
        again = {message.get_body(str): message.jms_redelivered for message in await take(taker, 5)}
    assert again == {"0": True, "1": True, "2": False, "3": False, "4": False}


@pytest.mark.parametrize("kind", ["queue", "durable", "delayed"])
@pytest.mark.parametrize("how", ["consumer", "session"])
async def test_what_was_recovered_and_not_delivered_again_comes_to_others_marked(
    url: str, name: Name, kind: str, how: str
) -> None:
    """It stood first in line of its consumer, or was held for its delay, when the consumer or the session closed."""
    delay = {"consumerConfig": {"negativeAckRedeliveryDelayMicros": 60_000_000}} if kind == "delayed" else {}
    async with jmsaio.connect({**delay, "brokerServiceUrl": url}, client_id=name("id")) as connection:
        place = jmsaio.Queue(name("first")) if kind == "queue" else jmsaio.Topic(name("first"))

        async def consume(session: jmsaio.Session) -> jmsaio.MessageConsumer:
            if isinstance(place, jmsaio.Queue):
                return await session.create_consumer(place)
            return await session.create_durable_consumer(place, "first")

        session = await connection.create_session(AcknowledgeMode.CLIENT)
        consumer = await consume(session)
        await fill(connection, place, 3)
        await take(consumer, 2)
        await session.recover()
        await (consumer if how == "consumer" else session).close()
        async with connection.create_session() as other:
            found = await take(await consume(other), 3)
        await session.close()
        counts = {message.get_body(str): message.get_int_property("JMSXDeliveryCount") for message in found}
        assert counts == {"0": 2, "1": 2, "2": 1}
        assert [message.jms_redelivered for message in found] == [count > 1 for count in counts.values()]


def deliveries(mode: AcknowledgeMode, check_call: Callable[[], None] = lambda: None, **options: Any) -> Deliveries:
    """The deliveries of a session that has no consumer yet."""
    ledger: DeliveryLedger[Any, Any] = DeliveryLedger()
    transport: Any = object()  # is compared only
    inboxes = SessionInboxes(transport, ledger, lambda: None)

    async def reply(request: Message, body: Any, options: Mapping[str, Any]) -> Any:
        raise AssertionError

    return Deliveries(mode, ledger, inboxes, check_call, reply, None, load("memory:", close_timeout=1.0, **options))


def closed() -> None:
    raise jmsaio.ObjectClosedError("the session is closed")


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK])
async def test_what_is_settled_on_delivery_has_no_number(mode: AcknowledgeMode) -> None:
    found, made = deliveries(mode), inbox(Receiver(), Filter())
    assert found.deliver(made, numbered(1), TextMessage("x"), deferred=False) == 0
    assert found.deliver(made, numbered(2), TextMessage("x"), deferred=True) == 1
    assert len(found.ledger) == 1


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.TRANSACTED])
async def test_a_message_that_others_settle_ignores_its_acknowledge_while_the_session_is_open(
    mode: AcknowledgeMode,
) -> None:
    for check_call in (lambda: None, closed):
        found, made, message = deliveries(mode, check_call), inbox(Receiver(), Filter()), TextMessage("x")
        found.deliver(made, numbered(1), message, deferred=True)
        if check_call is closed:
            with pytest.raises(jmsaio.ObjectClosedError):
                await message.acknowledge()
        else:
            await message.acknowledge()
        assert len(found.ledger) == 1


async def test_a_message_of_a_closed_session_is_not_acknowledged() -> None:
    receiver, message = Receiver(), TextMessage("x")
    found = deliveries(AcknowledgeMode.CLIENT, closed)
    found.deliver(inbox(receiver, Filter()), numbered(1), message, deferred=False)
    with pytest.raises(jmsaio.ObjectClosedError):
        await message.acknowledge()
    assert receiver.calls == [] and len(found.ledger) == 1


async def test_what_is_settled_already_is_not_settled_again() -> None:
    receiver, found = Receiver(), deliveries(AcknowledgeMode.AUTO)
    number = found.deliver(inbox(receiver, Filter()), numbered(1), TextMessage("x"), deferred=True)
    found.acknowledge_deferred(number)
    found.acknowledge_deferred(number)
    found.undo_deferred(number)
    await found.acknowledge_one(number)
    await found.redeliver_one(number)
    assert receiver.calls == [("ack", 1)]


@pytest.mark.parametrize("scope", Scope)
async def test_acknowledgements_of_one_turn_reach_the_receiver_in_two_calls(
    scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settlement_module, "_LONGEST_TURN", 3600.0)  # a busy machine may take longer than a turn may
    receiver, found = Receiver(), deliveries(AcknowledgeMode.CLIENT)
    found.ledger.scope = scope
    made, messages = inbox(receiver, Filter()), [TextMessage(str(entry)) for entry in range(5)]
    for entry, message in enumerate(messages):
        found.deliver(made, numbered(entry), message, deferred=False)
        if scope is not Scope.INDIVIDUAL:
            await message.acknowledge()
    if scope is Scope.INDIVIDUAL:
        for message in messages:
            await message.acknowledge()
    await messages[0].acknowledge()  # settled already
    assert receiver.calls == [("ack", 0)] and len(found.ledger) == 0
    await asyncio.sleep(0)
    assert receiver.calls == [("ack", 0), ("ack", 1, 2, 3, 4)]


async def test_an_acknowledgement_that_waits_for_the_broker_leaves_nothing_behind() -> None:
    receiver, found = Receiver(), deliveries(AcknowledgeMode.CLIENT)
    found.receipt_timeout = 1.0
    made, messages = inbox(receiver, Filter()), [TextMessage("x"), TextMessage("y")]
    for entry, message in enumerate(messages):
        found.deliver(made, numbered(entry), message, deferred=False)
        await message.acknowledge()
        assert receiver.calls[-1] == ("settle", 1.0, False)
    assert [call[:2] for call in receiver.calls] == [("ack", 0), ("settle", 1.0), ("ack", 1), ("settle", 1.0)]


async def test_what_a_sibling_received_is_acknowledged_there_at_once() -> None:
    """It may be closing, and does so once nothing of it is left."""
    receiver, other, found = Receiver(), Receiver(), deliveries(AcknowledgeMode.CLIENT)
    made, messages = inbox(receiver, Filter()), [TextMessage("x"), TextMessage("y")]
    transferred = numbered(2)
    made.settlement.adopt(transferred, inbox(other, Filter()).settlement, made)
    for record, message in zip((numbered(1), transferred), messages, strict=True):
        found.deliver(made, record, message, deferred=False)
        await message.acknowledge()
    assert (receiver.calls, other.calls) == ([("ack", 1)], [("ack", 2)])


class Ended(Receiver):
    """Refuses everything."""

    def acknowledge(self, records: Any, transaction: object = None) -> None:
        raise jmsaio.TransportError(f"lost {records[0].message_id.entry}")

    def count_delivery(self, records: Any) -> None:
        raise jmsaio.TransportError(f"lost {records[0].message_id.entry}")


@pytest.mark.parametrize("receipt", [None, 1.0])
async def test_an_inbox_that_can_not_acknowledge_costs_others_nothing(receipt: float | None) -> None:
    receivers, messages = [Ended(), Ended(), Receiver()], [TextMessage(str(entry)) for entry in range(3)]
    found = deliveries(AcknowledgeMode.CLIENT)
    found.receipt_timeout = receipt
    for entry, (receiver, message) in enumerate(zip(receivers, messages, strict=True)):
        found.deliver(inbox(receiver, Filter(), acks_at_once=True), numbered(entry), message, deferred=False)
    with pytest.raises(jmsaio.TransportError, match="lost 0"):
        await messages[-1].acknowledge()
    assert len(found.ledger) == 0
    confirmed = [] if receipt is None else [("settle", receipt, False)]
    assert [receiver.calls for receiver in receivers] == [confirmed, confirmed, [("ack", 2), *confirmed]]


async def test_a_consumer_that_is_closed_while_its_receipt_is_waited_for_has_given_none() -> None:
    class Leaving(Receiver):
        async def settle(self, timeout: float, *, receipt: bool = False) -> None:
            if made[1].closed:
                raise jmsaio.ObjectClosedError("closed meanwhile")
            await made[1].aclose(1.0)

    found = deliveries(AcknowledgeMode.CLIENT)
    found.receipt_timeout = 1.0
    made, message = [inbox(Leaving(), Filter()) for _ in range(2)], TextMessage("x")
    for entry, each in enumerate(made):
        found.deliver(each, numbered(entry), message, deferred=False)
    with pytest.raises(jmsaio.ObjectClosedError, match="meanwhile"):
        await message.acknowledge()


async def test_an_inbox_that_can_not_redeliver_costs_others_nothing() -> None:
    found = deliveries(AcknowledgeMode.CLIENT)
    inboxes = [inbox(receiver, Filter()) for receiver in (Ended(), Ended(), Receiver())]
    for entry, made in enumerate(inboxes):
        found.deliver(made, numbered(entry), TextMessage("x"), deferred=False)
    with pytest.raises(jmsaio.TransportError, match="lost 0"):
        await found.redeliver_all()
    assert len(found.ledger) == 0 and [numbers(made) for made in inboxes] == [[], [], [2]]


@pytest.mark.parametrize("how", ["one", "all"])
async def test_the_last_redelivery_of_a_closed_consumer_closes_its_inbox(how: str) -> None:
    receiver, found = Receiver(), deliveries(AcknowledgeMode.CLIENT)
    made = inbox(receiver, Filter())
    number = found.deliver(made, numbered(1), TextMessage("x"), deferred=False)
    found.inboxes.linger(made)
    await (found.redeliver_one(number) if how == "one" else found.redeliver_all())
    assert receiver.calls == [("nack", 0.0, True, 1), ("close",)]


@pytest.fixture
async def embedded(name: Name) -> AsyncIterator[jmsaio.Connection]:
    """A connection to a broker of its own."""
    async with jmsaio.connect(f"memory://{name('deliveries')}", enable_transaction=True) as connection:
        yield connection


async def test_a_session_acknowledges_all_of_its_deliveries(embedded: jmsaio.Connection) -> None:
    queue = jmsaio.Queue("all")
    await fill(embedded, queue, 3)
    async with embedded.create_session(AcknowledgeMode.INDIVIDUAL) as session:
        await take(await session.create_consumer(queue), 2)
        await session.acknowledge()
    assert texts(await rest(embedded, queue, wait=0.1)) == ["2"]


@pytest.mark.parametrize(
    ("mode", "left"),
    [
        (AcknowledgeMode.CLIENT, ["0"]),
        (AcknowledgeMode.INDIVIDUAL, ["0"]),
        (AcknowledgeMode.TRANSACTED, ["0", "1"]),
    ],
)
async def test_processing_acknowledges_its_message_alone_and_nothing_in_a_transaction(
    embedded: jmsaio.Connection, mode: AcknowledgeMode, left: list[str]
) -> None:
    queue = jmsaio.Queue("processed")
    await fill(embedded, queue, 2)
    async with embedded.create_session(mode) as session:
        consumer = await session.create_consumer(queue)
        await take(consumer, 1)
        async with consumer.process(timeout=20):
            pass
    assert texts(await rest(embedded, queue, wait=0.1)) == left
