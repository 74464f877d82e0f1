"""``await`` and ``async with`` on the same call, which is a coroutine, too."""

from __future__ import annotations

import asyncio
import gc
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest

import jmsaio
from jmsaio.client.lifetime.opening import AsyncClosing, Opening


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
