"""``SubscriptionRecords``: what the receivers of one subscription in this process know of each other's records.

* The broker counts each redelivery of an entry, for whatever reason: also when a selector rejected a record or its
  neighbour, or when prefetched records were returned undelivered. Redeliveries caused by this process are subtracted;
  those caused by other processes can't be distinguished from failures.
* Closing a consumer, which is how a receiver stops, returns its records at once and uncounted. So receivers retain
  copies of records that another one's application still has, and mark the ones that an application had before.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from typing import Protocol, TypeVar
from weakref import ReferenceType, WeakSet, WeakValueDictionary, ref

import attrs

from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import EntryId
from jmsaio.rules.record_life import redelivery_count
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord, RecordKey

#: Maximum entries, and records, of which one subscription stores counts.
REMEMBERED = 50_000
#: Maximum marks of the process.
MARKS = 100_000

_Counted = TypeVar("_Counted", EntryId, RecordKey)
_Identity = tuple[str, tuple[str, ...], str | None]


@attrs.define(eq=False)
class Marks:
    """Records that an application had, and the broker redelivers uncounted. They survive receivers and connections."""

    _entries: OrderedDict[tuple[str, str], dict[EntryId, dict[int, int]]] = attrs.field(
        factory=OrderedDict, init=False
    )  # publish times: another record might later have the same id
    _count: int = attrs.field(default=0, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)  # connections can have their own threads

    def __len__(self) -> int:
        return self._count

    def add(self, subscription: str, records: Iterable[PulsarRecord]) -> None:
        with self._lock:
            for record in records:
                entries = self._entries.setdefault((record.topic, subscription), {})
                ledger, entry, index = record.record_key
                marks = entries.setdefault((ledger, entry), {})
                self._count += index not in marks
                marks[index] = record.publish_time
            while self._count > MARKS:
                first, entries = next(iter(self._entries.items()))
                self._count -= len(entries.pop(next(iter(entries))))
                if not entries:
                    del self._entries[first]

    def of(self, topic: str | None, subscription: str) -> Container[EntryId]:
        """Return the entries of a topic with marks, which other threads can change; empty for a pattern's topics."""
        return () if topic is None else self._entries.get((topic, subscription), ())

    def apply(self, subscription: str, record: PulsarRecord) -> bool:
        """Mark a record as redelivered if it has a mark, which is removed; return whether it had one."""
        ledger, entry, index = record.record_key
        with self._lock:
            entries = self._entries.get((record.topic, subscription), {})
            marks = entries.get((ledger, entry), {})
            if marks.get(index) != record.publish_time:
                return False
            del marks[index]
            self._count -= 1
            if not marks:
                del entries[ledger, entry]
            if not entries:
                del self._entries[record.topic, subscription]
        record.mark_delivered()
        return True

    def forget(self, subscription: str, concerned: Callable[[str], bool]) -> None:
        with self._lock:
            for key in [key for key in self._entries if key[1] == subscription and concerned(key[0])]:
                self._count -= sum(map(len, self._entries.pop(key).values()))


class Tracker(Protocol):
    """The part of ``UnackedTracker`` used by other receivers, from any thread."""

    @property
    def link(self) -> object: ...
    @property
    def records(self) -> list[PulsarRecord]: ...
    def settles_late(self, now: float) -> bool: ...
    def recognize(
        self, records: list[PulsarRecord], now: float
    ) -> tuple[dict[PulsarRecord, PulsarRecord], list[PulsarRecord]]: ...


_all: WeakValueDictionary[tuple[str, _Identity], SubscriptionRecords] = WeakValueDictionary()
_lock = threading.Lock()  # receivers of one subscription can run in several threads
_marks = Marks()


@attrs.define(eq=False)
class SubscriptionRecords:
    """Shared by a subscription's receivers in this process on one list of topics, or pattern; others can overlap."""

    trackers: WeakSet[Tracker] = attrs.field(factory=WeakSet, init=False)
    marks: Marks = attrs.field(factory=Marks)
    _overlapping: WeakSet[SubscriptionRecords] = attrs.field(factory=WeakSet, init=False)
    _entries: OrderedDict[EntryId, int] = attrs.field(factory=OrderedDict, init=False)
    _records: OrderedDict[RecordKey, int] = attrs.field(factory=OrderedDict, init=False)
    #: The receiver of each entry, by topic; None if several had it, perhaps each a part of it.
    _receivers: OrderedDict[tuple[str, EntryId], ReferenceType[Tracker] | None] = attrs.field(
        factory=OrderedDict, init=False
    )
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def __bool__(self) -> bool:
        return bool(self._entries) or len(self.trackers) > 1 or bool(self._overlapping)

    @property
    def _together(self) -> list[SubscriptionRecords]:
        return [self, *self._overlapping]

    def overlaps(self, other: SubscriptionRecords) -> None:
        for one, another in ((self, other), (other, self)):
            one._overlapping = WeakSet([*one._overlapping, another])  # a new set, as for ``trackers``

    def add(self, tracker: Tracker) -> None:
        """Add a receiver; from the second on, the receiver of each entry is stored."""
        present = [(one, other) for one in self._together for other in one.trackers]
        with self._lock:
            self.trackers = WeakSet([*self.trackers, tracker])  # a new set: other threads might be reading the old one
        for one, other in present:
            one._received_before(other, other.records)

    def remove(self, tracker: Tracker) -> None:
        with self._lock:
            self.trackers = WeakSet(other for other in self.trackers if other is not tracker)

    def moved(self, concerned: Callable[[str], bool]) -> None:
        """Forget the receivers of entries on topics where the subscription was moved: any receiver gets them again."""
        for one in self._together:
            with one._lock:
                for key in [key for key in one._receivers if concerned(key[0])]:
                    del one._receivers[key]

    def stopped(self, own: Tracker, records: list[PulsarRecord]) -> None:
        """Store again which receiver has these records: others are sent them now, however long it has had them."""
        for record in records:
            with suppress(KeyError):
                self._receivers.move_to_end((record.topic, record.record_key[:2]))
        self._received_before(own, records)

    def _received_before(self, own: Tracker, records: list[PulsarRecord]) -> list[PulsarRecord]:
        receivers, reference, before = self._receivers, ref(own), []
        elsewhere = [one._receivers for one in self._overlapping]
        for record in records:
            topic = record.topic
            if topic.startswith("non-persistent://"):  # its ids identify nothing
                continue
            key = topic, record.record_key[:2]
            if receivers.setdefault(key, reference) != reference:
                receivers[key] = None
                before.append(record)
            elif any(key in others for others in elsewhere):
                before.append(record)
        with self._lock:
            while len(receivers) > REMEMBERED:
                receivers.popitem(last=False)
        return before

    def entry_returned(self, ledger: int, entry: int) -> None:
        _count(self._entries, (ledger, entry))

    def record_failed(self, key: RecordKey) -> None:
        _count(self._records, key)

    def failures(self, key: RecordKey) -> int:
        return sum(one._records.get(key, 0) for one in self._together)

    def redeliveries(self, key: RecordKey, counted: int) -> int:
        """Return a record's redeliveries by applications here, or by others; the broker ``counted`` its entry's."""
        returns = sum(one._entries.get(key[:2], 0) for one in self._together)
        return redelivery_count(self.failures(key), counted, returns)

    def _others(self, own: Tracker) -> list[Tracker]:
        return [tracker for one in self._together for tracker in one.trackers if tracker is not own]

    def copies(
        self, own: Tracker, records: list[PulsarRecord], now: float
    ) -> tuple[list[PulsarRecord], list[PulsarRecord]]:
        """Return copies of another receiver's records: those that it holds, and those that it acknowledged.

        An entry returned by one receiver is redelivered whole, to any of them; after a lost connection or an unload,
        everything unacknowledged is, uncounted. Then records held from a receiver of the same connection are kept back
        as well; all others are marked as redelivered: an acknowledgement might have been lost, unless that receiver
        stopped, and another connection might stay lost.
        """
        others = self._others(own)
        if not others:
            return [], []
        counts = [one._entries for one in self._together]
        returned = {one for one in records if any(one.record_key[:2] in entries for entries in counts)}
        crossed = {one for one in self._received_before(own, records) if one not in returned}
        suspects = [one for one in records if one in crossed or one in returned]
        held: list[PulsarRecord] = []
        settled: list[PulsarRecord] = []
        for other in others if suspects else ():
            has, acknowledged = other.recognize(suspects, now)
            doubtful = set() if other.settles_late(now) else crossed.intersection(acknowledged)
            if other.link is not own.link:
                for record in crossed & has.keys():  # both are delivered, in any order
                    has.pop(record).mark_delivered()
                    doubtful.add(record)
            for record in doubtful:
                record.mark_delivered()
            held += has
            settled += [record for record in acknowledged if record not in doubtful]
        return held, settled

    def still_held(
        self, own: Tracker, copies: list[PulsarRecord], now: float
    ) -> tuple[list[PulsarRecord], list[PulsarRecord]]:
        """Return the kept-back ``copies`` that another receiver still holds, and those that it acknowledged."""
        held: list[PulsarRecord] = []
        settled: list[PulsarRecord] = []
        for other in self._others(own):
            has, acknowledged = other.recognize(copies, now)
            held += has
            settled += acknowledged
        return held, settled


def _count(counts: OrderedDict[_Counted, int], key: _Counted) -> None:
    counts[key] = counts.pop(key, 0) + 1
    if len(counts) > REMEMBERED:
        counts.popitem(last=False)


def subscription_records(broker: str, identity: _Identity) -> SubscriptionRecords:
    """Return the knowledge of a subscription at the broker with a URL, shared by its receivers in this process."""
    with _lock:
        found = _all.get((broker, identity))
        if found is None:
            found = SubscriptionRecords(_marks)
            for (at, other), known in list(_all.items()):
                if at == broker and _overlap(identity, other):
                    found.overlaps(known)
            _all[broker, identity] = found
        return found


def _overlap(one: _Identity, other: _Identity) -> bool:
    """Return whether two subscriptions can have a topic in common; a pattern's topics are not known."""
    if one[0] != other[0]:
        return False
    topics, others = ({split_partition(topic)[0] for topic in names} for _, names, _ in (one, other))
    if one[2] is None and other[2] is None:
        return not topics.isdisjoint(others)
    spaces = [
        {name.rpartition("/")[0] for name in (*names, pattern) if name is not None}
        for _, names, pattern in (one, other)
    ]
    return not spaces[0].isdisjoint(spaces[1])
