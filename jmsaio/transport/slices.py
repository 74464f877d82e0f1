"""Long work on the event loop in slices, one in each turn, so that everything else goes on in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

#: Records whose outcome is told in one turn of the loop at most: 10 ms, with the tasks that wait for them.
SLICE = 500


def in_slices(loop: asyncio.AbstractEventLoop, work: Iterator[object]) -> asyncio.Future[None]:
    """Take one step of ``work`` now and one in each of the next turns of the loop.

    Returns:
        What ends with the last step. Cancelling it changes nothing else.
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
