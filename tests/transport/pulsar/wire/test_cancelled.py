"""Every call, cancelled in each turn of the loop: nothing is lost, nothing is left here or at the broker."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import attrs
import pytest

from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.errors import JMSError
from jmsaio.model.wire import ReceivedRecord
from jmsaio.protocol.commands import Command
from jmsaio.transport.base import (
    Reader,
    ReaderOptions,
    Receiver,
    Sender,
    SenderOptions,
    StartPosition,
    Subscription,
    SubscriptionType,
    Transaction,
)
from jmsaio.transport.pulsar.wire.transport import WireTransport, open_transport
from tests.kit.records import record, texts
from tests.protocol.all_commands import encode_command
from tests.protocol.server_errors import ServerError
from tests.support.broker import TestBroker
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.fuzz import FuzzLoop
from tests.transport.pulsar.wire.peer import Fields, Link
from tests.transport.pulsar.wire.serving import Server

#: Seconds, of virtual time, after which everything that a cancelled call left running has ended.
LATER = 30


class CancellingLoop(FuzzLoop):
    """A loop on virtual time, with connections in memory, that cancels a task in one of its turns."""

    _left = -1
    _task: asyncio.Task[Any] | None = None

    def cancel_after(self, turns: int, task: asyncio.Task[Any]) -> None:
        """Cancel a task after so many turns."""
        self._left, self._task = turns, task

    def _run_once(self) -> None:
        if self._left == 0 and self._task is not None:
            self._task.cancel()
        self._left -= 1
        super()._run_once()  # type: ignore[misc]  # of asyncio's own loops


@attrs.define(eq=False)
class World:
    """A client with one part of each kind, and records in each state."""

    server: Server
    transport: WireTransport
    topic: str = TOPIC
    sender: Sender = attrs.field(init=False)
    receiver: Receiver = attrs.field(init=False)
    reader: Reader = attrs.field(init=False)
    held: list[ReceivedRecord] = attrs.field(factory=list)
    woken: asyncio.Event = attrs.field(factory=asyncio.Event)
    sent: int = 0
    stored: set[str] = attrs.field(factory=set)
    seen: set[str] = attrs.field(factory=set)
    outcomes: int = 0
    inside: list[str] = attrs.field(factory=list)  # sent in a transaction

    def settled(self, tokens: Any, place: object, error: JMSError | None) -> None:
        self.outcomes += len(tokens)
        if error is None:
            self.stored.update(set(tokens) - set(self.inside))

    async def open_sender(self) -> Sender:
        return await self.transport.open_sender(self.topic, SenderOptions(ProducerConfig(), self.settled))

    async def open_receiver(self) -> Receiver:
        wanted = Subscription((self.topic,), "s", SubscriptionType.SHARED, ConsumerConfig(), StartPosition.EARLIEST)
        return await self.transport.open_receiver(wanted, self.woken.set)

    async def open_reader(self) -> Reader:
        name = self.topic if not self.server.partitions else f"{self.topic}-partition-0"
        return await self.transport.open_reader(ReaderOptions(name, ConsumerConfig(receiver_queue_size=1)))

    def send(self, number: int) -> None:
        for _ in range(number):
            self.sender.send(record(str(self.sent)), str(self.sent))
            self.sent += 1

    async def take(self, number: int) -> None:
        while len(self.held) < number:
            self.woken.clear()
            self.held += self.receiver.receive(number - len(self.held))
            if len(self.held) < number:
                await self.woken.wait()

    async def prepare(self) -> None:
        """Hold two records of six; one was acknowledged."""
        self.sender, self.receiver = await self.open_sender(), await self.open_receiver()
        self.send(2)
        await self.sender.drain(5)
        self.send(1)
        await self.sender.drain(5)
        await self.take(3)
        self.acknowledge(1)
        await self.receiver.settle(5, receipt=True)
        self.send(3)
        await self.sender.drain(5)

    def acknowledge(self, number: int, transaction: Transaction | None = None) -> None:
        records, self.held = self.held[:number], self.held[number:]
        self.seen.update(texts(records))
        self.receiver.acknowledge(records, transaction)

    async def send_and_drain(self) -> None:
        self.send(3)
        await self.sender.drain(5)

    async def acknowledge_and_settle(self) -> None:
        self.acknowledge(1)
        await self.receiver.settle(5, receipt=True)

    async def give_back(self) -> None:
        records, self.held = self.held, []
        self.receiver.negative_acknowledge(records, 0.0)
        await self.receiver.settle(5)

    async def seek(self) -> None:
        await self.receiver.seek(StartPosition.EARLIEST, 5)

    async def stop_and_start(self) -> None:
        await self.receiver.stop(5)
        await self.receiver.resume(5)

    async def commit(self) -> None:
        """Send and acknowledge in a transaction, and commit it."""
        transaction = await self.transport.begin(60)
        try:
            await self.work_in(transaction)
            await transaction.commit()
        finally:
            await transaction.abort()

    async def roll_back(self) -> None:
        """Send and acknowledge in a transaction, and roll it back."""
        transaction = await self.transport.begin(60)
        try:
            await self.work_in(transaction)
        finally:
            await transaction.abort()

    async def work_in(self, transaction: Transaction) -> None:
        for _ in range(2):
            self.inside.append(str(self.sent))
            self.sender.send(record(str(self.sent)), str(self.sent), transaction)
            self.sent += 1
        self.acknowledge(1, transaction)
        await self.sender.drain(5)
        await self.receiver.settle(5)

    async def read(self) -> None:
        reader = await self.open_reader()
        try:
            await reader.read(2, 1.0)
        finally:
            await reader.aclose(5)

    async def close_sender(self) -> None:
        await self.sender.aclose(5)

    async def close_receiver(self) -> None:
        await self.receiver.aclose(5)

    async def close(self) -> None:
        await self.transport.aclose(5)

    async def finish(self) -> None:
        """Everything stored arrives, and a close leaves nothing."""
        assert self.outcomes == self.sent, "a send without an outcome"
        assert (self.server.open, self.server.wrong) == ({}, [])
        assert {*self.inside} & {*self.server.texts} in (set(), {*self.inside}), "a part of a transaction"
        if not self.transport._client.closed:
            self.check_registered()
            await self.renew()
            async with asyncio.timeout(LATER):
                while self.server.left:
                    self.held += self.receiver.receive(100)
                    self.acknowledge(100)
                    await asyncio.sleep(0.1)
            assert self.stored <= self.seen, "lost"
        await self.transport.aclose(5)
        await asyncio.sleep(1)
        assert self.server.registered == set() and self.server.links == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    async def renew(self) -> None:
        """Open what is closed, and send again."""
        if "closed" in repr(self.sender):
            self.sender = await self.open_sender()
        if "closed" in repr(self.receiver):
            self.held, self.receiver = [], await self.open_receiver()
        await self.receiver.resume(5)
        await self.send_and_drain()

    def check_registered(self) -> None:
        """The broker, the connections and the transport know the same parts."""
        connections = self.transport._client.pool.connections
        mine = {(Command.PRODUCER, number) for one in connections for number in one.producers}
        mine |= {(Command.SUBSCRIBE, number) for one in connections for number in one.consumers}
        assert self.server.registered == mine
        each = max(1, self.server.partitions)
        assert len(mine) == sum(1 if "Reader" in repr(part) else each for part in self.transport._open)


CALLS: tuple[Callable[[World], Awaitable[object]], ...] = (
    World.open_sender, World.open_receiver, World.open_reader, World.send_and_drain, World.acknowledge_and_settle,
    World.give_back, World.seek, World.stop_and_start, World.read, World.close_sender, World.close_receiver,
    World.close, World.commit, World.roll_back,
)  # fmt: skip


def cut(link: Link, fields: Fields) -> bytes:
    link.cut()
    return b""


def refuse(link: Link, fields: Fields) -> bytes:
    return encode_command(
        Command.ERROR, request_id=fields["request_id"], error=ServerError.ServiceNotReady, message="not now"
    )


#: What happens to the commands that a call sends.
TRANSACTIONS = (
    Command.TC_CLIENT_CONNECT_REQUEST, Command.NEW_TXN, Command.ADD_PARTITION_TO_TXN, Command.ADD_SUBSCRIPTION_TO_TXN,
    Command.END_TXN,
)  # fmt: skip
OPENING = (Command.PARTITIONED_METADATA, Command.LOOKUP, Command.PRODUCER, Command.SUBSCRIBE, Command.SEEK)
FAULTS = {
    "none": {},
    "cut": dict.fromkeys(
        (*OPENING, *TRANSACTIONS, Command.SEND, Command.ACK, Command.CLOSE_CONSUMER, Command.CLOSE_PRODUCER), cut
    ),
    "refused": dict.fromkeys((*OPENING, *TRANSACTIONS), refuse),
}


async def quietly(call: Callable[[World], Awaitable[object]], world: World) -> Any:
    """Return what a call returns, None after an error."""
    with contextlib.suppress(JMSError):
        return await call(world)
    return None


async def cancelled(call: Callable[[World], Awaitable[object]], turns: int, partitions: int, fault: str) -> bool:
    """Make a world, cancel the call in it after so many turns, and check the world; return whether it was in time."""
    loop: Any = asyncio.get_running_loop()
    server: Any = Server()
    server.url, server.partitions, server.changed = "pulsar://peer:6650", partitions, lambda data: [data]
    loop.peer = server
    transport = await open_transport(server.config())
    world = World(server, transport)
    await world.prepare()
    for command, script in FAULTS[fault].items():
        server.script(command, script)

    task = asyncio.ensure_future(quietly(call, world))
    loop.cancel_after(turns, task)
    await asyncio.wait({task})
    server.scripts.clear()
    await asyncio.sleep(LATER)
    if not task.cancelled() and task.result() is not None:
        await task.result().aclose(5)
    await world.finish()
    assert loop.failures == []
    return task.cancelled()


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("partitions", [0, 3])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_a_call_cancelled_in_any_turn_loses_nothing_and_leaves_nothing(
    call: Callable[[World], Awaitable[object]], partitions: int, fault: str, step: int
) -> None:
    for turns in count(0, step):
        with asyncio.Runner(loop_factory=CancellingLoop) as runner:
            try:
                if not runner.run(cancelled(call, turns, partitions, fault)):
                    break
            except BaseException as error:
                error.add_note(f"cancelled after {turns} turns")
                raise


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_calls_cancelled_on_a_broker_lose_nothing_and_leave_nothing(pulsar_broker: TestBroker) -> None:
    """Two hundred points: up to six turns of the loop after none to two milliseconds."""
    transport = await open_transport(load(pulsar_broker.url))
    assert transport.admin is not None
    world = World(Server(), transport, f"persistent://public/default/cancelled-{uuid.uuid4()}")
    await world.prepare()
    tasks = len(asyncio.all_tasks())
    for call in (call for call in CALLS if call not in (World.seek, World.close)):
        for point in range(20):
            task = asyncio.ensure_future(quietly(call, world))
            await asyncio.sleep(0.001 * (point // 7))
            for _ in range(point % 7):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled() and task.result() is not None:
                await task.result().aclose(5)
            await world.renew()
            world.held += world.receiver.receive(4)
    async with asyncio.timeout(30):
        while not world.stored <= world.seen or len(asyncio.all_tasks()) > tasks:
            world.held += world.receiver.receive(100)
            world.acknowledge(100)
            await asyncio.sleep(0.05)
        connections = transport._client.pool.connections
        assert sum(len(one.producers) for one in connections) == sum(len(one.consumers) for one in connections) == 1
        while True:  # the broker closes a reader's subscription in its own time
            found = (await transport.admin.stats(world.topic)).subscriptions
            if [one.consumers for one in found.values()] == [1]:
                break
            await asyncio.sleep(0.05)
    assert world.outcomes == world.sent
    await transport.aclose(5)
