"""The window of a sender: how many records, and bytes of them, are in flight."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from jmsaio.transport.waiting import Waiters


@attrs.define(eq=False)
class Window:
    """Records count while they might still be sent, even if they were already reported as in doubt.

    Attributes:
        max_records: maximum number of records in flight.
        max_bytes: maximum bytes in flight.
        records: number of these records.
        bytes: total bytes of them.
        unreported: number of records whose outcome is not yet reported.
        left: called when records have left.
        closed: whether waiting has ended.
    """

    max_records: int
    max_bytes: int
    left: Callable[[], object]
    records: int = 0
    bytes: int = 0
    unreported: int = 0
    closed: bool = False
    _room: Waiters = attrs.field(factory=Waiters, init=False)
    _all_reported: Waiters = attrs.field(factory=Waiters, init=False)

    @property
    def full(self) -> bool:
        """Whether there is no room for another record."""
        return self.records >= self.max_records or self.bytes >= self.max_bytes

    def add(self, size: int) -> None:
        """Add a record of ``size`` bytes."""
        self.records += 1
        self.bytes += size
        self.unreported += 1

    def reported(self, records: int) -> None:
        """Count records whose outcome was reported."""
        self.unreported -= records
        if self.unreported == 0:
            self._all_reported.wake()

    def leave(self, records: int, size: int) -> None:
        """Remove records of ``size`` bytes in total that are no longer in flight."""
        self.records -= records
        self.bytes -= size
        if self.records <= self.max_records // 2 and self.bytes <= self.max_bytes // 2:
            self._room.wake()
        self.left()

    def close(self) -> None:
        """Release all waiting tasks."""
        self.closed = True
        self._room.wake()
        self._all_reported.wake()

    async def room(self) -> None:
        """Wait until there is room or the window is closed. Cancelling changes nothing."""
        while self.full and not self.closed:
            await self._room.wait()

    async def all_reported(self) -> None:
        """Wait until every record has an outcome or the window is closed. Cancelling changes nothing."""
        while self.unreported and not self.closed:
            await self._all_reported.wait()
