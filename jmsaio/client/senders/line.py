"""``Lines``: sends that have to wait are sent in the order in which they began."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

#: Number of sends woken together, after the first one: one turn of the loop for each would be slow.
_TOGETHER = 100


class Lines(dict[str, OrderedDict[object, asyncio.Future[None]]]):
    """The waiting sends of one session, by topic: sends to one topic don't wait for those to another.

    A send that finds its topic here waits in line, even if the sender has room: it would overtake others.
    """

    @asynccontextmanager
    async def turn(self, topic: str) -> AsyncIterator[None]:
        """Wait for earlier sends. The record is sent in the same turn of the loop in which this is left.

        Cancelling leaves the line; the others keep their order.
        """
        loop, place = asyncio.get_running_loop(), object()
        line = self.setdefault(topic, OrderedDict())
        line[place] = loop.create_future()
        try:
            while next(iter(line)) is not place:  # woken together with an earlier one that still has to wait
                await line[place]
                line[place] = loop.create_future()
            yield
        finally:
            del line[place]
            if not line:
                del self[topic]
            else:
                _wake(line)


def _wake(line: OrderedDict[object, asyncio.Future[None]]) -> None:
    """Wake the first ones, unless they are already awake."""
    for count, waiting in enumerate(line.values()):
        if waiting.done() or count == _TOGETHER:
            return
        waiting.set_result(None)
