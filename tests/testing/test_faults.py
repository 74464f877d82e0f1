from __future__ import annotations

import pytest

import jmsaio
from jmsaio.errors import BrokerUnavailableError, JMSError, NotFoundError, SendError, SendInDoubtError
from jmsaio.testing import EmbeddedBroker, embedded_broker
from tests.client.helpers import text


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
