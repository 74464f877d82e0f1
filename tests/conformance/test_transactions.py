"""Local transactions (checklist.txt, group 7): the broker's, and emulated ones over pulsar-client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.conformance.kit import not_emulated, row, tck
from tests.conformance.recording import Name, destination

QUEUES, TOPICS = "core/appclient/txqueuetests/TxQueueTestsIT", "core/appclient/txtopictests/TxTopicTestsIT"


def each_kind(queue: str, topic: str) -> pytest.MarkDecorator:
    """The test runs with a queue and with a topic, each for its line."""
    rows = [row("queue", key=f"{QUEUES}.{queue}"), row("topic", key=f"{TOPICS}.{topic}")]
    return pytest.mark.parametrize("kind", rows)


@pytest.fixture
async def connection(factory: jmsaio.ConnectionFactory, name: Name) -> AsyncIterator[jmsaio.Connection]:
    """A started connection with a client id."""
    async with await factory.create_connection(client_id=name("client")) as connection:
        await connection.start()
        yield connection


@pytest.fixture
async def transacted(connection: jmsaio.Connection) -> AsyncIterator[jmsaio.Session]:
    """A transacted session."""
    async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
        yield session


async def consumer_of(session: jmsaio.Session, where: Any) -> jmsaio.MessageConsumer:
    """A consumer whose subscription outlives it: of the queue, or a durable one."""
    if isinstance(where, jmsaio.Queue):
        return await session.create_consumer(where)
    return await session.create_durable_consumer(where, "durable")


async def send(session: jmsaio.Session, where: Any, *texts: str) -> None:
    async with session.create_producer(where) as producer:
        for text in texts:
            await producer.send(text)
    if session.transacted:
        await session.commit()


async def text(consumer: jmsaio.MessageConsumer) -> str | None:
    return await consumer.receive_body(str, timeout=20)


async def texts_left(connection: jmsaio.Connection, where: Any, least: int) -> list[str | None]:
    """What a new session still gets: ``least`` messages, however slow the broker is, and those that come soon."""
    found: list[str | None] = []
    async with connection.create_session() as session:
        consumer = await consumer_of(session, where)
        while (found_text := await consumer.receive_body(str, timeout=20 if len(found) < least else 0.4)) is not None:
            found.append(found_text)
    return found


@pytest.mark.parametrize("kind", [row("queue", key=f"{QUEUES}.simpleSendReceiveTxQueueTest")])
async def test_a_transacted_round_trip(transacted: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(transacted, kind, name("simple"))
    consumer = await consumer_of(transacted, where)
    await send(transacted, where, "transacted")
    assert await text(consumer) == "transacted"
    await transacted.commit()


@each_kind("commitAckMsgQueueTest", "commitAckMsgTopicTest")
async def test_commit_acknowledges_what_was_received_and_sends_what_was_sent(
    connection: jmsaio.Connection, transacted: jmsaio.Session, name: Name, kind: str
) -> None:
    where = destination(transacted, kind, name("commit"))
    consumer = await consumer_of(transacted, where)
    await send(transacted, where, "first")
    assert await text(consumer) == "first"
    await transacted.commit()
    await send(transacted, where, "second")
    await transacted.close()
    assert await texts_left(connection, where, 1) == ["second"]


@each_kind("rollbackRecoverQueueTest", "rollbackRecoverTopicTest")
async def test_what_was_rolled_back_comes_again(
    connection: jmsaio.Connection, transacted: jmsaio.Session, name: Name, kind: str
) -> None:
    where = destination(transacted, kind, name("rollback"))
    consumer = await consumer_of(transacted, where)
    await send(transacted, where, "again")
    assert await text(consumer) == "again"
    await transacted.rollback()
    if kind == "topic":
        assert await text(consumer) == "again"
        await transacted.commit()
        assert await consumer.receive(timeout=0.3) is None
    await transacted.close()
    assert await texts_left(connection, where, int(kind == "queue")) == (["again"] if kind == "queue" else [])


@each_kind("redeliveredFlagTxQueueTest", "redeliveredFlagTxTopicTest")
async def test_what_was_rolled_back_is_redelivered(transacted: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(transacted, kind, name("redelivered"))
    consumer = await consumer_of(transacted, where)
    await send(transacted, where, "twice")
    first = await consumer.receive(timeout=20)
    assert first is not None and first.jms_redelivered is False
    await transacted.rollback()
    second = await consumer.receive(timeout=20)
    assert second is not None and (second.get_body(str), second.jms_redelivered) == ("twice", True)
    await transacted.commit()


@each_kind("transactionRollbackOnRecQTest", "transactionRollbackOnRecTopicTest")
async def test_rollback_puts_received_messages_back(transacted: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(transacted, kind, name("received"))
    consumer = await consumer_of(transacted, where)
    await send(transacted, where, "1", "2")
    assert [await text(consumer), await text(consumer)] == ["1", "2"]
    await transacted.rollback()
    assert [await text(consumer), await text(consumer)] == ["1", "2"]
    await transacted.commit()
    assert await consumer.receive(timeout=0.3) is None


CLOSED = [
    row("queue", "session", key=f"{QUEUES}.transactionRollbackOnSessionCloseRecQTest"),
    row("queue", "connection", key=f"{QUEUES}.txRollbackOnConnectionCloseRecQTest"),
    row("topic", "session", key=f"{TOPICS}.transactionRollbackOnSessionCloseReceiveTopicTest"),
    row("topic", "connection", key=f"{TOPICS}.txRollbackOnConnectionCloseReceiveTopicTest"),
]


@pytest.mark.parametrize(("kind", "closed"), CLOSED)
async def test_close_without_commit_rolls_back(
    factory: jmsaio.ConnectionFactory, name: Name, kind: str, closed: str
) -> None:
    """A queue has the message again; a subscription that is not durable went with its consumer."""
    first = await factory.create_connection()
    await first.start()
    session = await first.create_session(AcknowledgeMode.TRANSACTED)
    where = destination(session, kind, name("closed"))
    consumer = await session.create_consumer(where)
    await send(session, where, "not committed")
    assert await text(consumer) == "not committed"
    await (session if closed == "session" else first).close()
    async with await factory.create_connection() as second, second.create_session() as other:
        await second.start()
        async with other.create_consumer(where) as again:
            await send(other, where, "marker")
            expected = ["not committed", "marker"] if kind == "queue" else ["marker"]
            assert [await text(again) for _ in expected] == expected
    await first.close()


@tck(f"{QUEUES}.txCloseRolledBackSessionRecQTest")
async def test_rollback_and_close(connection: jmsaio.Connection, transacted: jmsaio.Session, name: Name) -> None:
    queue = transacted.create_queue(name("rollback-close"))
    consumer = await transacted.create_consumer(queue)
    await send(transacted, queue, "available")
    assert await text(consumer) == "available"
    await transacted.rollback()
    await transacted.close()
    assert await texts_left(connection, queue, 1) == ["available"]


@not_emulated
@each_kind("transactionRollbackOnSendQTest", "transactionRollbackOnPublishTopicTest")
async def test_rollback_discards_sends(transacted: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(transacted, kind, name("discarded"))
    consumer = await consumer_of(transacted, where)
    async with transacted.create_producer(where) as producer:
        await producer.send("discarded")
        await transacted.rollback()
        await producer.send("committed")
        await transacted.commit()
    assert await text(consumer) == "committed"
    await transacted.commit()
    assert await consumer.receive(timeout=0.3) is None


@not_emulated
@tck(f"{QUEUES}.txMultiQTest")
async def test_two_sessions_and_two_queues(connection: jmsaio.Connection, name: Name) -> None:
    one, two = jmsaio.Queue(name("one")), jmsaio.Queue(name("two"))
    async with (
        connection.create_session(AcknowledgeMode.TRANSACTED) as first,
        connection.create_session(AcknowledgeMode.TRANSACTED) as second,
        first.create_producer(one) as producer,
        second.create_consumer(one) as consumer,
        second.create_producer(two) as forwarding,
        first.create_consumer(two) as forwarded,
    ):
        await producer.send("invisible until commit")
        assert await consumer.receive(timeout=0.3) is None
        await first.commit()
        message = await consumer.receive(timeout=20)
        assert message is not None and message.get_body(str) == "invisible until commit"
        await forwarding.send(message)
        assert await forwarded.receive(timeout=0.3) is None
        await second.commit()
        assert await text(forwarded) == "invisible until commit"
        await first.commit()


@not_emulated
@each_kind("commitRollbackMultiMsgsTest", "commitRollbackMultiMsgsTest")
async def test_several_sends_rolled_back_and_committed(transacted: jmsaio.Session, name: Name, kind: str) -> None:
    where = destination(transacted, kind, name("several"))
    consumer = await consumer_of(transacted, where)
    async with transacted.create_producer(where) as producer:
        for end in (transacted.rollback, transacted.commit):
            for number in range(3):
                await producer.send(f"{end.__name__} {number}")
            await end()
            if end == transacted.rollback:
                assert await consumer.receive(timeout=0.3) is None
    assert [await text(consumer) for _ in range(3)] == ["commit 0", "commit 1", "commit 2"]
    await transacted.commit()
