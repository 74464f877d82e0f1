"""One bound for a whole close, handed down to all that it closes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

import jmsaio
from jmsaio.client.lifetime import closing
from jmsaio.client.lifetime.closing import BackgroundTask, Deadline, FirstError
from jmsaio.errors import JMSError, OperationTimeoutError
from jmsaio.testing import FaultProxy, embedded_broker
from tests.client.helpers import fill
from tests.kit.virtual_time import steady
from tests.support.broker import TestBroker

Name = Callable[[str], str]
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
    monkeypatch.setattr(closing, "GRACE", 0.01)
    with pytest.raises(OperationTimeoutError, match="the task did not close within 3 s"):
        await BackgroundTask().end("the task", Deadline.after(0.01), 3)


async def test_a_problem_before_the_time_is_over_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is why the rest of the end has little time left."""
    monkeypatch.setattr(closing, "GRACE", 0.01)
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
