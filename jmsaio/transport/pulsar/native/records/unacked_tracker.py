"""``UnackedTracker``: owns the records of one receiver, from their arrival until they are settled.

The state of each record is here alone, and changes as the table of a record's life says (``rules/record_life.py``).

pulsar-client and the broker return whole entries, so the neighbours of a returned record are redelivered. Records that
are here or acknowledged are recognised when they arrive again.

On exclusive and failover subscriptions, returned records are redelivered from here, in order: pulsar-client would make
the broker resend everything unacknowledged. On shared ones, they are sent back to the broker.

All chunks of a message must be returned, or it would be redelivered to no one, and the subscription would stop.
pulsar-client 3.13 returns only the last one, and an id shows only the first and the last one. Between those, other
producers can store entries, which must not be returned. If the chunks are unknown, the message is redelivered from
here, or, if no application had it, the consumers are opened again, which returns everything.
"""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from jmsaio.model.wire import EntryId, PlainWireId, ReceivedRecord, SetAside, WireId
from jmsaio.rules.record_life import Action, RecordEvent, RecordState, Step, advance
from jmsaio.transport.base import Subscription, SubscriptionType
from jmsaio.transport.clock import DelayQueue
from jmsaio.transport.pulsar.dead_letters import DeadLetters
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, ignore
from jmsaio.transport.pulsar.native.binding.handles import MessageHandle
from jmsaio.transport.pulsar.native.binding.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.binding.options import NATIVE_NACK_DELAY, native_position
from jmsaio.transport.pulsar.native.binding.record import Chunks, PulsarRecord, RecordKey
from jmsaio.transport.pulsar.native.records.ack_grouping import ENTRIES, AckGrouping, Repeat
from jmsaio.transport.pulsar.native.records.delayed_records import DelayedRecords
from jmsaio.transport.pulsar.native.records.subscription_records import SubscriptionRecords

_log = logging.getLogger(__name__)

#: Seconds between checks of a copy of a record that another receiver holds.
COPY_CHECK = 0.25
#: Seconds until a record whose dead letter could not be stored is redelivered.
_DEAD_LETTER_RETRY = 1.0

#: Publish time, redelivery count and chunks of a record that was set aside.
Aside = tuple[int, int, Chunks | None]

HELD, RETURNED, QUEUED, EARLY = RecordState.HELD, RecordState.RETURNED, RecordState.QUEUED, RecordState.EARLY
#: States of the records that a tracker has. ASIDE is stored apart, without the record's object; the others are the
#: broker's, or in ``Settled``.
_HERE: Final = frozenset({HELD, RETURNED, QUEUED, EARLY, RecordState.LETTER})


class UnackedTracker:
    """The records of one receiver."""

    def __init__(
        self,
        bridge: Bridge,
        subscription: Subscription,
        woken: Callable[[], object],
        others: SubscriptionRecords,
        letters: DeadLetters | None = None,
        renew: Callable[[], object] = ignore,
    ) -> None:
        self.shared = shared = subscription.shared  # the broker redelivers returned records, by entries, and counts
        self._bridge = bridge
        self._subscription = subscription
        self._woken = woken  # called when ``pop`` has records
        self._others = others
        self._letters = letters
        self._renew = renew  # opens the native consumers again, which returns everything to the broker
        source = ", ".join(subscription.topics) or subscription.pattern or ""
        self._delayed = None if shared else DelayedRecords(source, clock=bridge.clock)
        self.acks = AckGrouping(bridge)
        self._states: dict[PulsarRecord, RecordState] = {}  # in the order of their delivery
        self._aside: dict[NativeConsumer, dict[PlainWireId, Aside]] = {}
        self._unseen: set[PulsarRecord] = set()  # returned records that no application had
        self._reread: set[PulsarRecord] = set()  # the broker counts them as acknowledged: it never redelivers them
        self._moved: set[PulsarRecord] = set()  # of batches from before the subscription was moved
        self._copies: dict[PulsarRecord, list[MessageHandle]] = {}  # received again while their record was here
        self._again: deque[PulsarRecord] = deque()  # queued, in the order of their ids
        self._were_early: deque[PulsarRecord] = deque()  # queued, in the order of their delivery times
        self._delays = DelayQueue[PulsarRecord](bridge.loop, self._due)
        self._elsewhere = DelayQueue[PulsarRecord](bridge.loop, self._check_copies)
        self._timeouts = DelayQueue[weakref.ref[PulsarRecord]](bridge.loop, self._timed_out)
        self._known: dict[RecordKey, PulsarRecord] | None = None  # those of a native consumer, while some are admitted
        self._settling: set[EntryId] = set()  # entries of dead letters from before the subscription was moved
        self._reopened = False  # or is being
        self._released = False  # whether a stop returned its records to other receivers
        self._closed = False
        self._ignored: set[tuple[RecordState, RecordEvent]] = set()
        if shared:
            others.add(self)

    # state

    def _step(self, record: PulsarRecord, event: RecordEvent) -> Step:
        state = self._states.get(record, RecordState.UNKNOWN)
        step = advance(state, event)
        if step.action is Action.IGNORE and (state, event) not in self._ignored:
            self._ignored.add((state, event))
            text = "subscription %r: a record is %s, and %s, which has no effect (logged once)"
            _log.debug(text, self._subscription.name, state.name.lower(), event.value)
        if state is EARLY and step.state is not EARLY and self._delayed is not None:
            self._delayed.remove(record)
        if step.state in _HERE:
            self._states[record] = step.state
        elif self._states.pop(record, None) is not None and step.action is not Action.ACKNOWLEDGE:
            self._copies.pop(record, None)
        if step.action is Action.FORGET:
            self._reread.discard(record)
            self._moved.discard(record)
        return step

    @property
    def count(self) -> int:
        """Number of unsettled records, without those set aside."""
        return len(self._states)

    @property
    def idle(self) -> bool:
        """Whether all records are settled, including those set aside."""
        return not self._states and not any(self._aside.values())

    @property
    def any_delivered(self) -> bool:
        return HELD in self._states.values()

    @property
    def link(self) -> object:
        """Equal for the receivers of one connection to the broker."""
        return self._bridge

    @property
    def records(self) -> list[PulsarRecord]:
        """Its unsettled records, without those set aside. Thread-safe."""
        return list(self._states.copy())

    def unsettled_of(self, ledger: int, entry: int) -> int:
        return sum(record.record_key[:2] == (ledger, entry) for record in self._reread)

    # arrival

    def admit(self, native_consumer: NativeConsumer, natives: list[MessageHandle], taken: list[PulsarRecord]) -> None:
        """Append the records of native messages to ``taken``, and hold them, except those already known."""
        states, counted, settling = self._states, self.shared, self._settling
        self._known = None
        marked = self._others.marks.of(native_consumer.topic, self._subscription.name)
        for together, batch, again in native_consumer.entries(natives):
            count = together[0].redelivery_count() if counted else 0
            if native_consumer.topic is None:  # the ids of its topics have no common order
                again = self._reopened
            suspect = again or bool(count)
            if (marked or settling) and not suspect:
                message_id = together[0].message_id()
                entry = message_id.ledger_id(), message_id.entry_id()
                again = entry in settling
                suspect = again or entry in marked
            if suspect or native_consumer.topic is None:
                native_consumer.batch = None  # the rest of the entry might not be suspect
                self._admit_redelivered(native_consumer, together, again, taken)
                continue
            serial = native_consumer.serial
            if batch is not None and batch.first == 0:
                batch.first = serial + 1
                if native_consumer.persistent:
                    self.acks.settled[native_consumer].begin(batch)
            for native in together:
                serial += 1
                record = PulsarRecord(native, native_consumer, serial, 0, batch)
                states[record] = HELD
                taken.append(record)
            native_consumer.serial = serial
            if self._known is not None:
                self._known.update((record.record_key, record) for record in taken[-len(together) :])
        self._known = None  # records are not kept here

    def _admit_redelivered(
        self, native_consumer: NativeConsumer, natives: list[MessageHandle], again: bool, taken: list[PulsarRecord]
    ) -> None:
        for native in natives:
            native_consumer.serial += 1
            count = native.redelivery_count() if self.shared else 0
            record = PulsarRecord(native, native_consumer, native_consumer.serial, count)
            if (count or again) and self._is_known(record):
                continue
            if self._others.marks:
                self._others.marks.apply(self._subscription.name, record)
            self._states[record] = HELD
            if self._known is not None:
                self._known[record.record_key] = record
            taken.append(record)

    def _of(self, native_consumer: NativeConsumer) -> dict[RecordKey, PulsarRecord]:
        self.acks.settled[native_consumer].fold()
        return {one.record_key: one for one in self._states if one.native_consumer is native_consumer}

    def _is_known(self, record: PulsarRecord) -> bool:
        """Return whether a record is here, or was acknowledged, which is repeated; mark it if delivered before."""
        native_consumer = record.native_consumer
        settled = self.acks.settled[native_consumer]
        key, published = record.record_key, record.publish_time
        if self._known is None:
            self._known = self._of(native_consumer)
        first, aside = self._known.get(key), self._aside.get(native_consumer, {}).get(record.message_id)
        if first is not None and first.publish_time == published:
            if first in self._moved:  # this delivery alone counts for the entry
                self._moved.discard(first)
                first.native = record.native
                return True
            # Acknowledged together: without batch-index acknowledgement each copy of an entry is counted separately.
            self._copies.setdefault(first, []).append(record.native)
            return True
        if aside is not None and aside[0] == published:
            return True
        counted = record.redelivery_count > 0
        repeat = settled.look_up(key, published, counted, self._bridge.loop.time())
        if first is not None or aside is not None or repeat is Repeat.FOREIGN:
            self.start_over(native_consumer)
            self._known.clear()
        elif repeat is Repeat.DUPLICATE:
            native_consumer.settling.acknowledge_async(record.native, None)
            return True
        elif repeat is Repeat.REDELIVERED or (not self.shared and native_consumer.is_known(record.native)):
            record.mark_delivered()
            if not counted:
                settled.was_moved_back(key)
        elif self.shared and not counted and self._others.failures(key):  # the link was lost before it was returned
            record.mark_delivered()
        return False

    def redeliver_reread(self, native_consumer: NativeConsumer, natives: Iterable[MessageHandle]) -> None:
        """Deliver an entry that pulsar-client acknowledged undelivered, except what is still here."""
        known, aside = self._of(native_consumer), self._aside.get(native_consumer, {})
        settled, now, admitted = self.acks.settled[native_consumer], self._bridge.loop.time(), []
        for native in natives:
            record = PulsarRecord(native, native_consumer, native_consumer.serial, 1)
            first, published = known.get(record.record_key), record.publish_time
            if first is not None and first.publish_time == published:
                first.native = native
                self._reread.add(first)
                continue
            kept = aside.pop(record.message_id, None)
            if kept is not None:
                record.redelivery_count = kept[1]  # it was rejected, and is offered again
            elif settled.look_up(record.record_key, published, True, now) is Repeat.DUPLICATE:
                continue
            self._step(record, RecordEvent.ARRIVED)
            self._reread.add(record)
            admitted.append(record)
        self._queue(admitted)

    def start_over(self, native_consumer: NativeConsumer) -> None:
        was_delaying = self._delays_some
        for record in [one for one in self._states if one.native_consumer is native_consumer]:
            self._step(record, RecordEvent.REPLACED)
        self._aside.pop(native_consumer, None)
        self.acks.forget(native_consumer)
        native_consumer.forget()
        if native_consumer.topic is not None:
            self._others.marks.forget(self._subscription.name, native_consumer.topic.__eq__)
        if was_delaying:
            self._wake()  # there is room again

    @property
    def _delays_some(self) -> bool:
        return self._delayed is not None and self._delayed.count > 0

    # delivery

    def room(self, wanted: int) -> int:
        return wanted if self._delayed is None else min(wanted, self._delayed.room())

    def pop(self, limit: int) -> list[PulsarRecord]:
        taken: list[PulsarRecord] = []
        for queue in (self._again, self._were_early):
            while queue and len(taken) < limit:
                record = queue.popleft()
                if self._states.get(record) is QUEUED:
                    self._step(record, RecordEvent.HANDED_OUT)
                    taken.append(record)
        return taken

    def deliverable(self, taken: list[PulsarRecord]) -> list[PulsarRecord]:
        """Return the records of ``taken`` to deliver now. The rest is kept here, or moved to the dead letters."""
        if self._delayed is not None:
            taken = self._without_early(taken, self._delayed)
        elif self._others:
            taken = self._without_copies(taken)
            self._count_redeliveries(taken)
        if self._letters is not None:
            taken = self._without_dead(taken, self._letters)
        timeout = self._subscription.config.ack_timeout
        if timeout is not None:
            for record in taken:
                self._timeouts.add(weakref.ref(record), timeout)
        return taken

    def _withheld(self, record: PulsarRecord, event: RecordEvent) -> None:
        self._states[record] = QUEUED
        self._step(record, event)

    def _without_early(self, taken: list[PulsarRecord], delayed: DelayedRecords) -> list[PulsarRecord]:
        due = []
        for record in taken:
            when = delayed.due(record)
            if when is None:
                due.append(record)
                continue
            self._withheld(record, RecordEvent.EARLY)
            delayed.add(record)
            self._delays.add_at(record, when)
        return due

    def _without_copies(self, taken: list[PulsarRecord]) -> list[PulsarRecord]:
        """Keep back records also received by another receiver of this process, which settles them."""
        held, settled = self._others.copies(self, taken, self._bridge.loop.time())
        if not held and not settled:
            return taken
        self.acknowledge(settled)
        for record in held:
            if self._step(record, RecordEvent.RETURNED_UNSEEN).action is Action.WAIT:
                self._unseen.add(record)
                self._elsewhere.add(record, COPY_CHECK)
        return [record for record in taken if self._states.get(record) is HELD]

    def _check_copies(self, records: list[PulsarRecord]) -> None:
        """Settle kept-back copies that no other receiver holds any more.

        One left to others is delivered. In doubt the broker gets it back, which knows whether it was acknowledged.
        """
        if self._bridge.failure is not None:
            return
        waiting = [record for record in records if self._states.get(record) is RETURNED]
        held, settled = map(set, self._others.still_held(self, waiting, self._bridge.loop.time()))
        self.acknowledge(settled)
        released = []
        for record in waiting:
            if record in settled:
                self._unseen.discard(record)
            elif record in held:
                self._elsewhere.add(record, COPY_CHECK)
            elif self._others.marks.apply(self._subscription.name, record):
                released.append(self._requeued(record))
            else:
                self._delays.add(record, 0.0)
        if released:
            self._queue(released)

    def _count_redeliveries(self, taken: list[PulsarRecord]) -> None:
        for record in taken:
            counted = record.native.redelivery_count() if record.redelivery_count else 0
            if counted:
                count = self._others.redeliveries(record.record_key, counted)
                record.redelivery_count = max(count, int(record.delivered))

    def _without_dead(self, taken: list[PulsarRecord], letters: DeadLetters) -> list[PulsarRecord]:
        dead = {record: failures for record in taken if (failures := self._failures(record)) > letters.limit}
        if not dead:
            return taken
        for record in dead:
            self._withheld(record, RecordEvent.DEAD_LETTERED)
        letters.put([*dead.items()], self._dead_letter_ended)
        return [record for record in taken if record not in dead]

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        """Count another delivery, in this receiver only: the broker accepts no counts."""
        for record in records:
            if isinstance(record, PulsarRecord) and self._step(record, RecordEvent.DELIVERED_AGAIN).counted:
                record.redelivery_count += 1

    # settling

    def acknowledge(self, records: Iterable[object], event: RecordEvent = RecordEvent.ACKNOWLEDGED) -> None:
        states, reread, moved = self._states, self._reread, self._moved
        settled = []
        for record in records:
            if not isinstance(record, PulsarRecord):
                continue
            if states.get(record) is HELD:
                del states[record]
            elif self._step(record, event).action is not Action.ACKNOWLEDGE:
                continue
            if reread and record in reread:
                reread.discard(record)
            elif moved and record in moved:
                moved.discard(record)
                self.acks.expect(record)
            else:
                settled.append(record)
        if settled:
            self.acks.add(settled)
        if self._copies:
            for record in settled:
                for native in self._copies.pop(record, ()):
                    record.native_consumer.settling.acknowledge_async(native, None)

    def give_back(self, records: Iterable[SetAside], delay: float, *, counted: bool) -> None:
        """Schedule a redelivery; the broker of a shared subscription always counts, after at least 0.1 s."""
        self._return(records, delay, RecordEvent.RETURNED if counted else RecordEvent.RETURNED_UNSEEN)

    def _return(self, records: Iterable[SetAside], delay: float, event: RecordEvent) -> None:
        letters, dead = self._letters, list[tuple[PulsarRecord, int]]()
        for one in records:
            record = self._from_aside(one) if isinstance(one, tuple) else one
            step = self._step(record, event) if isinstance(record, PulsarRecord) else None
            if step is None or step.action is not Action.WAIT:
                continue
            assert isinstance(record, PulsarRecord)
            if step.counted and letters is not None and self._failures(record) >= letters.limit:
                self._step(record, RecordEvent.DEAD_LETTERED)
                dead.append((record, self._failures(record) + 1))
                continue
            if not step.counted:
                self._unseen.add(record)
            elif self.shared:
                self._others.record_failed(record.record_key)
            self._delays.add(record, delay - NATIVE_NACK_DELAY if self.shared else delay)
        if letters is not None and dead:
            letters.put(dead, self._dead_letter_ended)

    def _timed_out(self, references: list[weakref.ref[PulsarRecord]]) -> None:
        """Return records that were not acknowledged in time. pulsar-client's own timer needs at least 10 s."""
        if self._bridge.failure is not None:
            return
        backoff = self._subscription.config.ack_timeout_backoff
        for record in [record for reference in references if (record := reference()) is not None]:
            delay = 0.0 if backoff is None else backoff.delay(record.redelivery_count)
            self._return([record], delay, RecordEvent.TIME_OVER)

    def set_aside(self, records: Iterable[ReceivedRecord]) -> list[SetAside]:
        """Keep only the ids of records until they are returned, or the records if an id does not suffice."""
        return [self._set_aside(record) for record in records]

    def _set_aside(self, record: ReceivedRecord) -> SetAside:
        # A pattern's consumer settles by messages, which contain their topic; ids of a topic that is not persistent
        # identify nothing; and records that were read again are no longer sent by the broker.
        if not isinstance(record, PulsarRecord) or not record.native_consumer.persistent or record in self._reread:
            return record
        if self._step(record, RecordEvent.SET_ASIDE).state is not RecordState.ASIDE:
            return record
        message_id: PlainWireId = (*record.message_id,)
        kept = record.publish_time, record.redelivery_count, record.chunks
        self._aside.setdefault(record.native_consumer, {})[message_id] = kept
        return message_id

    def _from_aside(self, message_id: PlainWireId) -> PulsarRecord | None:
        for native_consumer, records in self._aside.items():
            kept = records.pop(message_id, None)
            if kept is not None:
                record = PulsarRecord.light(native_consumer, WireId(*message_id), *kept)
                self._states[record] = RecordState.ASIDE
                return record
        return None

    def dead_letter(self, record: ReceivedRecord, properties: Mapping[str, str]) -> None:
        if self._letters is None:
            self.acknowledge((record,))
        elif isinstance(record, PulsarRecord) and self._step(record, RecordEvent.DEAD_LETTERED).action is Action.STORE:
            self._letters.put([(record, self._failures(record))], self._dead_letter_ended, properties)

    def _dead_letter_ended(self, record: PulsarRecord, stored: bool) -> None:
        if self._bridge.failure is not None:
            return
        if stored:
            self.acknowledge((record,), RecordEvent.LETTER_STORED)
        elif self._step(record, RecordEvent.LETTER_FAILED).action is Action.WAIT and not self._closed:
            self._delays.add(record, _DEAD_LETTER_RETRY)

    def _failures(self, record: PulsarRecord) -> int:
        """Return the failed deliveries; with selectors only those here: the broker counts others' rejections."""
        here = self.shared and self._subscription.selective
        return self._others.failures(record.record_key) if here else record.redelivery_count

    # redelivery

    def _due(self, records: list[PulsarRecord]) -> None:
        if self._bridge.failure is not None:
            return
        waiting = [record for record in records if self._states.get(record) in (RETURNED, EARLY)]
        if self.shared and waiting:
            self.acks.flush()  # an entry is returned in the state known to the broker
            waiting = self._to_broker(waiting)
        if waiting:
            early = {record for record in waiting if self._states[record] is EARLY}
            self._were_early.extend(self._requeued(record) for record in waiting if record in early)
            self._queue([self._requeued(record) for record in waiting if record not in early])
        self._unseen.difference_update(records)

    def _requeued(self, record: PulsarRecord) -> PulsarRecord:
        """Queue a record as a new one, because the application can still have the old one; return it."""
        another = record.again(self._states[record] is RETURNED and record not in self._unseen)
        self._step(record, RecordEvent.DUE_HERE)
        self._states[another] = self._states.pop(record)
        self._copies.pop(record, None)
        self._unseen.discard(record)
        for kept in (self._reread, self._moved):
            if record in kept:
                kept.discard(record)
                kept.add(another)
        return another

    def _queue(self, records: list[PulsarRecord]) -> None:
        if not self._closed:
            self._again = deque(sorted((*records, *self._again), key=lambda record: record.record_key))
            self._wake()

    def _wake(self) -> None:
        """Wake in a separate turn of the loop, because the woken code might receive at once, inside another call."""
        self._bridge.loop.call_soon(self._woken)

    def _to_broker(self, records: list[PulsarRecord]) -> list[PulsarRecord]:
        """Return records to the broker, which handles entries; return the ones to redeliver from here instead."""
        before: tuple[NativeConsumer, int, int] | None = None
        here, marked = [], []
        for record in records:
            entry, unseen = (record.native_consumer, *record.record_key[:2]), record in self._unseen
            if record in self._reread:
                here.append(record)
                continue
            if entry != before and not self._return_entry(record):
                if not unseen:
                    here.append(record)
                    continue
                self._renew()
            else:
                before = entry
            self._step(record, RecordEvent.DUE)
            # Closing the native consumers returns records uncounted.
            if record.redelivery_count if unseen else self._released or record.native_consumer.stopped:
                marked.append(record)
        self._others.marks.add(self._subscription.name, marked)
        return here

    def _return_entry(self, record: PulsarRecord) -> bool:
        chunks, message_id, native = record.chunks, record.message_id, record.native_consumer.settling
        if chunks is None:
            native.negative_acknowledge(record.native if record.native is not None else native_position(message_id))
        else:
            ids = self._chunk_ids(record, chunks)
            if ids is None:
                return False
            for one in map(native_position, ids):
                one.topic_name(record.topic)
                native.negative_acknowledge(one)
        self._others.entry_returned(message_id.ledger, message_id.entry)
        return True

    def _chunk_ids(self, record: PulsarRecord, chunks: Chunks) -> list[WireId] | None:
        """Return the ids of the chunks of a message, in order; None if other entries can't be told from them.

        A consumer receives the chunks of a message, and each entry stored between them is another consumer's, was
        received here before the message, or belongs to another message in chunks.
        """
        first, (ledger, last, partition, _) = chunks.first, record.message_id
        if first[0] != ledger or last - first[1] > ENTRIES:
            return None
        here = [
            (one.record_key[:2], one.chunks)
            for one in self._states
            if one is not record and one.native_consumer is record.native_consumer
        ]
        here += [((place[0], place[1]), kept[2]) for place, kept in self._aside.get(record.native_consumer, {}).items()]
        others = {entry: of_other for entry, of_other in here if entry > first}
        if any(of_other is not None and of_other.first < (ledger, last) for of_other in others.values()):
            return None
        settled = self.acks.settled[record.native_consumer]
        settled.fold()
        between = [
            number
            for number in range(first[1] + 1, last)
            if (ledger, number) not in others and not settled.has((ledger, number))
        ]
        if len(between) + 2 > max(2, chunks.most):
            return None
        return [WireId(ledger, number, partition) for number in (first[1], *between, last)]

    # other receivers

    def settles_late(self, now: float) -> bool:
        """Return whether it is stopped, or was until a moment ago, so that others can have what it acknowledged."""
        return self.acks.interruption.lately(now)

    def recognize(
        self, records: list[PulsarRecord], now: float
    ) -> tuple[dict[PulsarRecord, PulsarRecord], list[PulsarRecord]]:
        """Return the ``records`` of another receiver that are this one's to settle, and those that it acknowledged.

        Thread-safe: the other receiver might belong to another loop. Records set aside are not compared: no
        application has them, so another receiver can deliver them.
        """
        concerned = {HELD, RecordState.LETTER, *((RETURNED,) if self._released else ())}
        out = {
            (one.record_key, one.publish_time): one for one, state in self._states.copy().items() if state in concerned
        }
        acknowledged = {one.topic: known for one, known in list(self.acks.settled.items())}
        for known in acknowledged.values():
            known.fold()
        held: dict[PulsarRecord, PulsarRecord] = {}
        settled: list[PulsarRecord] = []
        for record in records:
            key, published = record.record_key, record.publish_time
            if (key, published) in out:
                held[record] = out[key, published]
                continue
            found = acknowledged.get(record.topic) or acknowledged.get(None)  # a pattern's are together
            repeat = Repeat.NOTHING if found is None else found.look_up(key, published, True, now)
            if repeat is Repeat.DUPLICATE:
                settled.append(record)
            elif repeat is Repeat.REDELIVERED:  # acknowledged, but its acknowledgement was lost, or it is replayed
                record.mark_delivered()
        return held, settled

    def stop(self, *, briefly: bool) -> None:
        """Prepare for closing the native consumers; ``briefly``: they reopen at once, so returned records stay here."""
        self.acks.flush()
        self.acks.interruption.close(self._bridge.loop.time())
        self._reopened = True
        if not briefly:
            self._released = True
            self._elsewhere.close()
            # Records that were read again are redelivered from here at once: the broker counts them as acknowledged.
            self._due([record for record in self._delays.remove_all() if record in self._reread])
            self._release(RecordEvent.STOPPED)
        elif self._subscription.type is SubscriptionType.FAILOVER:
            self._others.marks.add(self._subscription.name, [one for one in self._states if self._states[one] is HELD])

    def _release(self, event: RecordEvent) -> None:
        back = []
        for record, state in list(self._states.items()):
            if event is RecordEvent.STOPPED and record in self._reread:
                continue
            if self._step(record, event).action is Action.RETURN:
                had = state in (HELD, RecordState.LETTER) or (state is RETURNED and record not in self._unseen)
                if had or record.redelivery_count:
                    back.append(record)
        for native_consumer, records in self._aside.items():  # closing the native consumer returns them
            for message_id, kept in records.items():
                if kept[1]:
                    back.append(PulsarRecord.light(native_consumer, WireId(*message_id), *kept))
        self._aside.clear()
        self._unseen.clear()
        self._others.marks.add(self._subscription.name, back)
        self._others.stopped(self, self.records)

    def resume(self, *, acknowledged: bool) -> None:
        if acknowledged:
            self.acks.last = self._bridge.loop.time()
        self.acks.interruption.opened = self._bridge.loop.time()

    def clear(self, moved: Callable[[str], bool]) -> None:
        """Forget the records of ``moved`` topics, except dead letters being stored: they are recognised on arrival."""
        was_delaying = self._delays_some
        for record in [one for one in self._states if moved(one.topic)]:
            if self._step(record, RecordEvent.MOVED).state is not RecordState.LETTER:
                continue
            self._settling.add(record.record_key[:2])
            if record.message_id.batch_index >= 0:
                self._moved.add(record)
            record.batch = None  # its neighbours are forgotten, and can be redelivered
        for native_consumer in [*self.acks.settled, *self._aside]:
            if native_consumer.topic is None or moved(native_consumer.topic):
                self._aside.pop(native_consumer, None)
                self.acks.forget(native_consumer)
        self._unseen &= self._states.keys()
        if not {RETURNED, EARLY}.intersection(self._states.values()):  # otherwise forgotten ones wait for their times
            self._delays.close()
            self._elsewhere.close()
        self._others.marks.forget(self._subscription.name, moved)
        self._others.moved(moved)
        if was_delaying:
            self._wake()  # there is room again; otherwise a receive could get a record from before the next move

    def close(self) -> None:
        """Stop redelivery from here. Records that are held can be acknowledged until ``release``."""
        self._closed = True
        for delays in (self._timeouts, self._delays, self._elsewhere):
            delays.close()

    def release(self) -> None:
        """Release unsettled records to other receivers, before the native consumers close for good."""
        self._others.remove(self)
        self._release(RecordEvent.CLOSED)
