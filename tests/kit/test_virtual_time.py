from __future__ import annotations

import asyncio
import time

from tests.kit.virtual_time import VirtualLoop, steady, wall


def test_an_hour_passes_at_once() -> None:
    async def wait() -> tuple[float, float]:
        before = wall(), steady()
        await asyncio.sleep(3600)
        return wall() - before[0], steady() - before[1]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        passed = runner.run(wait())
    assert all(abs(each - 3600) < 1 for each in passed)


def test_timers_ring_in_their_order() -> None:
    rung: list[str] = []

    async def wait() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(20, rung.append, "late")
        loop.call_later(10, rung.append, "early")
        async with asyncio.timeout(30):
            await asyncio.sleep(25)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(wait())
    assert rung == ["early", "late"]


def test_outside_of_such_a_loop_time_is_the_machines() -> None:
    assert abs(wall() - time.time()) < 60
    assert abs(steady() - time.monotonic()) < 60
