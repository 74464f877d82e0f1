"""The broker goes away, comes back, freezes; the client process dies: nothing is lost, nothing hangs."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import subprocess
import sys
import uuid
import weakref
from pathlib import Path

import anyio
import attrs
import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.testing import Command, FaultProxy
from jmsaio.transport.pulsar.native.consumers import rereading
from jmsaio.transport.pulsar.wire.consumers import entries
from tests.client.helpers import Functions, fill, take, text
from tests.kit.inside import inbox_of, runtime_of, temporaries_left
from tests.support.broker import TestBroker

pytestmark = pytest.mark.real_time  # its tests wait for processes, signals and sockets

ROOT = Path(__file__).parents[2]
TRANSPORTS = pytest.mark.parametrize("transport", ["pulsar-client", "wire"])


def queue() -> jmsaio.Queue:
    return jmsaio.Queue(f"faults-{uuid.uuid4()}")


async def receive_until(url: str, target: jmsaio.Queue, wanted: set[str]) -> list[str]:
    """Receive until ``wanted`` has arrived."""
    found: list[str] = []
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        async with session.create_consumer(target) as consumer:
            while not wanted <= set(found):
                body = await consumer.receive_body(str, timeout=30)
                assert body is not None, f"lost: {sorted(wanted - set(found))[:5]}"
                found.append(body)
    return found


async def test_no_broker_at_start() -> None:
    with pytest.raises(jmsaio.BrokerUnavailableError) as caught:
        await jmsaio.connect("pulsar://127.0.0.1:1", connect_timeout=2.0)
    assert (caught.value.host, caught.value.port) == ("127.0.0.1", 1)
    assert "127.0.0.1" in str(caught.value)


async def send_damaged(proxy: FaultProxy, connection: jmsaio.Connection, target: jmsaio.Queue) -> None:
    """Send a message that the proxy damages on its way to the consumer, and wait until it has."""
    fault = proxy.flip(Command.MESSAGE, times=None)
    async with connection.create_session() as session:
        await (await session.create_producer(target)).send("tea")
    with anyio.fail_after(30):
        while not fault.hits:
            await asyncio.sleep(0.01)


@attrs.define
class Traffic:
    """Messages that go through a queue until `stop` is set: which are confirmed, and which have come."""

    target: jmsaio.Queue
    confirmed: set[str] = attrs.field(factory=set)
    received: set[str] = attrs.field(factory=set)
    stop: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def send(self, session: jmsaio.Session) -> None:
        number = 0
        async with session.create_producer(self.target) as producer:
            while not self.stop.is_set():
                number += 1
                try:
                    await producer.send(str(number))
                    self.confirmed.add(str(number))
                except jmsaio.SendError:
                    continue  # it failed or its outcome is unknown: not confirmed
                await asyncio.sleep(0.005)

    async def receive(self, session: jmsaio.Session, sending: asyncio.Future[None]) -> None:
        async with session.create_consumer(self.target) as consumer:
            # the last send may be confirmed after the stop
            while not (sending.done() and self.confirmed <= self.received):
                message = await consumer.receive(timeout=5)
                if message is not None:
                    self.received.add(text(message))
                    await message.acknowledge()


@TRANSPORTS
async def test_killed_and_restarted_while_sending_receiving_and_inside_a_listener(
    own_broker: TestBroker, transport: str
) -> None:
    """What was confirmed comes; the listener, on a connection of its own, gets what is sent afterwards."""
    address = f"{own_broker.url}&transport={transport}"
    url, traffic, heard = f"{address}&producerConfig.sendTimeoutMs=60000", Traffic(queue()), queue()
    seen: list[str] = []
    restarted, done = asyncio.Event(), asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        seen.append(text(message))
        if len(seen) == 1:
            await anyio.to_thread.run_sync(own_broker.kill)
            await asyncio.sleep(0.5)
            await anyio.to_thread.run_sync(own_broker.start)
            restarted.set()
        if "second" in seen:
            done.set()

    async with (
        jmsaio.connect(url) as connection,
        connection.create_session() as one,
        connection.create_session(AcknowledgeMode.CLIENT) as two,
        jmsaio.connect(address) as listening,
        listening.create_session() as three,
        three.create_producer(heard) as producer,
    ):
        consumer = await three.create_consumer(heard)
        sending = asyncio.ensure_future(traffic.send(one))
        receiving = asyncio.ensure_future(traffic.receive(two, sending))
        while len(traffic.received) < 20:
            await asyncio.sleep(0.05)
        await producer.send("first")
        consumer.set_message_listener(listener)
        await asyncio.wait_for(restarted.wait(), 100)
        before = len(traffic.confirmed)
        while len(traffic.confirmed) < before + 20:
            await asyncio.sleep(0.05)
        traffic.stop.set()
        await asyncio.wait_for(sending, 60)
        await asyncio.wait_for(receiving, 60)
        while True:
            try:
                await producer.send("second")
                break
            except jmsaio.SendError:
                await asyncio.sleep(0.5)
        await asyncio.wait_for(done.wait(), 60)
    assert traffic.confirmed <= traffic.received


@TRANSPORTS
async def test_closed_inside_the_callbacks_while_the_broker_is_dead(own_broker: TestBroker, transport: str) -> None:
    """Both closes end, the send that was waiting has an outcome, and so has the receive."""
    target, ended = queue(), list[str]()
    heard, sent = asyncio.Event(), asyncio.Event()
    connection = await jmsaio.connect(f"{own_broker.url}&transport={transport}", close_timeout=5.0)

    async def listener(message: jmsaio.Message) -> None:
        await anyio.to_thread.run_sync(own_broker.kill)
        await listening.close()
        ended.append("listener")
        heard.set()

    async def reported(error: jmsaio.JMSError) -> None:
        await sent.wait()
        with contextlib.suppress(jmsaio.OperationTimeoutError):  # that the send was waited for in vain
            await connection.close()
        ended.append("exception listener")

    async def failed(message: jmsaio.Message, error: Exception) -> None:
        with pytest.raises(jmsaio.IllegalStateError):
            await connection.close()
        ended.append("completion listener")

    connection.set_exception_listener(reported)
    one, two = await connection.create_session(), await connection.create_session()
    listening, waiting = await one.create_consumer(target), await two.create_consumer(queue())
    producer = await two.create_producer(target)
    await producer.send("first")
    listening.set_message_listener(listener)
    await asyncio.wait_for(heard.wait(), 60)
    await producer.send_async("second", completion_listener=Functions(lambda message: ended.append("stored"), failed))
    sent.set()
    assert await asyncio.wait_for(waiting.receive(), 60) is None
    async with asyncio.timeout(60):
        while len(ended) < 3:
            await asyncio.sleep(0.05)
    assert sorted(ended) == ["completion listener", "exception listener", "listener"]
    assert connection.closed


async def test_the_broker_closes_consumer_and_producer(own_broker: TestBroker) -> None:
    url, target = own_broker.url, queue()
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        async with session.create_consumer(target) as consumer, session.create_producer(target) as producer:
            await producer.send("before")
            await unload(own_broker, target)
            await producer.send("after")
            found: list[str] = []
            while "after" not in found:
                message = await consumer.receive(timeout=30)
                assert message is not None
                if text(message) not in found:
                    found.append(text(message))
                else:  # the unloading overtook its acknowledgement
                    assert message.jms_redelivered
            assert found == ["before", "after"]


async def unload(broker: TestBroker, target: jmsaio.Queue) -> None:
    import httpx

    path = f"/admin/v2/persistent/public/default/{target.name}/unload"
    async with httpx.AsyncClient(base_url=broker.web_service_url, timeout=30) as client:
        (await client.put(path)).raise_for_status()


async def test_every_close_ends_while_the_broker_is_away_and_it_is_found_when_it_comes_up(
    own_broker: TestBroker,
) -> None:
    url = own_broker.url
    connection = await jmsaio.connect(url, close_timeout=2.0)
    session = await connection.create_session()
    target = queue()
    consumer = await session.create_consumer(target)
    producer = await session.create_producer(target)
    await anyio.to_thread.run_sync(own_broker.kill)
    pending = await producer.send_async("on its way")
    waiting = asyncio.ensure_future(consumer.receive())
    await asyncio.sleep(0.1)
    closings = [asyncio.ensure_future(thing.close()) for thing in (connection, session, consumer, connection)]
    results = await asyncio.wait_for(asyncio.gather(*closings, return_exceptions=True), 60)
    assert all(result is None or isinstance(result, jmsaio.JMSError) for result in results)
    assert connection.closed and session.closed
    assert await asyncio.wait_for(waiting, 10) is None
    with pytest.raises(jmsaio.SendError):
        await asyncio.wait_for(pending, 10)
    with pytest.raises(jmsaio.BrokerUnavailableError):
        await jmsaio.connect(url, connect_timeout=2.0)
    await anyio.to_thread.run_sync(own_broker.start)
    async with jmsaio.connect(url) as again:
        assert not again.closed


async def test_cancelled_while_the_broker_is_frozen(own_broker: TestBroker) -> None:
    url, target = own_broker.url, queue()
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        async with session.create_consumer(target) as consumer, session.create_producer(target) as producer:
            await producer.send("before")
            await anyio.to_thread.run_sync(own_broker.pause)
            for call in (producer.send("in doubt"), session.create_consumer(queue())):
                task = asyncio.ensure_future(call)
                await asyncio.sleep(0.2)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await anyio.to_thread.run_sync(own_broker.resume)
            await producer.send("after")
            found: set[str | None] = set()
            while not {"before", "after"} <= found:
                found.add(await consumer.receive_body(str, timeout=30))
                assert None not in found


CRASHING = """
import asyncio, os, sys
import jmsaio

async def main(url, name):
    connection = await jmsaio.connect(url)
    session = await connection.create_session(jmsaio.AcknowledgeMode.CLIENT)
    consumer = await session.create_consumer(jmsaio.Queue(name))
    for _ in range(3):
        message = await consumer.receive(timeout=30)
        print(message.get_body(str), flush=True)
    print("has them", flush=True)
    await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_the_client_process_is_killed(pulsar_broker: TestBroker) -> None:
    url, target = pulsar_broker.url, queue()
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        async with session.create_producer(target) as producer:
            for number in range(3):
                await producer.send(str(number))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CRASHING, url, target.name, stdout=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    lines = [(await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip() for _ in range(4)]
    assert lines == ["0", "1", "2", "has them"]
    process.kill()
    await process.wait()
    await process.communicate()
    assert sorted(await receive_until(url, target, {"0", "1", "2"})) == ["0", "1", "2"]


async def test_nothing_is_left_behind(url: str) -> None:
    rounds = 200 if url.startswith("memory") else 20
    references: list[weakref.ref[object]] = []
    tasks = len(asyncio.all_tasks())
    target = queue()
    for _ in range(rounds):
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            async with session.create_consumer(target) as consumer, session.create_producer(target) as producer:
                await producer.send("x")
                message = await consumer.receive(timeout=20)
                references += [weakref.ref(thing) for thing in (connection, session, consumer, producer, message)]
    del connection, session, consumer, producer, message
    await asyncio.sleep(0.2)
    gc.collect()
    assert sum(reference() is not None for reference in references) == 0
    assert len(asyncio.all_tasks()) == tasks


async def test_contexts_browsers_and_temporary_destinations_leave_nothing_behind(url: str) -> None:
    rounds = 200 if url.startswith("memory") else 20
    references: list[weakref.ref[object]] = []
    target = queue()
    async with jmsaio.ConnectionFactory(url) as factory, await factory.create_context() as first:
        connection = first.connection
        await first.create_producer().send(target, "x")
        tasks = len(asyncio.all_tasks())
        for _ in range(rounds):
            async with first.create_context() as context, context.create_browser(target) as browser:
                messages = [message async for message in browser]
                temporary = await context.create_temporary_queue()
                async with context.create_consumer(temporary) as consumer:
                    await context.create_producer().send(temporary, "y")
                    messages += await take(consumer, 1)
                await temporary.delete()
                requestor = await jmsaio.QueueRequestor.open(context._session, target)
                await requestor.close()
                things = (context, runtime_of(context._session), browser, temporary, consumer, requestor, *messages)
                references += map(weakref.ref, things)
        del context, browser, temporary, consumer, requestor, messages, things
        await asyncio.sleep(0.2)
        gc.collect()
        # the task group of the open connection still knows the session that ended last, with its last destination
        assert sum(reference() is not None for reference in references) <= 2
        with anyio.fail_after(30):  # the task that closes idle senders to temporary destinations ends after the last
            while len(asyncio.all_tasks()) != tasks:
                await asyncio.sleep(0.1)
        assert (connection.stats().sessions, len(temporaries_left(connection))) == (1, 0)
        assert len(factory._senders._entries) == 1  # type: ignore[union-attr]  # it is connected


INTERRUPTED = """
import asyncio, signal, sys
import jmsaio

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored

async def main(url, name):
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        async with session.create_consumer(jmsaio.Queue(name)) as consumer:
            print("waiting", flush=True)
            await consumer.receive()

try:
    asyncio.run(main(*sys.argv[1:]))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


async def test_control_c_while_receiving(url: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", INTERRUPTED, url, queue().name, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    assert (await asyncio.wait_for(process.stdout.readline(), 60)) == b"waiting\n"
    await asyncio.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    assert (output, process.returncode) == (b"interrupted\n", 0), errors.decode()


async def test_a_slow_consumer_bounds_memory(url: str) -> None:
    """Far more is sent than the client may hold; what the application has not asked for stays at the broker."""
    target, count = queue(), 3000
    extra = "consumerConfig.receiverQueueSize=50"
    async with jmsaio.connect(url + ("&" if "?" in url else "?") + extra) as connection:
        async with connection.create_session() as session:
            async with session.create_consumer(target) as consumer, session.create_producer(target) as producer:
                for future in [await producer.send_async(str(number)) for number in range(count)]:
                    await future
                for number in range(count):
                    assert await consumer.receive_body(str, timeout=30) == str(number)
                    assert len(inbox_of(consumer).records) <= 50


WIRE_IN_FULL = pytest.mark.parametrize("transport", ["pulsar-client", pytest.param("wire", marks=pytest.mark.slow)])


@WIRE_IN_FULL
@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT])
async def test_a_message_that_was_damaged_on_its_way(
    pulsar_broker: TestBroker, mode: AcknowledgeMode, transport: str
) -> None:
    """pulsar-client drops and acknowledges it; it is delivered as redelivered, and again after ``recover``.

    With wire it was never acknowledged, and is delivered for the first time.
    """
    target, web = queue(), f"?webServiceUrl={pulsar_broker.web_service_url}&transport={transport}"
    told: list[jmsaio.JMSError] = []
    async with FaultProxy.of(pulsar_broker.service_url) as proxy, jmsaio.connect(pulsar_broker.url) as direct:
        async with jmsaio.connect(proxy.url + web) as connection, connection.create_session(mode) as session:
            connection.set_exception_listener(told.append)
            consumer = await session.create_consumer(target)
            fault = proxy.flip(Command.MESSAGE)
            async with direct.create_session() as sending:
                await (await sending.create_producer(target)).send("tea")
            message = await consumer.receive(timeout=30)
            assert message is not None and fault.hits == 1
            assert (message.get_body(str), message.jms_redelivered) == ("tea", transport == "pulsar-client")
            if mode is AcknowledgeMode.CLIENT:
                await session.recover()
                message = await consumer.receive(timeout=30)
                assert message is not None and message.get_body(str) == "tea"
                await message.acknowledge()
            assert await consumer.receive(timeout=0.5) is None
    assert told == []


@WIRE_IN_FULL
async def test_a_damaged_message_that_is_lost_is_reported(
    pulsar_broker: TestBroker, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    """The exception listener is given topic, subscription and id."""
    monkeypatch.setattr(rereading, "TIMEOUT", 1.0)
    monkeypatch.setattr(entries, "_AGAIN", (0.1,))
    target, web = queue(), f"?webServiceUrl={pulsar_broker.web_service_url}&transport={transport}"
    told: list[jmsaio.JMSError] = []
    async with FaultProxy.of(pulsar_broker.service_url) as proxy, jmsaio.connect(pulsar_broker.url) as direct:
        async with jmsaio.connect(proxy.url + web) as connection, connection.create_session() as session:
            connection.set_exception_listener(told.append)
            await session.create_consumer(target)
            proxy.flip(Command.MESSAGE, times=None)
            async with direct.create_session() as sending:
                await (await sending.create_producer(target)).send("tea")
            with anyio.fail_after(30):
                while not told:
                    await asyncio.sleep(0.05)
            proxy.clear()
    text = str(told[0])
    assert target.queue_name in text and "subscription jms-queue" in text
    assert ("damaged" if transport == "pulsar-client" else "does not match its checksum; it stays") in text


@pytest.mark.parametrize("whole", [True, False])
async def test_a_damaged_message_that_was_not_read_again_when_its_consumer_closed(
    pulsar_broker: TestBroker, whole: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The exception listener is told, and the log, also where the connection closes with it."""
    # Not with wire: its broker keeps what could not be read.
    target, web = queue(), f"?webServiceUrl={pulsar_broker.web_service_url}"
    told: list[jmsaio.JMSError] = []
    async with FaultProxy.of(pulsar_broker.service_url) as proxy, jmsaio.connect(pulsar_broker.url) as direct:
        connection = await jmsaio.connect(proxy.url + web)
        session = await connection.create_session()
        connection.set_exception_listener(told.append)
        consumer = await session.create_consumer(target)
        await send_damaged(proxy, direct, target)
        await asyncio.sleep(0.05)
        if not whole:
            await consumer.close()
        await connection.close()
    logged = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    for texts in ([*map(str, told)], logged):
        [loss] = [line for line in texts if target.queue_name in line]
        assert "closed before it was read again" in loss


@pytest.mark.slow
async def test_wire_leaves_a_damaged_message_to_others_when_its_consumer_closes(pulsar_broker: TestBroker) -> None:
    target, web = queue(), f"?webServiceUrl={pulsar_broker.web_service_url}&transport=wire"
    async with FaultProxy.of(pulsar_broker.service_url) as proxy, jmsaio.connect(pulsar_broker.url) as direct:
        async with jmsaio.connect(proxy.url + web) as connection, connection.create_session() as session:
            await session.create_consumer(target)
            await send_damaged(proxy, direct, target)
        async with direct.create_session() as other, other.create_consumer(target) as consumer:
            assert await consumer.receive_body(str, timeout=30) == "tea"


@pytest.mark.slow
@TRANSPORTS
async def test_what_comes_again_under_unloads_is_marked(pulsar_broker: TestBroker, transport: str) -> None:
    """Whether it was held while its topic was unloaded, or prefetched, or on its way back to the broker."""
    target, marks = queue(), dict[str, list[bool]]()
    url = f"{pulsar_broker.url}&transport={transport}"
    async with jmsaio.connect(url) as connection, connection.create_session(AcknowledgeMode.CLIENT) as session:
        await fill(connection, target, 200)
        async with session.create_consumer(target) as consumer:
            for number in range(12):
                while (message := await consumer.receive(timeout=0.5)) is not None and number % 3 != 2:
                    marks.setdefault(text(message), []).append(message.jms_redelivered)
                if message is not None:
                    marks.setdefault(text(message), []).append(message.jms_redelivered)
                unloading = asyncio.create_task(unload(pulsar_broker, target))
                if number % 2:
                    await unloading
                await session.recover()
                await unloading
    again = [mark for first, *later in marks.values() for mark in later]
    assert len(again) > 1000 and all(again)


@WIRE_IN_FULL
@pytest.mark.parametrize("together", [True, False])
async def test_what_a_live_session_holds_when_its_topic_is_unloaded(
    pulsar_broker: TestBroker, together: bool, transport: str
) -> None:
    """The broker gives it to any consumer, as if for the first time.

    A consumer of the same connection gets it once it is given back; one of another connection gets it at once. Both get
    it marked as redelivered.
    """
    target, url = queue(), f"{pulsar_broker.url}&transport={transport}"
    async with jmsaio.connect(url) as one, jmsaio.connect(url) as two:
        await fill(one, target, 20)
        async with one.create_session(AcknowledgeMode.CLIENT) as holding:
            holder = await holding.create_consumer(target)
            held = [text(message) for message in await take(holder, 20)]
            async with (one if together else two).create_session() as session:
                consumer = await session.create_consumer(target)
                early = None
                for _ in range(3 if together else 10):  # the broker may give it all to the one that has it
                    await unload(pulsar_broker, target)
                    early = early or await consumer.receive(timeout=1.5)  # longer, and no pause grows
                    if early is not None:
                        break
                assert (early is None) is together
                await holding.close()
                found = [] if early is None else [early]
                found += await take(consumer, 20 - len(found))
    assert sorted(text(message) for message in found) == sorted(held)
    assert all(message.jms_redelivered for message in found)
