"""``Window``: how much one sender has on its way, and who waits for room or for the last outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import attrs


@attrs.define(eq=False)
class Window:
    """What pulsar-client holds counts until it answers, also when the application was told "in doubt" before.

    Attributes:
        loop: the event loop of the waiters.
        max_records: records on their way at most.
        max_bytes: bytes on their way at most.
        records: records that pulsar-client holds, or will in this turn of the loop.
        bytes: their bytes.
        untold: those of them whose outcome the application does not know.
        left: called when records have left.
        closed: nobody waits any more.
    """

    loop: asyncio.AbstractEventLoop
    max_records: int
    max_bytes: int
    left: Callable[[], object]
    records: int = 0
    bytes: int = 0
    untold: int = 0
    closed: bool = False
    _room: list[asyncio.Future[None]] = attrs.field(factory=list, init=False)
    _told: list[asyncio.Future[None]] = attrs.field(factory=list, init=False)

    @property
    def full(self) -> bool:
        """True when there is no room for one more record."""
        return self.records >= self.max_records or self.bytes >= self.max_bytes

    def add(self, size: int) -> None:
        """One more record of ``size`` bytes is on its way."""
        self.records += 1
        self.bytes += size
        self.untold += 1

    def tell(self, records: int) -> None:
        """The application was told the outcome of records."""
        self.untold -= records
        if self._told and self.untold == 0:
            _resolve(self._told)

    def leave(self, records: int, size: int) -> None:
        """pulsar-client holds records of ``size`` bytes together no longer."""
        self.records -= records
        self.bytes -= size
        if self._room and self.records <= self.max_records // 2 and self.bytes <= self.max_bytes // 2:
            _resolve(self._room)
        self.left()

    def close(self) -> None:
        """Let everybody go on who waits."""
        self.closed = True
        _resolve(self._room)
        _resolve(self._told)

    async def room(self) -> None:
        """Wait until there is room, or the window is closed. Cancelling changes nothing."""
        while self.full and not self.closed:
            await self._wait(self._room)

    async def all_told(self) -> None:
        """Wait until every record has its outcome, or the window is closed. Cancelling changes nothing."""
        while self.untold and not self.closed:
            await self._wait(self._told)

    async def _wait(self, waiters: list[asyncio.Future[None]]) -> None:
        future = self.loop.create_future()
        waiters.append(future)
        try:
            await future
        finally:
            if future in waiters:
                waiters.remove(future)


def _resolve(waiters: list[asyncio.Future[None]]) -> None:
    waiting = waiters[:]
    waiters.clear()
    for future in waiting:
        if not future.done():
            future.set_result(None)
