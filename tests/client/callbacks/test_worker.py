"""Message listeners (Jakarta Messaging 3.1, 8.7 Receiving messages asynchronously)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.client import consumer as consumer_module
from jmsaio.client.callbacks import worker
from jmsaio.client.callbacks.worker import CallbackWorker, call
from jmsaio.codec import decode_with
from jmsaio.model.wire import ReceivedRecord
from jmsaio.testing import embedded_broker
from tests.client.helpers import Listener, fill, rest, text, texts, transactions

Name = Callable[[str], str]


async def test_a_callback_that_blocks_the_loop_is_logged_with_its_name_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By one clock, which the callbacks advance themselves."""
    now = 0.0
    monkeypatch.setattr(worker, "_watch", worker._Watch())
    monkeypatch.setattr(worker, "time", SimpleNamespace(perf_counter=lambda: now))

    def block(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def block_between(seconds: float) -> None:
        await asyncio.sleep(0)
        block(seconds)
        await asyncio.sleep(0)

    await call(block, 0.9)
    await call(block_between, 0.9)
    assert not caplog.records
    await call(block_between, 2)
    await call(block, 30)  # within the minute
    assert [
        "test_a_callback" in each.message and "block_between blocked" in each.message for each in caplog.records
    ] == [True]
    await call(block, 31)
    assert len(caplog.records) == 2 and "for 31.0 s" in caplog.records[1].message
    with pytest.raises(ZeroDivisionError):
        await call(lambda: 1 / 0)

    async def wait() -> None:
        await asyncio.sleep(60)

    task = asyncio.create_task(call(wait))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_listener_serial_and_in_order(connection: jmsaio.Connection, name: Name) -> None:
    queues = [jmsaio.Queue(name(f"listen{index}")) for index in range(2)]
    seen: list[str] = []
    running = 0
    done = asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0)
        seen.append(text(message))
        running -= 1
        if len(seen) == 20:
            done.set()

    async with connection.create_session() as session:
        for queue in queues:
            (await session.create_consumer(queue)).set_message_listener(listener)
        for queue in queues:
            await fill(connection, queue, 10)
        await asyncio.wait_for(done.wait(), 30)
    assert sorted(seen) == sorted([str(number) for number in range(10)] * 2)
    for queue in queues:
        assert await rest(connection, queue, wait=0.5) == []


async def test_failing_listener_gets_the_message_again(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("failing"))
    seen: list[tuple[str, int]] = []
    reported: list[jmsaio.JMSError] = []
    done = asyncio.Event()
    connection.set_exception_listener(reported.append)

    def listener(message: jmsaio.Message) -> None:
        seen.append((text(message), message.get_int_property("JMSXDeliveryCount")))
        if len(seen) <= 2:
            raise ValueError("not yet")
        if len(seen) == 4:
            done.set()

    async with connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        consumer.set_message_listener(listener)
        await fill(connection, queue, 2)
        await asyncio.wait_for(done.wait(), 30)
    assert seen == [("0", 1), ("0", 2), ("0", 3), ("1", 1)]
    assert [type(error.linked_exception) for error in reported] == [ValueError, ValueError]


async def test_calls_from_inside_a_listener(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("inside"))
    found: list[object] = []
    done = asyncio.Event()
    async with connection.create_session() as session:
        consumer = await session.create_consumer(queue)

        async def listener(message: jmsaio.Message) -> None:
            for call in (session.close, connection.close, connection.stop):
                try:
                    await asyncio.ensure_future(call())
                except jmsaio.IllegalStateError as error:
                    found.append(error)
            await consumer.close()
            done.set()

        consumer.set_message_listener(listener)
        await fill(connection, queue, 2)
        await asyncio.wait_for(done.wait(), 30)
        await asyncio.sleep(0.1)
    assert len(found) == 3
    assert texts(await rest(connection, queue, 1)) == ["1"]


async def test_stop_waits_for_the_listener(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("stop"))
    entered, leave = asyncio.Event(), asyncio.Event()
    count = 0

    async def listener(message: jmsaio.Message) -> None:
        nonlocal count
        count += 1
        entered.set()
        await leave.wait()

    async with connection.create_session() as session:
        (await session.create_consumer(queue)).set_message_listener(listener)
        await fill(connection, queue, 3)
        await asyncio.wait_for(entered.wait(), 20)
        stopping = asyncio.ensure_future(connection.stop())
        await asyncio.sleep(0.05)
        assert not stopping.done()
        leave.set()
        await asyncio.wait_for(stopping, 20)
        before = count
        await asyncio.sleep(0.2)
        assert count == before
        await connection.start()
        while count < 3:
            await asyncio.sleep(0.01)


async def test_a_listener_that_ends_cancelled_has_failed(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("cancelled"))
    seen: list[str] = []
    reported: list[jmsaio.JMSError] = []
    done = asyncio.Event()
    connection.set_exception_listener(reported.append)

    async def listener(message: jmsaio.Message) -> None:
        seen.append(text(message))
        if len(seen) == 1:
            waiting = asyncio.get_running_loop().create_future()
            waiting.cancel()
            await waiting
        if len(seen) == 3:
            done.set()

    async with connection.create_session() as session:
        (await session.create_consumer(queue)).set_message_listener(listener)
        await fill(connection, queue, 2)
        await asyncio.wait_for(done.wait(), 30)
        assert not session.closed
    assert seen == ["0", "0", "1"]
    assert [type(error.__cause__) for error in reported] == [asyncio.CancelledError]


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.TRANSACTED])
@pytest.mark.parametrize("closed", ["session", "connection"])
async def test_a_running_listener_may_use_all_that_is_closed_until_it_returns(
    url: str, name: Name, closed: str, mode: AcknowledgeMode
) -> None:
    queue, out = jmsaio.Queue(name("busy")), jmsaio.Queue(name("out"))
    entered, go_on = asyncio.Event(), asyncio.Event()
    told: list[str] = []

    class Told:
        def on_completion(self, message: jmsaio.Message) -> None:
            told.append(text(message))

        def on_exception(self, message: jmsaio.Message, error: Exception) -> None:
            raise error

    connection = await jmsaio.connect(url, **transactions(not url.startswith("memory")))
    await fill(connection, queue, 2)
    session = await connection.create_session(mode)
    producer, consumer = await session.create_producer(out), await session.create_consumer(queue)

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await go_on.wait()
        await producer.send(session.create_text_message("sent"))
        async with session.create_producer(out) as another, session.create_consumer(queue) as late:
            assert another.priority == 4
            assert await late.receive_no_wait() is None
        async with connection.create_session() as fresh:
            await fresh.create_temporary_queue()
        await producer.send_async("later", completion_listener=Told())
        await message.acknowledge()
        if mode is AcknowledgeMode.TRANSACTED:
            await session.commit()

    consumer.set_message_listener(listener)
    await asyncio.wait_for(entered.wait(), 20)
    closing = asyncio.ensure_future(session.close() if closed == "session" else connection.close())
    await asyncio.sleep(0.05)
    with pytest.raises(jmsaio.ObjectClosedError):
        await producer.send("from elsewhere")
    go_on.set()
    await asyncio.wait_for(closing, 30)
    assert told == ["later"]
    await connection.close()
    async with jmsaio.connect(url) as again:
        assert texts(await rest(again, out, 2, wait=0.5)) == ["sent", "later"]
        assert texts(await rest(again, queue, 1, wait=0.5)) == ["1"]


@pytest.mark.real_time  # waits for a thread or a process
async def test_a_plain_function_in_a_thread_is_inside_too(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("thread"))
    loop = asyncio.get_running_loop()
    found: list[object] = []
    done = asyncio.Event()
    async with connection.create_session() as session:

        def work(message: jmsaio.Message) -> None:
            found.append(threading.current_thread() is threading.main_thread())
            for call in (session.close, connection.close, connection.stop):
                try:
                    asyncio.run_coroutine_threadsafe(call(), loop).result(20)
                except jmsaio.IllegalStateError as error:
                    found.append(type(error))
            loop.call_soon_threadsafe(done.set)

        consumer = await session.create_consumer(queue)
        consumer.set_message_listener(lambda message: asyncio.to_thread(work, message))
        await fill(connection, queue, 1)
        await asyncio.wait_for(done.wait(), 30)
    assert found == [False, *[jmsaio.IllegalStateError] * 3]


async def test_a_message_that_always_fails_lets_others_pass(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("poison"))
    seen: list[str] = []
    done = asyncio.Event()

    def listener(message: jmsaio.Message) -> None:
        seen.append(text(message))
        if seen[-1] == "0":
            raise ValueError("never")
        if seen[-1] == "2":
            done.set()

    async with jmsaio.connect(url, max_local_redeliveries=2) as connection, connection.create_session() as session:
        (await session.create_consumer(queue)).set_message_listener(listener)
        await fill(connection, queue, 3)
        await asyncio.wait_for(done.wait(), 30)
    assert seen[:5] == ["0", "0", "0", "1", "2"]


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.TRANSACTED])
async def test_a_failing_listener_of_other_modes_goes_on_to_the_next(
    url: str, name: Name, mode: AcknowledgeMode
) -> None:
    queue = jmsaio.Queue(name("modes"))
    seen: list[tuple[str, int]] = []
    done = asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        seen.append((text(message), message.get_int_property("JMSXDeliveryCount")))
        if len(seen) == 1:
            raise ValueError("not this one")
        if len(seen) == 3:
            if mode is AcknowledgeMode.TRANSACTED:
                await session.rollback()
            else:
                await session.recover()
        if mode is AcknowledgeMode.INDIVIDUAL or len(seen) == 6:
            await message.acknowledge()
        if len(seen) == 6 and mode is AcknowledgeMode.TRANSACTED:
            await session.commit()
        if len(seen) == len(expected):
            done.set()

    expected = [("0", 1), ("1", 1), ("2", 1), ("0", 2), ("1", 2), ("2", 2)]
    if mode is AcknowledgeMode.INDIVIDUAL:
        expected.remove(("1", 2))
    emulated = not url.startswith("memory")
    async with jmsaio.connect(url, **transactions(emulated)) as connection:
        session = await connection.create_session(mode)
        (await session.create_consumer(queue)).set_message_listener(listener)
        await fill(connection, queue, 3)
        await asyncio.wait_for(done.wait(), 30)
        await session.close()
        assert seen == expected
        assert await rest(connection, queue, wait=1.0) == []


async def test_a_listener_may_be_replaced_and_unset(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("replaced"))
    seen: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    async with connection.create_session() as session, session.create_producer(queue) as producer:
        consumer = await session.create_consumer(queue)
        for who in ("first", "second"):
            consumer.set_message_listener(lambda message, who=who: seen.put_nowait((who, message.get_body(str))))
            await producer.send(who)
            assert await asyncio.wait_for(seen.get(), 20) == (who, who)
            with pytest.raises(jmsaio.IllegalStateError, match="message listener"):
                await consumer.receive_no_wait()
        consumer.set_message_listener(None)
        await producer.send("waits")
        assert await consumer.receive_body(str, timeout=20) == "waits"
        await asyncio.sleep(0.05)
        assert seen.empty()
        waiting = asyncio.ensure_future(consumer.receive())
        await asyncio.sleep(0.01)
        with pytest.raises(jmsaio.IllegalStateError, match="receive is waiting"):
            consumer.set_message_listener(print)
        waiting.cancel()


async def test_a_message_that_can_not_be_read_is_reported_and_others_pass(
    connection: jmsaio.Connection, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = jmsaio.Queue(name("unreadable"))
    told: list[jmsaio.JMSError] = []
    seen: asyncio.Queue[str] = asyncio.Queue()
    connection.set_exception_listener(told.append)
    failures = 1

    def once(record: ReceivedRecord, *rest: Any) -> jmsaio.Message:
        nonlocal failures
        if failures:
            failures -= 1
            raise jmsaio.MalformedMessageError("not now", record)
        return decode_with(record, *rest)

    monkeypatch.setattr(consumer_module, "decode_with", once)
    async with connection.create_session() as session:
        await fill(connection, queue, 2)
        consumer = await session.create_consumer(queue)
        consumer.set_message_listener(lambda message: seen.put_nowait(message.get_body(str)))
        assert [await asyncio.wait_for(seen.get(), 20) for _ in range(2)] == ["1", "0"]
    assert [type(error) for error in told] == [jmsaio.MalformedMessageError]


class Stop(BaseException):
    """No Exception."""


@pytest.mark.parametrize("closed_by", ["session", "connection"])
async def test_a_base_exception_ends_the_session(url: str, name: Name, closed_by: str) -> None:
    """A BaseException of a listener ends its session alone; the ExceptionListener and the close report it."""
    queue, others = jmsaio.Queue(name("stop")), jmsaio.Queue(name("others"))
    told: asyncio.Queue[jmsaio.JMSError] = asyncio.Queue()

    async def listener(message: jmsaio.Message) -> None:
        raise Stop("enough")

    connection = await jmsaio.connect(url)
    connection.set_exception_listener(told.put_nowait)
    session, other = await connection.create_session(), await connection.create_session()
    consumer = await session.create_consumer(queue)
    consumer.set_message_listener(listener)
    await fill(connection, queue, 1)
    error = await asyncio.wait_for(told.get(), 20)
    assert "Stop('enough')" in str(error)
    while not session.closed:
        await asyncio.sleep(0.01)
    async with other.create_consumer(others) as alive:
        await fill(connection, others, 1)
        assert await alive.receive_body(str, timeout=20) == "0"
    if closed_by == "session":
        with pytest.raises(jmsaio.JMSError, match="enough") as caught:
            await session.close()
        assert isinstance(caught.value.__cause__.__cause__, Stop)  # type: ignore[union-attr]  # it has one
        await session.close()
        async with other.create_consumer(queue) as second:
            assert await second.receive_body(str, timeout=20) == "0"
        await connection.close()
    else:
        with pytest.raises(jmsaio.JMSError, match="enough"):
            await connection.close()
        await session.close()
    assert connection.closed


class Ending(Listener):
    """Ends its session as soon as the first message is confirmed, but not before ``both_sent``."""

    def __init__(self) -> None:
        super().__init__()
        self.both_sent = asyncio.Event()

    async def on_completion(self, message: jmsaio.Message) -> None:
        await self.both_sent.wait()
        await super().on_completion(message)
        if len(self.told) == 1:
            raise Stop("enough")


async def end_by_completion(connection: jmsaio.Connection, queue: jmsaio.Queue) -> list[tuple[str, type | None]]:
    """Send two messages, of which the first one's completion ends the session. Returns what becomes of them."""
    listener = Ending()
    session = await connection.create_session()
    producer = await session.create_producer(queue)
    for body in ("a", "b"):
        future = await producer.send_async(body, completion_listener=listener)
        future.add_done_callback(asyncio.Future.exception)  # the listener looks at it
    listener.both_sent.set()
    while not session.closed:
        await asyncio.sleep(0.01)
    with pytest.raises(jmsaio.JMSError, match="enough"):
        await session.close()
    return [(text(message), None if error is None else type(error)) for message, error in listener.told]


async def test_a_base_exception_of_a_completion_listener_ends_the_session(
    connection: jmsaio.Connection, name: Name
) -> None:
    """A completion listener's BaseException ends the session likewise; the others are called."""
    assert await end_by_completion(connection, jmsaio.Queue(name("completion"))) == [("a", None), ("b", None)]


@pytest.mark.parametrize(("delay", "outcome"), [(5, None), (100, jmsaio.SendInDoubtError)])
async def test_a_session_that_ends_by_itself_waits_for_its_sends(delay: float, outcome: type | None) -> None:
    """As one that is closed (Jakarta Messaging 3.1, 6.2.15 Closing a session), for ``close_timeout`` at most."""
    with embedded_broker() as broker:
        broker.faults.delay_answers(0)
        broker.faults.delay_answers(delay)
        async with jmsaio.connect(broker.url, close_timeout=30) as connection:
            assert await end_by_completion(connection, jmsaio.Queue("q")) == [("a", None), ("b", outcome)]


ENDING = """
import asyncio, sys
import jmsaio

def end(message):
    raise {ending}

async def main():
    async with jmsaio.connect("memory:") as connection, connection.create_session() as session:
        consumer = await session.create_consumer(jmsaio.Queue("q"))
        consumer.set_message_listener(end)
        await (await session.create_producer(jmsaio.Queue("q"))).send("x")
        await asyncio.sleep(30)
        print("still running")

try:
    asyncio.run(main())
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.real_time  # waits for a thread or a process
@pytest.mark.parametrize(("ending", "code"), [("SystemExit(7)", 7), ("KeyboardInterrupt", 130)])
def test_what_ends_the_program_ends_it(ending: str, code: int) -> None:
    """KeyboardInterrupt and SystemExit of a listener end the program as usual."""
    script = ENDING.format(ending=ending)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=25, check=False)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr


async def test_objects_are_listeners_as_in_java(connection: jmsaio.Connection, name: Name) -> None:
    """An object with ``on_message`` is a message listener, one with ``on_exception`` an exception listener."""
    heard: asyncio.Queue[object] = asyncio.Queue()

    class Listener:
        async def on_message(self, message: jmsaio.Message) -> None:
            heard.put_nowait(message.get_body(str))
            raise ValueError("not now")

        def on_exception(self, error: jmsaio.JMSError) -> None:
            heard.put_nowait(str(error))

    listener, queue = Listener(), jmsaio.Queue(name("object"))
    connection.set_exception_listener(listener)
    assert connection.exception_listener is listener
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        consumer.set_message_listener(listener)
        assert consumer.message_listener is listener
        await fill(connection, queue, 1)
        assert await asyncio.wait_for(heard.get(), 20) == "0"
        assert "not now" in str(await asyncio.wait_for(heard.get(), 20))
        wrong: Any = object()
        with pytest.raises(jmsaio.IllegalArgumentError, match="listener must be a function"):
            consumer.set_message_listener(wrong)
        with pytest.raises(jmsaio.IllegalArgumentError, match="listener must be a function"):
            connection.set_exception_listener(wrong)


async def test_other_tasks_have_their_turn_between_two_callbacks() -> None:
    order: list[str] = []
    worker = CallbackWorker(lambda: None)

    async def job() -> None:
        assert worker.busy
        order.append("job")
        asyncio.get_running_loop().call_soon(order.append, "other")

    for _ in range(3):
        worker.add(job)
    assert worker.busy
    running = asyncio.ensure_future(worker.run())
    await worker.idle()
    assert not worker.busy and order[:5] == ["job", "other", "job", "other", "job"]
    running.cancel()


async def ran_before_another_task(job: Callable[[], Awaitable[None]], jobs: int = 100) -> int:
    """How many message jobs a worker runs before a task that is ready has its turn."""
    ran = 0

    async def counted() -> None:
        nonlocal ran
        ran += 1
        await job()

    running = asyncio.ensure_future(CallbackWorker(lambda: counted if ran < jobs else None).run())
    while not ran:
        await asyncio.sleep(0)
    before = ran
    running.cancel()
    return before


async def nothing() -> None:
    """A callback that is soon done."""


async def test_other_tasks_have_their_turn_after_32_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsaio.client.callbacks.worker._LONGEST_TURN", 3600.0)  # the machine's time is no subject here
    assert await ran_before_another_task(nothing) == 32


async def test_other_tasks_have_their_turn_after_a_millisecond() -> None:
    """However few messages that are, also where the callback never waits."""

    async def slow() -> None:
        until = time.perf_counter() + 0.0006
        while time.perf_counter() < until:
            pass

    assert await ran_before_another_task(slow) <= 2


async def test_whoever_waits_for_idle_goes_on_before_the_next_message() -> None:
    """Also while there are always more messages, whose callbacks wait."""
    ran = 0

    async def job() -> None:
        nonlocal ran
        ran += 1
        await asyncio.sleep(0)

    worker = CallbackWorker(lambda: job)
    running = asyncio.ensure_future(worker.run())
    while not worker.busy:
        await asyncio.sleep(0)
    begun = ran
    await worker.idle()
    assert (ran, worker.busy) == (begun, False)
    running.cancel()


async def test_a_worker_whose_task_is_cancelled_ends_before_the_next_message() -> None:
    ran = 0

    async def job() -> None:
        nonlocal ran
        ran += 1
        running.cancel()  # as a callback may do that never waits

    running = asyncio.ensure_future(CallbackWorker(lambda: job).run())
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ran == 1


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("how", ["stop", "close", "session", "consumer"])
async def test_nothing_is_delivered_once_a_stop_or_close_was_begun(name: Name, how: str, plain: bool) -> None:
    """Of many messages that are there: neither a plain listener nor a coroutine is called again."""
    connection = await jmsaio.connect(f"memory://{name('stopped')}")
    queue, seen, begun = jmsaio.Queue("q"), 0, asyncio.Event()
    await fill(connection, queue, 200)
    session = await connection.create_session()
    consumer = await session.create_consumer(queue)

    def listen(message: jmsaio.Message) -> None:
        nonlocal seen
        seen += 1
        begun.set()

    async def coroutine(message: jmsaio.Message) -> None:
        listen(message)
        await asyncio.sleep(0)

    consumer.set_message_listener(listen if plain else coroutine)
    await asyncio.wait_for(begun.wait(), 20)
    ends = {"stop": connection.stop, "close": connection.close, "session": session.close, "consumer": consumer.close}
    ending = asyncio.ensure_future(ends[how]())
    await asyncio.sleep(0)  # it has begun
    most = seen
    await asyncio.wait_for(ending, 20)
    for _ in range(20):
        await asyncio.sleep(0)
    assert seen == most < 200
    await connection.close()


async def test_a_worker_that_a_callback_ends_is_not_busy() -> None:
    worker = CallbackWorker(lambda: None)

    async def job() -> None:
        await asyncio.sleep(0.01)
        raise KeyError

    worker.add(job)
    waiting = asyncio.ensure_future(worker.idle())
    with pytest.raises(KeyError):
        await worker.run()
    await asyncio.wait_for(waiting, 1.0)
    assert not worker.busy


async def test_idle_waits_for_what_is_added_when_the_last_callback_returns() -> None:
    worker, ran = CallbackWorker(lambda: None), []

    async def second() -> None:
        await asyncio.sleep(0.1)
        ran.append("second")

    async def first() -> None:
        asyncio.get_running_loop().call_soon(worker.add, second)
        ran.append("first")

    worker.add(first)
    running = asyncio.ensure_future(worker.run())
    await worker.idle()
    assert ran == ["first", "second"]
    running.cancel()


@pytest.mark.parametrize("ended", [False, True])
async def test_what_was_added_runs_in_order_also_when_the_workers_have_ended(ended: bool) -> None:
    worker, ran = CallbackWorker(lambda: None), []

    async def job(number: int) -> None:
        ran.append(number)

    for number in range(3):
        worker.add(partial(job, number))
    if ended:
        await worker.run_added()
    else:
        running = asyncio.ensure_future(worker.run())
        await worker.idle()
        running.cancel()
    assert ran == [0, 1, 2] and not worker.busy


async def test_a_worker_that_is_cancelled_in_a_callback_ends_cancelled() -> None:
    """Only a callback whose own waiting was cancelled has failed."""
    calling = asyncio.ensure_future(call(asyncio.sleep, 3600))
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
