"""What lives behind a session: lingering consumers, bounded closes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import fill, rest, take, texts

Name = Callable[[str], str]


async def test_a_listener_that_never_returns_bounds_the_close(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("stuck"))
    entered = asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await asyncio.sleep(3600)

    connection = await jmsaio.connect(url, close_timeout=0.2)
    await fill(connection, queue, 1)
    session = await connection.create_session()
    (await session.create_consumer(queue)).set_message_listener(listener)
    await asyncio.wait_for(entered.wait(), 20)
    with pytest.raises(jmsaio.OperationTimeoutError, match="did not return"):
        await session.close()
    assert session.closed
    await connection.close()
    async with jmsaio.connect(url) as again:
        assert texts(await rest(again, queue, 1)) == ["0"]


async def test_a_new_consumer_takes_over_from_a_closed_one(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("adopt"))
    await fill(connection, queue, 4)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        first = await session.create_consumer(queue)
        await take(first, 2)
        await first.close()
        second = await session.create_consumer(queue)
        messages = await take(second, 2)
        assert texts(messages) == ["2", "3"]
        await messages[-1].acknowledge()
    assert await rest(connection, queue, wait=0.5) == []


async def test_recover_after_the_consumer_closed(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("recover"))
    await fill(connection, queue, 2)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        first = await session.create_consumer(queue)
        await take(first, 2)
        await first.close()
        await session.recover()
        second = await session.create_consumer(queue)
        messages = await take(second, 2)
        assert sorted(texts(messages)) == ["0", "1"]
        await messages[-1].acknowledge()


async def test_many_idle_consumers(connection: jmsaio.Connection, name: Name, url: str) -> None:
    count = 100 if url.startswith("memory") else 10
    async with connection.create_session() as session:
        queue = session.create_queue(name("idle"))
        consumers = [await session.create_consumer(queue) for _ in range(count)]
        waiting = [asyncio.ensure_future(consumer.receive()) for consumer in consumers]
        await asyncio.sleep(0.05)
    assert await asyncio.wait_for(asyncio.gather(*waiting), 30) == [None] * count


async def test_an_idle_listener_costs_nothing(session: jmsaio.Session, name: Name) -> None:
    consumer = await session.create_consumer(jmsaio.Queue(name("idle")))
    consumer.set_message_listener(lambda message: None)
    await asyncio.sleep(0.1)
    asked = 0
    give = session._runtime.callbacks.next_job

    def next_job() -> object:
        nonlocal asked
        asked += 1
        return give()

    session._runtime.callbacks.next_job = next_job  # type: ignore[assignment]  # counts on its way
    await asyncio.sleep(0.3)
    assert asked < 20


async def test_a_lingering_channel_keeps_nothing_from_others(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("lingering"))
    await fill(connection, queue, 10)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        (first,) = await take(consumer, 1)
        await consumer.close()
        async with connection.create_session() as other, other.create_consumer(queue) as taker:
            found = texts(await take(taker, 9))
        assert sorted([*found, first.get_body(str)]) == [str(number) for number in range(10)]
        await first.acknowledge()
    assert await rest(connection, queue) == []


async def test_a_taken_over_channel_obeys_the_new_selector(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("selector"))
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        await (await session.create_producer(queue)).send("a", properties={"n": 1})
        async with session.create_consumer(queue) as consumer:
            await take(consumer, 1)
        async with session.create_consumer(queue, selector="n = 2") as consumer:
            await session.recover()
            assert await consumer.receive(timeout=0.5) is None
    assert texts(await rest(connection, queue, 1)) == ["a"]


@pytest.mark.parametrize("kind", ["shared", "shared_durable"])
async def test_a_channel_that_could_not_be_taken_over_is_let_go(
    connection: jmsaio.Connection, name: Name, kind: str
) -> None:
    topic, subscription = jmsaio.Topic(name("claimed")), name("name")
    session = await connection.create_session(AcknowledgeMode.CLIENT)
    async with connection.create_session() as other:
        opening, others = (getattr(one, f"create_{kind}_consumer") for one in (session, other))
        consumer = await opening(topic, subscription)
        stays = await others(topic, subscription)
        producer = await other.create_producer(topic)
        for number in range(4):
            await producer.send(str(number))
        await take(consumer, 1)
        await consumer.close()
        with pytest.raises(jmsaio.JMSError, match="is active"):
            await opening(topic, subscription, selector="n = 1")
        await session.close()
        assert sorted(texts(await take(stays, 4))) == ["0", "1", "2", "3"]


async def test_a_listener_may_close_another_consumer(session: jmsaio.Session, name: Name) -> None:
    queue = jmsaio.Queue(name("closes"))
    consumer, other = await session.create_consumer(queue), await session.create_consumer(jmsaio.Queue(name("other")))
    closed = asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        await other.close()
        closed.set()

    consumer.set_message_listener(listener)
    await (await session.create_producer(queue)).send("x")
    await asyncio.wait_for(closed.wait(), 10)


async def test_a_cancelled_close_of_a_consumer_leaves_nothing(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("cancelled"))
    await fill(connection, queue, 3)
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await go_on.wait()

    async with connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        consumer.set_message_listener(listener)
        await asyncio.wait_for(entered.wait(), 20)
        closing = asyncio.ensure_future(consumer.close())
        await asyncio.sleep(0.05)
        closing.cancel()
        go_on.set()
        await asyncio.wait([closing])
    assert sorted(texts(await rest(connection, queue, 2))) == ["1", "2"]


async def test_a_listener_whose_subscription_is_lost_is_reported(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("lost"))
    told: asyncio.Queue[jmsaio.JMSError] = asyncio.Queue()
    connection.set_exception_listener(told.put_nowait)
    async with connection.create_session() as session:
        consumer, other = await session.create_consumer(queue), await session.create_consumer(queue)
        consumer.set_message_listener(lambda message: None)
        lost = jmsaio.NotFoundError("the topic was deleted")
        for inbox in (consumer._inbox, other._inbox):
            inbox.fail(lost)
        session._runtime.callbacks.wake()
        assert await asyncio.wait_for(told.get(), 10) is lost
        with pytest.raises(jmsaio.NotFoundError, match="deleted"):
            await other.receive_no_wait()


async def test_a_consumer_that_a_closing_session_did_not_know(name: Name) -> None:
    queue = jmsaio.Queue(name("race"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        await fill(connection, queue, 1)
        session = await connection.create_session()
        open_receiver = connection._runtime.transport.open_receiver

        async def slowly(*arguments: object) -> object:
            receiver = await open_receiver(*arguments)  # type: ignore[arg-type]  # passed on as they came
            await session.close()
            return receiver

        connection._runtime.transport.open_receiver = slowly  # type: ignore[method-assign,assignment]  # the same, slower
        with pytest.raises(jmsaio.ObjectClosedError):
            await session.create_consumer(queue)
        connection._runtime.transport.open_receiver = open_receiver  # type: ignore[method-assign]  # as it was
        assert texts(await rest(connection, queue, 1)) == ["0"]


async def test_a_session_whose_making_was_cancelled_ends(connection: jmsaio.Connection) -> None:
    for turns in range(6):
        making = asyncio.ensure_future(connection._create_session(AcknowledgeMode.AUTO, None))
        for _ in range(turns):
            await asyncio.sleep(0)
        making.cancel()
        await asyncio.wait([making])
        if not making.cancelled():
            await making.result().close()
    await asyncio.sleep(0.1)
    assert not connection._runtimes


async def test_a_session_whose_worker_its_own_listener_cancelled_is_reported(
    connection: jmsaio.Connection, name: Name
) -> None:
    def listener(message: jmsaio.Message) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    queue = jmsaio.Queue(name("cancels"))
    reported: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
    connection.set_exception_listener(reported.set_result)
    await fill(connection, queue, 1)
    session = await connection.create_session(AcknowledgeMode.CLIENT)
    (await session.create_consumer(queue)).set_message_listener(listener)
    error = await asyncio.wait_for(reported, 20)
    assert "the session ended by itself" in str(error) and "cancelled the task" in str(error)
    assert texts(await rest(connection, queue, 1)) == ["0"]


@pytest.fixture
async def transacting(url: str) -> AsyncIterator[jmsaio.Connection]:
    """A connection that may have transacted sessions, of whatever kind its broker offers."""
    async with jmsaio.connect(url, emulate_transactions=url.startswith("pulsar")) as connection:
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
async def test_what_a_closed_consumer_delivered_comes_again_marked(
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


async def test_a_closed_sessions_deliveries_come_again_marked(connection: jmsaio.Connection, name: Name) -> None:
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
