"""Entries that consumers of this process have received and not settled, whichever of them received each last.

The broker sends an entry to any consumer of its subscription: when one is closed, stops or loses its link, and whole,
even if it was to return one record of it. What an application still holds must not be handed out by another consumer,
and what one had before must be marked.
"""

from __future__ import annotations

import threading
import weakref
from typing import Final, NamedTuple

import attrs

from jmsaio.model.wire import EntryId
from jmsaio.rules import record_life as life
from jmsaio.transport.pulsar.wire.records.record import Entry
from jmsaio.transport.waiting import Waiters

#: Entries kept although they are with the broker, for their counts.
_MOST: Final = 20_000
#: Entries of closed consumers, in the whole process.
_MOST_PAST: Final = 100_000


class _Past(NamedTuple):
    """What remains of an entry when its consumer was closed."""

    publish_time: int  # tells it from another entry that has its id later
    failures: dict[int, int]
    returns: int


_Name = tuple[str, str, str]
#: States of a record that an application of this process has, or can still get from the consumer that has it.
_HAD: Final = frozenset((life.QUEUED, life.HELD, life.LETTER, life.IN_TRANSACTION, life.ACKED))

_past: Final[dict[tuple[_Name, EntryId], _Past]] = {}
_alive: Final[weakref.WeakValueDictionary[_Name, weakref.WeakSet[UnsettledEntries]]] = weakref.WeakValueDictionary()
_lock: Final = threading.Lock()  # connections can have their event loops in several threads


@attrs.define(eq=False)
class UnsettledEntries:
    """The entries of one subscription of a topic or partition, shared by its consumers on one connection.

    Its name is broker, topic and subscription; None on a topic that is not persistent: its ids mean nothing elsewhere.
    """

    _name: _Name | None
    entries: dict[EntryId, Entry] = attrs.field(factory=dict, init=False)
    recognised: set[Entry] = attrs.field(factory=set, init=False)  # arrived again during an open transaction
    confirmed: Waiters = attrs.field(factory=Waiters, init=False)  # for receipts of the broker
    _most: int = attrs.field(factory=lambda: _MOST, init=False)
    _same: weakref.WeakSet[UnsettledEntries] = attrs.field(factory=weakref.WeakSet, init=False)  # of all connections

    def __attrs_post_init__(self) -> None:
        if self._name is not None:
            with _lock:
                self._same = _alive.setdefault(self._name, self._same)
                self._same.add(self)

    def add(self, entry: Entry) -> None:
        """Add an entry that has arrived for the first time here, with the counts of other consumers of the process."""
        key = entry.ledger, entry.number
        self.entries[key] = entry
        if len(self.entries) > self._most:
            self._forget_some()
        if _past and self._name is not None:
            with _lock:
                past = _past.pop((self._name, key), None)
            if past is not None and past.publish_time == entry.metadata.publish_time:
                entry.continue_counts(past.failures, past.returns)
        if len(self._same) > 1:
            self._continue(entry, key)

    def _continue(self, entry: Entry, key: EntryId) -> None:
        """Continue the counts of another connection, whose consumer lost the entry with its link, or stopped."""
        with _lock:
            others = [known for known in self._same if known is not self]
        for known in others:
            other = known.entries.get(key)
            if other is not None and other.metadata.publish_time == entry.metadata.publish_time:
                had = [index for index, state in enumerate(other.states) if state in _HAD]
                failures = {**other.failures, **{index: other.failures.get(index, 0) + 1 for index in had}}
                entry.continue_counts(failures, other.returns)

    def remove(self, entry: Entry) -> None:
        key = entry.ledger, entry.number
        if self.entries.get(key) is entry:
            del self.entries[key]

    def retire(self, entry: Entry) -> None:
        """Remove an entry whose consumer is closed; the next consumer in this process continues its counts.

        A record in an open transaction arrives again only if that is rolled back, which the broker counts as well.
        """
        self.remove(entry)
        failures, returns = dict(entry.failures), entry.returns
        for index, state in enumerate(entry.states):
            if state == life.IN_TRANSACTION:
                failures[index] = failures.get(index, 0) + 1
        if life.IN_TRANSACTION in entry.states and not entry.returned:
            returns += 1
        if self._name is not None and (failures or returns):
            with _lock:
                past = _Past(entry.metadata.publish_time, failures, returns)
                _past[self._name, (entry.ledger, entry.number)] = past
                if len(_past) > _MOST_PAST:
                    del _past[next(iter(_past))]

    def forget_past(self) -> None:
        """Forget what closed consumers had: the subscription is moved or deleted."""
        with _lock:
            for key in [key for key in _past if key[0] == self._name]:
                del _past[key]

    def _forget_some(self) -> None:
        """Forget entries of which nothing is held or waits here: perhaps another consumer has them now."""
        for key, entry in list(self.entries.items()):
            if life.forgettable(entry.states) and life.ACKED not in entry.states:
                del self.entries[key]
        self._most = max(_MOST, 2 * len(self.entries))
