"""Every scenario with a few seeds. ``python -m tests.schedules --seeds 10000`` runs more of them."""

from __future__ import annotations

import asyncio
import os

import pytest

pytest.importorskip("simloom", reason="simloom is not installed; it needs Python 3.12")

import jmsaio
from tests.schedules.running import SHUFFLED, Lab, lawful, run
from tests.schedules.scenarios import QUEUE, SCENARIOS, faults

#: Seeds of each scenario; half of them with the orders that asyncio leaves open.
SEEDS = int(os.environ.get("JMSAIO_TEST_SEEDS", "20"))


@pytest.mark.timeout(60 + 5 * SEEDS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_promised_is_kept_in_every_schedule(name: str) -> None:
    for seed in range(SEEDS):
        try:
            run(SCENARIOS[name], seed, lawful if seed % 2 else SHUFFLED)
        except Exception as error:
            error.add_note(f"seed {seed}, {'lawful' if seed % 2 else 'shuffled'}")
            raise


@pytest.mark.parametrize("order", [lawful, SHUFFLED])
def test_a_seed_is_one_schedule(order: object) -> None:
    def deliveries(seed: int) -> object:
        found = list[Lab]()

        async def scenario(lab: Lab) -> None:
            found.append(lab)
            await faults(lab)

        run(scenario, seed, order)  # type: ignore[arg-type]
        return found[0].received, found[0].confirmed

    first = [deliveries(seed) for seed in range(4)]
    assert [deliveries(seed) for seed in range(4)] == first
    assert len({repr(each) for each in first}) > 1


def test_what_is_wrong_is_found() -> None:
    async def lose(lab: Lab) -> None:
        lab.confirmed["a"] = ["a 1"]
        lab.check()

    async def repeat(lab: Lab) -> None:
        lab.received = [("a 1", False), ("a 1", False)]
        lab.check()

    async def swap(lab: Lab) -> None:
        lab.confirmed["a"], lab.received = ["a 1", "a 2"], [("a 2", False), ("a 1", False)]
        lab.check_order()

    async def leave(lab: Lab) -> None:
        lab.left = asyncio.create_task(asyncio.sleep(100))  # type: ignore[attr-defined]

    async def hang(lab: Lab) -> None:
        async with jmsaio.connect(lab.broker.url) as connection, connection.create_session() as session:
            async with session.create_consumer(QUEUE) as consumer:
                await consumer.receive()

    for scenario, words in ((lose, "lost"), (repeat, "not flagged"), (swap, "order of a")):
        with pytest.raises(AssertionError, match=words):
            run(scenario, 0)
    with pytest.raises(AssertionError, match="tasks are left"):
        run(leave, 0)
    with pytest.raises(TimeoutError):
        run(hang, 0)
