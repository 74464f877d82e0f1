"""Acknowledgements of one receiver: sent with one call per batch if possible, and known while they can be needed.

``AckGrouping`` acknowledges a batch as a whole with its last record (``BatchAcker``), or if that takes too long, its
acknowledged records one by one.

``Settled`` knows the acknowledged records that the broker might redeliver, in limited memory and without payloads.
Without batch-index acknowledgement the broker keeps an entry until all its records are acknowledged and redelivers it
whole, and a negative acknowledgement returns a whole entry. So an acknowledged record of an incomplete entry is a
duplicate when it is redelivered. A complete entry is redelivered for other reasons: its acknowledgement was lost, or
the subscription was moved back. Then its records are delivered, marked as redelivered. Only if the broker counts can a
negative acknowledgement have crossed the acknowledgement: for a moment they are duplicates as well.

A broker that lost its data, or another cluster, reuses ids. The publish time of the entry distinguishes them.
"""

from __future__ import annotations

import enum
import math
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from functools import partial

import attrs

from jmsaio.model.wire import EntryId
from jmsaio.transport.clock import DelayQueue
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.handles import MessageIdHandle
from jmsaio.transport.pulsar.native.binding.native_consumer import BatchAcker, NativeConsumer, batch_size
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord, RecordKey

#: Maximum acknowledged records stored before they are evaluated; maximum entries stored of each kind.
ENTRIES = 10_000
#: Seconds in which a negative acknowledgement can have crossed the acknowledgement of the rest.
CROSSED = 5.0
#: Seconds after reopening a consumer in which records acknowledged meanwhile are expected to be redelivered.
REOPENED = 30.0


class Repeat(enum.Enum):
    """Whether a redelivered record was acknowledged here."""

    NOTHING = enum.auto()
    DUPLICATE = enum.auto()  # acknowledged, but not yet when the broker sent it
    REDELIVERED = enum.auto()  # acknowledged, but redelivered
    FOREIGN = enum.auto()  # another record has its id


@attrs.define(eq=False)
class Interruption:
    """The last closing and reopening of the consumers, in loop time: acknowledgements in between were too late."""

    closed: float = math.inf
    opened: float = -math.inf

    def close(self, now: float) -> None:
        self.closed, self.opened = now, math.inf

    def lately(self, now: float) -> bool:
        return self.closed <= now and now - self.opened < REOPENED


@attrs.define(eq=False)
class Settled:
    """The acknowledged records of one native consumer."""

    interruption: Interruption = attrs.field(factory=Interruption)
    #: Acknowledgements not yet evaluated: native id (of a whole entry if it has no index), publish time, loop time.
    recent: deque[tuple[MessageIdHandle, int, float]] = attrs.field(factory=lambda: deque(maxlen=ENTRIES), init=False)
    open: dict[EntryId, BatchAcker] = attrs.field(factory=dict, init=False)  # not yet acknowledged as a whole
    _parts: OrderedDict[EntryId, tuple[int, int]] = attrs.field(factory=OrderedDict, init=False)  # published, bits
    _moved: OrderedDict[EntryId, tuple[int, int]] = attrs.field(factory=OrderedDict, init=False)  # as _parts
    _complete: OrderedDict[EntryId, tuple[int, float]] = attrs.field(factory=OrderedDict, init=False)  # published, when
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)  # used by receivers of other threads

    def begin(self, batch: BatchAcker) -> None:
        self.open[batch.entry] = batch
        if len(self.open) > ENTRIES:
            del self.open[next(iter(self.open))]

    def complete(self, batch: BatchAcker, whole: MessageIdHandle, now: float) -> None:
        """Store that all records of a batch are acknowledged, unless its ids started over meanwhile."""
        if self.open.get(batch.entry) is batch:
            self.open.pop(batch.entry, None)  # a receiver of another thread might evaluate it
            self.recent.append((whole, batch.published, now))

    def fold(self) -> None:
        """Evaluate recent acknowledgements; call this before ``look_up``."""
        recent = self.recent
        with self._lock:
            while recent:
                message_id, published, when = recent.popleft()
                entry, index = (message_id.ledger_id(), message_id.entry_id()), message_id.batch_index()
                size = batch_size(message_id) if index >= 0 else 1
                if size == 1 or self._fills(entry, index, size, published):
                    self._parts.pop(entry, None)
                    self._complete.pop(entry, None)
                    self._complete[entry] = (published, when)
            for kept in (self._parts, self._moved, self._complete):
                while len(kept) > ENTRIES:
                    kept.popitem(last=False)

    def _fills(self, entry: EntryId, index: int, size: int, published: int) -> bool:
        before, bits = self._parts.pop(entry, (published, 0))
        bits = (bits if before == published else 0) | 1 << index
        self._parts[entry] = (published, bits)
        batch = self.open.get(entry)
        if batch is not None and batch.published == published:
            bits |= batch.settled
        if size == 0 or bits != (1 << size) - 1:  # an unknown size is never reached
            return False
        self.open.pop(entry, None)
        return True

    def look_up(self, key: RecordKey, published: int, counted: bool, now: float) -> Repeat:
        """Return whether a redelivered record was acknowledged here; ``counted``: the broker counted the redelivery."""
        ledger, number, index = key
        entry, bits = (ledger, number), 0
        batch = self.open.get(entry)
        if batch is not None:
            if batch.published != published:
                return Repeat.FOREIGN
            bits = batch.settled
        part = self._parts.get(entry)
        if part is not None:
            if part[0] != published:
                return Repeat.FOREIGN
            bits |= part[1]
        if bits >> max(0, index) & 1:
            return Repeat.DUPLICATE
        complete, moved = self._complete.get(entry), self._moved.get(entry)
        if complete is None and moved is not None and moved[0] == published and moved[1] >> max(0, index) & 1:
            return Repeat.REDELIVERED
        if complete is None:
            return Repeat.NOTHING
        before, when = complete
        if before != published:
            return Repeat.FOREIGN
        closed, opened = self.interruption.closed, self.interruption.opened
        since = when if opened == math.inf else opened
        crossed = (counted and now - when < CROSSED) or (closed <= when <= opened and now - since < REOPENED)
        return Repeat.DUPLICATE if crossed else Repeat.REDELIVERED

    def has(self, entry: EntryId) -> bool:
        return entry in self._complete or entry in self._parts or entry in self.open

    def was_moved_back(self, key: RecordKey) -> None:
        """Deliver records of incomplete entries again, marked: the broker moved the subscription back."""
        complete = self._complete.get(key[:2])
        if complete is not None:
            self._complete[key[:2]] = (complete[0], -CROSSED)
        parts = [(entry, published, bits) for entry, (published, bits) in self._parts.items()]
        self._parts.clear()
        for batch in self.open.values():
            parts.append((batch.entry, batch.published, batch.settled))
            batch.settled = 0
        for entry, published, bits in parts:
            before = self._moved.pop(entry, (published, 0))
            self._moved[entry] = (published, bits | (before[1] if before[0] == published else 0))


#: Seconds that the acknowledgements of a batch wait for its last record.
HOLD = 0.02


class AckGrouping:
    """Passes the acknowledgements of one receiver to pulsar-client."""

    def __init__(self, bridge: Bridge) -> None:
        self.interruption = Interruption()
        self.settled: dict[NativeConsumer, Settled] = defaultdict(partial(Settled, self.interruption))
        #: Loop time of the last acknowledgement passed to pulsar-client; None: all of them are sent.
        self.last: float | None = None
        self.topics: set[str] = set()  # for a pattern, the topics of the acknowledgements that are not sent
        self._bridge = bridge
        self._waiting: dict[BatchAcker, NativeConsumer] = {}  # incomplete batches with parts
        self._delays = DelayQueue[BatchAcker](bridge.loop, self._send)

    def add(self, records: Iterable[PulsarRecord]) -> None:
        settled, now = self.settled, self._bridge.loop.time()
        self.last = now
        for record in records:
            batch, native_consumer = record.batch, record.native_consumer
            if batch is None:
                native = record.native
                native_consumer.settling.acknowledge_async(native, None)
                if native_consumer.topic is None:
                    self.topics.add(record.topic)
                if native_consumer.persistent or native_consumer.topic is None:
                    settled[native_consumer].recent.append((native.message_id(), native.publish_timestamp(), now))
                continue
            batch.left = left = batch.left - 1
            batch.settled |= 1 << record.serial - batch.first
            if left == 0:
                self._waiting.pop(batch, None)
                batch.parts = []
                whole = batch.whole()
                native_consumer.settling.acknowledge_async(whole, None)
                settled[native_consumer].complete(batch, whole, now)
            else:
                if not batch.parts:
                    self._waiting[batch] = native_consumer
                    self._delays.add(batch, HOLD)
                batch.parts.append(record.native)

    def expect(self, record: PulsarRecord) -> None:
        """Acknowledge a record when it arrives again: now pulsar-client would acknowledge its whole entry."""
        native = record.native
        recent = self.settled[record.native_consumer].recent
        recent.append((native.message_id(), native.publish_timestamp(), self._bridge.loop.time()))

    def flush(self) -> None:
        self._delays.close()
        self._send(list(self._waiting))

    def sent(self, last: float) -> None:
        if self.last == last:
            self.last = None
            self.topics.clear()

    def _send(self, batches: list[BatchAcker]) -> None:
        if self._bridge.failure is not None:
            return
        for batch in batches:
            native_consumer = self._waiting.pop(batch, None)
            if native_consumer is None:  # completed meanwhile
                continue
            parts, batch.parts = batch.parts, []
            for native in parts:
                native_consumer.settling.acknowledge_async(native, None)
            self.last = self._bridge.loop.time()

    def forget(self, native_consumer: NativeConsumer) -> None:
        self.settled.pop(native_consumer, None)
        for batch in [one for one, owner in self._waiting.items() if owner is native_consumer]:
            del self._waiting[batch]
