"""Long work in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from jmsaio.transport.slices import in_slices


@pytest.mark.parametrize("cancelled", [False, True])
async def test_each_turn_of_the_loop_has_one_step_and_cancelling_ends_none(cancelled: bool) -> None:
    done = list[int]()

    def work() -> Iterator[None]:
        for step in range(4):
            done.append(step)
            yield

    ended = in_slices(asyncio.get_running_loop(), work())
    assert done == [0]
    if cancelled:
        ended.cancel()
    for turn in range(1, 5):
        await asyncio.sleep(0)
        assert done == list(range(min(4, turn + 1)))
    await asyncio.sleep(0)
    assert ended.done() and ended.cancelled() is cancelled
