"""The dispatch coroutine of a session: moves received records from the receivers to the inboxes.

It filters them by selector, noLocal and expiry, and never runs application code, so no application can block it. A
waiting receive or listener without selector and noLocal is filled as soon as the transport announces records, without a
turn of the coroutine: there is almost nothing to filter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import attrs

from jmsaio.client.delivery.inbox import Inbox

#: Number of fills before other tasks of the loop run.
_FILLS_A_TURN = 8
#: Maximum time in seconds before other tasks run: a fill might have to filter all of its records.
_LONGEST_TURN = 0.01


@attrs.define(eq=False)
class Dispatch:
    """Fills marked inboxes, one after the other.

    Attributes:
        filled: called after inboxes were filled, to wake the callback workers.
    """

    filled: Callable[[], None]
    _marked: dict[Inbox, None] = attrs.field(factory=dict, init=False)
    _wake: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _turns: list[asyncio.Future[None]] = attrs.field(factory=list, init=False)
    _ended: bool = attrs.field(default=False, init=False)
    _raised: Exception | None = attrs.field(default=None, init=False)  # by a fill outside of ``run``

    def announce(self, inbox: Inbox) -> None:
        """Fill ``inbox``, which the transport announced; at once if that is cheap and no other inbox waits."""
        if self._marked or self._ended or not (inbox.wanted and inbox.filter.plain):
            self.mark(inbox)
            return
        try:
            more = inbox.fill()
        except Exception as error:  # ends the session, as an error in ``run`` does
            self._raised, more = error, True
        if more:
            self.mark(inbox)
        self.filled()

    def mark(self, inbox: Inbox) -> None:
        """Fill ``inbox`` in the next turn."""
        self._marked[inbox] = None
        self._wake.set()

    def forget(self, inbox: Inbox) -> None:
        """Forget a closed inbox."""
        self._marked.pop(inbox, None)

    async def turn(self, inbox: Inbox) -> None:
        """Wait until ``inbox`` was filled once, or the session ended. Cancelling changes nothing."""
        if self._ended:
            return
        done = asyncio.get_running_loop().create_future()
        self._turns.append(done)
        self.mark(inbox)
        await done

    async def run(self) -> None:
        """Run until cancelled."""
        turns: list[asyncio.Future[None]] = []
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if self._raised is not None:
                    raise self._raised
                turns, self._turns = self._turns, []
                await self._fill_marked()
                self.filled()
                _resolve(turns)
        finally:
            self._ended = True
            _resolve([*turns, *self._turns])

    async def _fill_marked(self) -> None:
        fills, begun = 0, time.perf_counter()
        while self._marked:
            inbox = next(iter(self._marked))
            del self._marked[inbox]
            if inbox.fill():
                self._marked[inbox] = None
            fills += 1
            if fills % _FILLS_A_TURN == 0 or time.perf_counter() - begun > _LONGEST_TURN:
                self.filled()
                await asyncio.sleep(0)
                begun = time.perf_counter()


def _resolve(turns: list[asyncio.Future[None]]) -> None:
    for done in turns:
        if not done.done():
            done.set_result(None)
