"""Calls from elsewhere are refused; ``create_`` calls can be awaited or entered; one bound for a whole close."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import attrs
import pytest

import jmsaio
from jmsaio.client.lifetime import scope
from jmsaio.client.lifetime.scope import Affinity, AsyncClosing, BackgroundTask, Deadline, FirstError, Opening
from jmsaio.errors import JMSError, OperationTimeoutError
from jmsaio.testing import FaultProxy, embedded_broker
from tests.client.helpers import fill, texts, transactions
from tests.kit.inside import runtime_of
from tests.kit.virtual_time import steady
from tests.support.broker import TestBroker

Name = Callable[[str], str]
MODE = jmsaio.AcknowledgeMode.CLIENT


@pytest.fixture
async def connection(url: str) -> AsyncIterator[jmsaio.Connection]:
    """A connection that can have transacted sessions."""
    async with jmsaio.connect(url, **transactions(not url.startswith("memory"))) as connection:
        yield connection


def factory_of(connection: jmsaio.Connection) -> jmsaio.ConnectionFactory:
    """The factory of a connection."""
    return connection._on_closed.__self__  # type: ignore[attr-defined, no-any-return]  # its method


async def calls(connection: jmsaio.Connection, queue: jmsaio.Queue) -> dict[str, Callable[[], Any]]:
    """Every public call that uses the loop, by name; each gives an awaitable or raises."""
    factory, session = factory_of(connection), await connection.create_session(MODE)
    consumer, producer = await session.create_consumer(queue), await session.create_producer(queue)
    context = await factory.create_context()
    temporary = await session.create_temporary_queue()
    transacted = await connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED)
    message = await consumer.receive(timeout=20)
    assert message is not None
    browser = await session.create_browser(queue)
    topic = jmsaio.Topic("t")
    found: dict[str, Callable[[], Any]] = {
        "factory.create_connection": factory.create_connection,
        "factory.create_context": factory.create_context,
        "connection.start": connection.start,
        "connection.stop": connection.stop,
        "connection.create_session": lambda: connection.create_session(),
        "session.create_temporary_queue": session.create_temporary_queue,
        "session.create_temporary_topic": session.create_temporary_topic,
        "session.create_producer": lambda: session.create_producer(queue),
        "session.create_consumer": lambda: session.create_consumer(queue),
        "session.create_durable_consumer": lambda: session.create_durable_consumer(topic, "d"),
        "session.create_shared_consumer": lambda: session.create_shared_consumer(topic, "s"),
        "session.create_browser": lambda: session.create_browser(queue),
        "session.unsubscribe": lambda: session.unsubscribe("d"),
        "session.request": lambda: session.request(queue, "x", timeout=1),
        "session.acknowledge": session.acknowledge,
        "transacted.commit": transacted.commit,
        "transacted.rollback": transacted.rollback,
        "session.recover": session.recover,
        "consumer.receive": consumer.receive,
        "consumer.receive_no_wait": consumer.receive_no_wait,
        "consumer.receive_body": lambda: consumer.receive_body(str),
        "consumer.receive_body_no_wait": lambda: consumer.receive_body_no_wait(str),
        "consumer.process": lambda: consumer.process().__aenter__(),
        "consumer.__anext__": consumer.__anext__,
        "consumer.set_message_listener": lambda: consumer.set_message_listener(print),
        "producer.send": lambda: producer.send("x"),
        "producer.send_async": lambda: producer.send_async("x"),
        "browser.get_enumeration": browser.get_enumeration,
        "message.acknowledge": message.acknowledge,
        "temporary.delete": temporary.delete,
        "context.create_producer": lambda: context.create_producer().send(queue, "x"),
        "context.create_consumer": lambda: context.create_consumer(queue),
        "context.start": context.start,
        "context.request": lambda: context.request(queue, "x", timeout=1),
    }
    return found


CLOSES = ["consumer", "producer", "session", "context", "connection", "factory"]


def refused(call: Callable[[], Any], own_loop: bool) -> str:
    """What a call raises here: in a loop of this thread's own, or driven by hand."""
    try:
        waiting = call()
        if waiting is None:
            return "nothing"
        if own_loop:

            async def wait() -> None:
                await waiting

            asyncio.run(wait())
        else:
            waiting.send(None)
    except jmsaio.JMSError as error:
        return type(error).__name__
    except StopIteration:
        return "nothing"
    return "it waits"


@pytest.mark.parametrize("own_loop", [True, False])
async def test_another_thread_is_refused_at_once(connection: jmsaio.Connection, name: Name, own_loop: bool) -> None:
    """Each call that uses the loop raises IllegalStateError in another thread, and the connection goes on."""
    queue = jmsaio.Queue(name("thread"))
    await fill(connection, queue, 1)
    everything = await calls(connection, queue)
    everything["connection.close"] = connection.close
    everything["factory.close"] = factory_of(connection).close
    session, context = await connection.create_session(), await factory_of(connection).create_context()
    consumer, producer = await session.create_consumer(queue), await session.create_producer(queue)
    for thing in (consumer, producer, session, context):
        everything[f"close of {thing}"] = thing.close
    found = await anyio.to_thread.run_sync(lambda: {call: refused(made, own_loop) for call, made in everything.items()})
    assert found == dict.fromkeys(everything, "IllegalStateError")
    assert not (context.closed or session.closed or connection.closed)
    async with connection.create_session() as session, session.create_producer(queue) as producer:
        await producer.send("goes on")


async def test_what_needs_no_loop_works_in_a_thread(session: jmsaio.Session, name: Name) -> None:
    """Messages may be made and read, and names asked for, in a worker thread."""

    def work() -> list[object]:
        message = session.create_text_message("x")
        return [threading.current_thread() is threading.main_thread(), *texts([message]), session.create_queue("q")]

    assert await anyio.to_thread.run_sync(work) == [False, "x", jmsaio.Queue("q")]


def test_another_loop_is_refused(name: Name) -> None:
    """A factory that one loop has used is refused in the next loop of the same thread."""
    factory = jmsaio.ConnectionFactory(f"memory://{name('loops')}")

    async def connect() -> jmsaio.Connection:
        return await factory.create_connection()

    connection = asyncio.run(connect())
    with pytest.raises(jmsaio.IllegalStateError, match="outside the event loop"):
        asyncio.run(connect())
    with pytest.raises(jmsaio.IllegalStateError, match="outside the event loop"):
        asyncio.run(connection.start())


async def test_home_is_the_process_and_the_loop_where_it_was_made() -> None:
    """Here is where it was made."""
    affinity = Affinity.here()
    affinity.check()
    affinity.check_process()
    assert not affinity.forked


async def test_what_a_child_process_closes_counts_as_closed_and_the_parents_tasks_go_on(name: Name) -> None:
    connection = await jmsaio.connect(f"memory://{name('child')}")
    context = await factory_of(connection).create_context()
    queue, affinities = (
        jmsaio.Queue(name("child")),
        [runtime_of(connection).affinity, runtime_of(context._session).affinity],
    )
    session = await connection.create_session()
    consumer, producer = await session.create_consumer(queue), await session.create_producer(queue)
    for affinity in affinities:
        affinity._forks -= 1  # as if this were a child
    for thing in (consumer, producer, session, connection, context):
        assert not thing.closed
        await thing.close()
        await thing.close()
        assert thing.closed
    for affinity in affinities:
        affinity._forks += 1
    for parents in (context.connection, connection):
        task = parents._task
        assert not task.requested.is_set() and len(parents._runtimes) == 1
        task.requested.set()
        await task.ended.wait()


async def test_a_factory_that_a_child_process_closes_leaves_the_parents_broker_client(name: Name) -> None:
    async with jmsaio.ConnectionFactory(f"memory://{name('child')}") as factory:
        connection, affinity = await factory.create_connection(), factory._affinity
        assert affinity is not None
        affinity._forks -= 1  # as if this were a child
        await factory.close()
        assert factory._closed and factory._transport is not None and not connection.closed
        affinity._forks += 1


FORKED = """
import asyncio, os, sys, time
import jmsaio
from tests.client.helpers import fill, transactions
from tests.client.lifetime.test_scope import calls, factory_of, refused

async def main(url, name):
    async with jmsaio.connect(url, **transactions(not url.startswith("memory"))) as connection:
        queue = jmsaio.Queue(name)
        await fill(connection, queue, 1)
        everything = await calls(connection, queue)
        session = await connection.create_session()
        consumer, producer = await session.create_consumer(queue), await session.create_producer(queue)
        context = await factory_of(connection).create_context()
        child = os.fork()
        if child == 0:
            for call in (session.create_text_message, lambda: consumer.destination, lambda: producer.priority,
                         lambda: connection.client_id, lambda: context.client_id):
                everything[repr(call)] = call
            found = {call: refused(made, False) for call, made in everything.items()}
            print({call: what for call, what in found.items() if what != "ForkError"}, flush=True)
            for thing in (consumer, producer, session, context, connection, factory_of(connection)):
                what = refused(thing.close, False)
                if what != "nothing" or not thing._closed if hasattr(thing, "_closed") else not thing.closed:
                    print(thing, what, flush=True)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        await producer.send("the parent goes on")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.real_time  # waits for a process
def test_a_child_process_is_refused(url: str, name: Name) -> None:
    """After a fork every call in the child raises ForkError, each close returns at once, and the parent goes on."""
    command = [sys.executable, "-c", FORKED, url, name("fork")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["{}", "0"]), done.stderr


class Thing:
    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


async def make() -> Thing:
    return Thing()


async def fail() -> Thing:
    raise ZeroDivisionError


async def test_await_leaves_closing_to_the_caller() -> None:
    thing = await Opening(make())
    assert thing.closed == 0


async def test_async_with_closes_once() -> None:
    async with Opening(make()) as thing:
        assert thing.closed == 0
    assert thing.closed == 1


async def test_errors_of_making_and_of_the_block_pass() -> None:
    with pytest.raises(ZeroDivisionError):
        async with Opening(fail()):
            raise AssertionError("not reached")
    with pytest.raises(KeyError):
        async with Opening(make()) as thing:
            raise KeyError
    assert thing.closed == 1


async def in_task_group(opening: Opening[Any]) -> Any:
    async with asyncio.TaskGroup() as group:
        return await group.create_task(opening)


async def in_wait(opening: Opening[Any]) -> Any:
    done, _ = await asyncio.wait([asyncio.ensure_future(opening)])
    return done.pop().result()


async def in_gather(opening: Opening[Any]) -> Any:
    return (await asyncio.gather(opening))[0]


WAYS: dict[str, Callable[[Opening[Any]], Awaitable[Any]]] = {
    "create_task": asyncio.create_task,
    "ensure_future": asyncio.ensure_future,
    "wait_for": lambda opening: asyncio.wait_for(opening, 60),
    "gather": in_gather,
    "wait": in_wait,
    "TaskGroup": in_task_group,
}


@pytest.fixture(params=["memory", pytest.param("pulsar", marks=pytest.mark.broker)])
async def session(request: pytest.FixtureRequest) -> AsyncIterator[jmsaio.Session]:
    config: dict[str, object] = {"brokerServiceUrl": "memory://openings"}
    if request.param == "pulsar":
        broker = request.getfixturevalue("pulsar_broker")
        config = {"brokerServiceUrl": broker.service_url, "webServiceUrl": broker.web_service_url}
    async with jmsaio.connect(config) as connection, connection.create_session() as opened:
        yield opened


@pytest.mark.parametrize("way", WAYS)
async def test_a_create_call_works_wherever_a_coroutine_does(way: str, session: jmsaio.Session) -> None:
    queue = session.create_queue("openings")
    assert isinstance(await WAYS[way](session.create_consumer(queue)), jmsaio.MessageConsumer)
    assert isinstance(await WAYS[way](session.create_producer(queue)), jmsaio.MessageProducer)
    assert isinstance(await WAYS[way](session.create_browser(queue)), jmsaio.QueueBrowser)


def test_asyncio_run_takes_connect() -> None:
    assert isinstance(asyncio.run(jmsaio.connect("memory:")), jmsaio.Connection)


async def test_a_task_group_of_anyio_takes_the_call_itself() -> None:
    async with jmsaio.connect("memory:") as connection, anyio.create_task_group() as group:
        group.start_soon(connection.create_session)


@pytest.mark.filterwarnings("error")
async def test_a_task_that_is_cancelled_before_it_begins_opens_nothing() -> None:
    """Nor does Python warn of a coroutine that was never awaited, also where one opening awaits another."""
    async with jmsaio.ConnectionFactory("memory:") as factory, await factory.create_context() as context:
        creates: list[Callable[[jmsaio.Queue], Opening[Any]]]
        creates = [context.create_consumer, context._session.create_consumer, lambda queue: factory.create_context()]
        for create in creates:
            task = asyncio.create_task(create(context.create_queue("q")))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            opening = create(context.create_queue("q"))
            opening.close()
            with pytest.raises(RuntimeError):
                await opening
            del task, opening
            gc.collect()
        await anyio.lowlevel.checkpoint()


async def test_an_opening_that_waits_is_cancelled_like_any_task() -> None:
    async def wait_and_make() -> Thing:
        await asyncio.Event().wait()
        return Thing()

    task = asyncio.create_task(Opening(wait_and_make()))
    await asyncio.sleep(0)
    shown = io.StringIO()
    task.print_stack(file=shown)
    assert "wait_and_make" in repr(task) and "wait_and_make" in shown.getvalue()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_missing_await_is_named() -> None:
    """Also where a coroutine has a method of that name."""
    opening: Any = Opening(make())
    with pytest.raises(AttributeError, match="'Opening' object has no attribute 'receive': write `await` in front"):
        opening.receive()
    for options in ({}, {"priority": 5}):
        with pytest.raises(TypeError, match="sends no message: write `await` in front"):
            opening.send("body", **options)
    assert (await opening).closed == 0


NOUNS = [
    jmsaio.ConnectionFactory,
    jmsaio.Connection,
    jmsaio.Context,
    jmsaio.MessageConsumer,
    jmsaio.MessageProducer,
    jmsaio.QueueBrowser,
    jmsaio.QueueRequestor,
    jmsaio.Session,
    jmsaio.TopicRequestor,
]


@attrs.define
class Closing(AsyncClosing):
    closed: int = 0

    async def close(self) -> None:
        self.closed += 1


async def test_the_object_itself_is_given_and_closed_at_the_end() -> None:
    thing = Closing()
    async with thing as given:
        assert given is thing and thing.closed == 0
    assert thing.closed == 1


async def test_an_error_of_the_block_passes_after_the_close() -> None:
    thing = Closing()
    with pytest.raises(ZeroDivisionError):
        async with thing:
            raise ZeroDivisionError
    assert thing.closed == 1


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
def test_everything_that_closes_has_it_from_here(noun: type[object]) -> None:
    assert issubclass(noun, AsyncClosing)
    assert "__aenter__" not in vars(noun)


#: ``close_timeout`` here, and what a close with a bound for each of its steps takes longer than.
LIMIT, LATE = 2.0, 5.5


async def test_what_does_not_end_is_cancelled() -> None:
    """Work beyond its time is cancelled and told as an OperationTimeoutError."""
    deadline = Deadline.after(0.05)
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    errors = FirstError()
    await errors.guard_within(deadline, work, "the work")
    assert ended.is_set() and deadline.left() == 0.0
    with pytest.raises(jmsaio.OperationTimeoutError, match="the work did not end within close_timeout"):
        errors.raise_once()
    await errors.guard_within(deadline, lambda: asyncio.sleep(0.01), "the rest")
    with pytest.raises(jmsaio.OperationTimeoutError):
        errors.raise_once()


async def test_each_step_leaves_time_to_those_behind_it() -> None:
    """A step that more steps follow has less time than the last."""
    deadline = Deadline.after(10)
    assert deadline.left(4) + 1 < deadline.left() <= 10
    assert deadline.before(2).at == pytest.approx(deadline.at - 2 * deadline.share)
    assert Deadline.after(1000).left(4) > 990


async def test_a_step_leaves_a_twentieth_of_the_time_to_each_behind_it_and_a_second_at_most() -> None:
    for seconds, share in ((10, 0.5), (20, 1.0), (1000, 1.0)):
        deadline = Deadline.after(seconds)
        assert deadline.share == share
        assert deadline.left(2) == pytest.approx(seconds - 2 * share)
    assert Deadline.after(1).left(100) == 0.0
    assert Deadline.after(1).before(100).left() == 0.0


async def in_time(close: Awaitable[None]) -> None:
    """Await a close, which may fail, but not last."""
    with contextlib.suppress(jmsaio.OperationTimeoutError):
        await asyncio.wait_for(close, LATE)


async def test_steps_that_do_not_end_do_not_add_up(name: Name) -> None:
    """A listener that does not return and sends without an answer together take one time-out, not one each."""
    with embedded_broker() as broker:
        connection = await jmsaio.connect(broker.url, close_timeout=LIMIT)
        queue, entered = jmsaio.Queue(name("steps")), asyncio.Event()

        async def listener(_: object) -> None:
            entered.set()
            await asyncio.sleep(3600)

        await fill(connection, queue, 1)
        session = await connection.create_session()
        await session.create_temporary_queue()
        (await session.create_consumer(queue)).set_message_listener(listener)
        await asyncio.wait_for(entered.wait(), 20)
        producer = await session.create_producer(queue)
        with broker.faults.outage():
            pending = await producer.send_async("without an answer")
            await in_time(connection.close())
        assert session.closed and connection.closed
        with pytest.raises(jmsaio.SendError):
            await pending


async def test_a_broker_that_does_not_answer(pulsar_broker: TestBroker, name: Name) -> None:
    """Many consumers of a broker that went silent close within the one time-out."""
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        url = f"{proxy.url}?webServiceUrl={pulsar_broker.web_service_url}"
        connection = await jmsaio.connect(url, close_timeout=LIMIT)
        session = await connection.create_session()
        for number in range(4):
            await session.create_consumer(session.create_topic(name(f"silent{number}")))
            await session.create_consumer(session.create_queue(name(f"quiet{number}")))
        producer = await session.create_producer(session.create_queue(name("quiet0")))
        closing = await session.create_consumer(session.create_topic(name("first")))
        proxy.stall()
        pending = await producer.send_async("without an answer")
        await in_time(closing.close())
        await in_time(connection.close())
        assert session.closed and connection.closed
        with pytest.raises(jmsaio.SendInDoubtError):
            await pending


async def test_the_first_error_is_raised_once_after_all_calls() -> None:
    errors, called = FirstError(), []

    async def fail(number: int) -> None:
        called.append(number)
        raise JMSError(str(number))

    for number in range(3):
        await errors.guard(lambda number=number: fail(number))  # type: ignore[misc]  # mypy can't infer it
    assert called == [0, 1, 2]
    with pytest.raises(JMSError, match=r"^0$"):
        errors.raise_once()
    errors.raise_once()


async def test_other_errors_pass() -> None:
    async def fail() -> None:
        raise ValueError

    with pytest.raises(ValueError):
        await FirstError().guard(fail)


async def test_a_call_beyond_the_deadline_is_cancelled_and_kept_as_an_error() -> None:
    errors = FirstError()
    await errors.guard_within(Deadline.after(0.01), asyncio.Event().wait, "waiting")
    with pytest.raises(OperationTimeoutError, match="waiting did not end"):
        errors.raise_once()


async def test_the_request_returns_when_the_task_has_ended() -> None:
    task = BackgroundTask()

    async def run() -> None:
        await task.requested.wait()
        task.ended.set()

    running = asyncio.create_task(run())
    await task.end("the task", Deadline.after(10), 10)
    await running
    await task.end("the task", Deadline.after(10), 10)


async def test_the_earliest_deadline_of_all_requests_counts() -> None:
    task = BackgroundTask()
    task.ended.set()
    late, early = Deadline.after(100), Deadline.after(10)
    for deadline in (late, early, late):
        await task.end("the task", deadline, 10)
    assert task.deadline is early


async def test_a_task_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "GRACE", 0.01)
    with pytest.raises(OperationTimeoutError, match="the task did not close within 3 s"):
        await BackgroundTask().end("the task", Deadline.after(0.01), 3)


async def test_a_problem_before_the_time_is_over_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is why the rest of the end has little time left."""
    monkeypatch.setattr(scope, "GRACE", 0.01)
    task, problem = BackgroundTask(), OperationTimeoutError("a listener did not return")
    task.errors.error = problem
    with pytest.raises(OperationTimeoutError, match=r"within 3 s .*: a listener did not return") as caught:
        await task.end("the task", Deadline.after(0.01), 3)
    assert caught.value.__cause__ is problem
    task.errors.raise_once()  # a connection that closes after its session does not raise it again


async def test_no_one_waits_beyond_the_deadline() -> None:
    """What does not end is given up when the time is over, and not a while later."""
    began = steady()
    with pytest.raises(OperationTimeoutError):
        await BackgroundTask().end("the task", Deadline.after(10), 10)
    assert steady() - began == pytest.approx(10)
