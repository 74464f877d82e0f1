from __future__ import annotations

import asyncio
import re
import time

from tests.kit.tiers import TESTS, VIRTUAL
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


def test_tests_on_virtual_time_ask_for_no_other() -> None:
    """They ask `wall` and `steady`: what they compare with sleeps must pass as these do."""
    places = [TESTS / place for place in VIRTUAL]
    files = [file for place in places for file in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    assert len(files) > 100
    other = re.compile(r"\btime\.(time|monotonic)(_ns)?\b|\b(datetime|date)\.(now|utcnow|today)\b|from time import")
    asking = [str(file.relative_to(TESTS)) for file in files if other.search(file.read_text("utf-8"))]
    assert asking == []
