"""Applications over the whole client, on a model cluster that fails, and what must be true in the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from random import Random
from typing import Any, TypeVar

import attrs

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import text
from tests.simulation.cluster import Cluster
from tests.simulation.network import Network
from tests.simulation.storage import Topic

#: Virtual seconds: of the faults, of a request, of a send, of a close, and what a wait may take beyond its bound.
FAULTS, REQUEST, SEND, CLOSE, SLACK = 60.0, 5.0, 20.0, 10.0, 2.0
#: Seconds to open anything: a queue's subscription is created first (``jms.waitForServerStartupTimeout``).
OPEN = 10.0 + REQUEST + CLOSE
#: Seconds after which both ends of a silent connection know it, with what they do then.
SILENCE = 150.0
NAMES = "work", "rest"
Result = TypeVar("Result")


@attrs.frozen
class Case:
    """What a seed is about.

    Attributes:
        kind: type of the subscription.
        partitions: of the topic; 0 for none.
        deduplicates: whether the brokers store what a producer repeats only once.
        batches: whether messages are sent in batches.
        batch_index: whether they are acknowledged one by one.
        receipts: whether acknowledging waits for the broker.
        queue_size: messages that a consumer prefetches.
        consumers: applications that receive.
        mode: how they acknowledge.
        reopens: whether they close their consumers from time to time, and open others.
        native: whether transactions are the broker's.
    """

    kind: str
    partitions: int
    deduplicates: bool
    batches: bool
    batch_index: bool
    receipts: bool
    queue_size: int
    consumers: int
    mode: AcknowledgeMode
    reopens: bool
    native: bool = False

    @classmethod
    def of(cls, random: Random) -> Case:
        """Choose one."""
        kind = random.choice(("Shared", "Shared", "Key_Shared", "Failover", "Exclusive"))
        modes = (AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.TRANSACTED)
        return cls(
            kind, random.choice((0, 0, 2)), random.random() < 0.5, random.random() < 0.7, random.random() < 0.7,
            random.random() < 0.5, random.choice((1, 4, 1000)), 1 if kind == "Exclusive" else random.randrange(1, 4),
            random.choice(modes), random.random() < 0.5,
        )  # fmt: skip

    def url(self, cluster: Cluster) -> str:
        """Return the URL with the options of this case."""
        options = {
            "transport": "wire", "jms.usePulsarAdmin": False, "jms.waitForServerStartupTimeout": 10_000,
            "jms.emulateTransactions": not self.native, "enableTransaction": self.native,
            "jms.queueSubscriptionType": "Key_Shared" if self.kind == "Key_Shared" else "Shared",
            "jms.topicSharedSubscriptionType": "Failover", "operationTimeoutMs": int(REQUEST * 1000),
            "connectionTimeoutMs": 3000, "producerConfig.sendTimeoutMs": int(SEND * 1000),
            "producerConfig.batchingEnabled": self.batches, "consumerConfig.receiverQueueSize": self.queue_size,
            "consumerConfig.batchIndexAckEnabled": self.batch_index, "consumerConfig.ackReceiptEnabled": self.receipts,
            "consumerConfig.negativeAckRedeliveryDelayMicros": 300_000,
        }  # fmt: skip
        return f"{cluster.url}?" + "&".join(f"{key}={str(value).lower()}" for key, value in options.items())


@attrs.frozen
class Received:
    """A delivery to an application.

    Attributes:
        text: body.
        flagged: whether it was flagged as redelivered.
        consumer: number of the JMS consumer.
        time: when.
    """

    text: str
    flagged: bool
    consumer: int
    time: float


class Simulation:
    """The world of one seed.

    Attributes:
        case: what it is about.
        trace: what happened, with times.
        cluster: the brokers.
        confirmed: texts whose send was confirmed.
        refused: texts that are known not to be stored.
        received: deliveries, in order.
    """

    def __init__(self, seed: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.random = Random(f"simulation {seed}")
        self.trace: list[str] = []
        self.case = case = self._choose()
        self.note(f"{case}")
        self.network = Network(self.random, self.note)
        self._target = jmsaio.Queue(NAMES[0]) if "Shared" in case.kind else jmsaio.Topic(NAMES[0])
        self.cluster = Cluster(
            self.network, self.note, deduplicates=case.deduplicates, queue_size=case.queue_size,
            partitions={f"persistent://public/default/{name}": case.partitions for name in NAMES},
        )  # fmt: skip
        self.confirmed: set[str] = set()
        self.refused: set[str] = set()
        self.received: list[Received] = []
        self._consumers = 0
        self._healthy = asyncio.Event()
        self._producing = 2

    def _choose(self) -> Case:
        return Case.of(self.random)

    def note(self, what: str) -> None:
        """Add to the trace."""
        self.trace.append(f"{self.loop.time():.6f} {what}")

    async def bounded(self, what: str, seconds: float, call: Coroutine[Any, Any, Result]) -> Result:
        """Await a call that must end in time."""
        begun = self.loop.time()
        try:
            return await call
        except jmsaio.JMSError as error:
            self.note(f"{what}: {type(error).__name__}: {error}")
            raise
        finally:
            took = self.loop.time() - begun
            if took > seconds + SLACK:
                self.cluster.wrong(f"{what} took {took:.1f} s; its bound is {seconds:g} s")

    async def _again(self, what: str, seconds: float, call: Any) -> Any:
        """Repeat a call until it succeeds: the cluster is healthy in the end."""
        for _ in range(100):
            try:
                return await self.bounded(what, seconds, call())
            except (jmsaio.BrokerUnavailableError, jmsaio.OperationTimeoutError, jmsaio.ConsumerBusyError):
                pass
            except jmsaio.TransportError as error:
                if error.error_code not in ("ServiceUnitNotReady", "UnknownError", "LookupError"):
                    raise
            await asyncio.sleep(self.random.uniform(0.2, 3.0))
        raise AssertionError(f"{what} never succeeded")

    async def _pause(self) -> None:
        if self.random.random() < 0.5:
            await asyncio.sleep(self.random.choice((0.001, 0.01, 0.1, 1.0, 3.0)))

    def _cancelled_after(self) -> float | None:
        """Return the seconds after which a call is cancelled, seldom; None for the others, and once all is well."""
        if self.network.calm or self.random.random() > 0.05:
            return None
        return self.random.choice((0.0, 0.001, 0.01, 1.0))

    # applications

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[jmsaio.Connection]:
        async def connect() -> jmsaio.Connection:
            return await jmsaio.connect(self.case.url(self.cluster), close_timeout=CLOSE, connect_timeout=10.0)

        connection: jmsaio.Connection = await self._again("connect", 10.0, connect)
        try:
            yield connection
        finally:
            await self.bounded("close", CLOSE, connection.close())

    async def _produce(self, connection: jmsaio.Connection, name: str) -> None:
        async with connection.create_session() as session:
            producer: jmsaio.MessageProducer = await self._again(
                "create_producer", OPEN, lambda: opened(session.create_producer(self._target))
            )
            number = 0
            while number < 20 or (number < 60 and not self._healthy.is_set()):
                burst = self.random.choice((1, 1, 5))
                await asyncio.gather(*(self._send(producer, name, number + each) for each in range(burst)))
                number += burst
                await self._pause()
            await self._healthy.wait()
            await asyncio.sleep(SILENCE)
            self.network.calm = True
            last = range(number, number + 12)
            await asyncio.gather(*(self._send(producer, name, each) for each in last))
        in_doubt = {f"{name} {each}" for each in last} - self.confirmed
        if in_doubt:
            self.cluster.wrong(f"not confirmed, although nothing was wrong any more: {sorted(in_doubt)}")
        self._producing -= 1

    async def _send(self, producer: jmsaio.MessageProducer, name: str, number: int) -> None:
        sent, key = f"{name} {number}", f"{name}{number % 3}"
        try:
            async with asyncio.timeout(self._cancelled_after()):
                await self.bounded(f"send {sent}", SEND, producer.send(sent, properties={"JMSXGroupID": key}))
        except (jmsaio.SendInDoubtError, TimeoutError):  # the latter: it was cancelled
            pass
        except (jmsaio.SendError, jmsaio.OperationTimeoutError):  # the latter: the window is full
            self.refused.add(sent)
        else:
            self.note(f"confirmed {sent}")
            self.confirmed.add(sent)

    async def _consume(self, connection: jmsaio.Connection, patience: float) -> None:
        """Receive until nothing comes any more."""
        more = True
        while more:
            async with connection.create_session(self.case.mode) as session:
                consumer = await self._again("create_consumer", OPEN, lambda: self._subscribed(session))
                self._consumers += 1
                mine = self._consumers
                more = await self._receive(session, consumer, mine, patience)

    def _subscribed(self, session: jmsaio.Session) -> Coroutine[Any, Any, jmsaio.MessageConsumer]:
        if isinstance(self._target, jmsaio.Queue):
            return opened(session.create_consumer(self._target))
        if self.case.kind == "Failover":
            return opened(session.create_shared_durable_consumer(self._target, "readers"))
        return opened(session.create_durable_consumer(self._target, "readers"))

    async def _receive(
        self, session: jmsaio.Session, consumer: jmsaio.MessageConsumer, mine: int, patience: float
    ) -> bool:
        """Receive with one consumer; return False when nothing comes any more."""
        while True:
            message = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._cancelled_after()):
                    message = await self.bounded("receive", patience, consumer.receive(timeout=patience))
            if self.cluster.broken or (message is None and not self._producing):
                return False
            if message is None:
                continue
            self.received.append(Received(text(message), message.jms_redelivered, mine, self.loop.time()))
            self.note(f"consumer {mine} receives {text(message)}{', redelivered' * message.jms_redelivered}")
            await self._pause()
            with contextlib.suppress(jmsaio.TransportError, jmsaio.TransactionRolledBackError):
                await self.bounded("settle", 3 * CLOSE, self._settle(session, message))
            if self.case.reopens and self.random.random() < 0.05:
                return True

    async def _settle(self, session: jmsaio.Session, message: jmsaio.Message) -> None:
        back = self.random.random() < 0.15
        if self.case.mode is AcknowledgeMode.TRANSACTED:
            await (session.rollback() if back else session.commit())
        elif self.case.mode is AcknowledgeMode.CLIENT:
            await (session.recover() if back else message.acknowledge())

    # faults

    async def _trouble(self) -> None:
        end = self.loop.time() + FAULTS
        cluster, random = self.cluster, self.random
        while self.loop.time() < end and not cluster.broken:
            await asyncio.sleep(random.choice((0.01, 0.5, 5.0)) * random.random())
            broker = random.choice(cluster.brokers)
            match random.randrange(8):
                case 0 | 1:
                    self.network.cut()
                case 2:
                    self.network.silence()
                case 3 if broker.alive and sum(each.alive for each in cluster.brokers) > 1:
                    self.note(f"{broker.name} crashes")
                    broker.crash(random.random() < 0.5)
                    self.loop.call_later(random.choice((0.5, 10.0)), broker.start)
                case 4 if cluster.topics:
                    cluster.move(random.choice(list(cluster.topics.values())))
                case 5:
                    self.network.hold(broker.name, random.choice((0.5, 8.0, 70.0)))
                case 6:
                    cluster.mute = random.randrange(1, 4)
                case _:
                    cluster.close_one()
                    cluster.failing = random.random() < 0.3
                    self.loop.call_later(1.0, self._storing)
        cluster.opening = 2  # nothing breaks the connections any more, which would end what the client gave up
        for topic in list(cluster.topics.values()):
            cluster.move(topic)
        await asyncio.sleep(20)
        cluster.mute = cluster.opening = 0
        self.network.held.clear()
        self.note("healthy from now on")
        self._healthy.set()

    async def _interrupt(self, connection: jmsaio.Connection) -> None:
        """Stop and start a connection from time to time."""
        while not self._healthy.is_set():
            await asyncio.sleep(self.random.uniform(0.0, 20.0))
            await self.bounded("stop", OPEN, connection.stop())
            await self._pause()
            await self.bounded("start", OPEN, connection.start())

    def _storing(self) -> None:
        self.cluster.failing = False

    # the whole, and what must be true

    async def run(self) -> None:
        """Run everything, and check it."""
        async with self._connected() as connection, self._connected() as other:
            await self._prepare(connection)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._trouble())
                group.create_task(self._interrupt(other))
                for application in self._applications(connection, other):
                    group.create_task(application)
            ghosts = [subscription.name for subscription in self.cluster.subscriptions() if subscription.consumers]
            if ghosts:
                self.cluster.wrong(f"all consumers are closed, and the brokers have some of {ghosts}")
            self.network.calm = False
        if not self.cluster.broken:
            async with self._connected() as connection:
                await self._finish(connection)
            await asyncio.sleep(SILENCE)
        self._check()

    async def _prepare(self, connection: jmsaio.Connection) -> None:
        """Do what is needed before anything goes wrong."""
        if self.case.kind in ("Failover", "Exclusive"):  # it is stored for subscriptions that exist
            async with connection.create_session() as session:
                await (await self._again("create_consumer", OPEN, lambda: self._subscribed(session))).close()

    def _applications(self, *connections: jmsaio.Connection) -> list[Coroutine[Any, Any, None]]:
        made = [self._produce(connections[0], name) for name in ("a", "b")]
        return made + [self._consume(connections[number % 2], 30.0) for number in range(self.case.consumers)]

    async def _finish(self, connection: jmsaio.Connection) -> None:
        """Take what is left."""
        await self._consume(connection, SILENCE)

    def _check(self) -> None:
        wrong = self.cluster.broken
        assert not wrong, "\n".join(wrong[:10])  # the rest of the run was left out
        wrong += [f"ended, although nothing was wrong any more: {host}'s connection" for host in self.network.unsettled]
        topics = [topic for topic in self.cluster.topics.values() if topic.name.startswith("persistent://public/")]
        stored = Counter(sent for topic in topics for entry in topic.entries.values() for sent in entry.texts)
        for topic in topics:
            for subscription in topic.subscriptions.values():
                wrong += [f"not acknowledged on {subscription.name}: {sent}" for sent in subscription.backlog]
        self._check_messages(topics, stored)
        wrong += [f"left behind: {each}" for each in self.cluster.left()]
        wrong += [f"left behind: {end.host}'s connection" for end in self.network.ends]
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        wrong += [f"left behind: {task}" for task in tasks]
        assert not wrong, "\n".join(wrong[:10])

    def _check_messages(self, topics: list[Topic], stored: Counter[str]) -> None:
        wrong = self.cluster.broken
        arrived = {each.text for each in self.received}
        wrong += [f"confirmed, but not stored: {sent}" for sent in sorted(self.confirmed - stored.keys())]
        wrong += [f"refused, but stored: {sent}" for sent in sorted(self.refused & stored.keys())]
        wrong += [f"stored, but not received: {sent}" for sent in sorted(stored.keys() - arrived)]
        wrong += [f"received, but not stored: {sent}" for sent in sorted(arrived - stored.keys())]
        if self.case.deduplicates:
            wrong += [f"stored {number} times: {sent}" for sent, number in stored.items() if number > 1]
        for topic in topics:
            self._check_order(
                f"stored in {topic.name}", [sent for entry in topic.entries.values() for sent in entry.texts]
            )
            self._check_repetitions(topic, stored)
        self._check_deliveries(topics, {sent for sent, number in stored.items() if number > 1})

    def _check_order(self, what: str, texts: list[str]) -> None:
        """The first occurrences of each producer's texts with one key are in the order of sending."""
        last = dict[str, int]()
        for sent in dict.fromkeys(texts):
            name, number = sent.split()
            key = f"{name}{int(number) % 3}"
            if int(number) < last.get(key, -1):
                self.cluster.wrong(f"{what}: {sent} after {name} {last[key]}")
            last[key] = int(number)

    def _check_deliveries(self, topics: list[Topic], several: set[str]) -> None:
        """First deliveries are in order, unless the broker had reason to divide them among several consumers."""
        overlapped = any(each.overlapped for topic in topics for each in topic.subscriptions.values())
        left_out = {sent for topic in topics for _, sent in topic.undone} | several
        if overlapped:  # another consumer might hold what was given before
            left_out |= {sent for topic in topics for sent in topic.repeated}
        first = dict[str, Received]()
        for each in self.received:
            first.setdefault(each.text, each)
        if self.case.kind != "Shared" or not overlapped:
            for consumer in range(1, self._consumers + 1):
                mine = [sent for sent, each in first.items() if each.consumer == consumer and sent not in left_out]
                self._check_order(f"received by consumer {consumer}", mine)

    def _check_repetitions(self, topic: Topic, stored: Counter[str]) -> None:
        """All deliveries of a message are flagged but one, unless there is a reason."""
        for subscription in topic.subscriptions.values():
            for sent, first in _first_given(topic, subscription.name).items():
                deliveries = [each for each in self.received if each.text == sent]
                unflagged = [each for each in deliveries if not each.flagged]
                forgot = any(first <= time <= deliveries[-1].time for time in topic.forgot) if deliveries else False
                if len({each.consumer for each in deliveries}) > 1 and (forgot or not subscription.shared):
                    continue  # the broker does not count, or has forgotten, what another consumer got
                if len(unflagged) > stored[sent] and (subscription.name, sent) not in topic.undone:
                    self.cluster.wrong(f"not flagged: {sent}: {deliveries}")


def _first_given(topic: Topic, subscription: str) -> dict[str, float]:
    """Return when each text was first given to a consumer."""
    found = dict[str, float]()
    for entry in topic.entries.values():
        time = topic.given.get((subscription, entry.place))
        if time is not None:
            for sent in entry.texts:
                found.setdefault(sent, time)
    return found


async def opened(opening: Any) -> Any:
    return await opening
