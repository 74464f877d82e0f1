from __future__ import annotations

import pytest

import jmsaio
from jmsaio.errors import NotFoundError
from jmsaio.testing import ManualClock, embedded_broker


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


async def test_time_stands_still() -> None:
    clock = ManualClock()
    with embedded_broker(clock=clock) as broker:
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            orders = session.create_queue("orders")
            producer = await session.create_producer(orders)
            producer.set_delivery_delay(3600)
            await producer.send("late")
            async with session.create_consumer(orders) as consumer:
                assert await consumer.receive(0.05) is None
                clock.advance(3601)  # the client stamps with the real time, a little later than the clock's start
                message = await consumer.receive(10)
                assert message is not None


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
