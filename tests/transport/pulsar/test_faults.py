"""Faults of the broker and of the way to it, on a broker of our own that the tests kill, restart and freeze.

The faults are those that other messaging clients are tested with: away at start, killed and restarted, closed by the
server, connection lost before an acknowledgement, close while disconnected, cancelled, client killed, leaks,
interrupted, slow consumer.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from jmsaio.config import ProducerConfig, load
from jmsaio.errors import BrokerUnavailableError, OperationTimeoutError
from jmsaio.model.wire import ReceivedRecord
from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.pulsar import open_transport
from tests.kit.records import Outcomes, record, texts
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, new_topic, send

ROOT = Path(__file__).parents[3]
LONG = 90

blocking = anyio.to_thread.run_sync


async def under_load(kit: Kit, restart: Callable[[], Awaitable[object]]) -> None:
    """Send and receive while the broker restarts.

    Every record has one outcome; what was confirmed arrives, what was not acknowledged comes again.
    """
    box = await kit.box()
    sender = await kit.sender(config=ProducerConfig(send_timeout=LONG))
    confirmed: set[str] = set()
    failed: set[str] = set()
    received: set[str] = set()
    stop, drained = anyio.Event(), anyio.Event()

    def done(text: str, place: object, error: Exception | None) -> None:
        (confirmed if error is None else failed).add(text)

    async def produce() -> None:
        number = 0
        while not stop.is_set():
            for _ in range(20):
                number += 1
                sender.send(record(str(number)), partial(done, str(number)))
            await anyio.sleep(0.02)
            await sender.ready()
        await sender.drain(LONG)
        drained.set()

    async def consume() -> None:
        while not drained.is_set() or not confirmed <= received:
            records = box.receiver.receive(50)
            received.update(texts(records))
            box.receiver.acknowledge(records)
            await anyio.sleep(0.01)

    with anyio.fail_after(200):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(produce)
            tasks.start_soon(consume)
            await anyio.sleep(1)
            await restart()
            before = len(confirmed)
            while len(confirmed) <= before + 100:
                await anyio.sleep(0.1)
            stop.set()
    assert confirmed <= received
    assert not confirmed & failed


@pytest.mark.timeout(300)
async def test_a_broker_that_restarts_in_order_under_load(own_broker: TestBroker, connect: Any) -> None:
    """One that is killed under load: `test_confirmed`."""
    await under_load(await connect(own_broker), partial(blocking, own_broker.restart))


@pytest.mark.real_time  # bounds what waits for a broker
@pytest.mark.timeout(240)
async def test_a_send_that_gets_no_answer_is_in_doubt(own_broker: TestBroker, connect: Any) -> None:
    kit = await connect(own_broker)
    sender, outcomes = await kit.sender(config=ProducerConfig(send_timeout=1)), Outcomes()
    await send(sender, "before")
    await blocking(own_broker.pause)
    for number in range(300):
        sender.send(record(str(number)), outcomes)
    with anyio.fail_after(LONG):
        await sender.drain(LONG)
    await blocking(own_broker.resume)
    assert len(outcomes) == 300
    assert {type(error).__name__ for error in outcomes.failures} <= {"SendInDoubtError"}
    assert outcomes.failures


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE])
async def test_the_topic_moves_between_delivery_and_acknowledgement(
    kit: Kit, pulsar_broker: TestBroker, kind: SubscriptionType
) -> None:
    """The server closes producer and consumer (unload). What is out is not handed out twice, and its
    acknowledgement counts."""
    box, sender = await kit.box(kind), await kit.sender()
    numbers = [str(number) for number in range(20)]
    await send(sender, *numbers)
    records = await box.take(20)
    box.receiver.acknowledge(records[:10])
    await box.receiver.settle(HANG)
    await unload(pulsar_broker, kit.topic)
    await anyio.sleep(0.5)
    await send(sender, "after")
    got = await box.take(1)
    assert texts(got) == ["after"]
    await box.nothing()
    box.receiver.acknowledge([*records[10:], *got])
    await box.receiver.settle(HANG)
    await box.receiver.aclose(HANG)
    await (await kit.box(kind)).nothing()


async def unload(broker: TestBroker, topic: str) -> None:
    import httpx

    async with httpx.AsyncClient() as http:
        path = topic.replace("://", "/")
        (await http.put(f"{broker.web_service_url}/admin/v2/{path}/unload")).raise_for_status()


async def close_while_away(kit: Kit, leave: Callable[[], None]) -> None:
    """Every close is bounded, from many tasks at once, and every record has its outcome."""
    box, sender, outcomes = await kit.box(), await kit.sender(), Outcomes()
    await send(sender, "a", "b")
    records = await box.take(1)
    await blocking(leave)
    box.receiver.acknowledge(records)
    for number in range(50):
        sender.send(record(str(number)), outcomes)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(sender.aclose, 1)
                tasks.start_soon(box.receiver.aclose, 1)
                tasks.start_soon(kit.transport.aclose, 2)
    assert len(outcomes) == 50


@pytest.mark.real_time  # bounds what waits for a broker
@pytest.mark.timeout(240)
async def test_close_while_the_broker_is_frozen(own_broker: TestBroker, connect: Any) -> None:
    await close_while_away(await connect(own_broker), own_broker.pause)
    await blocking(own_broker.resume)


@pytest.mark.real_time  # bounds what waits for a broker
@pytest.mark.timeout(240)
async def test_close_after_the_broker_was_killed_and_connect_while_it_comes_up(
    own_broker: TestBroker, connect: Any
) -> None:
    """One start of the broker serves both: it is expensive."""
    await close_while_away(await connect(own_broker), own_broker.kill)
    with pytest.raises(BrokerUnavailableError, match="refused") as caught:
        await connect(own_broker, connect_timeout=1.0)
    assert caught.value.port == int(own_broker.service_url.rpartition(":")[2])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(blocking, own_broker.start)
        # pulsar-client tries again after about as long as it has waited already: twice the time that the start takes
        kit = await connect(own_broker, connect_timeout=2 * LONG, operation_timeout=2 * LONG)
    await send(await kit.sender(), "after")


async def test_close_inside_a_callback(kit: Kit, pulsar_broker: TestBroker, connect: Any) -> None:
    other = await connect(pulsar_broker)
    sender = await other.sender()
    tasks: list[asyncio.Task[None]] = []
    sender.send(
        record("x"),
        lambda place, error: tasks.append(asyncio.get_running_loop().create_task(other.transport.aclose(5))),
    )
    with anyio.fail_after(HANG):
        while not tasks:
            await anyio.sleep(0.01)
        await tasks[0]


async def test_cancelled_receivers_lose_nothing(kit: Kit) -> None:
    """Two hundred waits cancelled at arbitrary points while records arrive."""
    box, sender = await kit.box(), await kit.sender()
    found: list[ReceivedRecord] = []
    outcomes = Outcomes()
    for number in range(200):
        sender.send(record(str(number)), outcomes)
        with anyio.move_on_after(0.0005 * (number % 7)):
            event = box.event
            found += box.receiver.receive(1 + number % 3)
            await event.wait()
    await sender.drain(HANG)
    found += await box.take(200 - len(found))
    assert texts(found) == [str(number) for number in range(200)]


_VICTIM = """
import asyncio, signal, sys
from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.transport.base import StartPosition, SenderOptions, Subscription, SubscriptionType
from jmsaio.transport.pulsar import open_transport

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored

async def main(url, topic, kind):
    transport = await open_transport(load(url))
    event = asyncio.Event()
    subscription = Subscription((topic,), "sub", SubscriptionType[kind], ConsumerConfig(), StartPosition.EARLIEST)
    receiver = await transport.open_receiver(subscription, event.set)
    await transport.open_sender(topic, SenderOptions(ProducerConfig(), print))
    count = 0
    while True:
        count += len(receiver.receive(10))
        if count == 10:
            print("holding", flush=True)
        event.clear()
        await event.wait()

asyncio.run(main(*sys.argv[1:]))
"""


def _victim(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _VICTIM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE])
async def test_a_killed_or_interrupted_client_leaves_nothing(
    kit: Kit, pulsar_broker: TestBroker, number: signal.Signals, kind: SubscriptionType
) -> None:
    """Its records come to the next consumer, it stays in no statistics; Ctrl-C ends it while it is waiting."""
    await send(await kit.sender(), *map(str, range(10)))
    box = await kit.box(kind)
    await box.receiver.aclose(HANG)
    victim = _victim(pulsar_broker.service_url, kit.topic, kind.name)
    assert victim.stdout is not None
    assert (await blocking(victim.stdout.readline)).strip() == "holding"
    victim.send_signal(number)
    code = await blocking(partial(victim.wait, 20))
    victim.stdout.close()
    assert code in (-number, 1, 130)
    with anyio.fail_after(HANG):
        admin = kit.transport.admin
        assert admin is not None
        while (await admin.stats(kit.topic)).subscriptions["sub"].consumers:
            await anyio.sleep(0.05)
    again = await kit.box(kind)
    assert sorted(texts(await again.take(10)), key=int) == [str(number) for number in range(10)]


async def test_closed_objects_are_collected(pulsar_broker: TestBroker) -> None:
    gone: list[weakref.ref[Any]] = []

    async def use() -> None:
        transport = await open_transport(load(pulsar_broker.service_url))
        kit = Kit(transport, new_topic())
        box, sender = await kit.box(ack_timeout=30.0), await kit.sender()
        await send(sender, "a", "b")
        records = await box.take(2)
        box.receiver.acknowledge(records[:1])
        box.receiver.negative_acknowledge(records[1:], 60)
        gone.extend(map(weakref.ref, (transport, sender, box.receiver)))
        await transport.aclose(10)

    await use()
    with anyio.fail_after(HANG):
        while any(one() is not None for one in gone):
            gc.collect()
            await anyio.sleep(0.05)


def count_own() -> int:
    """The number of objects and functions of jmsaio and of pulsar-client that exist."""
    gc.collect()
    homes = (str(getattr(each, "__module__", "")).partition(".")[0] for each in gc.get_objects())
    return sum(home in {"jmsaio", "pulsar", "_pulsar"} for home in homes)


async def test_opening_and_closing_leaves_nothing(kit: Kit) -> None:
    """Senders and receivers made and closed many times: the transport forgets them, each when it is closed."""
    before = count_own()
    for _ in range(30):
        box, sender = await kit.box(), await kit.sender()
        await send(sender, "x")
        box.receiver.acknowledge(await box.take(1))
        await box.receiver.aclose(HANG)
        await sender.aclose(HANG)
    del box, sender
    with anyio.fail_after(HANG):
        while count_own() >= before + 30:  # a slow broker closes some later
            await anyio.sleep(0.05)
    assert repr(kit.transport).endswith(", 0 open>")


async def test_a_slow_consumer_bounds_what_is_prefetched(kit: Kit) -> None:
    """The broker keeps what the consumer does not take: 100 prefetched, whatever the backlog."""
    box = await kit.box(receiver_queue_size=100)
    await send(await kit.sender(config=ProducerConfig(batching_enabled=False)), *map(str, range(1000)))
    [first] = await box.take(1)
    await anyio.sleep(0.5)
    admin = kit.transport.admin
    assert admin is not None
    other = await kit.box()
    rest = await other.take(800)
    assert len(rest) == 800
    box.receiver.acknowledge([first])


@pytest.mark.real_time  # bounds what waits for a broker
@pytest.mark.timeout(200)
async def test_a_silent_broker_ends_no_waiting_for_ever(own_broker: TestBroker, connect: Any) -> None:
    """Opening, settling with receipts, seeking: each ends within its time with an error that names it."""
    kit = await connect(own_broker, operation_timeout=2.0)
    box = await kit.box(ack_receipt_enabled=True)
    await send(await kit.sender(), "a")
    records = await box.take(1)
    await blocking(own_broker.pause)
    try:
        box.receiver.acknowledge(records)
        with anyio.fail_after(30):
            with pytest.raises(OperationTimeoutError, match="receipts"):
                await box.receiver.settle(1)
            with pytest.raises(OperationTimeoutError, match="seek"):
                await box.receiver.seek(0, 1)
            with pytest.raises(OperationTimeoutError, match="look up"):
                await kit.sender(new_topic())
    finally:
        await blocking(own_broker.resume)


@pytest.mark.timeout(200)
@pytest.mark.parametrize("damage", ["cut", "short", "huge"])
async def test_truncated_frames_leave_what_pulsar_client_keeps_and_no_more(
    pulsar_broker: TestBroker, damage: str, record_property: Callable[[str, object], None]
) -> None:
    """One thread and six descriptors of a client that is closed in the wrong moment, see the guide; no memory."""
    arguments = [pulsar_broker.service_url, pulsar_broker.web_service_url or "", damage]
    command = [sys.executable, str(Path(__file__).with_name("broken_frames.py")), *arguments]
    done = await blocking(partial(subprocess.run, command, capture_output=True, text=True, timeout=180))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    record_property("found", found)
    hits, before, after, clean = (found[name] for name in ("hits", "before", "after", "clean"))
    assert hits >= 12
    assert after["threads"] - before["threads"] <= hits // 2
    assert after["descriptors"] - before["descriptors"] <= 6 * (hits // 2)
    assert after["bytes"] - before["bytes"] < 50_000_000
    assert clean["threads"] <= after["threads"] and clean["descriptors"] <= after["descriptors"]
