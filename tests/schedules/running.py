"""Scenarios under a seeded scheduler: one seed is one order of callbacks, on virtual time, with the same faults.

simloom shuffles everything that is ready. asyncio promises more: ``call_soon`` is first in, first out, and only timers
that are due at the same time have no order. `lawful` keeps that promise and varies the schedule by the pauses of the
scenario alone. A seed that fails with `SHUFFLED` is a defect of jmsaio if its cause can happen with `lawful`; it is not
if the failing code relies on the promise, as anyio's cancel scopes and task groups do at their end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs
import simloom

import jmsaio
from jmsaio.testing import EmbeddedBroker, embedded_broker
from tests.client.helpers import text

#: Virtual seconds after which a scenario hangs.
GUARD = 3600


@attrs.define(slots=False)
class Lab:
    """What a scenario works with.

    Attributes:
        broker: an embedded broker of its own.
        random: the chance of this seed.
        confirmed: texts whose send was confirmed, in order, by producer.
        refused: texts that the broker is known not to have stored.
        received: each delivery: its text, and whether it was flagged as redelivered.
    """

    broker: EmbeddedBroker
    random: random.Random
    confirmed: dict[str, list[str]] = attrs.field(factory=dict)
    refused: set[str] = attrs.field(factory=set)
    received: list[tuple[str, bool]] = attrs.field(factory=list)

    async def pause(self) -> None:
        """A few turns of the loop, and now and then some time."""
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)
        if self.random.random() < 0.2:
            await asyncio.sleep(self.random.choice([0.001, 0.01, 0.1, 1.0]))

    async def produce(self, session: jmsaio.Session, target: jmsaio.Destination, name: str, number: int) -> None:
        """Send numbered texts, whatever happens to some of them."""
        confirmed = self.confirmed.setdefault(name, [])
        async with await self._open(session, target) as producer:
            for each in range(number):
                sent = f"{name} {each}"
                try:
                    await producer.send(sent)
                except jmsaio.SendInDoubtError:
                    pass
                except jmsaio.SendError:
                    self.refused.add(sent)
                else:
                    confirmed.append(sent)
                await self.pause()

    async def _open(self, session: jmsaio.Session, target: jmsaio.Destination) -> jmsaio.MessageProducer:
        while True:
            try:
                return await session.create_producer(target)
            except jmsaio.BrokerUnavailableError:  # an outage refuses what opens
                await asyncio.sleep(0.1)

    def take(self, message: jmsaio.Message) -> str:
        """Note a delivery; return its text."""
        self.received.append((text(message), message.jms_redelivered))
        return text(message)

    async def cancel(self, call: Awaitable[Any]) -> Any:
        """Make a call, and cancel it after some turns of the loop; return its result, or None."""
        task = asyncio.ensure_future(call)
        for _ in range(self.random.randrange(12)):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, jmsaio.JMSError):
            return await task

    async def drain(self, target: jmsaio.Destination, patience: float = 60) -> None:
        """Receive what is left on a new connection."""
        async with jmsaio.connect(self.broker.url) as connection, connection.create_session() as session:
            async with session.create_consumer(target) as consumer:
                while (message := await consumer.receive(timeout=patience)) is not None:
                    self.take(message)

    def check(self) -> None:
        """Nothing confirmed is lost, nothing refused arrives, and copies are flagged."""
        arrived = {name for name, _ in self.received}
        lost = {name for sent in self.confirmed.values() for name in sent} - arrived
        assert not lost, f"lost: {sorted(lost)}"
        assert not self.refused & arrived, f"refused, but stored: {sorted(self.refused & arrived)}"
        seen = set[str]()
        for name, redelivered in self.received:
            assert name not in seen or redelivered, f"{name} again, not flagged: {self.received}"
            seen.add(name)

    def check_order(self) -> None:
        """The first deliveries of each producer's messages are in the order of sending."""
        arrived = list(dict.fromkeys(name for name, _ in self.received))
        for name, sent in self.confirmed.items():
            wanted = set(sent)
            assert [each for each in arrived if each in wanted] == sent, f"order of {name}: {arrived}"


Scenario = Callable[[Lab], Awaitable[None]]


@attrs.frozen
class _Lawful:
    """asyncio's order, but for timers of the same time."""

    loop: simloom.SimLoop
    descriptor: str = "lawful"

    def pick(self, ready: Sequence[asyncio.Handle]) -> int:
        first, number = ready[0], 1
        if isinstance(first, asyncio.TimerHandle):
            for other in ready[1:]:
                if not isinstance(other, asyncio.TimerHandle) or other.when() != first.when():
                    break
                number += 1
        return self.loop.tape.draw("sched.pick", number) if number > 1 else 0


#: Any order of what is ready.
SHUFFLED = "random"


def lawful(loop: simloom.SimLoop) -> _Lawful:
    """Only the orders that asyncio leaves open."""
    return _Lawful(loop)


def run(scenario: Scenario, seed: int, order: str | Callable[[simloom.SimLoop], _Lawful] = SHUFFLED) -> None:
    """Run a scenario with a seed. Raises what it raised, and if something hangs or a task is left."""

    async def main() -> None:
        with embedded_broker(f"schedule-{seed}") as broker:
            async with asyncio.timeout(GUARD):
                await scenario(Lab(broker, random.Random(seed)))
            await asyncio.sleep(1)
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            assert not left, f"tasks are left: {left}"

    logging.getLogger("jmsaio").setLevel(logging.CRITICAL)
    try:
        simloom.run(
            main, seed=seed, scheduler=order, virtual_time=True, seed_randomness=True, world=False,
            max_steps_per_instant=200_000,
        )  # fmt: skip
    finally:
        logging.getLogger("jmsaio").setLevel(logging.NOTSET)
