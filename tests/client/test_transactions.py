"""Transacted sessions whose transactions are the broker's: on the embedded one, and on Pulsar by its own protocol.

Jakarta Messaging 3.1, 6.2.7 Transactions. ``runtime.test_session`` has emulated ones, and the parts of a session.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import Listener, drain, fill, full_name, rest, take, text, texts
from tests.kit.inside import admin_of
from tests.support.broker import TestBroker

Name = Callable[[str], str]


@pytest.fixture(
    params=["memory", pytest.param("wire", marks=[pytest.mark.broker, pytest.mark.slow])],
)
def url(request: pytest.FixtureRequest) -> str:
    """A broker with transactions of its own."""
    if request.param == "memory":
        return f"memory://{uuid.uuid4()}?enableTransaction=true"
    broker: TestBroker = request.getfixturevalue("pulsar_broker")
    return f"{broker.url}&transport=wire&enableTransaction=true"


@pytest.fixture
async def transacted(connection: jmsaio.Connection) -> AsyncIterator[jmsaio.Session]:
    """A transacted session."""
    async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
        yield session


async def test_sends_to_several_queues_appear_together(
    connection: jmsaio.Connection, transacted: jmsaio.Session, name: Name
) -> None:
    queues = [jmsaio.Queue(name(stem)) for stem in ("one", "other")]
    for ending in (transacted.rollback, transacted.commit):
        for queue in queues:
            producer = await transacted.create_producer(queue)
            await producer.send(ending.__name__)
            await (await producer.send_async(ending.__name__))
        for queue in queues:
            assert await rest(connection, queue, wait=0.5) == []
        await ending()
    for queue in queues:
        assert texts(await rest(connection, queue, 2, 0.5)) == ["commit", "commit"]


async def test_a_listener_that_commits(connection: jmsaio.Connection, transacted: jmsaio.Session, name: Name) -> None:
    queue, output = jmsaio.Queue(name("in")), jmsaio.Queue(name("out"))
    await fill(connection, queue, 5)
    producer, seen = await transacted.create_producer(output), list[str]()

    async def forward(message: jmsaio.Message) -> None:
        seen.append(text(message))
        await producer.send(seen[-1])
        await (transacted.rollback() if seen == ["0", "1"] else transacted.commit())

    consumer = await transacted.create_consumer(queue)
    consumer.set_message_listener(forward)
    assert sorted(texts(await rest(connection, output, 5, 1.0))) == [str(number) for number in range(5)]
    assert len(seen) == 6
    await consumer.close()
    assert await rest(connection, queue, wait=0.5) == []


@pytest.mark.parametrize("commit", [True, False])
async def test_a_consumer_closed_before_the_end(
    connection: jmsaio.Connection, transacted: jmsaio.Session, name: Name, commit: bool
) -> None:
    queue = jmsaio.Queue(name("q"))
    await fill(connection, queue, 2)
    async with transacted.create_consumer(queue) as consumer:
        assert texts(await take(consumer, 1)) == ["0"]
    await (transacted.commit() if commit else transacted.rollback())
    left = await rest(connection, queue, 1 if commit else 2, 0.5)
    assert sorted(texts(left)) == (["1"] if commit else ["0", "1"])
    assert {text(message): message.jms_redelivered for message in left} == {
        "1": False,
        **({} if commit else {"0": True}),
    }


async def test_completion_is_told_before_the_commit(
    connection: jmsaio.Connection, transacted: jmsaio.Session, name: Name
) -> None:
    queue, listener = jmsaio.Queue(name("q")), Listener()
    producer = await transacted.create_producer(queue)
    await producer.send_async("x", completion_listener=listener)
    async with asyncio.timeout(20):
        while not listener.told:
            await asyncio.sleep(0.01)
    assert [error for _, error in listener.told] == [None]
    assert await rest(connection, queue, wait=0.5) == []
    await transacted.commit()
    assert texts(await rest(connection, queue, 1, 0.3)) == ["x"]


async def test_a_rollback_of_selected_messages(
    connection: jmsaio.Connection, transacted: jmsaio.Session, name: Name
) -> None:
    queue = jmsaio.Queue(name("q"))
    async with connection.create_session() as session:
        producer = await session.create_producer(queue)
        for number in range(4):
            await producer.send(str(number), properties={"even": number % 2 == 0})
    consumer = await transacted.create_consumer(queue, selector="even = TRUE")
    assert sorted(texts(await take(consumer, 2))) == ["0", "2"]
    await transacted.rollback()
    again = await take(consumer, 2)
    assert sorted(texts(again)) == ["0", "2"]
    assert all(message.jms_redelivered for message in again)
    await transacted.commit()
    await consumer.close()
    left = await rest(connection, queue, 2, 0.5)
    assert sorted(texts(left)) == ["1", "3"]
    assert not any(message.jms_redelivered for message in left)


async def test_a_browser_sees_what_is_committed(
    connection: jmsaio.Connection, transacted: jmsaio.Session, name: Name
) -> None:
    queue = jmsaio.Queue(name("q"))
    await fill(connection, queue, 1)
    await (await transacted.create_producer(queue)).send("inside")
    async with connection.create_session() as session:
        for ending, seen in ((None, ["0"]), (transacted.commit, ["0", "inside"])):
            if ending is not None:
                await ending()
            async with session.create_browser(queue) as browser:
                assert texts([message async for message in browser]) == seen


async def test_a_request_and_its_reply(connection: jmsaio.Connection, transacted: jmsaio.Session, name: Name) -> None:
    requests, replies = jmsaio.Queue(name("requests")), await transacted.create_temporary_queue()
    question = jmsaio.TextMessage("question")
    question.jms_reply_to = replies
    await (await transacted.create_producer(requests)).send(question)
    await transacted.commit()
    async with connection.create_session(AcknowledgeMode.TRANSACTED) as server:
        [request] = await take(await server.create_consumer(requests), 1)
        await request.reply("answer")
        consumer = await transacted.create_consumer(replies)
        assert await consumer.receive(timeout=0.5) is None
        await server.commit()
    assert texts(await take(consumer, 1)) == ["answer"]
    await transacted.commit()


async def test_rollbacks_count_for_dead_letters(url: str, name: Name) -> None:
    queue, dead = jmsaio.Queue(name("q")), jmsaio.Queue(name("dead"))
    letters = "consumerConfig.deadLetterPolicy."
    async with jmsaio.connect(f"{url}&{letters}maxRedeliverCount=1&{letters}deadLetterTopic={dead.name}") as one:
        await fill(one, queue, 1)
        async with one.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer = await session.create_consumer(queue)
            for count in (1, 2):
                [message] = await take(consumer, 1)
                assert message.get_int_property("JMSXDeliveryCount") == count
                await session.rollback()
            assert texts(await rest(one, dead, 1, 0.3)) == ["0"]
            assert await consumer.receive(timeout=0.5) is None


async def test_a_context_with_a_transaction(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("q"))
    async with (
        jmsaio.ConnectionFactory(url) as factory,
        factory.create_context(AcknowledgeMode.TRANSACTED) as context,
    ):
        consumer = await context.create_consumer(queue)
        await context.create_producer().send(queue, "undone")
        await context.rollback()
        await context.create_producer().send(queue, "done")
        await context.commit()
        assert await consumer.receive_body(str, timeout=20) == "done"
        await context.rollback()
        assert await consumer.receive_body(str, timeout=20) == "done"
        await context.commit()


@pytest.mark.parametrize("sticky", [True, False])
async def test_partitions_are_one_transaction(url: str, name: Name, sticky: bool) -> None:
    """Sticky: a transaction has one partition."""
    options = f"{url}&jms.transactionsStickyPartitions={str(sticky).lower()}"
    async with jmsaio.connect(options) as connection:
        queue = jmsaio.Queue(name("q"))
        await admin_of(connection).create_topic(full_name(connection, queue), partitions=4)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
            for _ in range(2):
                for number in range(8):
                    await producer.send(str(number))
                await session.commit()
                found = await take(consumer, 8)
                assert sorted(texts(found)) == [str(number) for number in range(8)]
                partitions = {message.jms_message_id for message in found}
                assert len(partitions) == 8
                await session.rollback()
                assert sorted(texts(await take(consumer, 8))) == [str(number) for number in range(8)]
                await session.commit()


async def test_a_transaction_that_timed_out_gives_its_messages_back_once(url: str, name: Name) -> None:
    queue, output = jmsaio.Queue(name("in")), jmsaio.Queue(name("out"))
    async with jmsaio.connect(url, transaction_timeout=1.0) as connection:
        await fill(connection, queue, 3)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer, producer = await session.create_consumer(queue), await session.create_producer(output)
            await producer.send("begins it")
            await take(consumer, 3)
            await asyncio.sleep(2.0)
            with pytest.raises(jmsaio.TransactionRolledBackError):
                await session.commit()
            again = await take(consumer, 3)
            assert sorted(texts(again)) == ["0", "1", "2"]
            assert all(message.jms_redelivered for message in again)
            await session.commit()
            assert await consumer.receive(timeout=0.3) is None
        assert await rest(connection, queue, wait=0.2) == await rest(connection, output, wait=0.2) == []


async def test_order_and_marks_after_a_rollback(url: str, name: Name) -> None:
    topic = jmsaio.Topic(name("t"))
    async with jmsaio.connect(url, client_id=name("client")) as connection:
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer = await session.create_durable_subscriber(topic, name("s"))
            await fill(connection, topic, 6)
            assert texts(await take(consumer, 3)) == ["0", "1", "2"]
            await session.rollback()
            again = await take(consumer, 6)
            assert texts(again) == [str(number) for number in range(6)]
            assert [message.jms_redelivered for message in again] == [True] * 3 + [False] * 3
            await session.commit()
            assert await consumer.receive(timeout=0.5) is None


async def test_sessions_on_one_queue(connection: jmsaio.Connection, transacted: jmsaio.Session, name: Name) -> None:
    """The rollback of one neither takes nor repeats what the other has, although they share batches."""
    queue = jmsaio.Queue(name("q"))
    async with connection.create_session() as session:
        producer = await session.create_producer(queue)
        await asyncio.gather(*(producer.send(str(number)) for number in range(10)))
    async with connection.create_session(AcknowledgeMode.TRANSACTED) as other:
        mine, theirs = await transacted.create_consumer(queue), await other.create_consumer(queue)
        [first] = await take(mine, 1)
        held = await drain(theirs, wait=1.0)
        await transacted.rollback()
        found = [message for consumer in (mine, theirs) for message in await drain(consumer, wait=1.0)]
        assert sorted(texts([*held, *found])) == [str(number) for number in range(10)]
        assert [message.jms_redelivered for message in found if text(message) == text(first)] == [True]
        await transacted.commit()
        await other.commit()
    assert await rest(connection, queue, wait=0.5) == []


async def test_a_closed_session_rolls_back(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("q"))
    await fill(connection, queue, 2)
    async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
        await take(await session.create_consumer(queue), 1)
        await (await session.create_producer(queue)).send("undone")
    assert sorted(texts(await rest(connection, queue, 2, 0.5))) == ["0", "1"]


async def test_all_kinds_of_bodies(connection: jmsaio.Connection, transacted: jmsaio.Session, name: Name) -> None:
    queue = jmsaio.Queue(name("q"))
    producer = await transacted.create_producer(queue)
    for body in (b"\x00" * 100_000, {"map": 1}, "text"):
        await producer.send(body)
    await transacted.commit()
    found = await take(await transacted.create_consumer(queue), 3)
    assert [type(message) for message in found] == [jmsaio.BytesMessage, jmsaio.MapMessage, jmsaio.TextMessage]
    await transacted.commit()


@pytest.mark.broker
@pytest.mark.slow
async def test_a_part_of_a_batch_stays_acknowledged_when_its_topic_moves(pulsar_broker: TestBroker, name: Name) -> None:
    """Committed with an entry before it, which the broker has as acknowledged when it recovers the subscription."""
    queue = jmsaio.Queue(name("q"))
    async with jmsaio.connect(f"{pulsar_broker.url}&transport=wire&enableTransaction=true") as connection:
        async with connection.create_session() as session, session.create_producer(queue) as producer:
            await producer.send("alone")
            await asyncio.gather(*[await producer.send_async(each) for each in ("first", "second")])
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            assert texts(await take(await session.create_consumer(queue), 2)) == ["alone", "first"]
            await session.commit()
        path = full_name(connection, queue).replace("://", "/")
        async with httpx.AsyncClient(base_url=pulsar_broker.web_service_url, timeout=30) as http:
            (await http.put(f"/admin/v2/{path}/unload")).raise_for_status()
        assert texts(await rest(connection, queue, 1)) == ["second"]
