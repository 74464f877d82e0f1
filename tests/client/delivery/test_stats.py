"""What consumers count, on both brokers."""

from __future__ import annotations

from collections.abc import Callable

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import text

Name = Callable[[str], str]


async def test_a_consumer_counts_what_it_receives(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("received"))
    async with connection.create_session(AcknowledgeMode.INDIVIDUAL) as session:
        consumer = await session.create_consumer(queue, "colour = 'red'")
        assert consumer.stats().last_activity is None
        producer = await session.create_producer(queue)
        for number in range(6):
            await producer.send(str(number), properties={"colour": "red" if number % 2 else "blue"})
        first, second, third = [await consumer.receive(10) for _ in range(3)]
        assert first is not None and second is not None and third is not None
        held = consumer.stats()
        assert (held.destination, held.subscription) == (queue, "jms-queue")
        assert (held.received - held.rejected, held.in_flight, held.acknowledged, held.buffered) == (3, 3, 0, 0)
        assert held.bytes > 0 and held.last_activity is not None
        await first.acknowledge()
        assert (consumer.stats().in_flight, consumer.stats().acknowledged) == (2, 1)
        await session.recover()
        again = [await consumer.receive(10), await consumer.receive(10)]
        stats = consumer.stats()
        assert (stats.redelivered, stats.in_flight, stats.acknowledged) == (2, 2, 1)
        assert [text(message) for message in again if message is not None] == ["3", "5"]
        assert connection.stats().consumers == (stats,)
        await session.acknowledge()
        assert consumer.stats().acknowledged == 3
