"""``Bridge``: native answers on the loop, time-outs, cancellation, closing; ``NativeClient`` is closed once."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import _pulsar
import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from jmsaio.config import ConsumerConfig, load
from jmsaio.errors import BrokerUnavailableError, ObjectClosedError, OperationTimeoutError
from jmsaio.transport.base import ReaderOptions
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.native.binding import bridge as bridge_module
from jmsaio.transport.pulsar.native.binding.bridge import (
    Bridge,
    NativeClient,
    Released,
    ignore,
    open_together,
    wait_for,
)
from jmsaio.transport.waiting import end
from tests.kit.native_fakes import OK, from_thread
from tests.kit.records import texts
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, new_topic, send


class Answer:
    """Something native that was made."""


class Operation:
    """A native operation that answers when told."""

    def __init__(self) -> None:
        self.callback: Callable[..., None] = ignore
        self.started = 0

    def __call__(self, callback: Callable[..., None]) -> None:
        self.callback = callback
        self.started += 1

    def answer(self, *answer: Any) -> None:
        from_thread(self.callback, *answer)


async def ask(bridge: Bridge, operation: Operation, *answer: Any) -> Any:
    task = asyncio.ensure_future(bridge.ask(operation, "do it", 5))
    await anyio.lowlevel.checkpoint()
    operation.answer(*answer)
    return await task


async def test_answers_of_both_kinds() -> None:
    bridge = Bridge()
    assert await ask(bridge, Operation(), OK, "value") == "value"
    assert await ask(bridge, Operation(), "only a value") == "only a value"
    with pytest.raises(BrokerUnavailableError, match="do it: "):
        await ask(bridge, Operation(), _pulsar.Result.ConnectError, None)


async def test_no_answer_in_time() -> None:
    operation = Operation()
    discarded: list[str] = []
    with pytest.raises(OperationTimeoutError, match=r"do it: no answer within 0\.01 s"):
        await Bridge().ask(operation, "do it", 0.01, discarded.append)
    operation.answer(OK, "late")
    await anyio.lowlevel.checkpoint()
    assert discarded == ["late"]


async def test_cancelled_while_something_is_made() -> None:
    """What was started is waited for and discarded, so that nothing appears afterwards."""
    operation = Operation()
    discarded: list[str] = []
    task = asyncio.ensure_future(Bridge().ask(operation, "open", 5, discarded.append))
    await anyio.lowlevel.checkpoint()
    task.cancel()
    await anyio.sleep(0.01)
    assert not task.done()
    operation.answer(OK, "made")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert discarded == ["made"]


async def test_answers_after_a_cancelled_question_are_ignored() -> None:
    operation = Operation()
    task = asyncio.ensure_future(Bridge().ask(operation, "look", 5))
    await anyio.lowlevel.checkpoint()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    operation.answer(OK, "unheard")
    operation.answer(_pulsar.Result.Timeout, None)
    await anyio.lowlevel.checkpoint()


async def test_close_ends_what_waits() -> None:
    bridge, operation = Bridge(), Operation()
    task = asyncio.ensure_future(bridge.ask(operation, "do it", 5))
    await anyio.lowlevel.checkpoint()
    bridge.check()
    bridge.close()
    bridge.close()
    with pytest.raises(ObjectClosedError, match="do it"):
        await task
    with pytest.raises(ObjectClosedError):
        bridge.check()
    operation.answer(OK, "late")
    await anyio.lowlevel.checkpoint()


async def test_a_child_process_knows_that_the_bridge_is_its_parents() -> None:
    bridge = Bridge()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
        child = os.fork()
    if child == 0:
        os._exit(0 if bridge.forked else 1)
    _, status = await anyio.to_thread.run_sync(os.waitpid, child, 0)
    assert status == 0
    assert not bridge.forked
    bridge.close()
    assert not bridge.forked


async def test_a_callback_that_is_never_freed_holds_nothing() -> None:
    """pulsar-client keeps that of a reader's creation for ever: not with it the answer, nor the bridge."""
    bridge, operation = Bridge(), Operation()
    answer = Answer()
    answers = weakref.ref(answer)
    assert await ask(bridge, operation, OK, answer) is answer
    del answer
    bridges = weakref.ref(bridge)
    del bridge
    await anyio.lowlevel.checkpoint()
    gc.collect()
    assert operation.callback is not ignore
    assert answers() is None and bridges() is None


class Holder:
    """A part with something native."""

    def __init__(self) -> None:
        self.native: Any = object()

    def release(self) -> None:
        self.native = Released()


async def test_released_parts_take_no_more_calls() -> None:
    """Parts that are there let go of what is native; calls on what takes its place do nothing."""
    bridge, holder = Bridge(), Holder()
    bridge.made(holder)
    bridge.made(Holder())
    bridge.release()
    holder.native.acknowledge_async(1, None)
    assert isinstance(holder.native, Released)


async def test_the_first_of_several_operations_that_fails_is_named() -> None:
    bridge = Bridge()
    operations = [Operation() for _ in range(3)]
    names = ["part 0", "part 1", "part 2"]
    futures = [bridge.start(operation, name) for operation, name in zip(operations, names, strict=True)]
    operations[0].answer(OK, None)
    operations[1].answer(_pulsar.Result.ConnectError, None)
    with pytest.raises(BrokerUnavailableError, match="part 1"):
        await bridge.ask_all(futures, 0.05)
    late = [bridge.start(Operation(), "late")]
    with pytest.raises(OperationTimeoutError, match="late"):
        await bridge.ask_all(late, 0.01)
    assert all(future.cancelled() for future in late), "no one retrieves what it is answered with later"
    await bridge.ask_all([], 0)


def test_post_to_a_closed_loop_is_silent() -> None:
    async def make() -> Bridge:
        return Bridge()

    bridge = asyncio.run(make())
    bridge.post(print, "nobody hears this")
    from_thread(bridge.post, print, "nor this")


async def test_waiting_says_whether_it_ended_in_time() -> None:
    assert await wait_for(anyio.lowlevel.checkpoint(), 1)
    assert not await wait_for(anyio.sleep(5), 0.01)
    assert not await wait_for(anyio.sleep(5), -1)


async def test_ignore_takes_any_arguments() -> None:
    ignore(OK)
    ignore()


class Made:
    """A native producer that was made."""

    closed = 0

    def close_async(self, callback: Callable[..., None]) -> None:
        self.closed += 1


async def test_openings_that_belong_together_make_all_or_nothing() -> None:
    """What was made is closed when another one fails, and when the whole is cancelled before the last one."""
    made, refuse = [Made(), Made()], asyncio.Event()

    async def make(number: int) -> Made:
        return made[number]

    async def refused() -> Made:
        await refuse.wait()
        raise BrokerUnavailableError("no")

    assert await open_together([make(0), make(1)]) == made
    assert await open_together([]) == []
    task = asyncio.create_task(open_together([make(0), refused()]))
    await asyncio.sleep(0.01)
    assert made[0].closed == 0
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert [one.closed for one in made] == [1, 0]
    refuse.set()
    with pytest.raises(BrokerUnavailableError):
        await open_together([refused(), make(1)])
    assert [one.closed for one in made] == [1, 1]


async def test_no_task_outlives_the_transport() -> None:
    """One that its owner had no time to wait for is waited for at the end, when nothing native is under way."""
    bridge, ended = Bridge(), []

    async def work() -> None:
        try:
            await bridge.ask(Operation(), "open it", 60, ignore)
        finally:
            ended.append(True)

    task = bridge.task(work())
    await anyio.lowlevel.checkpoint()
    await end([task], 0.01)
    assert ended == []
    bridge.close()
    await bridge.all_ended(5)
    assert ended == [True]
    assert task.done()
    await bridge.all_ended(5)


async def test_ending_a_task_that_was_cancelled_before_lets_it_finish() -> None:
    """It may wait for a native producer or consumer that it has to close."""
    finished: list[bool] = []

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            await asyncio.sleep(0.05)
            finished.append(True)

    task = Bridge().task(work())
    await anyio.lowlevel.checkpoint()
    task.cancel()
    await anyio.lowlevel.checkpoint()
    await end([task], 5)
    assert finished == [True]


async def test_close_cancels_what_tasks_are_left() -> None:
    """Also when whoever closes is cancelled before it waits for them."""
    bridge = Bridge()
    task = bridge.task(anyio.sleep_forever())
    await anyio.lowlevel.checkpoint()
    bridge.close()
    await asyncio.wait([task], timeout=5)
    assert task.cancelled()


async def test_an_answer_in_the_turn_of_the_time_out_is_discarded() -> None:
    """Nobody would close what was made."""
    discarded: list[Any] = []

    def start(callback: Callable[..., None]) -> None:
        loop = asyncio.get_running_loop()

        def answer_late() -> None:
            time.sleep(0.02)
            callback(OK, "made")

        loop.call_at(loop.time(), answer_late)  # due together with the time-out, and called before it

    with pytest.raises(OperationTimeoutError):
        await Bridge().ask(start, "do it", 0.01, discarded.append)
    await anyio.sleep(0.05)
    assert discarded == ["made"]


class Client:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.threads: list[threading.Thread] = []

    def close(self) -> None:
        self.threads.append(threading.current_thread())
        if self.error is not None:
            raise self.error


def test_closed_once_in_a_daemon_thread() -> None:
    native: Any = Client()
    done = threading.Event()
    client = NativeClient(native)
    thread = client.close(done.set)
    assert client.close() is thread
    thread.join(5)
    assert done.is_set()
    assert native.threads == [thread]
    assert thread.daemon
    assert client not in bridge_module._OPEN.values()


def test_a_close_that_fails_is_a_close() -> None:
    native: Any = Client(_pulsar.AlreadyClosed("x"))
    done = threading.Event()
    NativeClient(native).close(done.set).join(5)
    assert done.is_set()


def test_what_nobody_closed_is_closed_at_exit() -> None:
    native: Any = Client()
    client = NativeClient(native)
    others = {key: value for key, value in bridge_module._OPEN.items() if value is not client}
    for key in others:
        del bridge_module._OPEN[key]
    bridge_module._at_exit()
    bridge_module._OPEN.update(others)
    assert len(native.threads) == 1


def test_what_no_one_closed_is_closed_at_the_interpreters_end() -> None:
    """Where Python 3.12 and later start no thread any more."""
    program = """
from jmsaio.transport.pulsar.native.binding.bridge import NativeClient

class Client:
    def close(self):
        print("closed", flush=True)

client = NativeClient(Client())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("closed\n", "")


def used() -> tuple[int, int]:
    """Threads and descriptors of this process."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
@pytest.mark.parametrize("all_kinds", [False, True])
async def test_a_closed_connection_leaves_no_thread_and_no_descriptor(
    pulsar_broker: TestBroker, all_kinds: bool
) -> None:
    """Whatever was made natively; at once, not when Python frees the objects around it."""
    config, topic = load(pulsar_broker.service_url, web_service_url=pulsar_broker.web_service_url), new_topic()

    async def round() -> None:
        kit = Kit(await open_transport(config), topic)
        try:
            if all_kinds:
                box = await kit.box(receiver_queue_size=1)
                await send(await kit.sender(), "x")
                assert texts(await box.take(1)) == ["x"]
            reader = await kit.transport.open_reader(ReaderOptions(topic, ConsumerConfig()))
            await reader.read(1, 0.0)
        finally:
            await kit.transport.aclose(HANG)

    await round()
    before = used()
    gc.disable()
    try:
        for _ in range(25 if all_kinds else 100):
            await round()
        with anyio.fail_after(HANG):
            while any(now > then + 2 for now, then in zip(used(), before, strict=True)):
                await anyio.sleep(0.05)  # the last thread may be on its way out
    finally:
        gc.enable()
