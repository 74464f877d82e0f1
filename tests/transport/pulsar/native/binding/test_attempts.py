"""``Attempts``: what happens when pulsar-client does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import _pulsar
import anyio
import pytest

from jmsaio.errors import (
    BrokerUnavailableError,
    ConsumerBusyError,
    NotFoundError,
    ObjectClosedError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.transport.base import StartPosition
from jmsaio.transport.pulsar.native.binding import attempts as module
from jmsaio.transport.pulsar.native.binding.attempts import Attempts, ask_again
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.native_log import NativeLog
from jmsaio.transport.pulsar.native.binding.results import translate
from jmsaio.transport.pulsar.native.consumers import subscriber
from tests.kit.native_fakes import OK, from_thread
from tests.kit.records import texts
from tests.transport.pulsar.conftest import HANG, Kit, new_topic, send
from tests.transport.pulsar.native.binding.test_native_log import FENCED, REFUSED, TOPIC, own_log, write

BUSY = _pulsar.Result.ConsumerBusy


class Native:
    """Starts attempts, which answer when told."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[..., None]] = []
        self.discarded: list[Any] = []

    def start(self, callback: Callable[..., None]) -> None:
        self.callbacks.append(callback)

    def answer(self, index: int, *answer: Any) -> None:
        from_thread(self.callbacks[index], *answer)

    def attempts(self, timeout: float = HANG) -> Attempts[Any]:
        what, discard = "subscribe s to t", self.discarded.append
        return Attempts(Bridge(), self.start, what, timeout, discard, topic=TOPIC, subscription="jms-queue")

    async def started(self, count: int) -> None:
        with anyio.fail_after(HANG):
            while len(self.callbacks) < count:
                await anyio.sleep(0.01)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[NativeLog]:
    """A log of the test's own."""
    log = own_log()
    monkeypatch.setattr(module, "NATIVE_LOG", log)
    yield log


async def test_a_refused_attempt_is_repeated(log: NativeLog) -> None:
    """The refusal is read in the log; the next attempt is answered, and what still comes of the first is closed."""
    native = Native()
    task = asyncio.ensure_future(native.attempts().run())
    await native.started(1)
    write(log, FENCED + REFUSED)
    await native.started(2)
    native.answer(1, OK, "second")
    assert await task == "second"
    native.answer(0, OK, "first")
    await anyio.sleep(0.01)
    assert native.discarded == ["first"]


async def test_a_silent_attempt_is_repeated(log: NativeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without a word in the log; the first to answer is taken, be it the first that was started."""
    monkeypatch.setattr(module, "ATTEMPT", 0.05)
    native = Native()
    task = asyncio.ensure_future(native.attempts().run())
    await native.started(3)
    native.answer(0, OK, "slow")
    assert await task == "slow"
    native.answer(1, OK, "later")
    await anyio.sleep(0.01)
    assert native.discarded == ["later"]


async def test_no_answer_in_time_says_why(log: NativeLog) -> None:
    """The error carries the broker's reason."""
    native = Native()
    task = asyncio.ensure_future(native.attempts(0.3).run())
    await native.started(1)
    write(log, FENCED + REFUSED)
    with pytest.raises(OperationTimeoutError, match=r"within 0\.3 s; .*: Subscription is fenced \[Retryable\]"):
        await task
    with pytest.raises(OperationTimeoutError, match=r"within 0\.01 s$"):
        await native.attempts(0.01).run()


async def test_a_missing_subscription_is_told_at_once(log: NativeLog) -> None:
    """Nothing but its creation changes that."""
    native = Native()
    task = asyncio.ensure_future(native.attempts().run())
    await native.started(1)
    words = "SubscriptionNotFound (Subscription does not exist)"
    write(log, FENCED.replace("Retryable (Subscription is fenced)", words))
    write(log, REFUSED.replace("Retryable", "SubscriptionNotFound"))
    with pytest.raises(NotFoundError, match=r"\(Subscription does not exist\)") as caught:
        await task
    assert caught.value.error_code == "SubscriptionNotFound"
    assert len(native.callbacks) == 1


async def test_busy_with_an_earlier_attempt(log: NativeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow broker gave the place to the first attempt: its answer is waited for."""
    monkeypatch.setattr(module, "ATTEMPT", 0.05)
    native = Native()
    task = asyncio.ensure_future(native.attempts().run())
    await native.started(2)
    native.answer(1, BUSY, None)
    await anyio.sleep(0.01)
    native.answer(0, OK, "first")
    assert await task == "first"
    monkeypatch.setattr(module, "_GRACE", 0.01)
    task = asyncio.ensure_future(native.attempts().run())
    await native.started(4)
    native.answer(3, BUSY, None)
    with pytest.raises(ConsumerBusyError):
        await task


async def test_answers_that_are_errors(log: NativeLog) -> None:
    """They are raised as they come; a time-out of pulsar-client's own is one of ours."""
    native = Native()
    for index, (answer, kind) in enumerate(
        [(_pulsar.Result.ConnectError, BrokerUnavailableError), (_pulsar.Result.Timeout, OperationTimeoutError)]
    ):
        task = asyncio.ensure_future(native.attempts().run())
        await native.started(index + 1)
        native.answer(index, answer, None)
        with pytest.raises(kind):
            await task


async def test_cancelled_while_an_attempt_is_under_way(log: NativeLog) -> None:
    """Its answer is waited for, and closed."""
    native = Native()
    task = asyncio.ensure_future(native.attempts().run())
    await native.started(1)
    task.cancel()
    await anyio.sleep(0.05)
    assert not task.done()
    native.answer(0, OK, "made")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert native.discarded == ["made"]


async def test_closed_while_an_attempt_is_under_way(log: NativeLog) -> None:
    """The connection's close ends it."""
    native = Native()
    attempts = native.attempts()
    task = asyncio.ensure_future(attempts.run())
    await native.started(1)
    attempts.bridge.close()
    with pytest.raises(ObjectClosedError):
        await task


async def test_a_question_is_asked_again_until_its_time_is_over() -> None:
    """The pauses grow, and none begins that would end too late."""
    asked = 0

    async def ask() -> bool:
        nonlocal asked
        asked += 1
        raise translate(_pulsar.Result.ServiceUnitNotReady, "look")

    with pytest.raises(TransportError, match="moving"):
        await ask_again(Bridge(), ask, 0.0)
    assert asked == 1
    with pytest.raises(TransportError, match="moving"):
        await ask_again(Bridge(), ask, 1.0)
    assert 3 <= asked <= 1 + 4  # after 0, 0.1, 0.3 and 0.7 seconds


async def test_a_fenced_subscription_on_the_broker(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process creates the subscription at the same moment: the consumer opens all the same, soon."""
    monkeypatch.setattr(subscriber, "subscribing", lambda *_: nullcontext())
    monkeypatch.setattr("jmsaio.transport.pulsar.admin.rest.creating", lambda *_: nullcontext())
    admin = kit.transport.admin
    assert admin is not None
    for _ in range(20):
        kit.topic = new_topic("fenced")
        async with anyio.create_task_group() as group:
            group.start_soon(admin.create_subscription, kit.topic, "sub", StartPosition.EARLIEST)
            with anyio.fail_after(HANG):
                box = await kit.box()
        await send(await kit.sender(), "x")
        assert texts(await box.take(1)) == ["x"]
        await box.receiver.aclose(HANG)
