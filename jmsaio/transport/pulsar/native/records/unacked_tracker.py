"""``UnackedTracker``: owns the records of one receiver, from their arrival until they are settled.

Its parts are in ``unacked/``; a receiver itself uses only ``acks``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence

from jmsaio.model.wire import ReceivedRecord, SetAside
from jmsaio.transport.base import Subscription, SubscriptionType
from jmsaio.transport.clock import DelayQueue
from jmsaio.transport.pulsar.dead_letters import DeadLetters
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, ignore
from jmsaio.transport.pulsar.native.binding.handles import MessageHandle
from jmsaio.transport.pulsar.native.binding.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.binding.options import NATIVE_NACK_DELAY
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.pulsar.native.records.ack_grouping import AckGrouping
from jmsaio.transport.pulsar.native.records.admission import Admission
from jmsaio.transport.pulsar.native.records.nack_tracker import DelayedRecords, NackTracker
from jmsaio.transport.pulsar.native.records.prior_deliveries import Handover, PriorDeliveries
from jmsaio.transport.pulsar.native.records.received import HELD, Repeat, Settled, Unsettled
from jmsaio.transport.pulsar.native.records.return_counts import ReturnCounts

#: Types whose records are returned to the broker, one entry at a time.
SHARED = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)
#: Seconds until a copy of a record held by another receiver is returned.
COPY_DELAY = 1.0
#: Seconds until a record whose dead letter could not be stored is redelivered.
_DEAD_LETTER_RETRY = 1.0


class UnackedTracker:
    """The records of one receiver.

    Args:
        bridge: the event loop.
        woken: called when ``take`` has records.
        prior: deliveries of stopped receivers, shared by all receivers of a transport.
        return_counts: count of returned records of a shared subscription, shared by all its receivers in this process.
        letters: moves records returned too often to the dead letters; None without a policy.
        renew: opens the native consumers again, which returns everything to the broker.

    Attributes:
        shared: whether the broker redelivers returned records, by entries, and counts.
        acks: passes acknowledgements to pulsar-client.
        take: ``NackTracker.take``. This and the next two are methods of the parts, which saves a call per record.
        room: ``NackTracker.room``.
        admit: ``Admission.admit``.
    """

    def __init__(
        self,
        bridge: Bridge,
        subscription: Subscription,
        woken: Callable[[], object],
        prior: PriorDeliveries,
        return_counts: ReturnCounts,
        letters: DeadLetters | None = None,
        renew: Callable[[], object] = ignore,
    ) -> None:
        self.shared = shared = subscription.type in SHARED
        self._bridge = bridge
        self._subscription = subscription
        self._letters = letters
        self._timeout = subscription.config.ack_timeout
        self._return_counts = return_counts
        source = ", ".join(subscription.topics) or subscription.pattern or ""
        delayed = None if shared else DelayedRecords(source, clock=bridge.clock)
        self._unsettled = unsettled = Unsettled()
        if shared:
            self._return_counts.join(self)
        self._settled = settled = Settled()
        self.acks = acks = AckGrouping(bridge, unsettled, settled)
        self._handover = handover = Handover(prior, subscription.name, unsettled, acks, self._redeliver)
        self._admission = Admission(bridge, shared, unsettled, settled, acks, handover)
        self._nacks = NackTracker(
            bridge, unsettled, settled, acks, handover, self._return_counts, delayed, woken, renew
        )
        self.take, self.room, self.admit = self._nacks.take, self._nacks.room, self._admission.admit
        self._timeouts = DelayQueue[weakref.ref[PulsarRecord]](bridge.loop, self._timed_out)

    @property
    def count(self) -> int:
        """Number of unsettled records, without those set aside unless they were read again."""
        return len(self._unsettled.out)

    @property
    def idle(self) -> bool:
        """Whether all records are settled, including those set aside."""
        return not self._unsettled.out and not any(self._unsettled.aside.values())

    @property
    def any_delivered(self) -> bool:
        """Whether the application holds a record that it can settle."""
        return HELD in self._unsettled.out.values()

    @property
    def link(self) -> object:
        """Equal for the receivers of one connection to the broker."""
        return self._bridge

    @property
    def held(self) -> list[PulsarRecord]:
        """Records held by the application. For any thread."""
        return [record for record, state in self._unsettled.out.copy().items() if state is HELD]

    def deliverable(self, taken: list[PulsarRecord]) -> list[PulsarRecord]:
        """Return the records of ``taken`` to deliver now. The rest is kept here, or moved to the dead letters."""
        if not self.shared:
            taken = self._nacks.keep_early(taken)
        elif self._return_counts:
            taken = self._without_copies(taken)
            self._count_redeliveries(taken)
        if self._letters is not None:
            taken = self._without_dead(taken, self._letters)
        if self._timeout is not None:
            for record in taken:
                self._timeouts.add(weakref.ref(record), self._timeout)
        return taken

    def _without_copies(self, taken: list[PulsarRecord]) -> list[PulsarRecord]:
        """Keep back records also received by another receiver of this process, which settles them."""
        held, settled = self._return_counts.copies(self, taken, self._bridge.loop.time())
        if not held and not settled:
            return taken
        self.acks.acknowledge(settled)
        self._nacks.add(self._unsettled.give_back(held), COPY_DELAY + NATIVE_NACK_DELAY, counted=False)
        copies = {*held, *settled}
        return [record for record in taken if record not in copies]

    def _count_redeliveries(self, taken: list[PulsarRecord]) -> None:
        """Correct redelivery counts by the redeliveries of records that no application had."""
        for record in taken:
            counted = record.native.redelivery_count() if record.redelivery_count else 0
            if counted:
                count = self._return_counts.redeliveries(record.record_key, counted)
                record.redelivery_count = max(count, int(record.delivered))

    def _without_dead(self, taken: list[PulsarRecord], letters: DeadLetters) -> list[PulsarRecord]:
        """Move records delivered too often to the dead letters; return the others."""
        dead = {record for record in taken if self._failures(record) > letters.limit}
        if not dead:
            return taken
        given = self._unsettled.give_back(record for record in taken if record in dead)
        letters.put([(record, self._failures(record)) for record in given], self._dead_letter_ended)
        return [record for record in taken if record not in dead]

    def redeliver_reread(self, native_consumer: NativeConsumer, natives: Iterable[MessageHandle]) -> None:
        """Deliver an entry that was read again, because pulsar-client acknowledged it undelivered."""
        self._redeliver(self._admission.admit_reread(native_consumer, natives))

    def _redeliver(self, records: list[PulsarRecord]) -> None:
        self._nacks.redeliver(records)

    def unsettled_of(self, ledger: int, entry: int) -> int:
        """Return the number of unacknowledged records of an entry that was read again."""
        return sum(record.record_key[:2] == (ledger, entry) for record in self._unsettled.reread)

    def recognize(
        self, records: list[PulsarRecord], now: float
    ) -> tuple[dict[PulsarRecord, PulsarRecord], list[PulsarRecord]]:
        """Return those of another receiver's ``records`` held by the application, and those that it acknowledged.

        For any thread: the other receiver might belong to another loop.

        Returns:
            Held records, each with the one that is held here, and acknowledged ones.
        """
        out = {(one.record_key, one.publish_time): one for one in self.held}
        self._settled.fold()
        held: dict[PulsarRecord, PulsarRecord] = {}
        settled: list[PulsarRecord] = []
        for record in records:
            key, published = record.record_key, record.publish_time
            if (key, published) in out:
                held[record] = out[key, published]
            elif (known := self._settled.look_up(key, published, True, now)) is Repeat.DUPLICATE:
                settled.append(record)
            elif known is Repeat.REDELIVERED:  # acknowledged, but its acknowledgement was lost, or it is replayed
                record.mark_delivered()
        return held, settled

    def acknowledge(self, records: Sequence[object], *, given_back: bool = False) -> None:
        """Acknowledge records held by the application, or returned ones; anything else is ignored."""
        self.acks.acknowledge(records, given_back)
        if self._handover.left:
            self._handover.settled(records, acknowledged=True)

    def give_back(self, records: Sequence[SetAside], delay: float, *, counted: bool) -> None:
        """Schedule the redelivery of records after ``delay`` seconds, or move them to the dead letters.

        Args:
            records: records returned by the client; those not held are ignored.
            delay: seconds until the redelivery.
            counted: whether the application had them. On shared subscriptions the broker always counts.
        """
        found, letters = self._unsettled.give_back(records), self._letters
        if letters is not None and counted:
            dead = {record for record in found if self._failures(record) >= letters.limit}
            failed = [(record, self._failures(record) + 1) for record in found if record in dead]
            letters.put(failed, self._dead_letter_ended)
            found = [record for record in found if record not in dead]
        self._nacks.add(found, delay, counted=counted)

    def set_aside(self, records: Sequence[ReceivedRecord]) -> list[SetAside]:
        """Keep only the ids of records that are returned later."""
        return self._unsettled.set_aside(records)

    def dead_letter(self, record: ReceivedRecord, properties: Mapping[str, str]) -> None:
        """Move a record to the dead letters; without a policy it is acknowledged."""
        if self._letters is None:
            self.acknowledge((record,))
        else:
            given = [(one, self._failures(one)) for one in self._unsettled.give_back((record,))]
            self._letters.put(given, self._dead_letter_ended, properties)

    def _dead_letter_ended(self, record: PulsarRecord, stored: bool) -> None:
        """Settle a record after its dead letter was stored, or could not be."""
        if self._bridge.failure is not None:
            return
        if stored:
            self.acknowledge((record,), given_back=True)
        else:
            self._nacks.retry(record, _DEAD_LETTER_RETRY)

    def _failures(self, record: PulsarRecord) -> int:
        """Return the number of failed deliveries of a record, as counted for dead letters.

        If selectors reject records, only those returned by applications of this process count: the broker's count
        includes the rejections of other processes.
        """
        here = self.shared and self._subscription.selective
        return self._return_counts.failures(record.record_key) if here else record.redelivery_count

    def _timed_out(self, references: list[weakref.ref[PulsarRecord]]) -> None:
        """Return records that were not acknowledged in time. pulsar-client's own timer needs at least 10 s."""
        if self._bridge.failure is not None:
            return
        backoff = self._subscription.config.ack_timeout_backoff
        for record in [record for reference in references if (record := reference()) is not None]:
            delay = 0.0 if backoff is None else backoff.delay(record.redelivery_count)
            self.give_back([record], delay, counted=True)

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        """Count another delivery, in this receiver only: the broker accepts no counts."""
        for record in records:
            if self._unsettled.out.get(record) is HELD:  # type: ignore[call-overload]  # foreign ones are not in it
                assert isinstance(record, PulsarRecord)
                record.redelivery_count += 1

    def stop(self, *, briefly: bool) -> None:
        """Prepare for closing the native consumers: the broker sends their unsettled records to other receivers.

        Args:
            briefly: they are reopened at once, so returned records stay here.
        """
        self.acks.flush()
        seen, unseen = ([], []) if briefly else self._nacks.stop()
        self._handover.stop(seen, unseen, briefly=briefly)

    def resume(self, stopped: float, acknowledged: bool) -> None:
        """Handle the reopening of the native consumers.

        Args:
            stopped: loop time when they were closed.
            acknowledged: whether they have sent acknowledgements made meanwhile.
        """
        now = self._bridge.loop.time()
        if acknowledged:
            self.acks.last = now
        self._settled.away = (stopped, now)

    def clear(self, moved: Callable[[str], bool]) -> None:
        """Forget all records: the subscription was moved on the topics for which ``moved`` is true."""
        self._timeouts.close()
        self._unsettled.clear()
        self._settled.clear()
        self.acks.clear()
        self._handover.forget(moved)
        self._return_counts.moved()
        self._nacks.clear()

    def close(self) -> None:
        """Stop redelivery from here. Records that are out can be acknowledged until ``leave``."""
        self._return_counts.leave(self)
        self._nacks.close()
        self._timeouts.close()

    def leave(self) -> None:
        """Release unsettled records to other receivers, before the native consumers close for good."""
        self._handover.close(self._nacks.unseen)
