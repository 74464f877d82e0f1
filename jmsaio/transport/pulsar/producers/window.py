"""``Window``: how much one sender has on its way, and who waits for room or for the last outcome."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from jmsaio.transport.waiters import Waiters


@attrs.define(eq=False)
class Window:
    """What pulsar-client holds counts until it answers, also when the application was told "in doubt" before.

    Attributes:
        max_records: records on their way at most.
        max_bytes: bytes on their way at most.
        records: records that pulsar-client holds, or will in this turn of the loop.
        bytes: their bytes.
        untold: those of them whose outcome the application does not know.
        left: called when records have left.
        closed: no one waits any more.
    """

    max_records: int
    max_bytes: int
    left: Callable[[], object]
    records: int = 0
    bytes: int = 0
    untold: int = 0
    closed: bool = False
    _room: Waiters = attrs.field(factory=Waiters, init=False)
    _told: Waiters = attrs.field(factory=Waiters, init=False)

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
        if self.untold == 0:
            self._told.wake()

    def leave(self, records: int, size: int) -> None:
        """pulsar-client holds records of ``size`` bytes together no longer."""
        self.records -= records
        self.bytes -= size
        if self.records <= self.max_records // 2 and self.bytes <= self.max_bytes // 2:
            self._room.wake()
        self.left()

    def close(self) -> None:
        """Let everyone go on who waits."""
        self.closed = True
        self._room.wake()
        self._told.wake()

    async def room(self) -> None:
        """Wait until there is room, or the window is closed. Cancelling changes nothing."""
        while self.full and not self.closed:
            await self._room.wait()

    async def all_told(self) -> None:
        """Wait until every record has its outcome, or the window is closed. Cancelling changes nothing."""
        while self.untold and not self.closed:
            await self._told.wait()
