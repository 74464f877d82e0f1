"""The dispatch coroutine of a session: moves received records from the receivers into the inboxes.

It filters by selector, noLocal and expiry on the way, and never runs an application's code, so no application can hold
it up. A receive or a listener that waits, without a selector and noLocal, gets what the transport announces without a
turn of the coroutine: there is next to nothing to filter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import attrs

from jmsaio.client.delivery.inbox import Inbox

#: Fills before other tasks of the loop get a turn.
_FILLS_A_TURN = 8
#: The same in seconds: a fill may have to filter all of its records.
_LONGEST_TURN = 0.01


@attrs.define(eq=False)
class Dispatch:
    """Fills inboxes that were marked, one after the other.

    Attributes:
        filled: called after inboxes were filled, so that the callback workers look for messages.
    """

    filled: Callable[[], None]
    _marked: dict[Inbox, None] = attrs.field(factory=dict, init=False)
    _wake: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _turns: list[asyncio.Future[None]] = attrs.field(factory=list, init=False)
    _ended: bool = attrs.field(default=False, init=False)
    _raised: Exception | None = attrs.field(default=None, init=False)  # by a fill outside of ``run``

    def announce(self, inbox: Inbox) -> None:
        """The transport may have records for ``inbox``: fill it, at once where that is cheap and no other is first."""
        if self._marked or self._ended or not (inbox.wanted and inbox.filter.plain):
            self.mark(inbox)
            return
        try:
            more = inbox.fill()
        except Exception as error:  # ends the session, as where ``run`` fills
            self._raised, more = error, True
        if more:
            self.mark(inbox)
        self.filled()

    def mark(self, inbox: Inbox) -> None:
        """Fill ``inbox`` in the next turn."""
        self._marked[inbox] = None
        self._wake.set()

    def forget(self, inbox: Inbox) -> None:
        """The inbox is closed."""
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
