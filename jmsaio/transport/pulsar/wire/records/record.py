"""Received entries and their records, and what consumers of this process have received and not settled."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

import attrs

from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model.packed import unpack
from jmsaio.model.wire import EXPIRATION, EntryId, WireId
from jmsaio.protocol.batch import Span, split
from jmsaio.protocol.fields import int64
from jmsaio.protocol.metadata import Metadata
from jmsaio.rules import record_life as life
from jmsaio.rules.record_life import RecordEvent, Step
from jmsaio.transport.base import StartPosition
from jmsaio.transport.waiting import Waiters

#: The id with which the protocol names each end of a topic.
ENDS: Final = {
    StartPosition.EARLIEST: {"ledger_id": (1 << 64) - 1, "entry_id": (1 << 64) - 1},
    StartPosition.LATEST: {"ledger_id": (1 << 63) - 1, "entry_id": (1 << 63) - 1},
}
_EXPIRATION: Final = EXPIRATION.encode()
#: Bytes of a record's objects in memory, about.
_OVERHEAD = 300
#: Entries kept although they are with the broker, for their counts.
_MOST: Final = 20_000
#: Entries of closed consumers, in the whole process.
_MOST_PAST: Final = 100_000


class OwnerAcks(Protocol):
    """The acknowledgements of a consumer, as transactions and other consumers of its subscription see them."""

    @property
    def subscription_name(self) -> str: ...

    def records_ended(self, entries: Mapping[Entry, list[int]], committed: bool) -> None:
        """End the records that were acknowledged in a transaction: their indexes by their entries."""

    def transaction_ended(self, entries: Iterable[Entry], redelivered: bool) -> None:
        """Continue after its end at the broker; ``redelivered``: the broker redelivers what arrived meanwhile."""

    def acknowledged(self, entry: Entry) -> None:
        """Send the acknowledgements of an entry in the next group, through the consumer that received it last."""

    def settle_later(self, entry: Entry) -> None: ...

    def acknowledge_in(self, transaction: Any, records: Iterable[WireRecord]) -> None:  # WireTransaction is above this
        ...

    def flush(self) -> None: ...


class Owner(Protocol):
    """The consumer that received an entry last, as others see it: its acknowledgements, and consumers beside it."""

    @property
    def acks(self) -> OwnerAcks: ...

    def release(self, entry: Entry) -> None: ...

    def redelivered(self, entry: Entry) -> None:
        """Count that the broker redelivers an entry by itself, to any consumer."""

    def redeliver(self, entries: Iterable[Entry]) -> None: ...

    def due_here(self, record: WireRecord) -> None: ...


@attrs.define(eq=False)
class Entry:
    """One entry of the broker's storage. ``due``, ``failures`` and ``holders`` are by the indexes of its records."""

    ledger: int
    number: int  # id of the entry in its ledger; on a non-persistent topic, which stores nothing, a running number
    partition: int
    topic: str
    metadata: Metadata
    data: bytes
    states: bytearray
    owner: Owner | None = None  # the consumer at which it last arrived
    registration: int = 0  # number of that consumer's registration then, which is never used twice; 0 at a reader
    broker_count: int = 0  # how often the broker has delivered it before
    # Of records that another consumer handed out or keeps, that consumer, and its registration.
    holders: dict[int, tuple[Owner, int]] = attrs.field(factory=dict, init=False)
    returns: int = attrs.field(default=0, init=False)  # how often this client has had it redelivered
    # Whether it was since it last arrived: the broker counts that once, whatever is sent.
    returned: bool = attrs.field(default=False, init=False)
    failures: dict[int, int] = attrs.field(factory=dict, init=False)  # failed deliveries
    # The other entries of a message in chunks, which are settled and returned with this one, the last.
    chunks: tuple[EntryId, ...] = attrs.field(default=(), init=False)
    # Loop times at which a record that is handed out is overdue, or one that waits is redelivered.
    due: dict[int, float] = attrs.field(factory=dict, init=False)

    def step(self, index: int, event: RecordEvent) -> Step:
        """Pass an event of one record, and count a failed delivery if it is one; return what to do."""
        step = life.step(self.states, index, event)
        if step.counted:
            self.count_failure(index)
        return step

    def received(self, metadata: Metadata, data: bytes, owner: Owner, registration: int, broker_count: int) -> None:
        """Continue with what has arrived again, at a consumer."""
        self.metadata, self.data, self.broker_count, self.returned = metadata, data, broker_count, False
        self.move_to(owner, registration)

    def move_to(self, owner: Owner, registration: int) -> None:
        self.owner, self.registration = owner, registration

    def mark_returned(self) -> None:
        """Count that the broker redelivers it, unless that is counted since it last arrived."""
        if not self.returned:
            self.returns += 1
            self.returned = True

    def allow_return(self) -> None:
        """Have it redelivered again, although that was requested since it last arrived."""
        self.returned = False

    def complete(self, damages: int, chunks: Iterable[EntryId] = (), returns: int = 0) -> None:
        """Count how often it arrived damaged, and before its chunks were complete; add those."""
        self.returns = max(self.returns + damages, min(returns, self.broker_count))
        if chunks:
            self.chunks = tuple(dict.fromkeys((*self.chunks, *chunks)))

    def continue_counts(self, failures: dict[int, int], returns: int) -> None:
        self.failures, self.returns = failures, returns

    def redelivery_count(self, index: int) -> int:
        return life.redelivery_count(self.failures.get(index, 0), self.broker_count, self.returns)

    def count_failure(self, index: int) -> None:
        self.failures[index] = self.failures.get(index, 0) + 1


class WireRecord:
    """One record of an entry, in the entry's bytes."""

    __slots__ = ("__weakref__", "_properties", "_span", "entry", "index", "may_expire", "redelivery_count")

    def __init__(self, entry: Entry, index: int, span: Span | None, redelivery_count: int, may_expire: bool) -> None:
        self.entry = entry
        self.index = index
        self.redelivery_count = redelivery_count
        self.may_expire = may_expire
        self._span = span  # None: the entry is no batch
        self._properties: dict[str, str] | None = None

    def deliver_again(self) -> None:
        """Count another delivery, in this client only; others learn the count when it is returned."""
        if self.entry.step(self.index, RecordEvent.DELIVERED_AGAIN).counted:
            self.redelivery_count += 1

    def __repr__(self) -> str:
        return f"<WireRecord {self.message_id} of {self.topic}>"

    @property
    def payload(self) -> bytes | None:
        span, entry = self._span, self.entry
        if span is None:
            return None if entry.metadata.null_value else entry.data
        return None if span.single.null_value else entry.data[span.payload : span.stop]

    @property
    def properties(self) -> Mapping[str, str]:
        found = self._properties
        if found is None:
            span, data = self._span, self.entry.data
            try:
                if span is None:
                    found = unpack(self.entry.metadata.packed)
                elif span.places is None:
                    found = unpack(data[span.start : span.middle])
                else:
                    at = span.start
                    found = {name: data[at + first : at + stop].decode() for name, (first, stop) in span.places.items()}
            except (MessageFormatError, UnicodeDecodeError) as error:
                raise MalformedMessageError(f"the properties of {self.message_id}: {error}", self) from error
            self._properties = found
        return found

    def get(self, name: str, /) -> str | None:
        span = self._span
        if span is None or span.places is None:
            return self.properties.get(name)
        place = span.places.get(name)
        if place is None:
            return None
        start, (first, stop) = span.start, place
        try:
            return self.entry.data[start + first : start + stop].decode()
        except UnicodeDecodeError as error:
            raise MalformedMessageError(f"property {name} of {self.message_id} is not UTF-8: {error}", self) from error

    @property
    def key(self) -> str | None:
        span = self._span
        key = self.entry.metadata.partition_key if span is None else span.single.partition_key
        try:
            return None if not key else key.decode()
        except UnicodeDecodeError as error:
            raise MalformedMessageError(f"the key of {self.message_id} is not UTF-8: {error}", self) from error

    @property
    def event_time(self) -> int:
        return self.entry.metadata.event_time if self._span is None else self._span.single.event_time

    @property
    def publish_time(self) -> int:
        return self.entry.metadata.publish_time

    @property
    def message_id(self) -> WireId:
        entry = self.entry
        return WireId(entry.ledger, entry.number, entry.partition, -1 if self._span is None else self.index)

    @property
    def batch_size(self) -> int:
        return 0 if self._span is None else len(self.entry.states)

    @property
    def topic(self) -> str:
        return self.entry.topic

    @property
    def sequence_id(self) -> int | None:
        span = self._span
        if span is not None and span.single.sequence_id is not None:
            return span.single.sequence_id
        return self.entry.metadata.sequence_id + self.index

    @property
    def producer_name(self) -> str | None:
        return self.entry.metadata.producer_name or None

    @property
    def schema_version(self) -> bytes | None:
        return self.entry.metadata.schema_version or None

    @property
    def size(self) -> int:
        span = self._span
        return _OVERHEAD + (len(self.entry.data) if span is None else span.stop - span.start)


def record_of(entry: Entry, index: int) -> WireRecord:
    """Create the object of a record again."""
    count = entry.metadata.num_messages_in_batch
    span = None if count is None else split(entry.data, 0, count)[index]
    return WireRecord(entry, index, span, entry.redelivery_count(index), may_expire(entry))


def may_expire(entry: Entry, span: Span | None = None) -> bool:
    """Return whether a record of an entry, or the one at ``span`` of its batch, can have a JMSExpiration."""
    if span is not None:
        return entry.data.find(_EXPIRATION, span.start, span.middle) >= 0
    metadata = entry.metadata
    return _EXPIRATION in (metadata.packed if metadata.num_messages_in_batch is None else entry.data)


def place_of(message_id: Mapping[str, int]) -> EntryId:
    """Return ledger and entry of a MESSAGE_ID, which the protocol writes without their signs."""
    return int64(message_id["ledger_id"]), int64(message_id["entry_id"])


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
