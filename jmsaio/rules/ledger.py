"""The acknowledgement ledger of one session: the deliveries that are not settled yet.

It decides and returns the commands to carry out; it does no I/O and knows nothing of messages: an *inbox* (whatever
the client uses to reach a subscription) and a *record* are opaque to it.

Jakarta Messaging 3.1, 6.2.10 Message acknowledgment. Session scope includes messages received later and those of closed
consumers; group scope is this message and all received before it; individual scope is this message alone.
"""

from __future__ import annotations

import enum
from itertools import takewhile
from typing import Generic, TypeVar

import attrs

Inbox = TypeVar("Inbox")
Record = TypeVar("Record")


class Scope(enum.Enum):
    """How far one ``message.acknowledge()`` reaches."""

    SESSION = "session"
    GROUP = "group"
    INDIVIDUAL = "individual"


@attrs.define
class Ledger(Generic[Inbox, Record]):
    """Deliveries of one session that are not settled, in the order of delivery.

    Attributes:
        scope: how far an acknowledgement reaches.
    """

    scope: Scope = Scope.SESSION
    _entries: dict[int, tuple[Inbox, Record]] = attrs.field(factory=dict, init=False, repr=False)
    _next: int = attrs.field(default=1, init=False)
    _left: frozenset[int] = attrs.field(default=frozenset(), init=False, repr=False)  # unsettled when it was closed

    def __len__(self) -> int:
        return len(self._entries)

    def delivered(self, inbox: Inbox, record: Record) -> int:
        """Note a delivery; returns its number for ``acknowledge``."""
        number = self._next
        self._next = number + 1
        self._entries[number] = (inbox, record)
        return number

    def acknowledge(self, number: int) -> list[tuple[Inbox, list[Record]]]:
        """Settle delivery ``number`` and what the scope adds; returns the records to acknowledge for each inbox."""
        if self.scope is Scope.INDIVIDUAL or (len(self._entries) == 1 and number in self._entries):
            entry = self._entries.pop(number, None)
            return [] if entry is None else [(entry[0], [entry[1]])]
        if self.scope is Scope.SESSION:
            return self.take_all()
        return self._take(list(takewhile(lambda held: held <= number, self._entries)))  # they stand in order

    def take(self, number: int) -> tuple[Inbox, Record] | None:
        """Remove one delivery; None if it is settled already."""
        return self._entries.pop(number, None)

    def take_all(self) -> list[tuple[Inbox, list[Record]]]:
        """Remove every delivery, in order, grouped by inbox."""
        return self._take(list(self._entries))

    def close(self) -> list[tuple[Inbox, list[Record]]]:
        """Remove every delivery, as ``take_all``; ``left`` knows them from then on."""
        self._left |= self._entries.keys()
        return self.take_all()

    def left(self, number: int) -> bool:
        """True if delivery ``number`` was unsettled when the ledger was closed."""
        return number in self._left

    def concerns(self, inbox: Inbox) -> bool:
        """True while an inbox has unsettled deliveries."""
        return any(held is inbox for held, _ in self._entries.values())

    def _take(self, numbers: list[int]) -> list[tuple[Inbox, list[Record]]]:
        grouped: dict[int, tuple[Inbox, list[Record]]] = {}
        for number in numbers:
            inbox, record = self._entries.pop(number)
            grouped.setdefault(id(inbox), (inbox, []))[1].append(record)
        return list(grouped.values())
