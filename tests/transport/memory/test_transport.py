from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

import jmsaio
from jmsaio.config import load
from jmsaio.errors import BrokerUnavailableError, ObjectClosedError, SendInDoubtError
from jmsaio.testing import EmbeddedBroker, ManualClock, embedded_broker
from jmsaio.transport.base import LinkChange
from jmsaio.transport.memory import open_transport
from jmsaio.transport.memory.broker.broker import broker_named
from tests.kit.records import Outcomes, record
from tests.transport.contract.harness import GUARD, Harness
from tests.transport.memory.connecting import connect


async def test_it_can_do_everything(harness: Harness) -> None:
    abilities = attrs.asdict(harness.capabilities)
    del abilities["packed"]  # says which face of the properties it asks for
    assert all(abilities.values())


async def test_a_broker_outlives_its_clients_and_names_are_apart() -> None:
    with embedded_broker() as one, embedded_broker() as other:
        first = await connect(one)
        topic = first.topic()
        await first.inbox(topic)
        await first.fill(topic, "kept")
        await first.stop()
        stranger = await connect(other)
        assert await stranger.admin.topics("public/default") == []
        await stranger.stop()
        again = await connect(one)
        assert await (await again.inbox(topic)).consume(1) == ["kept"]
        await again.stop()


async def test_memory_without_a_name_is_one_broker() -> None:
    transport = await open_transport(load("memory:"))
    assert transport in broker_named("").clients
    await transport.aclose(1)
    assert transport not in broker_named("").clients


async def test_closing_gives_back_and_aborts(embedded: EmbeddedBroker, harness: Harness) -> None:
    other = await connect(embedded)
    topic = harness.topic()
    keeper = await harness.inbox(topic)
    inbox = await other.inbox(topic, receiver_queue_size=1)
    await harness.fill(topic, "1")
    transaction = await other.transport.begin(60)
    outcomes = Outcomes()
    (await other.sender(topic)).send(record("undone"), outcomes, transaction)
    inbox.receiver.acknowledge(inbox.receiver.receive(5), transaction)
    await other.stop()
    assert outcomes.errors == [None]
    assert await keeper.consume(1) == ["1"]
    assert await keeper.rest(0.05) == []


async def test_closing_ends_what_was_opened_first_and_is_in_use_still(harness: Harness) -> None:
    topic = harness.topic()
    opened = [(await harness.sender(topic), await harness.inbox(topic), await harness.reader(topic)) for _ in range(2)]
    await harness.transport.aclose(1)
    for sender, inbox, reader in opened:
        outcomes = Outcomes()
        with pytest.raises(ObjectClosedError):
            sender.send(record("x"), outcomes)
        with pytest.raises(ObjectClosedError):
            inbox.receiver.receive(1)
        with pytest.raises(ObjectClosedError):
            await reader.read(1, 1)


async def test_nothing_opens_while_the_broker_is_down(embedded: EmbeddedBroker, harness: Harness) -> None:
    with embedded.faults.outage():
        for opening in (
            connect(embedded), harness.sender("x"), harness.inbox("x"), harness.reader("x"), harness.transport.begin(1),
        ):  # fmt: skip
            with pytest.raises(BrokerUnavailableError):
                await opening


def test_a_client_whose_loop_ended_without_close_gives_everything_back() -> None:
    with embedded_broker() as broker:
        topic = "persistent://public/default/t"

        async def careless() -> None:
            harness = await connect(broker)
            inbox = await harness.inbox(topic)
            await harness.fill(topic, "1", "2")
            await inbox.take(1)

        async def careful() -> list[str]:
            harness = await connect(broker)
            got = await (await harness.inbox(topic)).consume(2)
            await harness.stop()
            return got

        asyncio.run(careless())
        assert asyncio.run(careful()) == ["1", "2"]


async def test_what_is_closed_is_let_go_of(harness: Harness) -> None:
    for _ in range(20):
        topic = harness.topic()
        inbox, sender, reader = await harness.inbox(topic), await harness.sender(topic), await harness.reader(topic)
        for part in (inbox.receiver, sender, reader):
            await part.aclose(1)
    transport = harness.transport
    kept = [len(getattr(transport, name)) for name in ("_senders", "_receivers", "_readers")]
    assert max(kept) <= 1


async def test_closing_aborts_every_open_transaction(harness: Harness) -> None:
    other, topic = await harness.other(), harness.topic()
    inbox = await other.inbox(topic)
    await other.fill(topic, "1", "2")
    for taken in await inbox.take(2):
        inbox.receiver.acknowledge([taken], await other.transport.begin(60))
    await (await other.transport.begin(60)).commit()
    await other.stop()
    again = await (await harness.inbox(topic)).take(2)
    assert [each.redelivery_count for each in again] == [1, 1]


async def test_while_it_is_closing_answers_may_come_and_nothing_opens(
    embedded: EmbeddedBroker, clock: ManualClock, harness: Harness
) -> None:
    embedded.faults.delay_answers(5)
    sender, outcomes = await harness.sender(harness.topic()), Outcomes()
    sender.send(record("x"), outcomes)
    closing = asyncio.ensure_future(harness.transport.aclose(GUARD))
    await asyncio.sleep(0)
    for opening in (harness.reader("x"), harness.transport.begin(1)):
        with pytest.raises(ObjectClosedError):
            await opening
    clock.advance(5)
    await closing
    assert outcomes.errors == [None]


async def test_closing_takes_no_longer_than_it_was_given(embedded: EmbeddedBroker, harness: Harness) -> None:
    loop = asyncio.get_running_loop()
    embedded.faults.delay_answers(60)
    sender, outcomes = await harness.sender(harness.topic()), Outcomes()
    sender.send(record("x"), outcomes)
    begin = loop.time()
    await harness.transport.aclose(1)
    assert loop.time() - begin < 10  # virtual seconds
    assert [type(error) for error in outcomes.errors] == [SendInDoubtError]


@pytest.mark.parametrize("late", [True, False])
async def test_a_sender_that_is_being_closed_ends_with_its_client(embedded: EmbeddedBroker, late: bool) -> None:
    harness = await connect(embedded, memory_limit=1 if not late else 10**6)
    topic = harness.topic()
    await harness.inbox(topic)
    sender, outcomes = await harness.sender(topic), Outcomes()
    if late:
        embedded.faults.delay_answers(60)
    else:
        await harness.fill(topic, "takes all memory")
    sender.send(record("x"), outcomes)
    closing = asyncio.ensure_future(sender.aclose(GUARD))
    await asyncio.sleep(0)
    await harness.sender(harness.topic())
    await harness.transport.aclose(0.01)
    assert len(outcomes) == 1
    await closing


async def test_a_cancelled_close_closes_every_sender_all_the_same(embedded: EmbeddedBroker, harness: Harness) -> None:
    embedded.faults.delay_answers(60, 2)
    senders, outcomes = [await harness.sender(harness.topic()) for _ in range(2)], Outcomes()
    for sender in senders:
        sender.send(record("x"), outcomes)
    closing = asyncio.ensure_future(harness.transport.aclose(GUARD))
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    for sender in senders:
        with pytest.raises(ObjectClosedError):
            sender.send(record("y"), outcomes)


async def test_an_outage_is_told_when_it_begins_and_when_it_ends(embedded: EmbeddedBroker, harness: Harness) -> None:
    changes: list[LinkChange] = []
    harness.transport.link_listeners.add(changes.append)
    with embedded.faults.outage():
        assert changes == []
    await asyncio.sleep(0)
    assert [type(change.error) for change in changes] == [BrokerUnavailableError, type(None)]


async def test_a_closed_client_leaves_no_timer_on_its_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, handles = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
    call_later = loop.call_later

    def noted(delay: float, *call: Any) -> asyncio.TimerHandle:
        handles.append(call_later(delay, *call))
        return handles[-1]

    with embedded_broker() as broker:
        stays, closed = await connect(broker), await connect(broker)
        monkeypatch.setattr(loop, "call_later", noted)
        transaction = await stays.transport.begin(3600)
        await asyncio.sleep(0)
        assert len(handles) == 2
        await closed.stop()
        await asyncio.sleep(0)
        assert sum(not handle.cancelled() for handle in handles) == 1
        await transaction.abort()
        await stays.stop()


@pytest.mark.parametrize("precreate", [True, False])
async def test_a_letter_is_kept_for_the_queue_of_its_topic(precreate: bool) -> None:
    """Also where the topic was there before, unless queues get no subscriptions in advance."""
    clock = ManualClock()
    with embedded_broker(clock=clock) as broker:
        async with (
            jmsaio.connect(broker.url, precreate_queue_subscription=precreate) as connection,
            connection.create_session() as session,
        ):
            await (await session.create_producer(session.create_topic("dead"))).send("to nobody")
            policy = "consumerConfig.deadLetterPolicy"
            orders = session.create_queue(f"orders?{policy}.maxRedeliverCount=1&{policy}.deadLetterTopic=dead")
            async with session.create_consumer(orders) as consumer:
                await (await session.create_producer(orders)).send("x")
                for _ in range(2):
                    with pytest.raises(ValueError, match=r"^no$"):
                        async with consumer.process():
                            raise ValueError("no")
                    await asyncio.sleep(0)
                    clock.advance(100)  # until its redelivery is due
            assert broker.backlog("orders") == 0
            assert broker.subscriptions("dead") == (["jms-queue"] if precreate else [])
            if precreate:
                async with session.create_consumer(session.create_queue("dead")) as letters:
                    assert await letters.receive_body(str) == "x"
