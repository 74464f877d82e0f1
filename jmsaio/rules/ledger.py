"""The acknowledgement ledger of one session: its unsettled deliveries.

It decides and returns the commands to carry out. It does no I/O and does not depend on messages: an *inbox* (the
client's object for a subscription) and a *record* are opaque to it.

Jakarta Messaging 3.1, 6.2.10 Message acknowledgment. Session scope includes messages received later and those of closed
consumers; group scope is this message and all received before it; individual scope is this message alone.
"""

from __future__ import annotations

import enum
from collections import Counter
from itertools import takewhile
from typing import Generic, TypeVar

import attrs

Inbox = TypeVar("Inbox")
Record = TypeVar("Record")


class Scope(enum.Enum):
    """Scope of one ``message.acknowledge()``."""

    SESSION = "session"
    GROUP = "group"
    INDIVIDUAL = "individual"


@attrs.define
class DeliveryLedger(Generic[Inbox, Record]):
    """Unsettled deliveries of one session, in the order of delivery."""

    scope: Scope = Scope.SESSION
    _entries: dict[int, tuple[Inbox, Record]] = attrs.field(factory=dict, init=False, repr=False)
    _next: int = attrs.field(default=1, init=False)
    _left: frozenset[int] = attrs.field(default=frozenset(), init=False, repr=False)  # unsettled when it was closed

    def __len__(self) -> int:
        return len(self._entries)

    def delivered(self, inbox: Inbox, record: Record) -> int:
        """Record a delivery; return its number for ``acknowledge``."""
        number = self._next
        self._next = number + 1
        self._entries[number] = (inbox, record)
        return number

    def acknowledge(self, number: int) -> list[tuple[Inbox, list[Record]]]:
        """Settle delivery ``number`` and others in its scope; return the records to acknowledge for each inbox."""
        if self.scope is Scope.INDIVIDUAL or (len(self._entries) == 1 and number in self._entries):
            entry = self._entries.pop(number, None)
            return [] if entry is None else [(entry[0], [entry[1]])]
        if self.scope is Scope.SESSION:
            return self.remove_all()
        return self._remove(list(takewhile(lambda earlier: earlier <= number, self._entries)))  # they are in order

    def remove(self, number: int) -> tuple[Inbox, Record] | None:
        """Remove one delivery; return None if it is already settled."""
        return self._entries.pop(number, None)

    def remove_all(self) -> list[tuple[Inbox, list[Record]]]:
        """Remove every delivery, in order, grouped by inbox."""
        return self._remove(list(self._entries))

    def close(self) -> list[tuple[Inbox, list[Record]]]:
        """Remove every delivery, as ``remove_all``; ``was_left`` reports them from then on."""
        self._left |= self._entries.keys()
        return self.remove_all()

    def was_left(self, number: int) -> bool:
        """Return whether delivery ``number`` was unsettled when the ledger was closed."""
        return number in self._left

    def concerns(self, inbox: Inbox) -> bool:
        """Return whether an inbox has unsettled deliveries."""
        return any(owner is inbox for owner, _ in self._entries.values())

    def counts(self) -> Counter[Inbox]:
        """Return the number of unsettled deliveries of each inbox."""
        return Counter(inbox for inbox, _ in self._entries.values())

    def _remove(self, numbers: list[int]) -> list[tuple[Inbox, list[Record]]]:
        grouped: dict[int, tuple[Inbox, list[Record]]] = {}
        for number in numbers:
            inbox, record = self._entries.pop(number)
            grouped.setdefault(id(inbox), (inbox, []))[1].append(record)
        return list(grouped.values())
