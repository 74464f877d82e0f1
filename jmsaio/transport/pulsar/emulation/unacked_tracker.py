"""``UnackedTracker``: owns the records that one receiver took, from their arrival until they are settled.

Nothing else of a receiver knows its parts, which lie in ``unacked/``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence

from jmsaio.model.wire import ReceivedRecord, SetAside
from jmsaio.transport.base import Subscription, SubscriptionType
from jmsaio.transport.pulsar.emulation.dead_letters import DeadLetters
from jmsaio.transport.pulsar.emulation.unacked.ack_grouping import AckGrouping
from jmsaio.transport.pulsar.emulation.unacked.admission import Admission
from jmsaio.transport.pulsar.emulation.unacked.delay_queue import DelayQueue
from jmsaio.transport.pulsar.emulation.unacked.delayed_records import DelayedRecords
from jmsaio.transport.pulsar.emulation.unacked.handover import Handover
from jmsaio.transport.pulsar.emulation.unacked.nack_tracker import NackTracker
from jmsaio.transport.pulsar.emulation.unacked.prior_deliveries import PriorDeliveries
from jmsaio.transport.pulsar.emulation.unacked.settled import Known, Settled
from jmsaio.transport.pulsar.emulation.unacked.tally import Tally
from jmsaio.transport.pulsar.emulation.unacked.unsettled import Unsettled
from jmsaio.transport.pulsar.native.bridge import Bridge, ignore
from jmsaio.transport.pulsar.native.handles import MessageHandle
from jmsaio.transport.pulsar.native.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.options import NATIVE_NACK_DELAY
from jmsaio.transport.pulsar.native.record import PulsarRecord

#: Types whose records go back to the broker, one entry at a time.
SHARED = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)
#: Seconds until a copy of a record that another receiver has goes back.
COPY_DELAY = 1.0
#: Seconds until a record is redelivered whose dead letter could not be stored.
_DEAD_LETTER_RETRY = 1.0


class UnackedTracker:
    """The records of one receiver.

    Args:
        bridge: the event loop.
        subscription: what is received.
        woken: called when there is something to ``take``.
        prior: what applications got from receivers that stopped, one for all receivers of a transport.
        tally: what this process gave back of a shared subscription, one for all its receivers in this process.
        letters: where records go that were given back too often, or None.

    Attributes:
        shared: the broker redelivers what is given back, by entries, and counts.
        take: ``NackTracker.take``. This and the next two are methods of the parts, which saves a call for each record.
        room: ``NackTracker.room``.
        admit: ``Admission.admit``.
    """

    def __init__(
        self,
        bridge: Bridge,
        subscription: Subscription,
        woken: Callable[[], object] = ignore,
        prior: PriorDeliveries | None = None,
        tally: Tally | None = None,
        letters: DeadLetters | None = None,
    ) -> None:
        self.shared = shared = subscription.type in SHARED
        self._bridge = bridge
        self._subscription = subscription
        self._letters = letters
        self._timeout = subscription.config.ack_timeout
        self._tally = Tally() if tally is None else tally
        prior = PriorDeliveries() if prior is None else prior
        source = ", ".join(subscription.topics) or subscription.pattern or ""
        delayed = None if shared else DelayedRecords(source)
        self._unsettled = unsettled = Unsettled()
        if shared:
            self._tally.join(self)
        self._settled = settled = Settled()
        self._acks = acks = AckGrouping(bridge, unsettled, settled)
        self._handover = handover = Handover(prior, subscription.name, unsettled, acks, self._redeliver)
        self._admission = Admission(bridge, shared, unsettled, settled, acks, handover)
        self._nacks = NackTracker(bridge, unsettled, acks, handover, self._tally, delayed, woken)
        self.take, self.room, self.admit = self._nacks.take, self._nacks.room, self._admission.admit
        self._timeouts = DelayQueue[weakref.ref[PulsarRecord]](bridge.loop, self._timed_out)

    @property
    def count(self) -> int:
        """Records that are not settled; of those set aside only what was read again."""
        return len(self._unsettled.out)

    @property
    def idle(self) -> bool:
        """All records are settled, those that were set aside, too."""
        return not self._unsettled.out and not any(self._unsettled.aside.values())

    @property
    def any_delivered(self) -> bool:
        """Whether the application has a record that it may settle."""
        return not all(self._unsettled.out.values())

    @property
    def link(self) -> object:
        """Equal for the receivers of one link to the broker."""
        return self._bridge

    @property
    def held(self) -> list[PulsarRecord]:
        """What the application has. For any thread."""
        return [record for record, given_back in self._unsettled.out.copy().items() if not given_back]

    def deliverable(self, taken: list[PulsarRecord]) -> list[PulsarRecord]:
        """The records of ``taken`` that the application gets now. The rest waits here, or goes to the dead letters."""
        if not self.shared:
            taken = self._nacks.keep_early(taken)
        elif self._tally:
            taken = self._without_copies(taken)
            self._count_redeliveries(taken)
        if self._letters is not None:
            taken = self._without_dead(taken, self._letters)
        if self._timeout is not None:
            for record in taken:
                self._timeouts.add(weakref.ref(record), self._timeout)
        return taken

    def _without_copies(self, taken: list[PulsarRecord]) -> list[PulsarRecord]:
        """Keep back what another receiver of this process has got, too: it is settled there."""
        held, settled = self._tally.copies(self, taken, self._bridge.loop.time())
        if not held and not settled:
            return taken
        self._acks.acknowledge(settled)
        self._nacks.add(self._unsettled.give_back(held), COPY_DELAY + NATIVE_NACK_DELAY, counted=False)
        copies = {*held, *settled}
        return [record for record in taken if record not in copies]

    def _count_redeliveries(self, taken: list[PulsarRecord]) -> None:
        """Leave out what the broker counted although no application had the record."""
        for record in taken:
            counted = record.native.redelivery_count() if record.redelivery_count else 0
            if counted:
                count = self._tally.redeliveries(record.place, counted)
                record.redelivery_count = max(count, int(self._handover.was_delivered(record)))

    def _without_dead(self, taken: list[PulsarRecord], letters: DeadLetters) -> list[PulsarRecord]:
        """Move what came too often to the dead letters."""
        dead = {record for record in taken if letters.came_too_often(self._failures(record))}
        if not dead:
            return taken
        letters.put(self._unsettled.give_back(record for record in taken if record in dead), self._dead_letter_ended)
        return [record for record in taken if record not in dead]

    def redeliver_reread(self, native_consumer: NativeConsumer, natives: Iterable[MessageHandle]) -> None:
        """Deliver an entry that was read again, because pulsar-client acknowledged it unseen."""
        self._redeliver(self._admission.admit_reread(native_consumer, natives))

    def _redeliver(self, records: list[PulsarRecord]) -> None:
        self._nacks.redeliver(records)

    def unsettled_of(self, ledger: int, entry: int) -> int:
        """Records of an entry that was read again which are not acknowledged."""
        return sum(record.place[:2] == (ledger, entry) for record in self._unsettled.reread)

    def recognize(self, records: list[PulsarRecord], now: float) -> tuple[list[PulsarRecord], list[PulsarRecord]]:
        """Those of another receiver's ``records`` that the application has here, and those that it acknowledged.

        For any thread: the other receiver may belong to another loop.
        """
        out = {(one.place, one.publish_time) for one, back in self._unsettled.out.copy().items() if not back}
        self._settled.fold()
        held: list[PulsarRecord] = []
        settled: list[PulsarRecord] = []
        for record in records:
            place, published = record.place, record.publish_time
            if (place, published) in out:
                held.append(record)
            elif (known := self._settled.look_up(place, published, True, now)) is Known.DUPLICATE:
                settled.append(record)
            elif known is Known.REDELIVERED:  # though acknowledged: its acknowledgement was lost, or it is replayed
                record.redelivery_count = max(1, record.redelivery_count)
        return held, settled

    def acknowledge(self, records: Sequence[object], *, given_back: bool = False) -> None:
        """Acknowledge records with the application, or those that were given back; anything else is ignored."""
        self._acks.acknowledge(records, given_back)
        if self._handover.left:
            self._handover.settled(records, acknowledged=True)

    def give_back(self, records: Sequence[SetAside], delay: float, *, counted: bool) -> None:
        """Have records redelivered after ``delay`` seconds, or moved to the dead letters.

        Args:
            records: what the client gives back; what it does not have is ignored.
            delay: in seconds.
            counted: the application had them. On shared subscriptions the broker counts always.
        """
        found, letters = self._unsettled.give_back(records), self._letters
        if letters is not None and counted:
            dead = {record for record in found if letters.given_back_too_often(self._failures(record))}
            letters.put([record for record in found if record in dead], self._dead_letter_ended)
            found = [record for record in found if record not in dead]
        self._nacks.add(found, delay, counted=counted)

    def set_aside(self, records: Sequence[ReceivedRecord]) -> list[SetAside]:
        """Keep only the places of records that are given back later."""
        return self._unsettled.set_aside(records)

    def dead_letter(self, record: ReceivedRecord, properties: Mapping[str, str]) -> None:
        """Move a record to the dead letters; without a policy it is acknowledged."""
        if self._letters is None:
            self.acknowledge((record,))
        else:
            self._letters.put(self._unsettled.give_back((record,)), self._dead_letter_ended, properties)

    def _dead_letter_ended(self, record: PulsarRecord, stored: bool) -> None:
        """A dead letter was stored in its topic, or could not be."""
        if self._bridge.failure is not None:
            return
        if stored:
            self.acknowledge((record,), given_back=True)
        else:
            self._nacks.retry(record, _DEAD_LETTER_RETRY)

    def _failures(self, record: PulsarRecord) -> int:
        """Failed deliveries of a record, as dead letters count them.

        Where selectors reject records, only what applications of this process gave back counts: the broker's number
        includes the rejections of other processes.
        """
        here = self.shared and self._subscription.selective
        return self._tally.failures(record.place) if here else record.redelivery_count

    def _timed_out(self, references: list[weakref.ref[PulsarRecord]]) -> None:
        """Records that were not acknowledged in time go back. pulsar-client's own timer starts at 10 s."""
        if self._bridge.failure is not None:
            return
        backoff = self._subscription.config.ack_timeout_backoff
        for record in [record for reference in references if (record := reference()) is not None]:
            delay = 0.0 if backoff is None else backoff.delay(record.redelivery_count)
            self.give_back([record], delay, counted=True)

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        """Count one more delivery, here alone: the broker takes no counts."""
        for record in records:
            if self._unsettled.out.get(record) is False:  # type: ignore[call-overload]  # foreign ones are not in it
                assert isinstance(record, PulsarRecord)
                record.redelivery_count += 1

    @property
    def last_ack(self) -> float | None:
        """The loop's time of the last acknowledgement that pulsar-client got; None: all are sent."""
        return self._acks.last

    @property
    def acknowledged_topics(self) -> frozenset[str]:
        """Of a pattern, the topics of the acknowledgements up to ``last_ack``."""
        return frozenset(self._acks.topics)

    def flush(self) -> None:
        """Hand pulsar-client the acknowledgements that wait for the rest of their batch."""
        self._acks.flush()

    def sent(self, last: float) -> None:
        """The acknowledgements up to a ``last_ack`` are sent."""
        if self._acks.last == last:
            self._acks.last = None
            self._acks.topics.clear()

    def stop(self, *, briefly: bool) -> None:
        """The native consumers close; the broker gives their records to others, and those know what stays here.

        Args:
            briefly: they are reopened at once: what is given back waits here.
        """
        self._acks.flush()
        seen, unseen = ([], []) if briefly else self._nacks.stop()
        self._handover.stop(seen, unseen, briefly=briefly)

    def resume(self, stopped: float, acknowledged: bool) -> None:
        """The native consumers were reopened.

        Args:
            stopped: the loop's time when they were closed.
            acknowledged: something was acknowledged meanwhile, which they passed on now.
        """
        now = self._bridge.loop.time()
        if acknowledged:
            self._acks.last = now
        self._settled.away = (stopped, now)

    def clear(self, moved: Callable[[str], bool]) -> None:
        """Forget all records: the subscription was moved on the topics for which ``moved`` is true."""
        self._timeouts.close()
        self._unsettled.clear()
        self._settled.clear()
        self._acks.clear()
        self._handover.forget(moved)
        self._tally.moved()
        self._nacks.clear()

    def close(self) -> None:
        """Redeliver nothing more from here. What is out can be acknowledged until ``leave``."""
        self._tally.leave(self)
        self._nacks.close()
        self._timeouts.close()

    def leave(self) -> None:
        """The native consumers close for good: other receivers get what is not settled."""
        self._handover.close(self._nacks.unseen)
