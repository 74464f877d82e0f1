"""One event loop, one process: calls from elsewhere are refused at once, a child's close returns at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio.to_thread
import pytest

import jmsaio
from jmsaio.client.lifetime.affinity import Affinity
from tests.client.helpers import fill, texts, transactions
from tests.kit.inside import runtime_of

Name = Callable[[str], str]
MODE = jmsaio.AcknowledgeMode.CLIENT


@pytest.fixture
async def connection(url: str) -> AsyncIterator[jmsaio.Connection]:
    """A connection that can have transacted sessions."""
    async with jmsaio.connect(url, **transactions(not url.startswith("memory"))) as connection:
        yield connection


def factory_of(connection: jmsaio.Connection) -> jmsaio.ConnectionFactory:
    """The factory of a connection."""
    return connection._on_closed.func.__self__  # type: ignore[attr-defined, no-any-return]  # a partial of its method


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
from tests.client.lifetime.test_affinity import calls, factory_of, refused

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
