"""Long work on the event loop in slices, one per turn, so that other tasks run in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

#: Maximum records whose outcome is reported in one turn of the loop: 10 ms, including the tasks waiting for them.
SLICE = 500


def in_slices(loop: asyncio.AbstractEventLoop, work: Iterator[object]) -> asyncio.Future[None]:
    """Run one step of ``work`` now and one in each of the next turns of the loop.

    Returns:
        A future that ends with the last step. Cancelling it does not stop the work.
    """
    ended = loop.create_future()

    def step() -> None:
        for _ in work:
            loop.call_soon(step)
            return
        if not ended.done():
            ended.set_result(None)

    step()
    return ended
