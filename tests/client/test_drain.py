"""`drain` of connections and consumers, and `MessageConsumer.deliveries`, on both brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio
import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import drain, text

Name = Callable[[str], str]
#: Seconds after which a test hangs.
LONG = 60.0


async def _fill(connection: jmsaio.Connection, queue: jmsaio.Queue, count: int) -> None:
    async with connection.create_session() as session, session.create_producer(queue) as producer:
        for number in range(count):
            await producer.send(str(number))


async def test_a_worker_ends_without_an_error_and_nothing_is_lost(url: str, name: Name) -> None:
    """A message in its block is finished and acknowledged; the others are the next worker's."""
    queue, done = jmsaio.Queue(name("jobs")), list[str]()
    begun, finish = asyncio.Event(), asyncio.Event()

    async def work(consumer: jmsaio.MessageConsumer) -> None:
        async for delivery in consumer.deliveries():
            async with delivery as message:
                begun.set()
                await finish.wait()
                done.append(text(message))

    connection = await jmsaio.connect(url)
    await _fill(connection, queue, 10)
    session = await connection.create_session()
    consumer = await session.create_consumer(queue)
    worker = asyncio.create_task(work(consumer))
    await begun.wait()
    draining = asyncio.create_task(connection.drain(LONG))
    await asyncio.sleep(0.2)
    assert not draining.done() and consumer.closed and not connection.closed
    finish.set()
    await asyncio.wait_for(asyncio.gather(worker, draining), LONG)
    assert done == ["0"] and connection.closed
    async with jmsaio.connect(url) as after, after.create_session() as session:
        found = [text(message) for message in await drain(await session.create_consumer(queue))]
    assert found == [str(number) for number in range(1, 10)]


async def test_waiting_receives_and_iterations_end(url: str, name: Name) -> None:
    async def iterate(consumer: jmsaio.MessageConsumer) -> None:
        async for _ in consumer:
            raise AssertionError("a message")

    async def deliveries(consumer: jmsaio.MessageConsumer) -> None:
        async for _ in consumer.deliveries():
            raise AssertionError("a delivery")

    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        one, two, three = [await session.create_consumer(jmsaio.Queue(name(f"idle{each}"))) for each in range(3)]
        waiting = [asyncio.create_task(each) for each in (one.receive(), iterate(two), deliveries(three))]
        await asyncio.sleep(0.1)
        await connection.drain(LONG)
        assert await asyncio.wait_for(asyncio.gather(*waiting), LONG) == [None, None, None]
        with pytest.raises(jmsaio.ObjectClosedError):
            await one.receive(1)
        assert [each async for each in three.deliveries()] == []


async def test_a_block_that_fails_has_its_message_redelivered(connection: jmsaio.Connection, name: Name) -> None:
    queue, seen = jmsaio.Queue(name("fails")), list[tuple[str, bool]]()
    await _fill(connection, queue, 2)
    async with connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        async for delivery in consumer.deliveries():
            try:
                async with delivery as message:
                    seen.append((text(message), message.jms_redelivered))
                    if len(seen) == 1:
                        raise RuntimeError("not today")
            except RuntimeError:
                continue
            if len(seen) == 3:
                break
        assert seen == [("0", False), ("0", True), ("1", False)]
        assert consumer.stats().in_flight == 0
        assert await consumer.receive(0.2) is None


async def test_a_listener_and_its_sends_are_waited_for(url: str, name: Name) -> None:
    """The listener asks another service, whose reply still arrives, and sends a result."""
    queue, results, service = (jmsaio.Queue(name(each)) for each in ("in", "out", "service"))
    begun, served = asyncio.Event(), asyncio.Event()
    async with jmsaio.connect(url) as other, other.create_session() as desk:
        requests, replies = await desk.create_consumer(service), await desk.create_producer()

        async def serve() -> None:
            request = await requests.receive(LONG)
            await served.wait()
            assert request is not None and request.jms_reply_to is not None
            answer = jmsaio.TextMessage("answer")
            answer.jms_correlation_id = request.jms_message_id
            await replies.send(request.jms_reply_to, answer)

        serving = asyncio.create_task(serve())
        connection = await jmsaio.connect(url)
        await _fill(connection, queue, 3)
        session = await connection.create_session()
        producer, consumer = await session.create_producer(results), await session.create_consumer(queue)

        async def listen(message: jmsaio.Message) -> None:
            begun.set()
            reply = await session.request(service, "question", timeout=LONG)
            await producer.send_async(f"{text(message)} {text(reply)}")

        consumer.set_message_listener(listen)
        await begun.wait()
        draining = asyncio.create_task(connection.drain(LONG))
        await asyncio.sleep(0.2)
        served.set()
        await asyncio.wait_for(asyncio.gather(serving, draining), LONG)
        assert [text(each) for each in await drain(await desk.create_consumer(results))] == ["0 answer"]
        assert [text(each) for each in await drain(await desk.create_consumer(queue))] == ["1", "2"]


async def test_what_is_not_settled_in_time_is_named_and_redelivered(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("held"))
    connection = await jmsaio.connect(url)
    await _fill(connection, queue, 3)
    session = await connection.create_session(AcknowledgeMode.CLIENT)
    consumer = await session.create_consumer(queue)
    held = [await consumer.receive(10) for _ in range(2)]
    assert None not in held
    with pytest.raises(jmsaio.OperationTimeoutError, match="2 delivered messages are not settled"):
        await connection.drain(0.2)
    assert connection.closed
    async with jmsaio.connect(url) as after, after.create_session() as session:
        found = await drain(await session.create_consumer(queue))
        assert sorted(text(message) for message in found) == ["0", "1", "2"]


async def test_a_drained_consumer_leaves_the_session_open(connection: jmsaio.Connection, name: Name) -> None:
    """What it delivered can be acknowledged after its time-out, and a new consumer takes over."""
    queue = jmsaio.Queue(name("handed"))
    await _fill(connection, queue, 3)
    async with connection.create_session(AcknowledgeMode.INDIVIDUAL) as session:
        consumer = await session.create_consumer(queue)
        message = await consumer.receive(10)
        assert message is not None
        with pytest.raises(jmsaio.OperationTimeoutError, match="1 delivered messages"):
            await consumer.drain(0.1)
        draining = asyncio.create_task(consumer.drain(LONG))
        await asyncio.sleep(0.05)
        await message.acknowledge()
        await asyncio.wait_for(draining, LONG)
        assert consumer.closed
        assert [text(each) for each in await drain(await session.create_consumer(queue))] == ["1", "2"]


async def test_a_listener_can_not_drain_what_waits_for_it(connection: jmsaio.Connection, name: Name) -> None:
    queue, refused = jmsaio.Queue(name("own")), asyncio.Queue[str]()
    await _fill(connection, queue, 1)
    async with connection.create_session() as session:
        consumer = await session.create_consumer(queue)

        async def listen(message: jmsaio.Message) -> None:
            for drain in (consumer.drain, connection.drain):
                with pytest.raises(jmsaio.IllegalStateError) as error:
                    await drain(1)
                refused.put_nowait(str(error.value))

        consumer.set_message_listener(listen)
        with anyio.fail_after(LONG):
            assert "drain of a consumer" in await refused.get()
            assert "drain of a connection" in await refused.get()
    with pytest.raises(jmsaio.IllegalArgumentError, match="timeout"):
        await connection.drain(-1)


async def test_cancelling_a_drain_loses_nothing(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("cancelled"))
    async with jmsaio.connect(url) as connection:
        await _fill(connection, queue, 3)
        session = await connection.create_session(AcknowledgeMode.CLIENT)
        consumer = await session.create_consumer(queue)
        message = await consumer.receive(10)
        assert message is not None
        with anyio.move_on_after(0.1):
            await connection.drain(LONG)
        assert consumer.closed and not connection.closed
        await message.acknowledge()
    async with jmsaio.connect(url) as after, after.create_session() as session:
        assert [text(each) for each in await drain(await session.create_consumer(queue))] == ["1", "2"]
