"""Transacted sessions that move amounts between two queues, while the network breaks and the broker is killed.

Each message is an amount with an id of its own. A transfer receives some from one queue, and sends as many with new ids
and the same sum to the other. Whatever breaks, the queues together hold the same sum, and no id twice: also if the
outcome of a commit is unknown to the client, for then it has happened wholly or not at all.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable

import anyio
import attrs
import httpx

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.testing import FaultProxy
from tests.client.helpers import text
from tests.storm.storm import FAULTS as OF_ALL, OF_TRANSACTIONS, Plan, Storm
from tests.support.broker import TestBroker

_SESSIONS, _MESSAGES, _AMOUNT, _PARTITIONS = 8, 400, 100, 2
_OPTIONS = (
    "transport=wire&enableTransaction=true&producerConfig.batchingEnabled=true&consumerConfig.receiverQueueSize=20"
    "&operationTimeoutMs=5000&connectionTimeoutMs=2000"
)
#: Faults by name.
FAULTS = (*OF_ALL, *OF_TRANSACTIONS)
#: Seconds after which the broker rolls back.
_TIMEOUT = 8.0


@attrs.frozen
class Balance:
    """What the queues hold in the end.

    Attributes:
        sum: of all amounts.
        twice: ids that are there more than once.
        outcomes: number of transfers by what the client was told.
    """

    sum: int
    twice: list[str]
    outcomes: Counter[str]

    @property
    def right(self) -> bool:
        """Whether nothing is missing, and nothing there twice."""
        return self.sum == _MESSAGES * _AMOUNT and not self.twice


async def run(broker: TestBroker, plan: Plan, say: Callable[[str], object] = lambda line: None) -> Balance:
    """Move amounts on a broker that may be killed; it runs again afterwards."""
    async with FaultProxy.of(broker.service_url) as proxy:
        return await Transfers(broker, proxy, plan, say).move()


@attrs.define(eq=False)
class Transfers(Storm):
    """One run."""

    _names: itertools.count[int] = attrs.field(factory=itertools.count)
    _outcomes: Counter[str] = attrs.field(factory=Counter)

    async def move(self) -> Balance:
        """All of it: the first amounts, the storm, and what is there in the end."""
        for mode in list(self._queues)[2:]:
            del self._queues[mode]
        one, other = self._queues.values()
        async with httpx.AsyncClient(base_url=self.broker.web_service_url, timeout=30) as client:
            for queue in (one, other):
                path = f"/admin/v2/persistent/public/default/{queue.queue_name}/partitions"
                (await client.put(path, json=_PARTITIONS)).raise_for_status()
        async with jmsaio.connect(self.broker.url) as plain, plain.create_session() as session:
            async with session.create_producer(one) as producer:
                sent = [await producer.send_async(self._named(_AMOUNT)) for _ in range(_MESSAGES)]
                await asyncio.gather(*sent)
        url = f"{self.proxy.url}?webServiceUrl={self.broker.web_service_url}&{_OPTIONS}"
        async with jmsaio.connect(url, transaction_timeout=_TIMEOUT) as connection, asyncio.TaskGroup() as group:
            for _ in range(_SESSIONS):
                group.create_task(self._work(connection, one, other))
            await self._disturb()
            self._sending = False
        await self._release()
        return await self._balance()

    def _named(self, amount: int) -> str:
        return f"{next(self._names)}:{amount}"

    async def _work(self, connection: jmsaio.Connection, *queues: jmsaio.Queue) -> None:
        """Transfer with sessions and consumers that are closed now and then."""
        while self._sending:
            try:
                async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
                    ends = [(await session.create_consumer(q), await session.create_producer(q)) for q in queues]
                    for _ in range(self.chance.randint(5, 100)):
                        if not self._sending:
                            break
                        self.chance.shuffle(ends)
                        self._outcomes[await self._transfer(session, ends[0][0], ends[1][1])] += 1
            except jmsaio.JMSError as error:
                self._outcomes[f"refused: {type(error).__name__}"] += 1
                await asyncio.sleep(0.5)

    async def _transfer(
        self, session: jmsaio.Session, source: jmsaio.MessageConsumer, target: jmsaio.MessageProducer
    ) -> str:
        """Make one transfer; return how it ended."""
        amounts = []
        for _ in range(self.chance.randint(1, 4)):
            message = await source.receive(timeout=0.2)
            if message is not None:
                amounts.append(int(text(message).partition(":")[2]))
        for index in range(len(amounts) - 1):
            change = self.chance.randint(-5, 5)
            amounts[index] += change
            amounts[index + 1] -= change
        limit = self.chance.uniform(0.001, 0.05) if self.chance.random() < 0.05 else 60.0
        try:
            with anyio.move_on_after(limit) as scope:
                for amount in amounts:
                    await target.send_async(self._named(amount))
                if self.chance.random() < 0.2:
                    await session.rollback()
                    return "rolled back as asked"
                await session.commit()
                return "committed" if amounts else "empty"
        except (jmsaio.TransactionInDoubtError, jmsaio.TransactionRolledBackError) as error:
            return type(error).__name__
        assert scope.cancelled_caught
        await session.rollback()
        return "cancelled"

    async def _release(self) -> None:
        """Commit an empty amount to each partition.

        A send that the network delayed until its transaction had ended holds its partition back until the next
        transaction of it ends.
        """
        await asyncio.sleep(_TIMEOUT)  # none is open any more
        url = f"{self.broker.url}&{_OPTIONS}"
        async with jmsaio.connect(url) as connection, connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            for queue in self._queues.values():
                async with session.create_producer(queue) as producer:
                    for _ in range(4 * _PARTITIONS):
                        await producer.send(self._named(0))
            await session.commit()

    async def _balance(self) -> Balance:
        """Take all that is there, until nothing more comes."""
        found: list[str] = []
        whole = _MESSAGES * _AMOUNT
        async with jmsaio.connect(self.broker.url) as plain, plain.create_session() as session:
            for limit in (self.plan.calm / 4, 2.0):  # a transaction that nobody ends holds the others back for a while
                for queue in self._queues.values():
                    async with session.create_consumer(queue) as consumer:
                        while (message := await consumer.receive(timeout=limit)) is not None:
                            found.append(text(message))
                            limit = 2.0 if _sum(found) >= whole else limit
        twice = [name for name, times in Counter(each.partition(":")[0] for each in found).items() if times > 1]
        return Balance(_sum(found), twice, self._outcomes)


def _sum(found: list[str]) -> int:
    return sum(int(each.partition(":")[2]) for each in found)
