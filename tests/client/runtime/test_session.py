"""What lives behind a session: lingering consumers, bounded closes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import fill, rest, texts

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


async def test_many_idle_consumers(connection: jmsaio.Connection, name: Name, url: str) -> None:
    count = 100 if url.startswith("memory") else 10
    async with connection.create_session() as session:
        queue = session.create_queue(name("idle"))
        consumers = [await session.create_consumer(queue) for _ in range(count)]
        waiting = [asyncio.ensure_future(consumer.receive()) for consumer in consumers]
        await asyncio.sleep(0.05)
    assert await asyncio.wait_for(asyncio.gather(*waiting), 30) == [None] * count


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
