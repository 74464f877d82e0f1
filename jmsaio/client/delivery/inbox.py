"""``Inbox``: a consumer's use of one subscription, with the buffer of its received records.

Only its close is asynchronous. The transport wakes the inbox, a coroutine of the session fills and filters it,
consumers and listeners remove records, and records that the application returned are put at its front.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Protocol

import attrs

from jmsaio.client.delivery.filter import Filter, may_expire
from jmsaio.client.delivery.redelivery import Next, Redelivery, Unread
from jmsaio.client.delivery.siblings import SharingReceiver, Siblings
from jmsaio.client.lifetime.scope import Deadline
from jmsaio.client.lifetime.stats import ConsumerStats, ReceiveCounts
from jmsaio.client.senders.pending import call_trace
from jmsaio.codec.headers import expiration, priority
from jmsaio.codec.properties import as_dead_letter
from jmsaio.errors import JMSError, MalformedMessageError
from jmsaio.model.destinations import Destination
from jmsaio.model.log_fields import log_fields
from jmsaio.model.messages.tracing import EndpointTrace
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.fate import Fate, Rejection
from jmsaio.rules.priority import PriorityBuffer
from jmsaio.rules.share import Share
from jmsaio.transport.base import Subscription, Transaction, Transport
from jmsaio.transport.clock import LoopTimers

#: Maximum number of records per read from the transport, which has its own prefetch.
BATCH = 256
#: Maximum bytes in the inboxes of one connection, unless its configuration differs.
INBOX_BYTES = 32 * 1024 * 1024
#: Assumed size of a record in bytes before the first one arrives.
FIRST = 1024 * 1024
#: Number of records filtered in one step, if a selector or noLocal makes each one costly.
_SLICE = 64
#: Seconds until a record is redelivered whose fate depends on a selector that is being read.
_SOON = 1.0
#: Maximum number of waiting acknowledgements, and seconds: a task that always finds a message never yields to the loop.
_MOST_ACKS, _LONGEST_TURN = 32, 0.001
#: Maximum number of batches that siblings hand over before the first record is taken.
_HANDED = 8

_size_of = attrgetter("size")


@attrs.define(eq=False)
class AckTurn:
    """Acknowledgements of one turn of the loop, of 32 records, or of a millisecond, whichever is less."""

    _inbox: Inbox
    _waiting: list[ReceivedRecord] = attrs.field(factory=list, init=False)
    _begun: bool = attrs.field(default=False, init=False)  # whether the end of this turn is scheduled
    _until: float = attrs.field(default=0.0, init=False)  # the first call after this time acknowledges

    def soon(self, record: ReceivedRecord) -> None:
        """Acknowledge a record, for which no caller waits, at the end of this turn."""
        self._waiting.append(record)
        self._look()

    def together(self, records: Sequence[ReceivedRecord]) -> None:
        """Acknowledge records for a caller, who receives the receiver's error.

        The first call of a turn acknowledges at once, so that its caller receives an error. Later calls in that turn
        are sent together at its end, as with ``soon``.
        """
        if self._begun and not self._inbox.closed:
            self._waiting += records
            self._look()
            return
        self._inbox.acknowledge(records)
        if not self._begun:
            self._begin()

    def _look(self) -> None:
        if not self._begun:
            self._begin()
        elif len(self._waiting) >= _MOST_ACKS or time.perf_counter() > self._until:
            self._until = time.perf_counter() + _LONGEST_TURN
            self.now()

    def now(self) -> None:
        """Acknowledge the waiting records."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            try:
                self._inbox.acknowledge(waiting)
            except JMSError as error:
                self._inbox.fail(error)

    def _begin(self) -> None:
        self._begun = True
        self._until = time.perf_counter() + _LONGEST_TURN
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        self._begun = False
        self.now()


class InboxSession(Protocol):
    """The interface of a session to the inboxes of its consumers."""

    def mark(self, inbox: Inbox) -> None:
        """Fill an inbox in the next turn."""

    def announce(self, inbox: Inbox) -> None:
        """Fill an inbox whose receiver announced records."""

    def keep(self, inbox: Inbox, transport: Transport) -> bool:
        """Keep another session's inbox until its records in this session are settled; return False if it can't."""


@attrs.define(eq=False)
class Inbox:
    """A consumer's use of one subscription.

    ``attach`` sets its consumer. After ``detach`` it receives nothing; delivered records can still be settled, and
    another consumer can be attached.

    It is one object, because each record in it is at once a buffered, a filtered and an unsettled one: whatever adds or
    removes one updates the room, the siblings' turns and the receiver in the same step. Its parts that can stand alone
    do: settling (``receiver``), counting (``redelivery``), grouping (``acks``), unreadable records (``unread``), the
    selection (``filter``) and resting records (``siblings``).

    Attributes:
        destination: JMSDestination of received messages.
        receiver: settles each record at the transport's receiver that received it.
        redelivery: how messages that the application returned are redelivered.
        by_priority: deliver higher priorities first (``jms.enableJMSPriority``), among all received records: further
            records are read from the receiver at once, even while undelivered ones wait.
        batch: maximum number of records in the inbox.
        share: maximum bytes in the inbox, shared with others.
        timers: timers on the transport's clock.
        trace: traces its messages, or None.
        filter: selects the consumer's records.
        siblings: the consumers of this process on the same subscription.
        unread: records reported to the application as unreadable.
        acks: groups acknowledgements of a turn of the loop.
        records: received records that are not delivered yet.
        wanted: whether a receive or a listener waits for a record.
        failure: why the receiver ended, or None.
        refusal: why currently nothing is received, or None: the broker refuses the credentials.
        attached: whether it has a consumer.
        closed: whether ``aclose`` was called.
        more: whether the receiver might have records left after the last fill.
        use_schema: whether its consumer decodes records with their schema.
    """

    destination: Destination
    subscription: Subscription
    receiver: SharingReceiver
    redelivery: Redelivery
    by_priority: bool = False
    batch: int = BATCH
    share: Share = attrs.field(factory=lambda: Share(INBOX_BYTES))
    timers: LoopTimers = attrs.field(factory=LoopTimers)
    _acks_at_once: bool = False  # not at the end of the turn
    trace: EndpointTrace | None = None
    filter: Filter = attrs.field(factory=Filter, init=False)
    siblings: Siblings = attrs.field(factory=Siblings, init=False)
    unread: Unread = attrs.field(init=False)
    acks: AckTurn = attrs.field(init=False)
    counts: ReceiveCounts = attrs.field(factory=ReceiveCounts, init=False)
    records: deque[ReceivedRecord] | PriorityBuffer = attrs.field(init=False)
    wanted: bool = attrs.field(default=False, init=False)
    failure: JMSError | None = attrs.field(default=None, init=False)
    refusal: JMSError | None = attrs.field(default=None, init=False)
    attached: bool = attrs.field(default=False, init=False)
    closed: bool = attrs.field(default=False, init=False)
    more: bool = attrs.field(default=True, init=False)
    use_schema: bool = attrs.field(default=False, init=False)
    _session: InboxSession | None = attrs.field(default=None, init=False)  # of its last consumer
    _free_name: Callable[[], None] | None = attrs.field(default=None, init=False)
    _waiter: asyncio.Future[None] | None = attrs.field(default=None, init=False)
    _largest: int = attrs.field(default=FIRST, init=False)  # bytes of the largest of the latest records
    _refill: int = attrs.field(default=-1, init=False)  # length at which a full inbox is refilled
    _expiring: bool = attrs.field(default=False, init=False)  # whether records might expire in the inbox

    def __attrs_post_init__(self) -> None:
        self.records = PriorityBuffer(priority) if self.by_priority else deque()
        self.acks = AckTurn(self)
        self.unread = Unread(self.redelivery, self._give_back_unread, self.timers)
        self.share.join(self)

    def attach(
        self,
        session: InboxSession,
        filter: Filter,
        siblings: Siblings,
        free_name: Callable[[], None] | None = None,
        use_schema: bool = False,
    ) -> None:
        """Start to receive for a consumer.

        Args:
            session: fills the inbox.
            filter: selects the consumer's records.
            siblings: the consumers of this process on the same subscription.
            free_name: called once when the consumer no longer uses the name of its named subscription.
            use_schema: see the attribute.
        """
        self._session = session
        self.filter = filter
        self.siblings = siblings
        self._free_name = free_name
        self.use_schema = use_schema
        self.attached = self.more = True
        siblings.join(self)
        if filter.concerns_others:
            session.mark(self)

    def detach(self) -> None:
        """Stop receiving: return undelivered records to the broker; delivered ones can still be settled."""
        self.wanted = False
        self.attached = False
        self.release()

    def free_name(self) -> None:
        """Release the subscription's name for other consumers."""
        free, self._free_name = self._free_name, None
        if free is not None:
            free()

    def announce(self) -> None:
        """Announce records of the receiver (called by the transport on the loop's thread, in its own turn)."""
        if self._session is not None:
            self._session.announce(self)

    def wake(self) -> None:
        """Request a fill."""
        if self._session is not None:
            self._session.mark(self)

    def keep(self, inbox: Inbox, transport: Transport) -> bool:
        """Make the session keep another inbox, of which this one has records; return False if it can't."""
        return self._session is not None and self._session.keep(inbox, transport)

    def want(self, wanted: bool) -> None:
        """Set whether a receive or a listener waits for records."""
        self.wanted = wanted

    def arrival(self) -> asyncio.Future[None]:
        """Return a future that is done once a record or failure might have arrived, or for another reason to check."""
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        if self.more or self.trouble is not None:  # otherwise the receiver wakes it
            self.wake()
        return waiter

    def notify(self) -> None:
        """End the wait for an arrival."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def fill(self) -> bool:
        """Read records from the receiver, filter them, and add the selected ones to the inbox.

        Returns:
            True if more might be readable at once.
        """
        self.more = True
        if self.closed or not self.attached:
            return False
        room = self._room()
        if self.filter.concerns_others:
            room = min(room, _SLICE)
            if not self.siblings.has_room(self):
                self.more = False  # retried once some resting records have been returned
                return False
        # Also without a receive: records can be for others, or precede those in the inbox.
        eager = self.filter.concerns_others or (self.by_priority and bool(self.records))
        if room <= 0 or not (self.wanted or eager):
            if eager:
                self._refill = len(self.records) // 2
            return False
        try:
            records = self.receiver.own.receive(room)
        except JMSError as error:
            self.fail(error)
            records = []
        if records:
            self._largest = max(records[0].size, records[-1].size, self._largest // 2)
            self.counts.received += len(records)
            self.counts.bytes += sum(map(_size_of, records))
            self.counts.last_activity = self.timers.milliseconds()
            self.records.extend(self._wanted(records))
            if self.records:
                self.notify()
        elif self.refusal is not None:
            self.notify()
        self.more = len(records) == room
        return self.more

    def _room(self) -> int:
        """Return for how many records the inbox has room, by number and by size, estimated from the latest ones."""
        return min(self.batch, self.share.each // max(1, self._largest) or 1) - len(self.records)

    def _wanted(self, records: list[ReceivedRecord]) -> list[ReceivedRecord]:
        plain = self.filter.plain
        if may_expire(records):
            self._expiring = True
        elif plain:
            return records
        now = self.timers.milliseconds()
        wanted = []
        for record in records:
            try:
                rejection = self.filter.rejects(record, now)
                if rejection is not None:
                    self._reject(record, rejection)
                else:
                    wanted.append(record)
            except MalformedMessageError:  # decoding raises the same error for the consumer
                wanted.append(record)
        if not plain:  # without selector and noLocal nothing rests: most batches skip the call
            self.siblings.set_aside()
        return wanted

    def _reject(self, record: ReceivedRecord, rejection: Rejection) -> None:
        self.counts.rejected += 1
        decided = self.filter.fate(rejection)
        if decided is Fate.GIVE_BACK:
            self.siblings.reject(self, record)
            return
        if decided is Fate.LATER:
            self.receiver.negative_acknowledge((record,), _SOON, counted=False)
            return
        if decided is Fate.DEAD_LETTER:
            self.dead_letter(record)
            return
        self.receiver.acknowledge((record,))
        self.redelivery.forget(record)

    def dead_letter(self, record: ReceivedRecord) -> None:
        """Make a record a dead letter. Raises MalformedMessageError if its properties can't be read."""
        self.receiver.dead_letter(record, as_dead_letter(record.properties))
        self.redelivery.forget(record)

    def accepts(self, record: ReceivedRecord, now: int) -> bool:
        """Return whether the inbox accepts a record at ``now`` (ms) that a sibling rejected."""
        if self.closed or not self.attached or self.failure is not None:
            return False
        if self.records:
            most = min(_HANDED * self.batch, self.share.each // max(1, self._largest, record.size))
            if len(self.records) >= most:
                return False
        return self.filter.rejects(record, now) is None

    def hand(self, record: ReceivedRecord, owner: SharingReceiver) -> None:
        """Add a sibling's record, after ``accepts``."""
        if owner is not self.receiver:
            self.receiver.adopt(record, owner, self)
        self._expiring = self._expiring or record.may_expire
        self._largest = max(self._largest, record.size) if self.records else record.size
        self.records.append(record)
        self.notify()
        self.wake()

    def withdraw(self, owner: SharingReceiver) -> list[ReceivedRecord]:
        """Remove and return the undelivered records that ``owner`` received."""
        found = [record for record in self.records if self.receiver.owner(record) is owner]
        if found:
            kept = [record for record in self.records if self.receiver.owner(record) is not owner]
            self.records.clear()
            self.records.extend(kept)
            for record in found:
                self.receiver.release(record)
            if len(kept) <= self._refill:
                self._look_again()
        return found

    def fail(self, error: JMSError) -> None:
        """Record that the receiver ended with ``error``, which the next receive raises once the inbox is empty."""
        self.failure = error
        self.notify()

    def refuse(self, refusal: JMSError | None) -> None:
        """Set the refusal, which a receive raises once the inbox is empty; None to clear it."""
        self.refusal = refusal
        if refusal is not None:
            self.notify()

    @property
    def trouble(self) -> JMSError | None:
        """The error that a receive raises once the inbox is empty."""
        return self.failure or self.refusal

    def take(self) -> ReceivedRecord | None:
        """Remove and return the application's next record, or None. Records that expired meanwhile are removed."""
        records = self.records
        if not records:
            self._expiring = False
            return None
        if not self._expiring:
            record = records.popleft()
            if len(records) <= self._refill:
                self._look_again()
            return record
        while records:
            record = records.popleft()
            if len(records) <= self._refill:
                self._look_again()
            try:
                if record.may_expire and 0 < expiration(record) <= self.timers.milliseconds():
                    self._reject(record, Rejection.EXPIRED)
                    continue
            except MalformedMessageError:  # decoding raises the error for the consumer
                return record
            return record
        return None

    def _look_again(self) -> None:
        self._refill = -1
        if self.by_priority:  # a task that always finds a message never yields to the fills
            while self.fill():
                pass
        else:
            self.wake()

    def acknowledge_for_caller(self, records: Sequence[ReceivedRecord]) -> None:
        """Acknowledge records for the application, perhaps with others of this turn; see ``AckTurn.together``.

        Records that another receiver received are settled there at once, because it might be closing.
        """
        if self._acks_at_once or self.receiver.has_adopted:
            self.acknowledge(records)
        else:
            self.acks.together(records)

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        """Acknowledge records."""
        self.receiver.acknowledge(records, transaction)
        self.counts.acknowledged += len(records)
        if self.trace is not None:
            call_trace(self.trace.settled, "ack", records)
        if self.redelivery.counting:
            for record in records:
                self.redelivery.forget(record)

    def put_back(self, record: ReceivedRecord) -> None:
        """Return an undelivered record to the front, uncounted."""
        self._expiring = True
        self.records.appendleft(record)
        self.notify()

    def redeliver(self, records: Sequence[ReceivedRecord]) -> None:
        """Redeliver records that the application returned, in order, before later ones."""
        first: list[ReceivedRecord] = []
        self.counts.redelivered += len(records)
        if self.trace is not None:
            call_trace(self.trace.settled, "nack", records)
        for record in records:
            match self.redelivery.next(record):
                case Next.DEAD_LETTER:
                    self.receiver.count_delivery((record,))  # the letter says how many deliveries failed
                    self.receiver.dead_letter(record, record.properties)
                    self.redelivery.forget(record)
                case Next.AT_ONCE:
                    first.append(record)
                case Next.LATER:
                    self.receiver.negative_acknowledge((record,), self.redelivery.delay(record))
        if first:
            self.receiver.count_delivery(first)
            # a consumer that took over the inbox can have another selector
            self.records.extendleft(reversed(self._wanted(first)))
            self.notify()
            self.wake()

    def where(self, record: ReceivedRecord | None = None) -> dict[str, str | int]:
        """Return the fields of log records about the consumer, or about a record that can't be read."""
        message_id = None if record is None else str(record.message_id)
        return log_fields(
            destination=self.destination, subscription=self.subscription.name, message_id=message_id,
            attempt=None if record is None else self.redelivery.delivery_count(record),
        )  # fmt: skip

    def stats(self, in_flight: int) -> ConsumerStats:
        """Return what the inbox has done so far, with its number of unsettled deliveries."""
        return ConsumerStats(
            destination=self.destination, subscription=self.subscription.name, buffered=len(self.records),
            in_flight=in_flight, **attrs.asdict(self.counts),
        )  # fmt: skip

    def _give_back_unread(self, record: ReceivedRecord) -> None:
        """Return a record that can't be read to the broker, after its delay."""
        try:
            self.receiver.negative_acknowledge((record,), 0.0)
        except JMSError as error:
            self.fail(error)

    def give_back_left(self, records: Sequence[ReceivedRecord]) -> None:
        """Return unsettled deliveries of the closed consumer to the broker: at once, unless a delay is configured."""
        for delay, group in self.redelivery.delays_after_close(records).items():
            self.receiver.negative_acknowledge(group, delay)

    def release(self) -> None:
        """Return all undelivered records to the broker, including resting ones."""
        self.acks.now()
        unread = self.unread.take_all()
        if unread:
            self.receiver.negative_acknowledge(unread, 0.0)
        rest = [*self.records, *self.siblings.leave(self)]
        self.records.clear()
        if rest:
            self.receiver.negative_acknowledge(rest, 0.0, counted=False)

    async def stop(self, timeout: float) -> None:
        """Stop the receiver of a detached inbox, so that others receive its messages."""
        if self.filter.shared:
            await self.receiver.own.stop(timeout)

    async def aclose(self, timeout: float) -> None:
        """Return the remaining records and close the receiver. Idempotent."""
        if self.closed:
            return
        self.closed = True
        self.share.leave(self)
        self.wanted = False
        self.notify()
        deadline = Deadline.after(timeout)
        try:
            self.release()
            await self.siblings.give_back(self)
        finally:
            try:
                await self.receiver.aclose(deadline.left())
            finally:
                self.free_name()
