"""What a connection's children share: its identity, its warnings, its inboxes, its temporary destinations."""

from __future__ import annotations

import asyncio
import gc
import logging
import uuid
from collections.abc import Callable

import pytest

import jmsaio
from jmsaio.client.runtime import connection as connection_module
from jmsaio.transport.base import Subscription, SubscriptionType
from tests.kit.inside import admin_of, runtime_of, temporaries, temporaries_left, transport_of

Name = Callable[[str], str]


async def test_a_client_id_becomes_part_of_the_connection_id(url: str, name: Name) -> None:
    async with jmsaio.connect(url) as connection:
        assert runtime_of(connection).connection_id == runtime_of(connection).uuid
    async with jmsaio.connect(url, client_id=name("client")) as connection:
        assert runtime_of(connection).connection_id == f"{name('client')}_{runtime_of(connection).uuid}"


async def test_the_same_warning_is_logged_once(connection: jmsaio.Connection, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "jmsaio"):
        runtime_of(connection).reports.warn_once("only once")
        runtime_of(connection).reports.warn_once("only once")
    assert [record.message for record in caplog.records] == ["only once"]


async def test_inboxes_are_those_of_open_consumers_and_of_closed_ones_with_unsettled_messages(
    connection: jmsaio.Connection, name: Name
) -> None:
    queue, runtime = jmsaio.Queue(name("inboxes")), runtime_of(connection)
    async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
        async with session.create_producer(queue) as producer:
            await producer.send("x")
        consumer = await session.create_consumer(queue)
        topics = [inbox.subscription.topics for inbox in runtime.all_inboxes()]
        assert topics == [(f"persistent://public/default/{queue.name}",)]
        message = await consumer.receive(timeout=20)
        assert message is not None
        await consumer.close()
        assert len(list(runtime.all_inboxes())) == 1
        await message.acknowledge()
        assert list(runtime.all_inboxes()) == []


async def test_half_of_the_bytes_that_are_received_in_advance_are_for_inboxes(name: Name) -> None:
    async with jmsaio.connect(f"memory://{name('bytes')}", receive_buffer_bytes=2_000_000) as connection:
        assert runtime_of(connection).inbox_bytes.each == 1_000_000


async def test_no_delivery_before_the_connection_is_started(name: Name) -> None:
    async with jmsaio.ConnectionFactory(f"memory://{name('stopped')}") as factory:
        connection = await factory.create_connection()
        assert runtime_of(connection).started is False
        await connection.start()
        assert runtime_of(connection).started is True
        await connection.stop()
        assert runtime_of(connection).started is False


async def text(consumer: jmsaio.MessageConsumer, wait: float = 20) -> str | None:
    message = await consumer.receive(timeout=wait)
    return None if message is None else message.get_body(str)


async def test_a_temporary_queue_is_consumed_by_its_connection_and_written_by_all(
    url: str, session: jmsaio.Session, name: Name
) -> None:
    queue = await session.create_temporary_queue()
    async with jmsaio.connect(url) as other, other.create_session() as session2:
        producer = await session2.create_producer(queue)
        await producer.send("to the owner")
        with pytest.raises(jmsaio.InvalidDestinationError):
            await session2.create_consumer(queue)
        with pytest.raises(jmsaio.InvalidDestinationError):
            await session2.create_consumer(jmsaio.Queue(queue.name))
    async with session.create_consumer(queue) as consumer:
        assert await text(consumer) == "to the owner"
        with pytest.raises(jmsaio.JMSError):
            await queue.delete()
    await queue.delete()
    with pytest.raises(jmsaio.InvalidDestinationError):
        await session.create_consumer(queue)
    with pytest.raises(jmsaio.InvalidDestinationError):
        await session.create_producer(queue)


async def test_a_producer_does_not_revive_a_deleted_one(session: jmsaio.Session) -> None:
    queue = await session.create_temporary_queue()
    producer = await session.create_producer(queue)
    await producer.send("x")
    await queue.delete()
    with pytest.raises(jmsaio.InvalidDestinationError, match="deleted"):
        await producer.send("y")


async def test_a_delete_that_failed_may_be_repeated(
    connection: jmsaio.Connection, session: jmsaio.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = await session.create_temporary_queue()

    async def refuse(*arguments: object) -> None:
        raise jmsaio.AdminError("not now")

    with monkeypatch.context() as patched:
        patched.setattr(temporaries(connection).__class__, "_delete", refuse)
        with pytest.raises(jmsaio.AdminError):
            await queue.delete()
    await queue.delete()
    with pytest.raises(jmsaio.InvalidDestinationError):
        await session.create_consumer(queue)


async def temporary_topics(connection: jmsaio.Connection) -> set[str]:
    admin = admin_of(connection)
    return {topic for topic in await admin.topics("public/default") if "/jms-temp-" in topic}


@pytest.fixture
def ours(name: Name, monkeypatch: pytest.MonkeyPatch) -> str:
    """A part of the names of all temporary destinations of this test: others make some on the same broker."""
    tail = name("ours")
    for prefix in ("QUEUE_PREFIX", "TOPIC_PREFIX"):
        monkeypatch.setattr(connection_module, prefix, f"{getattr(connection_module, prefix)}{tail}-")
    return tail


async def test_closing_deletes_them(url: str, connection: jmsaio.Connection) -> None:
    for closed in ("connection", "factory"):
        factory = jmsaio.ConnectionFactory(url)
        owner = await factory.create_connection()
        async with owner.create_session() as session:
            names = {(await session.create_temporary_queue()).name, (await session.create_temporary_topic()).name}
            producer = await session.create_producer()
            for name in names:
                await producer.send(jmsaio.Queue(name), "x")
        assert names <= await temporary_topics(connection)  # the session's end is not theirs
        await (owner if closed == "connection" else factory).close()
        assert not names & await temporary_topics(connection)
        await factory.close()


async def test_one_that_can_not_be_deleted_is_reported_and_the_others_go(
    url: str, connection: jmsaio.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """A consumer that no jmsaio connection may have holds it; the log has one line of it."""
    told: list[str] = []
    async with jmsaio.connect(url) as owner, owner.create_session() as session:
        owner.set_exception_listener(lambda error: told.append(str(error)))
        held, free = await session.create_temporary_queue(), await session.create_temporary_topic()
        config = connection.configuration.consumer
        foreign = Subscription((held.name,), "holder", SubscriptionType.SHARED, config)
        holder = await transport_of(connection).open_receiver(foreign, lambda: None)
        assert {held.name, free.name} <= await temporary_topics(connection)
    assert len(told) == 1 and held.name in told[0]
    assert free.name not in await temporary_topics(connection)
    lines = [one for one in caplog.records if held.name in one.getMessage()]
    assert len(lines) == 1 and lines[0].exc_info is None and "jmsaio sweep" in lines[0].getMessage()
    await holder.aclose(5)
    admin = admin_of(connection)
    await admin.delete_topic(held.name, force=True)


@pytest.mark.parametrize("call", ["create_temporary_queue", "create_temporary_topic"])
async def test_a_cancelled_creation_leaves_nothing(
    url: str, connection: jmsaio.Connection, ours: str, call: str
) -> None:
    async with jmsaio.connect(url) as owner, owner.create_session() as session:
        assert ours in (await getattr(session, call)()).name
        for turns in range(8):
            making = asyncio.ensure_future(getattr(session, call)())
            for _ in range(turns):
                await asyncio.sleep(0 if url.startswith("memory") else 0.002)
            making.cancel()
            await asyncio.wait([making])
    assert not [topic for topic in await temporary_topics(connection) if ours in topic]


async def test_one_that_is_made_while_the_connection_closes(url: str, connection: jmsaio.Connection, ours: str) -> None:
    for turns in range(8):
        owner = await jmsaio.connect(url)
        session = await owner.create_session()
        making = asyncio.ensure_future(session.create_temporary_queue())
        for _ in range(turns):
            await asyncio.sleep(0)
        await owner.close()
        await asyncio.wait([making])
        error = making.exception()
        assert isinstance(error, jmsaio.ObjectClosedError) if error is not None else ours in making.result().name
    assert not [topic for topic in await temporary_topics(connection) if ours in topic]


async def test_it_is_not_deleted_while_messages_of_it_are_unsettled(connection: jmsaio.Connection) -> None:
    async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
        queue = await session.create_temporary_queue()
        await (await session.create_producer(queue)).send("x")
        async with session.create_consumer(queue) as consumer:
            message = await consumer.receive(timeout=20)
        assert message is not None
        with pytest.raises(jmsaio.JMSError, match="unsettled"):
            await queue.delete()
        await message.acknowledge()
        await queue.delete()


async def test_temporary_destinations_without_admin_need_the_setting_for_it(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with jmsaio.connect(url, use_pulsar_admin=False) as connection, connection.create_session() as session:
        with pytest.raises(jmsaio.IllegalStateError, match="allowTemporaryTopicWithoutAdmin"):
            await session.create_temporary_queue()
    async with (
        jmsaio.connect(url, use_pulsar_admin=False, allow_temporary_topic_without_admin=True) as connection,
        connection.create_session() as session,
    ):
        queue = await session.create_temporary_queue()
        async with session.create_consumer(queue) as consumer:
            await (await session.create_producer(queue)).send("x")
            assert await text(consumer) == "x"
        await queue.delete()
    assert f"{queue.name} is left to the broker" in caplog.text


async def test_the_last_deleted_names_and_all_own_objects_are_refused(
    connection: jmsaio.Connection, session: jmsaio.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jmsaio.client.runtime.connection._REMEMBERED", 2)
    kinds = (session.create_temporary_queue, session.create_temporary_topic)
    deleted = [await create() for create in (*kinds, *kinds)]
    producer = await session.create_producer()
    for one in deleted:
        await one.delete()
    assert len(temporaries(connection)._deleted) == 2
    for destination in (*deleted, jmsaio.Topic(deleted[-1].name)):
        with pytest.raises(jmsaio.InvalidDestinationError, match="was deleted"):
            await producer.send(destination, "x")
        with pytest.raises(jmsaio.InvalidDestinationError, match="was deleted"):
            await session.create_producer(destination)


async def test_one_of_another_connection_can_be_sent_to_until_it_is_deleted(name: Name) -> None:
    url = f"memory://{name('broker')}"
    async with (
        jmsaio.connect(url) as owner,
        owner.create_session() as session,
        jmsaio.connect(url) as other,
        other.create_session() as sending,
        sending.create_producer() as producer,
    ):
        queue = await session.create_temporary_queue()
        for destination in (queue, jmsaio.Queue(queue.name)):
            await producer.send(destination, "x")
        async with session.create_consumer(queue) as consumer:
            assert [await text(consumer), await text(consumer)] == ["x", "x"]
        await queue.delete()
        for destination in (queue, jmsaio.Queue(queue.name)):
            with pytest.raises(jmsaio.JMSError):
                await producer.send(destination, "y")


@pytest.mark.parametrize("force", [False, True])
async def test_request_and_reply_leave_no_topic(url: str, connection: jmsaio.Connection, force: bool) -> None:
    """Though the one who answers still has its sender to the reply queue, and answers once more, too late."""
    server = await connection.create_session()
    queue, replies = jmsaio.Queue(f"requests-{uuid.uuid4()}"), set()
    async with server.create_consumer(queue) as consumer, server.create_producer() as producer:

        async def answer() -> None:
            request = await consumer.receive(timeout=20)
            assert request is not None and request.jms_reply_to is not None
            reply = server.create_text_message("reply")
            reply.jms_correlation_id = request.jms_message_id
            await producer.send(request.jms_reply_to, reply)
            replies.add(request.jms_reply_to)

        for _ in range(3):
            async with jmsaio.connect(url, force_delete_temporary_destinations=force) as client:
                async with client.create_session() as session:
                    answers = asyncio.ensure_future(answer())
                    assert (await session.request(queue, "request", timeout=20)).get_body(str) == "reply"
                    await answers
        assert len(replies) == 3
        for destination in replies:
            with pytest.raises(jmsaio.JMSError):
                await producer.send(destination, "too late")
        await asyncio.sleep(0.3 if url.startswith("memory") else 1.0)  # for a producer that connects again
        left = {topic.rpartition("/")[2] for topic in await temporary_topics(connection)}
        assert not left & {destination.name.rpartition("/")[2] for destination in replies}


async def test_one_whose_deletion_failed_is_there_until_a_repeated_delete(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        queue = await session.create_temporary_queue()

        async def refuse(*arguments: object) -> None:
            raise jmsaio.AdminError("not now")

        with monkeypatch.context() as patched:
            patched.setattr(runtime_of(connection).temporaries.__class__, "_delete", refuse)
            with pytest.raises(jmsaio.AdminError):
                await queue.delete()
        assert len(await temporary_topics(connection)) == 1
        await (await session.create_producer(queue)).send("still there")
        await queue.delete()
        assert await temporary_topics(connection) == set()


def slow_creation(connection: jmsaio.Connection) -> tuple[asyncio.Event, asyncio.Event]:
    """Make the broker slow to create topics: an event that it sets when asked, and one that it waits for."""
    admin = admin_of(connection)
    asked, go_on, create = asyncio.Event(), asyncio.Event(), admin.create_topic

    async def slowly(topic: str, partitions: int = 0) -> bool:
        asked.set()
        await go_on.wait()
        return await create(topic, partitions)

    admin.create_topic = slowly  # type: ignore[method-assign]  # a slow broker
    return asked, go_on


async def test_a_cancelled_creation_that_the_broker_carries_out_is_undone(name: Name) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        asked, go_on = slow_creation(connection)
        making = asyncio.ensure_future(session.create_temporary_queue())
        await asyncio.wait_for(asked.wait(), 20)
        making.cancel()
        await asyncio.wait([making])
        assert making.cancelled()
        go_on.set()
        async with asyncio.timeout(20):
            while temporaries(connection)._running:
                await asyncio.sleep(0)
        assert await temporary_topics(connection) == set()


async def test_a_close_deletes_what_is_created_meanwhile(name: Name) -> None:
    async with (
        jmsaio.connect(f"memory://{name('broker')}") as watcher,
        jmsaio.connect(f"memory://{name('broker')}") as owner,
        owner.create_session() as session,
    ):
        asked, go_on = slow_creation(owner)
        making = asyncio.ensure_future(session.create_temporary_queue())
        await asyncio.wait_for(asked.wait(), 20)
        asyncio.get_running_loop().call_later(1, go_on.set)
        await owner.close()
        assert await temporary_topics(watcher) == set()
        await asyncio.wait([making])


async def test_a_creation_that_hangs_keeps_no_other_one_from_its_deletion(name: Name) -> None:
    """The creation itself fails when it ends, after the connection."""
    async with jmsaio.connect(f"memory://{name('broker')}") as watcher:
        owner = await jmsaio.connect(f"memory://{name('broker')}", close_timeout=0.5)
        session = await owner.create_session()
        await session.create_temporary_topic()
        asked, go_on = slow_creation(owner)
        making = asyncio.ensure_future(session.create_temporary_queue())
        await asyncio.wait_for(asked.wait(), 20)
        with pytest.raises(jmsaio.OperationTimeoutError, match="temporary destinations"):
            await owner.close()
        assert await temporary_topics(watcher) == set()
        go_on.set()
        with pytest.raises(jmsaio.ObjectClosedError):
            await making


def fail_once(monkeypatch: pytest.MonkeyPatch, connection: jmsaio.Connection, method: str, status: int) -> None:
    """Let the broker refuse the next call of a method."""
    admin = admin_of(connection)
    carried_out = getattr(admin, method)

    async def refuse(*arguments: object) -> None:
        monkeypatch.setattr(admin, method, carried_out)
        raise jmsaio.AdminError("not now", status)

    monkeypatch.setattr(admin, method, refuse)


async def test_a_creation_that_the_broker_refuses_leaves_nothing(name: Name, monkeypatch: pytest.MonkeyPatch) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        fail_once(monkeypatch, connection, "create_topic", 500)
        with pytest.raises(jmsaio.AdminError, match="not now"):
            await session.create_temporary_queue()
        assert not temporaries_left(connection)


async def test_a_cancelled_creation_whose_deletion_failed_is_deleted_by_the_close(
    name: Name, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}") as watcher:
        async with jmsaio.connect(f"memory://{name('broker')}") as owner, owner.create_session() as session:
            asked, go_on = slow_creation(owner)
            making = asyncio.ensure_future(session.create_temporary_queue())
            await asyncio.wait_for(asked.wait(), 20)
            fail_once(monkeypatch, owner, "delete_topic", 500)
            making.cancel()
            go_on.set()
            await asyncio.wait([making])
            async with asyncio.timeout(20):
                while temporaries(owner)._running:
                    await asyncio.sleep(0)
            assert len(await temporary_topics(watcher)) == 1
        assert await temporary_topics(watcher) == set()
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]  # its error is not lost sight of


def watched_deletions(connection: jmsaio.Connection) -> list[tuple[object, ...]]:
    """What the broker is asked to delete and terminate from now on, and the seconds of each step since the last."""
    admin, loop = admin_of(connection), asyncio.get_running_loop()
    delete, terminate, steps = admin.delete_topic, admin.terminate_topic, []
    last = loop.time()

    def note(*step: object) -> None:
        nonlocal last
        steps.append((*step, round(loop.time() - last, 3)))
        last = loop.time()

    async def deleting(topic: str, force: bool = False) -> None:
        note("delete", force)
        await delete(topic, force)

    async def terminating(topic: str) -> None:
        note("terminate")
        await terminate(topic)

    admin.delete_topic = deleting  # type: ignore[method-assign]  # watched
    admin.terminate_topic = terminating  # type: ignore[method-assign]  # likewise
    return steps


@pytest.mark.parametrize("force", [False, True])
async def test_one_in_use_is_terminated_and_deleted_when_its_senders_have_noticed(name: Name, force: bool) -> None:
    url = f"memory://{name('broker')}"
    async with (
        jmsaio.connect(url, force_delete_temporary_destinations=force) as owner,
        owner.create_session() as session,
        jmsaio.connect(url) as other,
        other.create_session() as sending,
    ):
        steps = watched_deletions(owner)
        unused, used = await session.create_temporary_queue(), await session.create_temporary_queue()
        await (await session.create_producer(unused)).send("x")  # a sender of its own is closed first
        await unused.delete()
        assert steps == [("delete", False, 0)]
        steps.clear()
        await (await sending.create_producer(used)).send("x")
        await used.delete()
        assert steps == [("delete", False, 0), ("terminate", 0), ("delete", force, connection_module._PRODUCERS_END)]


async def test_one_that_the_broker_refuses_to_delete_for_another_reason_is_not_terminated(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        queue = await session.create_temporary_queue()
        fail_once(monkeypatch, connection, "delete_topic", 500)
        with pytest.raises(jmsaio.AdminError, match="not now"):
            await queue.delete()
        await (await session.create_producer(queue)).send("x")
