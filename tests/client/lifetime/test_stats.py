"""What producers count, on both brokers."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

import jmsaio
from jmsaio import AcknowledgeMode, SendError, SendInDoubtError
from tests.client.helpers import text
from tests.kit.broker_fixtures import Disturbed

Name = Callable[[str], str]


async def test_a_producer_counts_what_it_sends(connection: jmsaio.Connection, name: Name) -> None:
    """On the fast path, with a message object, to a destination of its own, and in a transaction."""
    queue = jmsaio.Queue(name("sent"))
    async with connection.create_session() as session, connection.create_session(AcknowledgeMode.AUTO) as other:
        producer, anywhere = await session.create_producer(queue), await other.create_producer()
        assert producer.stats() == jmsaio.ProducerStats(
            destination=queue, sent=0, confirmed=0, in_doubt=0, failed=0, in_flight=0, bytes=0, last_activity=None
        )
        await producer.send("four")
        await producer.send("four", priority=7)
        receipt = await producer.send(jmsaio.BytesMessage(b"12"))
        future = await producer.send_async("é")
        assert producer.stats().sent == 4
        await future
        await anywhere.send(queue, "elsewhere")
        stats = producer.stats()
        assert (stats.sent, stats.confirmed, stats.in_flight, stats.bytes) == (4, 4, 0, 4 + 4 + 2 + 2)
        assert stats.last_activity is not None and stats.last_activity >= receipt.timestamp
        assert [each.destination for each in connection.stats().producers] == [queue, None]
        assert [each.sent for each in connection.stats().producers] == [4, 1]
        await producer.close()
        assert [each.sent for each in connection.stats().producers] == [1]


async def test_a_send_that_fails_counts_as_in_doubt_or_failed(disturbed: Disturbed, name: Name) -> None:
    async with (
        jmsaio.connect(disturbed.url, producer={"sendTimeoutMs": 1000}) as connection,
        connection.create_session() as session,
    ):
        producer = await session.create_producer(jmsaio.Queue(name("doubt")))
        await producer.send("before")
        with disturbed.outage(), pytest.raises(SendError) as error:
            await producer.send("lost")
        stats, in_doubt = producer.stats(), isinstance(error.value, SendInDoubtError)  # the embedded broker is sure
        assert (stats.sent, stats.confirmed, stats.in_flight) == (2, 1, 0)
        assert (stats.in_doubt, stats.failed) == ((1, 0) if in_doubt else (0, 1))


async def test_statistics_are_values(connection: jmsaio.Connection, name: Name) -> None:
    """They don't change later, and can be written as JSON by attrs."""
    async with connection.create_session() as session:
        producer = await session.create_producer(jmsaio.Queue(name("values")))
        before = producer.stats()
        await producer.send("one")
        assert before.sent == 0 and attrs.asdict(producer.stats(), recurse=False)["sent"] == 1


Name_stats = Callable[[str], str]


async def test_a_consumer_counts_what_it_receives(connection: jmsaio.Connection, name: Name_stats) -> None:
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
