from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from jmsaio.testing import ManualClock, embedded_broker
from jmsaio.transport.base import LinkChange
from jmsaio.transport.clock import clock_of
from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.link import Link
from tests.kit.records import record
from tests.transport.contract.harness import GUARD
from tests.transport.memory.connecting import connect


class Deferred:
    def __init__(self, calls: list[str], name: str = "call") -> None:
        self.calls, self.name = calls, name

    def run_deferred(self) -> None:
        self.calls.append(self.name)
        if self.name == "broken":
            raise RuntimeError(self.name)


async def test_deferred_calls_run_together_and_later() -> None:
    loop, calls, contexts = asyncio.get_running_loop(), list[str](), list[dict[str, Any]]()
    loop.set_exception_handler(lambda loop, context: contexts.append(context))
    broker = Broker("x")
    link = Link(broker, loop)
    with broker.lock:
        for name in ("a", "broken", "b"):
            link.defer(Deferred(calls, name))
    assert calls == []
    await asyncio.sleep(0)
    loop.set_exception_handler(None)
    assert (calls, len(contexts)) == (["a", "broken", "b"], 1)


@pytest.mark.real_time  # waits for a thread
async def test_calls_deferred_in_another_thread_run_on_the_loop() -> None:
    broker, done = Broker("x"), asyncio.Event()
    threads: list[int] = []
    link = Link(broker, asyncio.get_running_loop())

    class Here(Deferred):
        def run_deferred(self) -> None:
            threads.append(threading.get_ident())
            done.set()

    def elsewhere() -> None:
        with broker.lock:
            link.defer(Here([]))

    await asyncio.to_thread(elsewhere)
    async with asyncio.timeout(GUARD):
        await done.wait()
    assert threads == [threading.get_ident()]


async def test_one_timer_for_the_next_thing_to_happen() -> None:
    broker, order, done = Broker("x", clock_of(asyncio.get_running_loop())), list[str](), asyncio.Event()
    link = Link(broker, asyncio.get_running_loop())
    broker.clients.append(PokedLink(link))

    def later(argument: object, token: object) -> None:
        order.append("later")
        done.set()

    with broker.lock:
        broker.timers.add(broker.steady() + 0.05, later)
        broker.timers.add(broker.steady() + 0.01, lambda argument, token: order.append("sooner"))
    async with asyncio.timeout(GUARD):
        await done.wait()
    assert order == ["sooner", "later"]
    link.cut()


async def test_what_is_deferred_is_called_at_the_end_at_the_latest() -> None:
    broker, calls = Broker("x"), list[str]()
    link = Link(broker, asyncio.get_running_loop())
    with broker.lock:
        link.defer(Deferred(calls))
    link.cut()
    assert calls == ["call"]


async def test_the_timer_stays_while_nothing_is_due_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, loop = Broker("x"), asyncio.get_running_loop()
    link, armed, contexts = Link(broker, loop), list[asyncio.TimerHandle](), list[dict[str, Any]]()
    call_later = loop.call_later

    def noted(delay: float, *call: Any) -> asyncio.TimerHandle:
        armed.append(call_later(delay, *call))
        return armed[-1]

    monkeypatch.setattr(loop, "call_later", noted)
    broker.clients.append(PokedLink(link))
    with broker.lock:
        later = broker.timers.add(broker.steady() + 60, lambda argument, token: None)
    for _ in range(3):
        await asyncio.sleep(0)
        with broker.lock:
            link.wake()
    await asyncio.sleep(0)
    assert len(armed) == 1
    with broker.lock:
        earlier = broker.timers.add(broker.steady() + 30, lambda argument, token: None)
    await asyncio.sleep(0)
    assert [handle.cancelled() for handle in armed] == [True, False]
    loop.set_exception_handler(lambda loop, context: contexts.append(context))
    with broker.lock:
        broker.timers.cancel(later)
        broker.timers.cancel(earlier)
        link.wake()
    await asyncio.sleep(0)
    assert ([handle.cancelled() for handle in armed], contexts) == ([True, True], [])
    link.cut()


async def test_what_is_due_is_done_with_one_ring_of_the_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    broker = Broker("x", clock_of(loop))
    link, rings = Link(broker, loop), list[None]()
    tick = broker.tick

    def counted() -> None:
        rings.append(None)
        tick()

    monkeypatch.setattr(broker, "tick", counted)
    broker.clients.append(PokedLink(link))
    with broker.lock:
        broker.timers.add(broker.steady() + 0.01, lambda argument, token: done.set())
    async with asyncio.timeout(GUARD):
        await done.wait()
    for _ in range(3):
        await asyncio.sleep(0.01)
    assert len(rings) == 1
    link.cut()


class PokedLink:
    gone = False

    def __init__(self, link: Link) -> None:
        self.timer_changed = link.wake

    def abandon(self) -> None: ...
    def broker_down(self) -> None: ...
    def broker_up(self) -> None: ...


def test_a_closed_loop_is_nobody_to_be_told() -> None:
    loop, calls = asyncio.new_event_loop(), list[str]()
    broker = Broker("x")
    link = Link(broker, loop)
    loop.close()
    with broker.lock:
        link.defer(Deferred(calls))
    assert calls == []


@pytest.mark.real_time
async def test_two_loops_in_two_threads_share_a_broker() -> None:
    with embedded_broker() as broker:
        here = await connect(broker)
        topic = here.topic()
        inbox = await here.inbox(topic)

        async def elsewhere() -> None:
            there = await connect(broker)
            sender = await there.sender(topic, window_records=100)
            for number in range(2000):
                await sender.ready()
                sender.send(record(str(number)), lambda place, error: None)
            await there.stop()

        thread = asyncio.ensure_future(asyncio.to_thread(asyncio.run, elsewhere()))
        assert await inbox.consume(2000) == [str(number) for number in range(2000)]
        await thread
        assert broker.used == 0
        await here.stop()


async def test_the_loop_is_called_once_in_a_turn_and_from_its_own_thread_without_detour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker, loop, calls = Broker("x"), asyncio.get_running_loop(), list[str]()
    link, used = Link(broker, loop), list[str]()
    call_soon = loop.call_soon

    def noted(callback: Any, *rest: Any, **named: Any) -> asyncio.Handle:
        if getattr(callback, "__self__", None) is link:
            used.append("call_soon")
        return call_soon(callback, *rest, **named)

    monkeypatch.setattr(loop, "call_soon", noted)
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *call: used.append("call_soon_threadsafe"))
    for _ in range(2):
        with broker.lock:
            for name in ("a", "b", "c"):
                link.defer(Deferred(calls, name))
        await asyncio.sleep(0)
    assert (used, calls) == (["call_soon"] * 2, ["a", "b", "c"] * 2)


async def test_a_timer_that_rings_too_early_is_set_again() -> None:
    loop = asyncio.get_running_loop()

    class Behind:
        seconds = 0.0

        def now(self) -> float:
            return loop.time() - self.seconds

        steady = now

        def watch(self, advanced: Callable[[], None]) -> bool:
            return False

    clock, done = Behind(), asyncio.Event()
    broker = Broker("x", clock)
    link = Link(broker, loop)
    broker.clients.append(PokedLink(link))
    with broker.lock:
        broker.timers.add(broker.steady() + 1, lambda argument, token: done.set())
    await asyncio.sleep(0)
    clock.seconds = 0.5
    async with asyncio.timeout(GUARD):
        await done.wait()
    link.cut()


async def test_by_a_manual_clock_no_timer_of_the_loop_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, loop, armed = Broker("x", ManualClock()), asyncio.get_running_loop(), list[float]()
    link = Link(broker, loop)
    broker.clients.append(PokedLink(link))
    monkeypatch.setattr(loop, "call_later", lambda delay, *call: armed.append(delay))
    with broker.lock:
        broker.timers.add(broker.steady() + 1, lambda argument, token: None)
        link.wake()
    await asyncio.sleep(0)
    assert armed == []


async def test_changes_of_the_link_are_told_in_their_order() -> None:
    broker = Broker("x")
    link, heard = Link(broker, asyncio.get_running_loop()), list[str]()
    link.listeners.add(lambda change: heard.append(change.text))
    with broker.lock:
        for text in ("lost", "back"):
            link.notify(LinkChange(text))
    await asyncio.sleep(0)
    assert heard == ["lost", "back"]
