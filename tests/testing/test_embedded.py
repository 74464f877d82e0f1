from __future__ import annotations

import asyncio

import pytest

import jmsaio
from jmsaio.errors import (
    BrokerUnavailableError,
    InvalidDestinationError,
    JMSError,
    NotFoundError,
    SendError,
    SendInDoubtError,
)
from jmsaio.testing import EmbeddedBroker, ManualClock, embedded_broker
from tests.client.helpers import text


async def test_a_service_on_a_broker_of_its_own() -> None:
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            orders = session.create_queue("orders")
            producer = await session.create_producer(orders)
            await producer.send("hello")
            assert broker.backlog("orders") == 1
            async with session.create_consumer(orders) as consumer:
                message = await consumer.receive(10)
                assert message is not None
                assert message.get_body(str) == "hello"
        assert broker.backlog("orders") == 0


async def test_time_stands_still_until_the_test_advances_it() -> None:
    """For the delivery delay, the time-out of a receive and the stamp of a message."""
    clock = ManualClock()
    with embedded_broker(clock=clock) as broker:
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            orders = session.create_queue("orders")
            producer = await session.create_producer(orders)
            producer.set_delivery_delay(3600)
            await producer.send("late")
            async with session.create_consumer(orders) as consumer:
                waiting = asyncio.ensure_future(consumer.receive(60))
                await asyncio.sleep(0.05)
                assert not waiting.done()
                clock.advance(60)
                assert await waiting is None
                waiting = asyncio.ensure_future(consumer.receive(3600))
                await asyncio.sleep(0)
                clock.advance(3540)
                message = await waiting
                assert message is not None
                assert message.jms_delivery_time == int(clock.now() * 1000)


async def test_a_configured_delay_passes_when_the_clock_is_advanced() -> None:
    clock = ManualClock()
    delay = {"negativeAckRedeliveryDelayMicros": 30_000_000}
    with embedded_broker(clock=clock) as broker:
        async with (
            jmsaio.connect(broker.url, consumer=delay) as connection,
            connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session,
        ):
            orders = session.create_queue("orders")
            await (await session.create_producer(orders)).send("again")
            consumer = await session.create_consumer(orders)
            assert await consumer.receive(10) is not None
            await session.recover()
            waiting = asyncio.ensure_future(consumer.receive())
            await asyncio.sleep(0.05)
            assert not waiting.done()
            clock.advance(31)
            message = await waiting
            assert message is not None and message.jms_redelivered


def test_what_a_test_may_ask() -> None:
    with embedded_broker("mine") as broker:
        assert broker.url == "memory://mine"
        assert (broker.topics(), broker.used) == ([], 0)
        assert broker.create_topic("a", 2)
        assert not broker.create_topic("a")
        assert broker.topics() == [f"persistent://public/default/a-partition-{index}" for index in range(2)]
        assert broker.subscriptions("a") == []
        with pytest.raises(NotFoundError):
            broker.backlog("a")
        with pytest.raises(NotFoundError):
            broker.subscriptions("b")
        assert "2 topics" in repr(broker)
        with broker.faults.outage():
            assert "down" in repr(broker)


def test_each_use_is_a_new_broker() -> None:
    with embedded_broker("mine") as broker:
        broker.create_topic("a")
        with embedded_broker() as other:
            assert other.topics() == []
    with embedded_broker("mine") as broker:
        assert broker.topics() == []


async def test_a_broker_that_deduplicates_leaves_out_what_a_producer_of_that_name_sent_before() -> None:
    with embedded_broker() as broker:
        broker.deduplicate()
        told = []
        for before in (0, 1):
            async with (
                jmsaio.connect(broker.url, producer_name="p", initial_sequence_id=before) as connection,
                connection.create_session() as session,
            ):
                producer = await session.create_producer(session.create_queue("orders"))
                receipts = [await producer.send(text) for text in ("a", "b")]
                told.append([receipt.place is not None and receipt.place.duplicate for receipt in receipts])
        assert told == [[False, False], [True, False]]
        assert broker.backlog("orders") == 3


def test_a_topic_without_a_name_is_refused() -> None:
    with embedded_broker() as broker, pytest.raises(InvalidDestinationError):
        broker.create_topic("")


async def _send(broker: EmbeddedBroker, queue: str, text: str) -> None:
    async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue(queue))
        await producer.send(text)


async def _receive(broker: EmbeddedBroker, queue: str) -> list[str]:
    async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
        async with session.create_consumer(session.create_queue(queue)) as consumer:
            got: list[str] = []
            while (message := await consumer.receive(0.1)) is not None:
                got.append(text(message))
            return got


async def test_failed_and_doubtful_sends() -> None:
    with embedded_broker() as broker:
        broker.faults.fail_sends(topic="other")
        broker.faults.fail_sends()
        broker.faults.lose_answers()
        broker.faults.fail_sends(error=SendError("mine"))
        with pytest.raises(SendError, match="not stored"):
            await _send(broker, "orders", "1")
        with pytest.raises(SendInDoubtError, match="lost"):
            await _send(broker, "orders", "2")
        with pytest.raises(SendError, match="mine"):
            await _send(broker, "orders", "3")
        await _send(broker, "orders", "4")
        with pytest.raises(SendError):
            await _send(broker, "other", "5")
        assert await _receive(broker, "orders") == ["2", "4"]


async def test_delayed_answers_come_in_the_end() -> None:
    with embedded_broker() as broker:
        broker.faults.delay_answers(0.05)
        await _send(broker, "orders", "1")
        assert await _receive(broker, "orders") == ["1"]


async def test_a_message_whose_acknowledgement_is_lost_is_delivered_once_more() -> None:
    with embedded_broker() as broker:
        await _send(broker, "orders", "1")
        broker.faults.lose_acknowledgements()
        assert await _receive(broker, "orders") == ["1"]
        assert await _receive(broker, "orders") == ["1"]
        assert await _receive(broker, "orders") == []


async def test_a_dropped_consumer_comes_back_or_fails_with_the_given_error() -> None:
    with embedded_broker() as broker:
        with pytest.raises(NotFoundError):
            broker.faults.drop_consumers("orders")
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            orders = session.create_queue("orders")
            async with session.create_consumer(orders) as consumer:
                assert broker.faults.drop_consumers("orders") == 1
                await _send(broker, "orders", "1")
                message = await consumer.receive(10)
                assert message is not None
                broker.faults.drop_consumers("orders", error=BrokerUnavailableError("gone"))
                with pytest.raises(JMSError, match="gone"):
                    await consumer.receive(10)


async def test_in_an_outage_sending_fails_and_stored_messages_stay() -> None:
    with embedded_broker() as broker:
        await _send(broker, "orders", "1")
        with broker.faults.outage(), pytest.raises(BrokerUnavailableError):
            await _send(broker, "orders", "2")
        assert await _receive(broker, "orders") == ["1"]


async def test_a_service_may_not_hear_that_its_transaction_was_committed() -> None:
    with embedded_broker() as broker:
        await _send(broker, "orders", "tea")
        broker.faults.lose_commits()
        async with (
            jmsaio.connect(broker.url, enable_transaction=True) as connection,
            connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED) as session,
            session.create_consumer(session.create_queue("orders")) as consumer,
            session.create_producer(session.create_queue("bills")) as producer,
        ):
            assert await consumer.receive(timeout=5) is not None
            await producer.send("a bill for tea")
            with pytest.raises(jmsaio.TransactionInDoubtError):
                await session.commit()
            assert await consumer.receive(timeout=0.1) is None
            await producer.send("the next transaction goes on")
            await session.commit()
        assert await _receive(broker, "orders") == []
        assert await _receive(broker, "bills") == ["a bill for tea", "the next transaction goes on"]
