"""Sends, receives in three modes, cancels at random, and meanwhile breaks the network, freezes and kills the broker."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
import attrs
import httpx

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.testing import Command, Direction, FaultProxy, Part
from tests.client.helpers import text
from tests.storm.gauges import Sample, sample
from tests.storm.journal import Journal
from tests.support.broker import TestBroker

MODES = (AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.TRANSACTED)
#: Seconds between two lines of figures.
MINUTE = 60.0
#: Messages on their way of one sender of futures at most.
_WINDOW = 200
_OPTIONS = (
    "jms.emulateTransactions=true&producerConfig.sendTimeoutMs=3000&operationTimeoutMs=5000&connectionTimeoutMs=2000"
)

#: The faults by name.
FAULTS: dict[str, Callable[[Storm], Awaitable[object] | object]] = {
    "stall": lambda storm: storm.proxy.stall(
        storm.chance.choice([None, *Direction]), seconds=storm.chance.uniform(0.2, 4)
    ),
    "reset": lambda storm: storm.proxy.reset(),
    "half-close": lambda storm: storm.proxy.half_close(storm.chance.choice(list(Direction))),
    "cut": lambda storm: storm.proxy.cut(storm.chance.choice([Command.SEND, Command.SEND_RECEIPT, Command.MESSAGE])),
    "swallow": lambda storm: storm.proxy.swallow(Command.SEND_RECEIPT, times=storm.chance.randint(1, 3)),
    "slices": lambda storm: storm.proxy.slices(storm.chance.randint(50, 2000), 0.0005),
    "latency": lambda storm: storm.proxy.latency(storm.chance.uniform(0.01, 0.2)),
    "freeze": lambda storm: anyio.to_thread.run_sync(storm.broker.pause),
    "unload": lambda storm: storm.unload(),
}
#: Those that pulsar-client 3.13 does not survive, or answers by dropping the message (``guide/compatibility.md``).
DAMAGE: dict[str, Callable[[Storm], object]] = {
    "flip-send": lambda storm: storm.proxy.flip(Command.SEND, storm.chance.choice([Part.PAYLOAD, Part.CHECKSUM])),
    "flip-message": lambda storm: storm.proxy.flip(Command.MESSAGE, storm.chance.choice([Part.PAYLOAD, Part.CHECKSUM])),
}
_OF_TRANSACTIONS = (
    Command.ADD_PARTITION_TO_TXN, Command.ADD_SUBSCRIPTION_TO_TXN_RESPONSE, Command.ACK, Command.ACK_RESPONSE,
    Command.END_TXN, Command.END_TXN_RESPONSE,
)  # fmt: skip
#: That of transactions of the broker alone: a command of theirs is lost with its connection.
OF_TRANSACTIONS: dict[str, Callable[[Storm], object]] = {
    "cut-transaction": lambda storm: storm.proxy.cut(storm.chance.choice(_OF_TRANSACTIONS)),
}


@attrs.frozen
class Plan:
    """What a storm is.

    Attributes:
        seconds: how long it lasts, without the calm afterwards.
        kills: how often the broker's process is killed.
        restarts: how often the broker is stopped in order, and started again.
        faults: names of ``FAULTS``, ``DAMAGE`` and ``OF_TRANSACTIONS``.
        seed: of all chance.
        calm: seconds that what is left may take to arrive.
        rate: messages that each sender sends in a second, roughly.
        transport: of the client.
    """

    seconds: float
    kills: int = 2
    faults: tuple[str, ...] = tuple(FAULTS)
    seed: int = 0
    calm: float = 90.0
    rate: float = 150.0
    transport: str = "pulsar-client"
    restarts: int = 0


async def run(broker: TestBroker, plan: Plan, say: Callable[[str], object] = lambda line: None) -> Journal:
    """Have a storm on a broker that may be killed; it runs again afterwards."""
    async with FaultProxy.of(broker.service_url) as proxy:
        storm = Storm(broker, proxy, plan, say)
        return await storm.run()


@attrs.define(eq=False)
class Storm:
    """One storm."""

    broker: TestBroker
    proxy: FaultProxy
    plan: Plan
    say: Callable[[str], object]
    journal: Journal = attrs.field(factory=Journal)
    chance: random.Random = attrs.field(init=False)
    _sending: bool = attrs.field(default=True, init=False)
    _receiving: bool = attrs.field(default=True, init=False)
    _queues: dict[AcknowledgeMode, jmsaio.Queue] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.chance = random.Random(self.plan.seed)
        tail = uuid.uuid4().hex[:8]
        self._queues = {mode: jmsaio.Queue(f"storm-{mode.name.lower()}-{tail}") for mode in MODES}

    async def run(self) -> Journal:
        """All of it: the storm, the calm after it, and the search for what did not arrive."""
        address = f"{self.proxy.url}?webServiceUrl={self.broker.web_service_url}"
        url = f"{address}&{_OPTIONS}&transport={self.plan.transport}"
        before = await self._sample()
        connection = await jmsaio.connect(url)
        connection.set_exception_listener(self._reported)
        try:
            async with asyncio.TaskGroup() as group:
                for mode, queue in self._queues.items():
                    for number in range(2):
                        group.create_task(self._receive(connection, mode, queue))
                        name = f"{mode.name.lower()}-{number}"
                        group.create_task((self._send, self._send_many)[number](connection, queue, name))
                await self._disturb()
                self._sending = False
                await self._wait_for_rest()
                self._receiving = False
        finally:
            with anyio.CancelScope(shield=True), suppress(jmsaio.JMSError):
                await connection.close()
        self.journal.closed = asyncio.get_running_loop().time()
        await self._look_for_lost()
        await self._look_for_what_is_left(before)
        return self.journal

    def _reported(self, error: jmsaio.JMSError) -> None:
        self.journal.reports[type(error).__name__] += 1

    def _refused(self, error: jmsaio.JMSError) -> None:
        self.journal.refusals[type(error).__name__] += 1

    async def _disturb(self) -> None:
        loop, plan = asyncio.get_running_loop(), self.plan
        outages, told = [*["kill"] * plan.kills, *["stop"] * plan.restarts], loop.time()
        self.chance.shuffle(outages)
        every = plan.seconds / (len(outages) + 1)
        end = loop.time() + plan.seconds  # later with each outage, for the broker's start does not count
        while loop.time() < end:
            await asyncio.sleep(self.chance.uniform(0.5, 2.0))
            started = loop.time()
            if outages and end - started <= every * len(outages):
                outage = outages.pop()
                self.say(f"{outage} of the broker")
                self.journal.disturb(outage, started, plan.seconds)
                await anyio.to_thread.run_sync(getattr(self.broker, outage))
                await anyio.to_thread.run_sync(self.broker.start)
                self.journal.calm(loop.time())
                end += loop.time() - started
                continue
            if not plan.faults:
                continue
            name = self.chance.choice(plan.faults)
            self.journal.disturb(name, started, 5.0)
            if isinstance(begun := {**FAULTS, **DAMAGE, **OF_TRANSACTIONS}[name](self), Awaitable):
                await begun
            await asyncio.sleep(self.chance.uniform(0.2, 4.0))
            self.proxy.clear()
            if name == "freeze":
                self.broker.resume()
            self.journal.calm(loop.time())
            if loop.time() > told + MINUTE:
                told = loop.time()
                self.journal.forget(told)
                self.say(f"{end - told:.0f} s are left: {await self._sample()}")
        self.say("calm")

    async def unload(self) -> None:
        """Have the broker let go of one of the topics."""
        topic = self.chance.choice(list(self._queues.values())).queue_name
        async with httpx.AsyncClient(base_url=self.broker.web_service_url, timeout=30) as client:
            try:
                (await client.put(f"/admin/v2/persistent/public/default/{topic}/unload")).raise_for_status()
            except httpx.ReadTimeout:
                self.say(f"the broker is still unloading {topic} after 30 s")

    async def _sample(self) -> Sample:
        return await sample(self.broker.web_service_url, [queue.queue_name for queue in self._queues.values()])

    async def _look_for_what_is_left(self, before: Sample) -> None:
        """When the clients are closed: what is still there, after some time for the broker to notice."""
        with anyio.move_on_after(60):
            while (now := await self._sample()).consumers:
                await asyncio.sleep(0.5)
        self.say(f"closed: {now}")
        for name in ("tasks", "sockets", "consumers"):
            if (more := getattr(now, name) - getattr(before, name)) > 0:
                self.journal.left.append(f"{more} {name}")

    async def _wait_for_rest(self) -> None:
        """Wait until everything confirmed has arrived, or nothing comes any more."""
        with anyio.move_on_after(self.plan.calm):
            await asyncio.sleep(2)
            while self.journal.lost:
                await asyncio.sleep(0.2)

    async def _look_for_lost(self) -> None:
        """What is left is looked for without the network's faults, by consumers that nobody cancels."""
        loop = asyncio.get_running_loop()
        url = self.broker.url
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            for queue in self._queues.values():
                async with session.create_consumer(queue) as consumer:
                    limit = 10.0 if self.journal.lost else 0.5
                    while (message := await consumer.receive(timeout=limit)) is not None:
                        self._deliver(message, loop.time())

    async def _send(self, connection: jmsaio.Connection, queue: jmsaio.Queue, name: str) -> None:
        """Send one after another; some sends are cancelled while they wait."""
        while self._sending:
            try:
                async with connection.create_session() as session, session.create_producer(queue) as producer:
                    while self._sending:
                        text = self._next(name)
                        limit = self.chance.uniform(0.001, 0.02) if self.chance.random() < 0.05 else 60.0
                        with anyio.move_on_after(limit) as scope:
                            await self._confirm(text, producer.send(text))
                        if scope.cancelled_caught:
                            self.journal.outcomes["cancelled"] += 1
                        await asyncio.sleep(self.chance.expovariate(self.plan.rate))
            except jmsaio.JMSError as error:
                self._refused(error)
                await asyncio.sleep(0.5)

    async def _send_many(self, connection: jmsaio.Connection, queue: jmsaio.Queue, name: str) -> None:
        """Send with many on their way."""
        tasks: set[asyncio.Task[None]] = set()
        while self._sending:
            try:
                async with connection.create_session() as session, session.create_producer(queue) as producer:
                    while self._sending:
                        text = self._next(name)
                        future = await producer.send_async(text)
                        task = asyncio.create_task(self._confirm(text, future))
                        tasks.add(task)
                        task.add_done_callback(tasks.discard)
                        while len(tasks) >= _WINDOW:
                            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                        await asyncio.sleep(self.chance.expovariate(self.plan.rate))
            except jmsaio.JMSError as error:
                self._refused(error)
                await asyncio.sleep(0.5)
        if tasks:
            await asyncio.wait(tasks)

    def _next(self, name: str) -> str:
        self.journal.sent += 1
        return f"{name}-{self.journal.sent}"

    async def _confirm(self, text: str, outcome: Any) -> None:
        try:
            await outcome
        except jmsaio.JMSError as error:
            self.journal.outcomes[type(error).__name__] += 1
        else:
            self.journal.confirmed.add(text)

    async def _receive(self, connection: jmsaio.Connection, mode: AcknowledgeMode, queue: jmsaio.Queue) -> None:
        """Receive with a consumer that is closed now and then, with messages that are not settled."""
        while self._receiving:
            try:
                async with connection.create_session(mode) as session, session.create_consumer(queue) as consumer:
                    held: list[str] = []  # delivered and not settled
                    for _ in range(self.chance.randint(100, 1000)):
                        if not self._receiving:
                            break
                        await self._receive_one(session, consumer, mode, held)
                    if self.chance.random() < 0.7:
                        await self._settle(session, mode, held)
            except jmsaio.JMSError as error:
                self._refused(error)
                await asyncio.sleep(0.5)

    async def _receive_one(
        self, session: jmsaio.Session, consumer: jmsaio.MessageConsumer, mode: AcknowledgeMode, held: list[str]
    ) -> None:
        """Receive one, or be cancelled while waiting; settle now and then, or give back."""
        limit = self.chance.uniform(0.0005, 0.02) if self.chance.random() < 0.1 else 60.0
        message = None
        with anyio.move_on_after(limit):
            # No await lies between the return of receive and the line below it: what is returned is noted.
            message = await consumer.receive(timeout=1.0)
        if message is not None:
            self._deliver(message, asyncio.get_running_loop().time())
            held.append(text(message))
        draw = self.chance.random()
        if draw < 0.05 or mode is AcknowledgeMode.AUTO:
            await self._settle(session, mode, held)
        elif draw < 0.055 and mode is AcknowledgeMode.CLIENT:
            await session.recover()
            held.clear()
        elif draw < 0.055 and mode is AcknowledgeMode.TRANSACTED:
            await session.rollback()
            held.clear()

    async def _settle(self, session: jmsaio.Session, mode: AcknowledgeMode, held: list[str]) -> None:
        if mode is AcknowledgeMode.CLIENT:
            await session.acknowledge()
        elif mode is AcknowledgeMode.TRANSACTED:
            await session.commit()
        self.journal.settle(held)
        held.clear()

    def _deliver(self, message: jmsaio.Message, now: float) -> None:
        place = message._record.message_id  # no property says where a message is stored
        flagged = message.jms_redelivered and message.get_int_property("JMSXDeliveryCount") > 1
        self.journal.deliver(text(message), place, flagged, now)
