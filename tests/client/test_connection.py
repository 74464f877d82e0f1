"""Connections: start, stop, the exception listener, and closing from anywhere."""

from __future__ import annotations

import asyncio
import tracemalloc
import warnings
from collections.abc import Callable

import pytest

import jmsaio
from jmsaio import ConnectionMetaData, __version__
from jmsaio.transport.memory.transport import MemoryTransport
from tests.client.helpers import Functions, transactions
from tests.kit.inside import admin_of, inbox_of, runtime_of, transport_of
from tests.kit.virtual_time import steady

Name = Callable[[str], str]


async def test_metadata_names_the_version_the_provider_and_the_jmsx_properties(connection: jmsaio.Connection) -> None:
    metadata = connection.metadata
    assert (metadata.jms_version, metadata.jms_provider_name) == ("3.1", "jmsaio")
    assert set(metadata.get_jmsx_property_names()) >= {"JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"}


async def test_start_and_stop_are_repeatable(connection: jmsaio.Connection) -> None:
    for call in (connection.start, connection.start, connection.stop, connection.stop, connection.start):
        await call()
    await connection.close()
    for call in (connection.start, connection.stop):
        with pytest.raises(jmsaio.ObjectClosedError):
            await call()
    await connection.close()
    for use in (
        connection.get_client_id, lambda: connection.set_client_id("late"), connection.get_meta_data,
        connection.get_exception_listener, lambda: connection.set_exception_listener(None),
    ):  # fmt: skip
        with pytest.raises(jmsaio.ObjectClosedError):
            use()
    with pytest.raises(jmsaio.ObjectClosedError):
        await connection.create_session()


async def test_close_from_another_task_and_out_of_order(url: str, name: Name) -> None:
    connection = await jmsaio.connect(url)
    session = await connection.create_session()
    consumer = await session.create_consumer(session.create_queue(name("order")))
    waiting = asyncio.ensure_future(consumer.receive())
    await asyncio.sleep(0.01)
    closings = [connection.close(), consumer.close(), session.close(), connection.close(), session.close()]
    await asyncio.wait_for(asyncio.gather(*map(asyncio.ensure_future, closings)), 30)
    assert await asyncio.wait_for(waiting, 10) is None
    assert connection.closed and session.closed and consumer.closed


async def test_close_from_a_cancelled_task_goes_on(url: str, name: Name) -> None:
    connection = await jmsaio.connect(url)
    session = await connection.create_session()
    await session.create_consumer(session.create_queue(name("cancelled")))
    closing = asyncio.ensure_future(connection.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await asyncio.wait_for(connection.close(), 30)
    assert session.closed


async def test_a_dispatch_that_fails_closes_its_session_only(
    connection: jmsaio.Connection, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[jmsaio.JMSError] = []
    connection.set_exception_listener(reported.append)
    async with connection.create_session() as other:
        session = await connection.create_session()
        consumer = await session.create_consumer(session.create_queue(name("dying")))

        def break_down() -> bool:
            raise RuntimeError("broken")

        class Broken(type(inbox_of(consumer))):  # type: ignore[misc]  # any inbox
            __slots__ = ()
            fill = staticmethod(break_down)

        inbox_of(consumer).__class__ = Broken
        with pytest.raises(jmsaio.JMSError, match="broken"):
            await asyncio.wait_for(consumer.receive(), 20)
        assert session.closed
        assert [str(error.linked_exception) for error in reported] == ["broken"]
        assert not other.closed
        queue = other.create_queue(name("living"))
        async with other.create_consumer(queue) as living, other.create_producer(queue) as producer:
            await producer.send("still works")
            assert await living.receive_body(str, timeout=20) == "still works"


async def test_the_exception_listener_is_told_one_at_a_time(connection: jmsaio.Connection) -> None:
    running, told = 0, []

    async def listener(error: jmsaio.JMSError) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0)
        told.append(str(error))
        running -= 1

    connection.set_exception_listener(listener)
    assert connection.exception_listener is listener
    for number in range(3):
        runtime_of(connection).reports.add(ValueError(number))
    while len(told) < 3:
        await asyncio.sleep(0.01)
    assert told == ["ValueError: 0", "ValueError: 1", "ValueError: 2"]
    connection.set_exception_listener(None)
    assert connection.get_exception_listener() is None


def test_a_connection_that_is_dropped_without_close_warns_with_its_origin(url: str) -> None:
    """At the end of its loop, which keeps it alive until then; the origin is known under ``tracemalloc``."""

    async def leave(close: bool) -> None:
        connection = await jmsaio.connect(url)
        if close:
            await connection.close()

    tracemalloc.start(25)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ResourceWarning)
            asyncio.run(leave(close=True))
            assert caught == []
            asyncio.run(leave(close=False))
            (warning,) = caught
            assert warning.category is ResourceWarning and "unclosed connection" in str(warning.message)
            origin = tracemalloc.get_object_traceback(warning.source)
            assert origin is not None and any(frame.filename == __file__ for frame in origin)
    finally:
        tracemalloc.stop()


def test_a_loop_that_ends_with_an_open_connection_ends_well() -> None:
    async def main() -> jmsaio.Connection:
        connection = await jmsaio.connect("memory://left-open")
        session = await connection.create_session()
        await session.create_consumer(session.create_queue("q"))
        return connection

    with pytest.warns(ResourceWarning, match="unclosed connection"):
        assert asyncio.run(main()).closed


async def test_receives_that_wait_over_a_stop(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("stopped"))
    async with connection.create_session() as session, session.create_producer(queue) as producer:
        consumer = await session.create_consumer(queue)
        waiting = asyncio.ensure_future(consumer.receive())
        await asyncio.sleep(0.01)
        await connection.stop()
        await producer.send("later")  # sending goes on
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await connection.start()
        message = await asyncio.wait_for(waiting, 20)
        assert message is not None and message.get_body(str) == "later"
        timed = asyncio.ensure_future(consumer.receive(timeout=0.3))
        await asyncio.sleep(0.01)
        await connection.stop()
        await producer.send("last")
        assert await asyncio.wait_for(timed, 20) is None  # its time ran
        assert await consumer.receive_no_wait() is None
        await connection.start()
        assert await consumer.receive_body(str, timeout=20) == "last"


async def test_stop_waits_for_a_listener_a_bounded_time(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("bounded"))
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await go_on.wait()

    async with jmsaio.connect(url, close_timeout=0.2) as connection, connection.create_session() as session:
        async with session.create_producer(queue) as producer:
            await producer.send("x")
        (await session.create_consumer(queue)).set_message_listener(listener)
        await asyncio.wait_for(entered.wait(), 20)
        with pytest.raises(jmsaio.OperationTimeoutError, match="did not return"):
            await connection.stop()
        go_on.set()
        await asyncio.wait_for(connection.stop(), 20)


async def test_sessions_close_at_once(url: str, name: Name) -> None:
    """A listener may wait for what another session's receive ends with, and stuck ones don't add up."""
    queue, idle = jmsaio.Queue(name("busy")), jmsaio.Queue(name("idle"))
    entered, ended = asyncio.Event(), asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await ended.wait()

    connection = await jmsaio.connect(url)
    busy, other = await connection.create_session(), await connection.create_session()
    await (await busy.create_producer(queue)).send("x")
    (await busy.create_consumer(queue)).set_message_listener(listener)
    consumer = await other.create_consumer(idle)

    async def receive() -> None:
        assert await consumer.receive() is None
        ended.set()

    receiving = asyncio.ensure_future(receive())
    await asyncio.wait_for(entered.wait(), 20)
    await asyncio.wait_for(connection.close(), 20)
    await receiving


async def test_many_stuck_listeners_do_not_add_up(name: Name) -> None:
    connection = await jmsaio.connect(f"memory://{name('broker')}", close_timeout=0.2)
    entered = 0

    async def listener(message: jmsaio.Message) -> None:
        nonlocal entered
        entered += 1
        await asyncio.sleep(3600)

    sessions = [await connection.create_session() for _ in range(60)]
    for number, session in enumerate(sessions):
        queue = session.create_queue(name(f"stuck{number}"))
        (await session.create_consumer(queue)).set_message_listener(listener)
        await (await session.create_producer(queue)).send("x")
    while entered < len(sessions):
        await asyncio.sleep(0.01)
    with pytest.raises(jmsaio.OperationTimeoutError, match="did not return"):
        await asyncio.wait_for(connection.close(), 11)
    assert all(session.closed for session in sessions)


async def test_the_client_id_of_a_connection_that_is_not_started(url: str, name: Name) -> None:
    """What ``connect(auto_start=False)`` gives takes a client id; a started one is used and says what to do."""
    async with jmsaio.connect(url, auto_start=False) as connection:
        connection.client_id = name("set")
        assert connection.client_id == name("set")
        with pytest.raises(jmsaio.IllegalStateError, match="already"):
            connection.client_id = "other"
        await connection.start()
    async with jmsaio.connect(url) as started:
        with pytest.raises(jmsaio.IllegalStateError, match="auto_start=False"):
            started.client_id = name("late")


async def test_a_transacted_session_needs_an_option_on_each_broker(url: str) -> None:
    async with jmsaio.ConnectionFactory(url) as factory, factory.create_connection() as connection:
        async with connection.create_session():
            pass  # others need none
        for opening in (
            connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED),
            factory.create_context(jmsaio.AcknowledgeMode.TRANSACTED),
        ):
            with pytest.raises(jmsaio.IllegalStateError) as refused:
                await opening
            assert str(refused.value) == (
                "a transacted session needs enableTransaction=true, for transactions of the broker, or "
                "jms.emulateTransactions=true, for emulated ones: messages go out at once, acknowledgements at commit"
            )


@pytest.mark.parametrize("emulated", [True, False])
async def test_a_transacted_session_is_real_or_emulated_as_its_option_says(name: Name, emulated: bool) -> None:
    async with (
        jmsaio.connect(f"memory://{name('broker')}", **transactions(emulated)) as connection,
        connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED) as session,
        connection.create_session() as other,
    ):
        async with session.create_producer(jmsaio.Queue("q")) as producer:
            await producer.send("x")
        async with other.create_consumer(jmsaio.Queue("q")) as consumer:
            assert (await consumer.receive(timeout=0.1) is not None) is emulated


async def test_message_ids_tell_the_number_of_the_session_and_of_its_producer(name: Name) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        numbers = []
        for _ in range(2):
            session = await connection.create_session()
            for _ in range(2):
                receipt = await (await session.create_producer(jmsaio.Queue("q"))).send("x")
                numbers.append((receipt.jms_message_id or "").split(":")[2:])
        assert numbers == [["1", "1", "1"], ["1", "2", "1"], ["2", "1", "1"], ["2", "2", "1"]]


async def test_a_stop_by_a_completion_listener_waits_for_listeners_of_other_sessions(name: Name) -> None:
    queue, order, entered = jmsaio.Queue("q"), list[str](), asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await asyncio.sleep(1)
        order.append("listener")

    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        busy, session = await connection.create_session(), await connection.create_session()
        (await busy.create_consumer(queue)).set_message_listener(listener)
        producer, stopped = await session.create_producer(queue), asyncio.Event()

        async def completed(message: jmsaio.Message) -> None:
            await entered.wait()
            await connection.stop()
            order.append("stopped")
            stopped.set()

        await producer.send_async("x", completion_listener=Functions(completed, print))
        await asyncio.wait_for(stopped.wait(), 20)
        assert order == ["listener", "stopped"]


async def test_a_listener_may_create_a_session_while_its_connection_closes(name: Name) -> None:
    """It closes with the connection."""
    queue, entered, made = jmsaio.Queue("q"), asyncio.Event(), list[jmsaio.Session]()
    connection = await jmsaio.connect(f"memory://{name('broker')}")
    session = await connection.create_session()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        while not connection.closed:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        made.append(await connection.create_session())

    (await session.create_consumer(queue)).set_message_listener(listener)
    await (await session.create_producer(queue)).send("x")
    await asyncio.wait_for(entered.wait(), 20)
    await connection.close()
    assert [session.closed for session in made] == [True]


async def test_a_closed_connection_is_told_nothing_of_its_broker(name: Name) -> None:
    """The transport goes on for the other connections of the factory."""
    async with jmsaio.ConnectionFactory(f"memory://{name('broker')}") as factory:
        connection, other = await factory.create_connection(), await factory.create_connection()
        listeners = transport_of(connection).link_listeners
        assert len(listeners) == 2
        await connection.close()
        assert len(listeners) == 1
        await other.close()


@pytest.mark.parametrize("call", ["stop", "create_session"])
async def test_a_client_id_comes_before_any_other_call(name: Name, call: str) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}", auto_start=False) as connection:
        await getattr(connection, call)()
        with pytest.raises(jmsaio.IllegalStateError, match="before anything else"):
            connection.client_id = name("late")


async def test_an_exception_listener_that_closes_its_connection_does_not_wait_for_itself(name: Name) -> None:
    """Though the close has something to report, too."""
    connection = await jmsaio.connect(f"memory://{name('broker')}", close_timeout=20)
    await (await connection.create_session()).create_temporary_queue()
    admin, told = admin_of(connection), list[str]()

    async def refuse(topic: str, force: bool = False) -> None:
        raise jmsaio.AdminError("not now", 500)

    admin.delete_topic = refuse  # type: ignore[method-assign]  # a broker that refuses
    seconds: asyncio.Queue[float] = asyncio.Queue()

    async def listener(error: jmsaio.JMSError) -> None:
        began = steady()
        told.append(str(error))
        await connection.close()
        seconds.put_nowait(steady() - began)

    connection.set_exception_listener(listener)
    runtime_of(connection).reports.add(jmsaio.JMSError("the first"))
    for _ in range(2):
        assert await asyncio.wait_for(seconds.get(), 60) < 5
    assert told[0] == "the first" and "not now" in told[1]


async def test_a_transacted_session_asks_whether_this_broker_has_transactions(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the session is there; one whose transactions are emulated asks nothing."""
    error, asked = jmsaio.OperationTimeoutError("no coordinator answers"), list[float]()

    async def refuse(self: object, timeout: float) -> None:
        asked.append(timeout)
        raise error

    monkeypatch.setattr(MemoryTransport, "ready_for_transactions", refuse)
    for emulated in (True, False):
        url = f"memory://{name('broker')}"
        async with jmsaio.connect(url, **transactions(emulated), operation_timeout=7.0) as connection:
            await connection.create_session()
            if emulated:
                await connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED)
            else:
                with pytest.raises(jmsaio.OperationTimeoutError, match="no coordinator"):
                    await connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED)
    assert asked == [7.0]


async def test_no_session_is_made_of_a_connection_that_closes_while_the_broker_is_asked(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def slowly(self: object, timeout: float) -> None:
        asked.set()
        await asyncio.sleep(0.1)

    monkeypatch.setattr(MemoryTransport, "ready_for_transactions", slowly)
    connection = await jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True)
    opening = asyncio.ensure_future(connection._create_session(jmsaio.AcknowledgeMode.TRANSACTED))
    await asyncio.wait_for(asked.wait(), 20)
    await connection.close()
    with pytest.raises(jmsaio.ObjectClosedError):
        await opening


def test_versions_and_names() -> None:
    metadata = ConnectionMetaData()
    assert (metadata.jms_version, metadata.jms_major_version, metadata.jms_minor_version) == ("3.1", 3, 1)
    assert metadata.provider_version == __version__
    assert "JMSXGroupID" in list(metadata.get_jmsx_property_names())
