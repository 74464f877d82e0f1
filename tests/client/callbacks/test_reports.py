"""The state of a connection, its callbacks, iterator and ping; the exception listener."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable
from functools import partial

import anyio
import anyio.to_thread
import pytest

import jmsaio
from jmsaio import ConnectionState, StateChange
from jmsaio.client.callbacks.callback_context import CallbackContext, CallbackKind, current
from jmsaio.client.callbacks.reports import ExceptionReports, SerialCalls
from jmsaio.client.factory import _Connecting
from jmsaio.client.runtime.connection import Temporaries
from jmsaio.testing import FaultProxy, embedded_broker
from tests.client.helpers import Functions, until
from tests.kit.broker_fixtures import Disturbed
from tests.kit.inside import runtime_of
from tests.support.broker import TestBroker

CONNECTED, RECONNECTING, CLOSED = ConnectionState
#: Seconds after which a test hangs: a change takes 10 at most, and more on a crowded machine.
LONG = 60.0


async def test_an_idle_connection_notices_an_outage_and_its_end(disturbed: Disturbed) -> None:
    """Nothing is open on it, as in a service that only answers a health check."""
    told: list[StateChange] = []
    async with jmsaio.connect(disturbed.url) as connection:
        connection.on_state(told.append)
        assert connection.state is CONNECTED
        with disturbed.outage():
            lost = await until(connection, RECONNECTING)
            assert isinstance(lost.error, jmsaio.BrokerUnavailableError)
        assert (await until(connection, CONNECTED)).error is None
        assert await connection.ping(LONG) >= 0
    assert connection.state is CLOSED
    assert [change.state for change in told] == [RECONNECTING, CONNECTED, CLOSED]
    assert [change.error is None for change in told] == [False, True, True]


async def test_a_connection_counts_its_reconnects(disturbed: Disturbed) -> None:
    async with jmsaio.connect(disturbed.url) as connection:
        assert connection.stats() == jmsaio.ConnectionStats(
            state=CONNECTED, reconnects=0, sessions=0, producers=(), consumers=()
        )
        session = await connection.create_session()
        consumer = await session.create_consumer(session.create_queue(f"reconnects-{uuid.uuid4()}"))
        assert consumer.stats().reconnects == 0
        with disturbed.outage():
            await until(connection, RECONNECTING)
        await until(connection, CONNECTED)
        stats = connection.stats()
        assert (stats.reconnects, stats.consumers[0].reconnects) == (1, 1)
        later = await session.create_consumer(session.create_queue(f"reconnects-{uuid.uuid4()}"))
        assert later.stats().reconnects == 0
    with pytest.raises(jmsaio.ObjectClosedError):
        connection.stats()


async def test_a_connection_that_only_sends_notices_an_outage(disturbed: Disturbed) -> None:
    async with jmsaio.connect(disturbed.url) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue(f"state-{uuid.uuid4()}"))
        await producer.send("before")
        with disturbed.outage():
            await until(connection, RECONNECTING)
        await until(connection, CONNECTED)
        await producer.send("after")


@pytest.mark.broker
async def test_a_frozen_broker_is_noticed_though_its_connections_stay_open(pulsar_broker: TestBroker) -> None:
    """By connections with a consumer, with a producer and with nothing."""
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        url = f"{proxy.url}?webServiceUrl={pulsar_broker.web_service_url}"
        async with jmsaio.connect(url) as idle, jmsaio.connect(url) as sending, jmsaio.connect(url) as receiving:
            queue = jmsaio.Queue(f"state-{uuid.uuid4()}")
            session, other = await sending.create_session(), await receiving.create_session()
            await session.create_producer(queue)
            await other.create_consumer(queue)
            proxy.stall()
            for connection in (idle, sending, receiving):
                await until(connection, RECONNECTING)
                with pytest.raises(jmsaio.TransportError):
                    await connection.ping(0.5)
            proxy.resume()
            for connection in (idle, sending, receiving):
                await until(connection, CONNECTED)


@pytest.mark.broker
async def test_a_killed_broker_is_back_when_it_runs_again(own_broker: TestBroker) -> None:
    async with jmsaio.connect(own_broker.url) as connection:
        await anyio.to_thread.run_sync(own_broker.kill)
        await until(connection, RECONNECTING)
        await anyio.to_thread.run_sync(own_broker.start)
        await until(connection, CONNECTED)


async def test_callbacks_are_plain_or_coroutine_functions_and_end_when_told() -> None:
    told: list[str] = []

    async def slow(change: StateChange) -> None:
        await asyncio.sleep(0.01)
        told.append(f"slow {change.state.value}")

    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection:
            connection.on_state(slow)
            stop = connection.on_state(lambda change: told.append(f"quick {change.state.value}"))
            with broker.faults.outage():
                await asyncio.sleep(1)
            await asyncio.sleep(1)
            stop()
    lost_and_back = ["slow reconnecting", "quick reconnecting", "slow connected", "quick connected"]
    assert told == [*lost_and_back, "slow closed"]


async def test_a_callback_that_raises_is_logged_and_one_may_close_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with embedded_broker() as broker:
        connection = await jmsaio.connect(broker.url)

        def broken(change: StateChange) -> None:
            raise ValueError("no callback")

        async def closing(change: StateChange) -> None:
            await connection.close()

        connection.on_state(broken)
        connection.on_state(closing)
        with broker.faults.outage():
            await until(connection, CLOSED)
        await asyncio.sleep(1)
    assert [record.message for record in caplog.records].count("a state callback raised") == 2
    with pytest.raises(jmsaio.ObjectClosedError):
        connection.on_state(broken)


async def test_wrong_arguments_are_named() -> None:
    async with jmsaio.connect("memory:") as connection:
        with pytest.raises(jmsaio.IllegalArgumentError, match="on_state must be a function of one StateChange"):
            connection.on_state(3)  # type: ignore[arg-type]  # what is refused
        with pytest.raises(jmsaio.IllegalArgumentError, match="timeout must be above 0 seconds, and is 0"):
            await connection.ping(0)
        with pytest.raises(jmsaio.IllegalArgumentError, match="wait"):
            await jmsaio.connect("memory:", wait=-1)
    with pytest.raises(jmsaio.ObjectClosedError):
        await connection.ping()


async def test_ping_says_that_the_broker_is_away(disturbed: Disturbed) -> None:
    async with jmsaio.connect(disturbed.url) as connection:
        assert await connection.ping(LONG) >= 0
        with disturbed.outage(), pytest.raises(jmsaio.TransportError):
            await connection.ping(2)


async def test_connecting_waits_for_a_broker_that_starts_later(
    disturbed: Disturbed, caplog: pytest.LogCaptureFixture
) -> None:
    with disturbed.outage():
        connecting = asyncio.ensure_future(jmsaio.connect(disturbed.url, wait=LONG))
        with caplog.at_level(logging.WARNING, "jmsaio"), anyio.fail_after(LONG):
            while not any("trying again for" in record.message for record in caplog.records):
                await asyncio.sleep(0.01)
    async with await connecting as connection:
        assert connection.state is CONNECTED


async def test_the_wait_for_a_broker_ends() -> None:
    with embedded_broker() as broker, broker.faults.outage(), pytest.raises(jmsaio.BrokerUnavailableError):
        await jmsaio.connect(broker.url, wait=3)


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(_Connecting(None, "secret", None))


def fields(record: logging.LogRecord) -> dict[str, object]:
    """What a log record says of its circumstances."""
    return {name: value for name, value in vars(record).items() if name.startswith("jms_")}


@pytest.fixture
async def owned(url: str) -> AsyncIterator[jmsaio.Connection]:
    """A connection of a factory that others may use, so that its close has nothing to wait for but itself."""
    async with jmsaio.ConnectionFactory(url) as factory:
        yield await factory.create_connection()


async def test_a_listener_may_close_its_connection_and_go_on(owned: jmsaio.Connection) -> None:
    done = asyncio.Event()

    async def listener(error: jmsaio.JMSError) -> None:
        await owned.close()
        await asyncio.sleep(0.01)
        done.set()

    owned.set_exception_listener(listener)
    runtime_of(owned).reports.add(ValueError("broken"))
    await asyncio.wait_for(done.wait(), 20)
    assert owned.closed


async def test_what_fails_at_close_is_told_before_it_returns(
    owned: jmsaio.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    async def listener(error: jmsaio.JMSError) -> None:
        await asyncio.sleep(0.01)
        told.append(str(error))

    async def refuse(*arguments: object) -> None:
        raise jmsaio.AdminError("not now")

    owned.set_exception_listener(listener)
    async with owned.create_session() as session:
        for _ in range(3):
            await session.create_temporary_queue()
    with monkeypatch.context() as patched:
        patched.setattr(Temporaries, "_delete", refuse)
        await owned.close()
    assert told == ["not now"] * 3


async def test_a_listener_that_hangs_does_not_keep_a_connection_open() -> None:
    async with jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}") as factory:
        connection = await factory.create_connection()
        started, end = asyncio.Event(), asyncio.Event()

        async def listener(error: jmsaio.JMSError) -> None:
            started.set()
            await end.wait()

        connection.set_exception_listener(listener)
        runtime_of(connection).reports.add(ValueError("broken"))
        await started.wait()
        await asyncio.wait_for(connection.close(), 10)
        end.set()
        await runtime_of(connection).reports.calls.wait(10)


async def test_a_listener_that_raises_is_told_the_next(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    def listener(error: jmsaio.JMSError) -> None:
        told.append(str(error))
        raise RuntimeError("in the listener")

    reports = ExceptionReports(SerialCalls(), listener)
    for number in range(2):
        reports.add(ValueError(number))
    await reports.calls.wait(10)
    assert told == ["ValueError: 0", "ValueError: 1"]
    assert [record.message for record in caplog.records].count("the exception listener raised") == 2


async def test_a_listener_that_fails_again_is_counted_after_one_traceback(
    owned: jmsaio.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(number: int) -> None:
        raise ValueError(f"failed {number}")

    reports = runtime_of(owned).reports
    for number in (1, 2, 3):
        try:
            fail(number)
        except ValueError as error:
            reports.add(error, "the listener")
    reports.add(ValueError("elsewhere"))
    records = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.message for record in records] == [
        "the listener: failed 1",
        "the listener: failed 2 (2 times from the same line; its first traceback is above)",
        "the listener: failed 3 (3 times from the same line; its first traceback is above)",
        "elsewhere",
    ]
    assert [record.exc_info is not None for record in records] == [True, False, False, True]


async def test_a_listener_that_fails_is_one_log_record(
    session: jmsaio.Session, name: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    """The record has destination, message id and traceback; a completion listener's second has a count instead."""
    queue, done = session.create_queue(name("failing")), asyncio.Event()

    def listener(message: jmsaio.Message) -> None:
        if message.jms_redelivered:
            done.set()
            return
        raise ValueError("no one drinks this")

    consumer = await session.create_consumer(queue)
    consumer.set_message_listener(listener)
    producer = await session.create_producer(queue)
    sent = await producer.send("tea")
    await asyncio.wait_for(done.wait(), 20)
    [record] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.exc_info is not None and isinstance(record.exc_info[1], ValueError)
    assert record.message == f"the listener of {queue!r} failed on message {sent.jms_message_id}: no one drinks this"
    here = {"jms_connection": session._runtime.connection.connection_id, "jms_session": session._runtime.number}
    known = {"jms_destination": queue.name, "jms_subscription": "jms-queue", "jms_message_id": sent.jms_message_id}
    assert fields(record) == {**here, **known, "jms_attempt": 1}
    assert record.name == "jmsaio.client.callbacks.reports"

    def failing(*arguments: object) -> None:
        raise ValueError("no one cares")

    await consumer.close()
    caplog.clear()
    messages = [session.create_text_message("coffee") for _ in range(2)]
    for message in messages:
        await producer.send_async(message, completion_listener=Functions(failing, failing))
    await producer.close()
    records = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.exc_info is not None for record in records] == [True, False]
    again = " (2 times from the same line; its first traceback is above)"
    for message, record, end in zip(messages, records, ("", again), strict=True):
        which = f"message {message.jms_message_id} to {queue!r}"
        assert record.message == f"the completion listener of {which}: no one cares{end}"
        assert fields(record) == {**here, "jms_destination": queue.name, "jms_message_id": message.jms_message_id}


async def test_a_broker_that_is_gone_is_told_to_a_service_that_only_consumes(
    disturbed: Disturbed, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning and one call of the listener when the connection is lost, one line when it is back."""
    told: list[jmsaio.JMSError] = []

    def records(level: int) -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name.startswith("jmsaio.") and record.levelno == level]

    def lines(level: int) -> list[str]:
        return [record.message for record in records(level)]

    async with jmsaio.connect(disturbed.url) as connection, connection.create_session() as session:
        connection.set_exception_listener(told.append)
        async with session.create_consumer(session.create_queue(f"reports-{uuid.uuid4()}")) as consumer:
            waiting = asyncio.ensure_future(consumer.receive(timeout=60))
            with caplog.at_level(logging.INFO, "jmsaio"):
                with disturbed.outage():
                    async with asyncio.timeout(30):
                        while not told:
                            await asyncio.sleep(0.05)
                    await asyncio.sleep(0.2)
                async with asyncio.timeout(30):
                    while not any("is back" in line for line in lines(logging.INFO)):
                        await asyncio.sleep(0.05)
            waiting.cancel()
    assert [type(error) for error in told] == [jmsaio.BrokerUnavailableError]
    assert lines(logging.WARNING) == [str(told[0])]
    assert len([line for line in lines(logging.INFO) if "is back" in line]) == 1
    about = {"jms_connection": connection._runtime.connection_id}
    assert [fields(record) for level in (logging.WARNING, logging.INFO) for record in records(level)] == [about, about]


async def test_an_exclusive_subscription_that_was_lost_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """The listener hears of it once, whether or not a receive raises it."""
    told: list[jmsaio.JMSError] = []
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            connection.set_exception_listener(told.append)
            topic = session.create_topic("news")
            async with session.create_durable_consumer(topic, "lost") as consumer:
                name = broker.subscriptions("news")[0]
                lost = jmsaio.ConsumerBusyError("another client has it")
                assert broker.faults.drop_consumers("news", name, error=lost) == 1
                with pytest.raises(jmsaio.ConsumerBusyError, match="another client"):
                    await consumer.receive(timeout=20)
                runtime_of(connection).reports.add(lost)
                await runtime_of(connection).reports.calls.wait(10)
    assert told == [lost]


@pytest.mark.parametrize(
    ("error", "circumstances", "logged", "lines"),
    [
        (ValueError("broken"), "", False, ["broken"]),
        (ValueError(), "", False, ["ValueError"]),
        (ValueError(), "closing", False, ["closing: ValueError"]),
        (ValueError("broken"), "closing", True, []),
    ],
)
async def test_a_problem_is_logged_with_its_circumstances_unless_it_is_already(
    error: ValueError, circumstances: str, logged: bool, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    told: list[jmsaio.JMSError] = []
    reports = ExceptionReports(SerialCalls(), told.append)
    reports.add(error, circumstances, logged=logged)
    await reports.calls.wait(10)
    assert [(record.message, record.exc_info and record.exc_info[1]) for record in caplog.records] == [
        (line, error) for line in lines
    ]
    assert [report.__cause__ for report in told] == [error]


async def test_a_listener_that_is_taken_away_hears_no_more_and_another_one_begins_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[str] = []
    reports = ExceptionReports(SerialCalls(), lambda error: told.append(str(error)))
    reports.add(jmsaio.JMSError("taken away"), logged=True)
    reports.listener = None
    await reports.calls.wait(10)
    assert told == [] and caplog.records == []
    reports.listener = lambda error: told.append(f"again {error}")
    reports.add(jmsaio.JMSError("1"), logged=True)
    await reports.calls.wait(10)
    assert told == ["again 1"]


async def test_a_listener_is_not_inside_of_the_callback_whose_failure_it_hears_of() -> None:
    found: list[tuple[object, bool]] = []

    def listener(_: jmsaio.JMSError) -> None:
        found.append((current(), reports.calls.called_from_here()))

    reports = ExceptionReports(SerialCalls(), listener)
    with CallbackContext(CallbackKind.LISTENER, None, None, None):
        reports.add(ValueError("failed"), logged=True)
        assert not reports.calls.called_from_here()
        await reports.calls.wait(10)
    assert found == [(None, True)]


async def test_a_listener_hears_only_of_problems_since_it_was_set() -> None:
    told: list[str] = []
    reports = ExceptionReports(SerialCalls())
    reports.add(jmsaio.JMSError("before"), logged=True)
    reports.listener = lambda error: told.append(str(error))
    reports.add(jmsaio.JMSError("since"), logged=True)
    await reports.calls.wait(10)
    assert told == ["since"] and reports.calls.count == 1


async def test_a_listener_that_hangs_is_waited_for_no_longer_than_wanted_and_hears_on_once_cancelled() -> None:
    told: list[str] = []

    async def listener(error: jmsaio.JMSError) -> None:
        told.append(str(error))
        await asyncio.sleep(3600 if str(error) == "hangs" else 0)

    reports = ExceptionReports(SerialCalls(), listener)
    reports.add(jmsaio.JMSError("hangs"), logged=True)
    async with asyncio.timeout(1):
        await reports.calls.wait(0.1)
    task = reports.calls._task
    assert task is not None
    task.cancel()
    await asyncio.wait([task])
    reports.add(jmsaio.JMSError("next"), logged=True)
    await reports.calls.wait(10)
    assert told == ["hangs", "next"]


#: Maximum seconds for what is done at once.
AT_ONCE = 10.0


async def test_calls_are_made_in_order_and_one_at_a_time(caplog: pytest.LogCaptureFixture) -> None:
    calls, told = SerialCalls(), list[str]()

    async def slow(name: str) -> None:
        told.append(f"begin {name}")
        await asyncio.sleep(0)
        told.append(f"end {name}")
        if name == "a":
            raise ValueError("the first fails")

    for name in "ab":
        calls.add("a function", partial(slow, name))
    assert told == []
    await calls.wait(AT_ONCE)
    assert told == ["begin a", "end a", "begin b", "end b"]
    assert [record.message for record in caplog.records] == ["a function raised"]
    assert calls.count == 2


async def test_what_waits_is_bounded(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsaio.client.callbacks.reports._MOST", 2)
    calls, told = SerialCalls(), list[int]()

    async def tell(number: int) -> None:
        told.append(number)

    with caplog.at_level(logging.WARNING, "jmsaio"):
        for number in range(4):
            calls.add("a function", partial(tell, number))
    await calls.wait(AT_ONCE)
    assert told == [0, 1] and calls.count == 4
    assert [record.message for record in caplog.records] == ["a function is too slow; a call was dropped"] * 2


async def test_a_function_can_ask_whether_it_is_called_from_here() -> None:
    calls, other, found = SerialCalls(), SerialCalls(), list[bool]()

    async def ask() -> None:
        found.append(calls.called_from_here())
        found.append(other.called_from_here())

    calls.add("a function", ask)
    await calls.wait(AT_ONCE)
    assert found == [True, False] and not calls.called_from_here()
