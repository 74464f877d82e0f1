"""``NackTracker``: returned records, until they are redelivered or sent back to the broker.

On exclusive and failover subscriptions, returned records are redelivered from here, in order. pulsar-client would make
the broker resend everything unacknowledged, after the prefetched records. On shared ones, they are sent back to the
broker. If the chunks of a message are unknown (``chunk_ids``), it is redelivered from here, or, if no application had
it, the consumers are opened again, which returns everything.

All chunks must be returned: the last one alone would be redelivered to no one, and the subscription would stop.
pulsar-client 3.13 returns only that one, and an id shows only the first and the last chunk. Between those, other
producers can store entries, which must not be returned: a chunk without the rest of its message would be lost.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable

import attrs

from jmsaio.codec.headers import due
from jmsaio.errors import MalformedMessageError
from jmsaio.model.wire import WireId
from jmsaio.transport.clock import Clock, DelayQueue, SteadyTimes, SystemClock
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.binding.options import NATIVE_NACK_DELAY, native_position
from jmsaio.transport.pulsar.native.binding.record import Chunks, PulsarRecord
from jmsaio.transport.pulsar.native.records.ack_grouping import AckGrouping
from jmsaio.transport.pulsar.native.records.prior_deliveries import Handover
from jmsaio.transport.pulsar.native.records.received import ENTRIES, HELD, Settled, Unsettled
from jmsaio.transport.pulsar.native.records.return_counts import ReturnCounts


def chunk_ids(record: PulsarRecord, chunks: Chunks, unsettled: Unsettled, settled: Settled) -> list[WireId] | None:
    """Return the ids of the chunks of a message, in order; None if other entries can't be told from them.

    A consumer receives the chunks of a message, and each entry stored between them is another consumer's, was received
    here before the message, or belongs to another message in chunks.

    Args:
        record: the message, no longer in ``unsettled``.
        chunks: its chunks.
        unsettled: the receiver's other records.
        settled: its acknowledged records.
    """
    first, (ledger, last, partition, _) = chunks.first, record.message_id
    if first[0] != ledger or last - first[1] > ENTRIES:
        return None
    settled.fold()
    others = set()
    for entry, of_other in unsettled.entries(record.native_consumer, first):
        if of_other is not None and of_other.first < (ledger, last):
            return None
        others.add(entry)
    between = [number for number in range(first[1] + 1, last) if (ledger, number) not in others]
    numbers = [first[1], *(number for number in between if not settled.has((ledger, number))), last]
    return [WireId(ledger, number, partition) for number in numbers] if len(numbers) <= max(2, chunks.most) else None


_log = logging.getLogger(__name__)

#: Maximum records kept by one receiver.
MOST_RECORDS = 10_000
#: Maximum bytes kept; the records that reach it might exceed it.
MOST_BYTES = 64 * 1024 * 1024


def early_until(record: PulsarRecord, now: int) -> int | None:
    """Return when a record that is early at ``now`` is due, in milliseconds since the epoch; None if it is due."""
    try:
        return due(record, now) or None
    except MalformedMessageError:  # the application receives the error with the record
        return None


@attrs.define(eq=False)
class DelayedRecords:
    """The delayed records of one receiver. Its ``NackTracker`` waits for their times.

    Pulsar delivers them at once on exclusive and failover subscriptions. A delayed record stays in its receiver,
    unacknowledged, until its time. It was received from the native consumer, so its permit is returned and later
    records pass. The number and the bytes of the records kept are limited: at the limit, the receiver pauses until some
    are due.

    Attributes:
        what: source of the records, for the warning.
        most_records: maximum number of records.
        most_bytes: maximum bytes.
        clock: clock of their event loop.
    """

    what: str
    most_records: int = MOST_RECORDS
    most_bytes: int = MOST_BYTES
    clock: Clock = attrs.field(factory=SystemClock)
    _times: SteadyTimes = attrs.field(default=attrs.Factory(lambda self: SteadyTimes(self.clock), takes_self=True))
    _kept: dict[PulsarRecord, int] = attrs.field(factory=dict, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _warned: bool = attrs.field(default=False, init=False)

    def __len__(self) -> int:
        return len(self._kept)

    def early(self, records: Iterable[PulsarRecord]) -> dict[PulsarRecord, float]:
        """Return the records that are not yet due, each with its steady due time."""
        now = int(self.clock.now() * 1000)
        found: dict[PulsarRecord, float] = {}
        for record in records:
            when = early_until(record, now)
            if when is not None:
                found[record] = self._times.at(when / 1000)
        return found

    def keep(self, record: PulsarRecord) -> None:
        """Add a record to the kept ones."""
        self._kept[record] = size = record.size
        self._bytes += size

    def release(self, records: Iterable[PulsarRecord]) -> set[PulsarRecord]:
        """Remove due records. Returns those that were kept."""
        released = {record for record in records if record in self._kept}
        for record in released:
            self._bytes -= self._kept.pop(record)
        return released

    def clear(self) -> None:
        """Remove all records."""
        self._kept.clear()
        self._bytes = 0
        self._warned = False

    def room(self) -> int:
        """Return the number of records that can still be kept. At 0 receiving pauses, which is logged once per pause.

        A pause soon after another counts as the same one: a new one is logged only after half of the records were
            delivered.
        """
        count = len(self._kept)
        if count < self.most_records and self._bytes < self.most_bytes:
            if 2 * count < self.most_records and 2 * self._bytes < self.most_bytes:
                self._warned = False
            return self.most_records - count
        if not self._warned:
            self._warned = True
            _log.warning(
                "receiving from %s pauses: %d delayed messages of %d bytes are kept in the client, the "
                "maximum; later messages wait until some are due. The broker itself delays on shared subscriptions "
                "(for simple topic consumers: jms.useExclusiveSubscriptionsForSimpleConsumers=false)",
                self.what, count, self._bytes,
            )  # fmt: skip
        return 0


@attrs.define(eq=False)
class NackTracker:
    """The returned records of one receiver.

    Args:
        bridge: the event loop.
        unsettled: the receiver's records.
        settled: its acknowledged records.
        handover: shares records with other receivers.
        return_counts: count of records of a shared subscription returned by this process.
        delayed: records that arrived before their time, on exclusive and failover subscriptions; None: it is shared.
        woken: called when ``take`` has records.
        renew: opens the native consumers of a shared subscription again.

    Attributes:
        unseen: returned records that no application had.
    """

    _bridge: Bridge
    _unsettled: Unsettled
    _settled: Settled
    _acks: AckGrouping
    _handover: Handover
    _return_counts: ReturnCounts
    _delayed: DelayedRecords | None
    _woken: Callable[[], object]
    _renew: Callable[[], object]
    unseen: set[PulsarRecord] = attrs.field(factory=set, init=False)
    _queue: DelayQueue[PulsarRecord] = attrs.field(init=False)
    #: Records to be redelivered from here, in the order of their ids.
    _again: deque[PulsarRecord] = attrs.field(factory=deque, init=False)
    #: Delayed records that are due, in the order of their times.
    _was_early: deque[PulsarRecord] = attrs.field(factory=deque, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._queue = DelayQueue(self._bridge.loop, self._due)

    def add(self, records: Iterable[PulsarRecord], delay: float, *, counted: bool) -> None:
        """Schedule the redelivery of returned records after ``delay`` seconds.

        With ``counted=False``, no application had them. On shared subscriptions the delay is at least 0.1 s,
        pulsar-client's minimum.
        """
        shared = self._delayed is None
        wait = delay - NATIVE_NACK_DELAY if shared else delay
        for record in records:
            if not counted:
                self.unseen.add(record)
            elif shared:
                self._return_counts.record_failed(record.record_key)
            self._queue.add(record, wait)

    def retry(self, record: PulsarRecord, delay: float) -> None:
        """Schedule the redelivery of a record that could not be moved to the dead letters, after ``delay`` seconds."""
        if not self._closed:
            self._queue.add(record, delay)

    def keep_early(self, taken: list[PulsarRecord]) -> list[PulsarRecord]:
        """Keep records that arrived before their delivery time, uncounted, until then; return the others."""
        delayed = self._delayed
        early = delayed.early(taken) if delayed is not None else None
        if delayed is None or not early:
            return taken
        for record in self._unsettled.give_back(early):
            delayed.keep(record)
            self.unseen.add(record)
            self._queue.add_at(record, early[record])
        return [record for record in taken if record not in early]

    def room(self, wanted: int) -> int:
        """Limit the number of records to receive by the room for delayed ones kept here."""
        return wanted if self._delayed is None else min(wanted, self._delayed.room())

    def take(self, limit: int) -> list[PulsarRecord]:
        """Return up to ``limit`` records redelivered from here; the application now holds them."""
        taken: list[PulsarRecord] = []
        if not self._again and not self._was_early:
            return taken
        for waiting in (self._again, self._was_early):
            while waiting and len(taken) < limit:
                record = waiting.popleft()
                self._unsettled.out[record] = HELD
                taken.append(record)
        return taken

    def redeliver(self, records: list[PulsarRecord]) -> None:
        """Make returned records the next ones for ``take``, in their order."""
        if not self._closed:
            self._again = deque(sorted((*records, *self._again), key=lambda record: record.record_key))
            self._wake()

    def _due(self, records: list[PulsarRecord]) -> None:
        """Redeliver records whose delay is over: by the broker, or from here on ordered subscriptions."""
        if self._bridge.failure is not None:
            return
        early = set() if self._delayed is None else self._delayed.release(records)
        here = self._unsettled.remove(records)
        if self._delayed is None and here:
            self._acks.flush()  # an entry is returned in the state known to the broker
            here = self._to_broker(here)
        if here or early:  # even if only room became free
            redeliver = self._unsettled.redeliver
            self._was_early.extend(redeliver((one for one in here if one in early), self.unseen))
            self.redeliver(redeliver((one for one in here if one not in early), self.unseen))
        self.unseen.difference_update(records)

    def _to_broker(self, records: list[PulsarRecord]) -> list[PulsarRecord]:
        """Return records to the broker, which handles entries: each batch once.

        Returns:
            Records to be redelivered from here instead.
        """
        before: tuple[NativeConsumer, int, int] | None = None
        here, reread = [], self._unsettled.reread
        for record in records:
            entry = record.native_consumer, *record.record_key[:2]
            if record in reread:
                here.append(record)
            elif entry != before and not self._return_entry(record):
                if record in self.unseen:
                    self._renew()
                else:
                    here.append(record)
            else:
                before = entry
        back = [record for record in records if record not in here] if here else records
        self._handover.pass_on(record for record in back if record in self.unseen)
        self._handover.settled(back, acknowledged=False)
        return here

    def _return_entry(self, record: PulsarRecord) -> bool:
        """Return a record's entry to the broker, or its chunks; return False if those are unknown."""
        chunks, message_id, native = record.chunks, record.message_id, record.native_consumer.native
        if chunks is None:
            native.negative_acknowledge(record.native if record.native is not None else native_position(message_id))
        else:
            ids = chunk_ids(record, chunks, self._unsettled, self._settled)
            if ids is None:
                return False
            for one in map(native_position, ids):
                one.topic_name(record.topic)
                native.negative_acknowledge(one)
        self._return_counts.entry_returned(message_id.ledger, message_id.entry)
        return True

    def stop(self) -> tuple[list[PulsarRecord], list[PulsarRecord]]:
        """Remove all records, because closing the native consumers of a shared subscription returns everything.

        Records that were read again are redelivered from here at once, because the broker counts them as acknowledged.

        Returns:
            The records that the application had, and the others.
        """
        reread = self._unsettled.reread
        again, self._again = self._again, deque(record for record in self._again if record in reread)
        copies = [record for record in again if record not in reread]  # released, and not received since
        waiting = self._queue.take_all()
        back = [record for record in waiting if record not in reread]
        self._due([record for record in waiting if record in reread])
        unseen, self.unseen = self.unseen, set()
        had = [record for record in back if record not in unseen]
        return had, [*copies, *(record for record in back if record in unseen)]

    def clear(self) -> None:
        """Remove all records: the subscription was moved."""
        self._queue.close()
        self.unseen.clear()
        self._again.clear()
        self._was_early.clear()
        if self._delayed is not None and len(self._delayed):
            self._delayed.clear()
            self._wake()  # there is room again

    def _wake(self) -> None:
        """Wake in a separate turn of the loop, because the woken code might receive at once, inside another call."""
        self._bridge.loop.call_soon(self._woken)

    def close(self) -> None:
        """Stop redelivery."""
        self._closed = True
        self._queue.close()
