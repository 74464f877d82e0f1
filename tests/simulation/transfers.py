"""Applications that move amounts between two queues in transactions of the broker, and what must be true of the sum."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Coroutine
from itertools import count
from typing import Any

import attrs

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import text
from tests.simulation.applications import NAMES, OPEN, REQUEST, SILENCE, Case, Received, Simulation, opened
from tests.simulation.storage import Topic

#: Seconds of a commit or rollback: for the sends, all answers, those left once it has failed, and its end.
END = 4 * REQUEST
_AMOUNTS, _AMOUNT = 20, 100
_Ends = list[tuple[jmsaio.MessageConsumer, jmsaio.MessageProducer]]


class Transfers(Simulation):
    """The world of one seed, in which amounts move. Each is a message, whose text has an id of its own.

    Attributes:
        told: the texts sent in each transaction, and whether it was committed, None if the client was not told.
        taken: texts that are taken out at the end.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.told: list[tuple[list[str], bool | None]] = []
        self.taken: list[str] = []
        self._ids = count()
        self._numbers: dict[jmsaio.MessageConsumer, int] = {}
        self._queues = [jmsaio.Queue(name) for name in NAMES]

    def _choose(self) -> Case:
        kind = self.random.choice(("Shared", "Key_Shared"))
        consumers = self.random.randrange(1, 4)
        mode = AcknowledgeMode.TRANSACTED
        return attrs.evolve(Case.of(self.random), kind=kind, consumers=consumers, mode=mode, native=True)

    def _named(self, amount: int) -> str:
        return f"{next(self._ids)} {amount}"

    async def _open(self, connection: jmsaio.Connection) -> tuple[jmsaio.Session, _Ends]:
        mode = AcknowledgeMode.TRANSACTED
        session = await self._again("create_session", OPEN, lambda: opened(connection.create_session(mode)))
        ends = []
        for queue in self._queues:
            consumer = await self._again("create_consumer", OPEN, lambda at=queue: opened(session.create_consumer(at)))
            producer = await self._again("create_producer", OPEN, lambda at=queue: opened(session.create_producer(at)))
            ends.append((consumer, producer))
        return session, ends

    async def _prepare(self, connection: jmsaio.Connection) -> None:
        session, ends = await self._open(connection)
        sent = [self._named(_AMOUNT) for _ in range(_AMOUNTS)]
        for each in sent:
            await ends[0][1].send(each)
        await session.commit()
        self.told.append((sent, True))
        await session.close()

    def _applications(self, *connections: jmsaio.Connection) -> list[Coroutine[Any, Any, None]]:
        return [self._work(connections[number % 2]) for number in range(self.case.consumers)]

    async def _work(self, connection: jmsaio.Connection) -> None:
        while not self._healthy.is_set() and not self.cluster.broken:
            session, ends = await self._open(connection)
            try:
                while not self._healthy.is_set() and not (self.case.reopens and self.random.random() < 0.1):
                    self.random.shuffle(ends)
                    if not await self._transfer(session, ends[0][0], ends[1][1]):
                        break
            finally:
                with contextlib.suppress(jmsaio.JMSError):  # of sends and transactions without an answer
                    await self.bounded("close", OPEN, session.close())
        await asyncio.sleep(SILENCE)
        self.network.calm = True
        session, ends = await self._open(connection)
        for _ in range(5):
            await self._transfer(session, ends[0][0], ends[1][1])
            ends.reverse()
        await session.close()

    async def _transfer(
        self, session: jmsaio.Session, source: jmsaio.MessageConsumer, target: jmsaio.MessageProducer
    ) -> bool:
        """Move some amounts. Return False if the session is of no use any more."""
        amounts = []
        for _ in range(self.random.randrange(1, 4)):
            message = await self.bounded("receive", 1.0, source.receive(timeout=1.0))
            if message is not None:
                mine = self._numbers.setdefault(source, len(self._numbers))
                self.received.append(Received(text(message), message.jms_redelivered, mine, self.loop.time()))
                amounts.append(int(text(message).split()[1]))
        if len(amounts) > 1:
            change = self.random.randrange(10)
            amounts[0], amounts[1] = amounts[0] - change, amounts[1] + change
        sent = [self._named(amount) for amount in amounts]
        back, committed = self.random.random() < 0.15, False if sent else None
        try:
            async with asyncio.timeout(self._cancelled_after()):
                for each in sent:
                    key = {"JMSXGroupID": each[0]} if self.random.random() < 0.5 else {}
                    await target.send_async(each, properties=key)
                await self._pause()
                committed = None
                await self.bounded("end", END, session.rollback() if back else session.commit())
                committed = not back
        except jmsaio.TransactionRolledBackError:
            committed = False
        except jmsaio.TransactionInDoubtError:
            pass
        except TimeoutError:  # it was cancelled
            with contextlib.suppress(jmsaio.JMSError):
                await self.bounded("rollback", END, session.rollback())
        except jmsaio.JMSError:
            committed = False if back else committed
            return False
        finally:
            if self.network.calm and committed is None and sent:
                self.cluster.wrong(f"in doubt, although nothing was wrong any more: {sent}")
            self.note(f"transfer {sent}: {committed}")
            self.told.append((sent, committed))
        return True

    async def _finish(self, connection: jmsaio.Connection) -> None:
        """Take out all amounts, in transactions.

        What arrived at a topic or subscription after its transaction had ended, because its connection was slow, holds
        it back until the next one there ends that the same coordinator has begun.
        """
        session, ends = await self._open(connection)
        for _ in range(4):
            for _, producer in ends * 8:
                await producer.send(self._named(0))
            await session.commit()
        for consumer, _ in ends:
            while (message := await consumer.receive(timeout=SILENCE)) is not None:
                self.taken.append(text(message))
                await session.commit()
        await session.close()

    def _check_messages(self, topics: list[Topic], stored: Counter[str]) -> None:
        wrong = self.cluster.broken
        for topic in topics:
            self._check_repetitions(topic, stored)
        for sent, committed in self.told:
            there = [each for each in sent if each in stored]
            if there and committed is False:
                wrong.append(f"rolled back, but stored: {there} of {sent}")
            elif there != sent and (committed or there):
                wrong.append(f"{'committed' if committed else 'in doubt'}, but stored: {there} of {sent}")
        wrong += [f"stored {number} times: {sent}" for sent, number in stored.items() if number > 1]
        found = sum(int(each.split()[1]) for each in self.taken)
        if found != _AMOUNTS * _AMOUNT:
            wrong.append(f"the sum is {found}")
        wrong += [f"taken out {number} times: {sent}" for sent, number in Counter(self.taken).items() if number > 1]
