"""The scenarios. Each ends with what must be true of every schedule."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import text
from tests.schedules.running import Lab, Scenario

QUEUE = jmsaio.Queue("work")
STORED = "persistent://public/default/work"


async def _collect(lab: Lab, consumer: jmsaio.MessageConsumer, patience: float = 60) -> None:
    while (message := await consumer.receive(timeout=patience)) is not None:
        lab.take(message)
        await lab.pause()


async def faults(lab: Lab) -> None:
    """The broker refuses, forgets answers, is late, drops its consumers and is away, while two producers send."""

    async def trouble() -> None:
        script = lab.broker.faults
        for _ in range(5):
            await lab.pause()
            match lab.random.randrange(6):
                case 0:
                    script.fail_sends()
                case 1:
                    script.lose_answers()
                case 2:
                    script.delay_answers(lab.random.choice([0.5, 5]))
                case 3:
                    script.lose_acknowledgements()
                case 4:
                    script.drop_consumers(STORED)
                case _:
                    with script.outage():
                        await lab.pause()

    async with jmsaio.connect(lab.broker.url) as connection, connection.create_session() as session:
        async with session.create_consumer(QUEUE) as consumer, connection.create_session() as sending:
            async with asyncio.TaskGroup() as group:
                group.create_task(trouble())
                group.create_task(_collect(lab, consumer))
                for name in ("a", "b"):
                    group.create_task(lab.produce(sending, QUEUE, name, 6))
    await lab.drain(QUEUE)
    lab.check()


async def transactions(lab: Lab) -> None:
    """A session moves messages from one queue to another, rolls some work back, and loses answers to commits."""
    done, number = jmsaio.Queue("done"), 6
    async with (
        jmsaio.connect(lab.broker.url, enable_transaction=True) as connection,
        connection.create_session() as sending,
    ):
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            async with session.create_consumer(QUEUE) as consumer, session.create_producer(done) as producer:

                async def move() -> None:
                    while (message := await consumer.receive(timeout=60)) is not None:
                        await producer.send(text(message))
                        await lab.pause()
                        chance = lab.random.random()
                        if chance < 0.3:
                            await session.rollback()
                            continue
                        if chance < 0.5:
                            lab.broker.faults.lose_commits()
                        with contextlib.suppress(jmsaio.TransactionInDoubtError):
                            await session.commit()

                async with asyncio.TaskGroup() as group:
                    group.create_task(move())
                    group.create_task(lab.produce(sending, QUEUE, "a", number))
    await lab.drain(done)
    lab.check()
    assert len(lab.received) == number, lab.received


async def dead_letters(lab: Lab) -> None:
    """Consumers give bad messages back until they are dead letters, each once; the others arrive."""
    option, graves = "consumerConfig.deadLetterPolicy", jmsaio.Queue("graves")
    queue = jmsaio.Queue(f"work?{option}.maxRedeliverCount=2&{option}.deadLetterTopic={graves.name}")
    async with jmsaio.connect(lab.broker.url) as connection, connection.create_session() as sending:

        async def work() -> None:
            async with connection.create_session(AcknowledgeMode.CLIENT) as session:
                async with session.create_consumer(queue) as consumer:
                    while (message := await consumer.receive(timeout=60)) is not None:
                        await lab.pause()
                        if int(text(message).split()[1]) % 2:
                            await session.recover()
                        else:
                            lab.take(message)
                            await message.acknowledge()

        async with OwnConsumer(connection, graves) as grave, asyncio.TaskGroup() as group:
            letters = list[str]()

            async def bury() -> None:
                while (message := await grave.receive(timeout=120)) is not None:
                    letters.append(text(message))

            group.create_task(bury())
            for _ in range(2):
                group.create_task(work())
            group.create_task(lab.produce(sending, queue, "a", 6))
    assert sorted(letters) == ["a 1", "a 3", "a 5"], letters
    lab.confirmed["a"] = [sent for sent in lab.confirmed["a"] if sent not in letters]
    lab.check()
    assert lab.broker.backlog(STORED) == 0


class OwnConsumer:
    """A consumer with a session of its own."""

    def __init__(self, connection: jmsaio.Connection, target: jmsaio.Destination) -> None:
        self._connection, self._target = connection, target

    async def __aenter__(self) -> jmsaio.MessageConsumer:
        self._session = await self._connection.create_session()
        return await self._session.create_consumer(self._target)

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()


async def requests(lab: Lab) -> None:
    """Requests get their own replies, while others are cancelled or time out."""
    async with jmsaio.connect(lab.broker.url) as connection, connection.create_session() as session:

        async def serve() -> None:
            async with connection.create_session() as own:
                async with own.create_consumer(QUEUE) as consumer, own.create_producer() as producer:
                    while (request := await consumer.receive(timeout=60)) is not None:
                        await lab.pause()
                        assert request.jms_reply_to is not None
                        reply = own.create_text_message(text(request).upper())
                        reply.jms_correlation_id = request.jms_correlation_id
                        with contextlib.suppress(jmsaio.InvalidDestinationError):
                            await producer.send(request.jms_reply_to, reply)

        async def ask(name: str) -> None:
            await lab.pause()
            task = asyncio.create_task(session.request(QUEUE, name, timeout=20))
            if lab.random.random() < 0.3:
                await lab.pause()
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                assert text(await task) == name.upper()

        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(serve())
            for number in range(6):
                group.create_task(ask(f"ask {number}"))


async def hand_over(lab: Lab) -> None:
    """Consumers of a durable subscription replace each other while messages arrive."""
    topic = jmsaio.Topic("news")
    async with jmsaio.connect(lab.broker.url) as connection, connection.create_session() as sending:
        await (await sending.create_shared_durable_consumer(topic, "readers")).close()
        sent = asyncio.create_task(lab.produce(sending, topic, "a", 10))
        while True:
            async with connection.create_session() as session:
                async with session.create_shared_durable_consumer(topic, "readers") as consumer:
                    for _ in range(lab.random.randrange(1, 4)):
                        message = await consumer.receive(timeout=10)
                        if message is None:
                            break
                        lab.take(message)
                    await lab.pause()
            if message is None and sent.done():
                break
        await sent
        async with connection.create_session() as session:
            await session.unsubscribe("readers", topic)
    lab.check()
    lab.check_order()


async def cancellation(lab: Lab) -> None:
    """Any call is cancelled at any await, and the next one finds everything in order."""
    async with jmsaio.connect(lab.broker.url) as connection:

        async def receive(consumer: jmsaio.MessageConsumer) -> None:
            message = await consumer.receive(timeout=0.05)
            if message is not None:
                lab.take(message)

        async def process(consumer: jmsaio.MessageConsumer) -> None:
            async with consumer.process(timeout=0.05) as message:
                await lab.pause()
                lab.take(message)

        async def send(producer: jmsaio.MessageProducer, sent: str) -> None:
            await producer.send(sent)
            lab.confirmed.setdefault("a", []).append(sent)

        async def come_and_go(mode: AcknowledgeMode) -> None:
            async with connection.create_session(mode) as own, own.create_consumer(QUEUE) as consumer:
                message = await consumer.receive(timeout=0.05)
                if message is not None:
                    lab.take(message)
                    await message.acknowledge()

        async with connection.create_session() as session:
            consumer, producer = await session.create_consumer(QUEUE), await session.create_producer(QUEUE)
            for number in range(15):
                calls: list[Callable[[], Awaitable[Any]]] = [
                    lambda number=number: send(producer, f"a {number}"),  # type: ignore[misc]
                    lambda number=number: send(producer, f"a {number}"),  # type: ignore[misc]
                    lambda: receive(consumer),
                    lambda: process(consumer),
                    lambda: come_and_go(lab.random.choice(list(AcknowledgeMode)[1:])),
                ]
                await lab.cancel(lab.random.choice(calls)())
            await lab.cancel(consumer.close())
            await lab.cancel(session.close())
    await lab.drain(QUEUE)
    arrived = {name for name, _ in lab.received}
    assert arrived >= set(lab.confirmed.get("a", ())), (lab.confirmed, lab.received)


async def cancelled_transactions(lab: Lab) -> None:
    """Any call of a session that moves messages is cancelled; each message ends in exactly one of the queues."""
    done = jmsaio.Queue("done")
    async with (
        jmsaio.connect(lab.broker.url, enable_transaction=True) as connection,
        connection.create_session() as sending,
    ):
        await lab.produce(sending, QUEUE, "a", 6)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer, producer = await session.create_consumer(QUEUE), await session.create_producer(done)
            for _ in range(15):
                message = await lab.cancel(consumer.receive(timeout=0.05))
                if message is None:
                    continue
                if await lab.cancel(producer.send(text(message))) is None:
                    await session.rollback()  # whether it was sent is not known
                elif lab.random.random() < 0.3:
                    await lab.cancel(session.rollback())
                else:
                    await lab.cancel(session.commit())
    await lab.drain(done)
    await lab.drain(QUEUE)
    lab.check()
    assert len(lab.received) == 6, lab.received


async def modes(lab: Lab) -> None:
    """Consumers of every acknowledge mode share a queue; some close without having acknowledged."""
    async with jmsaio.connect(lab.broker.url) as connection, connection.create_session() as sending:

        async def consume(mode: AcknowledgeMode) -> None:
            async with connection.create_session(mode) as session, session.create_consumer(QUEUE) as consumer:
                for _ in range(lab.random.randrange(2, 8)):
                    message = await consumer.receive(timeout=20)
                    if message is None:
                        break
                    lab.take(message)
                    await lab.pause()
                    if lab.random.random() < 0.7:
                        await message.acknowledge()

        async with asyncio.TaskGroup() as group:
            for mode in list(AcknowledgeMode)[1:]:
                group.create_task(consume(mode))
            for name in ("a", "b"):
                group.create_task(lab.produce(sending, QUEUE, name, 8))
    await lab.drain(QUEUE)
    lab.check()
    assert lab.broker.backlog(STORED) == 0


async def times(lab: Lab) -> None:
    """Nothing arrives before its delivery time or after its expiration; the rest arrives."""
    loop = asyncio.get_running_loop()
    due, ends = dict[str, float](), dict[str, float]()
    async with jmsaio.connect(lab.broker.url) as connection, connection.create_session() as sending:

        async def send() -> None:
            async with sending.create_producer(QUEUE) as producer:
                for number in range(8):
                    name, delay = f"a {number}", lab.random.choice([0, 0.5, 3, 30])
                    lives = lab.random.choice([0, 0, 0.2, 2, 40])
                    began = loop.time()
                    await producer.send(name, delivery_delay=delay, time_to_live=lives)
                    due[name] = began + delay
                    if lives:
                        ends[name] = loop.time() + lives
                    else:
                        lab.confirmed.setdefault("a", []).append(name)
                    await lab.pause()

        async def receive(consumer: jmsaio.MessageConsumer) -> None:
            while (message := await consumer.receive(timeout=60)) is not None:
                name = lab.take(message)
                assert loop.time() >= due.get(name, 0) - 0.002, name
                assert loop.time() <= ends.get(name, float("inf")) + 0.002, name
                await lab.pause()

        async with connection.create_session() as session, session.create_consumer(QUEUE) as consumer:
            async with asyncio.TaskGroup() as group:
                group.create_task(send())
                group.create_task(receive(consumer))
    lab.check()


async def closing(lab: Lab) -> None:
    """A session with a listener and a waiting consumer closes while messages are delivered."""
    async with jmsaio.connect(lab.broker.url) as connection, connection.create_session() as sending:
        sent = asyncio.create_task(lab.produce(sending, QUEUE, "a", 10))
        for _ in range(3):
            session = await connection.create_session(lab.random.choice(list(AcknowledgeMode)[1:]))
            listening, waiting = await session.create_consumer(QUEUE), await session.create_consumer(QUEUE)

            async def listen(message: jmsaio.Message) -> None:
                lab.take(message)
                await lab.pause()
                await message.acknowledge()

            if lab.random.random() < 0.5:
                listening.set_message_listener(listen)
                await lab.pause()
                await session.close()
                continue

            async def wait(consumer: jmsaio.MessageConsumer) -> None:
                try:
                    while (message := await consumer.receive()) is not None:
                        lab.take(message)
                except jmsaio.ObjectClosedError:
                    pass

            tasks = [asyncio.create_task(wait(each)) for each in (waiting, listening)]
            await lab.pause()
            await session.close()
            await asyncio.gather(*tasks)
        await sent
    await lab.drain(QUEUE)
    lab.check()


async def priorities(lab: Lab) -> None:
    """What waits for a consumer is delivered by priority, and in the order of sending within one."""
    async with jmsaio.connect(lab.broker.url, enable_jms_priority=True) as connection:
        async with connection.create_session() as session, session.create_consumer(QUEUE) as consumer:
            levels = dict[str, int]()
            async with session.create_producer(QUEUE) as producer:
                for number in range(10):
                    name = f"a {number}"
                    levels[name] = lab.random.randrange(10)
                    await producer.send(name, priority=levels[name])
                    await lab.pause()
            await asyncio.sleep(1)
            arrived = [text(message) for _ in levels if (message := await consumer.receive(timeout=10)) is not None]
            assert sorted(arrived) == sorted(levels)
            for level in set(levels.values()):
                group = [name for name in arrived if levels[name] == level]
                assert group == sorted(group), (level, arrived)


async def ending(lab: Lab) -> None:
    """A connection closes while everything is under way: each call ends, with its result or an error of JMS."""
    connection = await jmsaio.connect(lab.broker.url)
    await connection.start()
    session, sending = await connection.create_session(), await connection.create_session()
    consumer = await session.create_consumer(QUEUE)

    async def receive() -> None:
        while True:
            message = await consumer.receive()
            if message is None:
                break
            lab.take(message)

    async def guarded(call: Awaitable[Any]) -> None:
        with contextlib.suppress(jmsaio.JMSError):
            await call

    async with asyncio.TaskGroup() as group:
        group.create_task(guarded(receive()))
        group.create_task(guarded(lab.produce(sending, QUEUE, "a", 10)))
        group.create_task(guarded(lab.produce(sending, jmsaio.Queue("other"), "b", 10)))
        group.create_task(guarded(sending.request(jmsaio.Queue("no one"), "?", timeout=1000.0)))
        for _ in range(3):
            await lab.pause()
        await asyncio.gather(*(connection.close() for _ in range(2)))
    lab.confirmed.pop("b", None)
    await lab.drain(QUEUE)
    lab.check()


SCENARIOS: dict[str, Scenario] = {
    each.__name__: each
    for each in (
        faults, transactions, dead_letters, requests, hand_over, cancellation, cancelled_transactions, modes, times,
        closing, priorities, ending,
    )
}  # fmt: skip
