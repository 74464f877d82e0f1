"""The cache of senders."""

from __future__ import annotations

import uuid

import pytest

import jmsaio
from jmsaio.client.factory import open_transport
from jmsaio.client.sending import Senders
from jmsaio.config import load


async def test_the_one_unused_for_longest_makes_room() -> None:
    config = load(f"memory://{uuid.uuid4()}", max_num_of_producers=2)
    transport = await open_transport(config)
    senders = Senders(transport, config, None)
    one = await senders.open("persistent://public/default/1", None)
    two = await senders.open("persistent://public/default/2", None)
    assert senders.cached("persistent://public/default/1") is one
    await senders.open("persistent://public/default/3", None)
    assert senders.cached("persistent://public/default/2") is None
    assert senders.cached("persistent://public/default/1") is one
    assert await senders.open("persistent://public/default/2", None) is not two
    await senders.close(1.0)
    with pytest.raises(jmsaio.ObjectClosedError):
        await senders.open("persistent://public/default/1", None)
    await transport.aclose(1.0)


async def test_idle_senders_are_closed() -> None:
    config = load(f"memory://{uuid.uuid4()}", producer_auto_close=0.0)
    transport = await open_transport(config)
    senders = Senders(transport, config, None)
    await senders.open("persistent://public/default/1", None)
    await senders.close_idle()
    assert senders.cached("persistent://public/default/1") is None
    await senders.close(1.0)
    await transport.aclose(1.0)


async def test_more_destinations_than_senders(url: str) -> None:
    async with jmsaio.connect(url, max_num_of_producers=2) as connection, connection.create_session() as session:
        queues = [jmsaio.Queue(f"bounded-{uuid.uuid4()}") for _ in range(5)]
        producer = await session.create_producer()
        for _ in range(2):
            for queue in queues:
                await producer.send(queue, "x")
        for queue in queues:
            async with session.create_consumer(queue) as consumer:
                assert [await consumer.receive_body(str, timeout=20) for _ in range(2)] == ["x", "x"]
