"""An inbox: one subscription as one consumer uses it, with the only Python-side buffer of its received records.

Synchronous but for its close. The session's dispatch coroutine fills the inbox; consumers and the listener worker take
from it; what the application gave back stands at its front again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import attrs

from jmsaio.client.delivery.delay_queue import DelayQueue
from jmsaio.client.delivery.filter import Filter
from jmsaio.client.delivery.malformed import Unread
from jmsaio.client.delivery.sharing import SharingReceiver
from jmsaio.client.delivery.siblings import Siblings
from jmsaio.client.lifetime.deadline import Deadline
from jmsaio.codec.properties import as_dead_letter
from jmsaio.codec.view import due, expiration
from jmsaio.errors import JMSError, MalformedMessageError, TransportError
from jmsaio.model.destinations import Destination
from jmsaio.model.wire import EXPIRATION, ReceivedRecord
from jmsaio.rules.fate import Fate, GiveBackDelays, Rejection, asks_for_delay, fate, give_back_delays
from jmsaio.rules.priority import PriorityBuffer
from jmsaio.rules.redelivery import Again, DeliveryCounts, again
from jmsaio.rules.share import Share
from jmsaio.transport.base import Subscription, Transaction

_log = logging.getLogger("jmsaio")

#: Records taken from the transport at once; the transport's own prefetch stands behind it.
BATCH = 256
#: Bytes in the inboxes of one connection, unless its configuration says something else.
INBOX_BYTES = 32 * 1024 * 1024
#: Bytes that a record is taken to have before the first came.
FIRST = 1024 * 1024
#: Records that are looked at in one step, where each costs time.
_SLICE = 64
#: What siblings hand over at most before it is taken, in batches.
_HANDED = 8


@attrs.define(eq=False)
class Inbox:
    """One subscription as one consumer uses it.

    Attributes:
        destination: what received messages show as JMSDestination.
        subscription: what is subscribed to.
        max_local: redeliveries at once before a message is given back to the broker; 0 where a delay is configured.
        broker_dead_letters: the broker counts for a dead-letter policy, so it has to redeliver.
        dead_after: redeliveries before a message becomes a dead letter, where we have to count: on exclusive and
            failover subscriptions. None: the broker counts, or there is no policy.
        by_priority: the inbox gives higher priorities first (``jms.enableJMSPriority``).
        changed: called when records arrived or the inbox failed.
        drop_at_close: the subscription is deleted with its last consumer.
        drop_left: deletes it afterwards, in so many seconds at most, if there were others that closed at the same time.
        batch: records in the inbox at most.
        share: bytes in the inbox at most, divided with others.
        receiver: the transport's receiver; it settles what siblings handed over where it came from.
        filter: what the consumer wants.
        released: called once at close, frees the subscription's name.
        more: the receiver may have records that the last fill left there.
        lingering: its consumer is closed, but deliveries are not settled; it takes nothing more.
        unread: records that the application was told can't be read.
        siblings: the consumers of this process on the same subscription.
    """

    destination: Destination
    subscription: Subscription
    max_local: int
    broker_dead_letters: bool
    by_priority: bool
    changed: Callable[[Inbox], None]
    drop_at_close: bool = False
    drop_left: Callable[[float], Awaitable[None]] | None = None
    batch: int = BATCH
    dead_after: int | None = None
    share: Share = attrs.field(factory=lambda: Share(INBOX_BYTES))
    receiver: SharingReceiver = attrs.field(init=False)
    filter: Filter = attrs.field(factory=Filter)
    released: Callable[[], None] | None = None
    records: deque[ReceivedRecord] | PriorityBuffer = attrs.field(init=False)
    wanted: bool = False
    failure: JMSError | None = None
    waiter: asyncio.Future[None] | None = None
    closed: bool = False
    more: bool = True
    lingering: bool = False
    _largest: int = attrs.field(default=FIRST, init=False)  # bytes of a record of those that came last
    _refill: int = attrs.field(default=-1, init=False)  # inbox's length at which a full one is filled again
    _expiring: bool = attrs.field(default=False, init=False)  # records of the inbox may expire there
    _done: list[ReceivedRecord] = attrs.field(factory=list, init=False)  # acknowledged in this turn of the loop
    _counts: DeliveryCounts = attrs.field(factory=DeliveryCounts, init=False)
    _returns: GiveBackDelays = attrs.field(init=False)
    _held: DelayQueue = attrs.field(init=False)
    unread: Unread = attrs.field(init=False)
    siblings: Siblings = attrs.field(factory=Siblings)

    def __attrs_post_init__(self) -> None:
        self.records = PriorityBuffer() if self.by_priority else deque()
        self._held = DelayQueue(repr(self.destination), self.wake)
        self.unread = Unread(self)
        self._returns = give_back_delays(self.subscription.config)

    # ---------------------------------------------------------------- from the transport

    def wake(self) -> None:
        """The receiver may have records (called by the transport on the loop's thread)."""
        self.changed(self)

    def fill(self) -> bool:
        """Take records from the receiver, filter them, and put what is wanted into the inbox.

        Returns:
            True when there may be more to take at once.
        """
        if self.closed or self.lingering:
            return False
        room = self._room()
        self.more = True
        if self.filter.concerns_others:
            room = min(room, _SLICE)
            if not self.siblings.has_room(self):
                self.more = False  # looked after again when some of what rests has gone back
                return False
        if self._held:
            self._take_due()
            more_to_hold = self._held.room()
            self.more = more_to_hold > 0  # a full one is looked after again when its timer wakes it
            room = min(room, self._room(), more_to_hold)
        if room <= 0 or not (self.wanted or self.filter.concerns_others):
            if self.filter.concerns_others:  # what the receiver has may be for others, also when nobody receives here
                self._refill = len(self.records) // 2
            return False
        records = self._receive(room)
        if records:
            self._largest = max(records[0].size, records[-1].size, self._largest // 2)
            self.records.extend(self._wanted(records))
            if self.records:
                self.notify()
        self.more = len(records) == room
        return self.more

    def _room(self) -> int:
        """Records that the inbox has room for, by number and by bytes, which are known from the last ones."""
        return min(self.batch, self.share.each // max(1, self._largest) or 1) - len(self.records)

    def _receive(self, limit: int) -> list[ReceivedRecord]:
        try:
            return self.receiver.receive(limit)
        except JMSError as error:
            self.fail(error)
            return []

    def _wanted(self, records: list[ReceivedRecord]) -> list[ReceivedRecord]:
        now = time.time_ns() // 1_000_000
        plain = self.filter.plain
        wanted = []
        for record in records:
            try:
                if EXPIRATION in record.properties:
                    self._expiring = True
                elif plain:
                    wanted.append(record)
                    continue
                rejection = self.filter.rejects(record, now)
                if rejection is not None:
                    self._reject(record, rejection)
                elif not (self.filter.hold_delayed and self._hold_if_early(record, now)):
                    wanted.append(record)
            except MalformedMessageError:  # the consumer is told, by the same error, when it takes the record
                wanted.append(record)
        if not plain:
            self.siblings.set_aside()
        return wanted

    def _reject(self, record: ReceivedRecord, rejection: Rejection) -> None:
        wants = self.filter
        decided = fate(
            rejection, wants.shared and not wants.alone, wants.acknowledge_rejected, wants.dead_letter_expired
        )
        if decided is Fate.GIVE_BACK:
            self.siblings.reject(self, record)
            return
        if decided is Fate.DEAD_LETTER:
            self.dead_letter(record)
            return
        self.receiver.acknowledge((record,))
        self.settled(record)

    def dead_letter(self, record: ReceivedRecord) -> None:
        """Make a record a dead letter. Raises MalformedMessageError where its properties can't be read."""
        self.receiver.dead_letter(record, as_dead_letter(record.properties))
        self.settled(record)

    # ---------------------------------------------------------------- from siblings

    def accepts(self, record: ReceivedRecord, now: int) -> bool:
        """Would take a record at ``now`` (ms) that a sibling does not want."""
        if self.closed or self.lingering or self.failure is not None or self.filter.hold_delayed:
            return False
        if self.records:
            most = min(_HANDED * self.batch, self.share.each // max(1, self._largest, record.size))
            if len(self.records) >= most:
                return False
        return self.filter.rejects(record, now) is None

    def hand(self, record: ReceivedRecord, owner: SharingReceiver) -> None:
        """Take a record that a sibling got, after ``accepts``."""
        if owner is not self.receiver:
            self.receiver.borrow(record, owner)
        self._expiring = self._expiring or EXPIRATION in record.properties
        self._largest = max(self._largest, record.size) if self.records else record.size
        self.records.append(record)
        self.notify()
        self.changed(self)

    def withdraw(self, owner: SharingReceiver) -> list[ReceivedRecord]:
        """Take back what ``owner`` took from the broker and nobody took from here."""
        found = [record for record in self.records if self.receiver.owner(record) is owner]
        if found:
            kept = [record for record in self.records if self.receiver.owner(record) is not owner]
            self.records.clear()
            self.records.extend(kept)
            for record in found:
                self.receiver.let_go(record)
            if len(kept) <= self._refill:
                self._look_again()
        return found

    def fail(self, error: JMSError) -> None:
        """The receiver ended with ``error``: the next receive raises it once the inbox is empty."""
        self.failure = error
        self.notify()

    def notify(self) -> None:
        """Wake the receive that waits."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # ---------------------------------------------------------------- to the application

    def take(self) -> ReceivedRecord | None:
        """The next record for the application, or None. Records that expired meanwhile are removed."""
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
                if EXPIRATION in record.properties and 0 < expiration(record) <= time.time_ns() // 1_000_000:
                    self._reject(record, Rejection.EXPIRED)
                    continue
            except MalformedMessageError:  # decoding it says so to the consumer
                return record
            return record
        return None

    def _look_again(self) -> None:
        self._refill = -1
        self.changed(self)

    @property
    def counting(self) -> bool:
        """Some record came back inside this client, so that the broker's counts don't tell all."""
        return bool(self._counts)

    def delivery_count(self, record: ReceivedRecord) -> int:
        """JMSXDeliveryCount of this delivery: 1 for the first."""
        if self._counts:
            return self._counts.delivery_count(record.message_id, record.redelivery_count)
        return record.redelivery_count + 1

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        """The application is done with records."""
        self.receiver.acknowledge(records, transaction)
        if self._counts:
            for record in records:
                self.settled(record)

    def acknowledge_soon(self, record: ReceivedRecord) -> None:
        """The application got a record and need not acknowledge it: those of one turn of the loop go together."""
        self._done.append(record)
        if len(self._done) == 1:
            asyncio.get_running_loop().call_soon(self.acknowledge_now)

    def acknowledge_now(self) -> None:
        """Hand over what ``acknowledge_soon`` took. A transport that ended says so to the next receive."""
        if self._done:
            done, self._done = self._done, []
            try:
                self.acknowledge(done)
            except JMSError as error:
                self.fail(error)

    def settled(self, record: ReceivedRecord) -> None:
        """Forget what was remembered of a record that will not come again."""
        self._counts.forget(record.message_id)
        self._returns.forget(record.message_id)

    def put_back(self, record: ReceivedRecord) -> None:
        """The record was not delivered after all; it stands first again, uncounted."""
        self._expiring = True
        self.records.appendleft(record)
        self.notify()

    def redeliver(self, records: Sequence[ReceivedRecord]) -> None:
        """The application gave delivered records back: they come again, counted, in their order, before later ones."""
        first: list[ReceivedRecord] = []
        for record in records:
            times = self._counts.returned(record.message_id, record.redelivery_count)
            if self.dead_after is not None and times > self.dead_after:
                self.receiver.dead_letter(record, record.properties)
                self.settled(record)
            elif again(times, self.max_local, self.broker_dead_letters) is Again.AT_ONCE:
                first.append(record)
            else:
                self.give_back(record)
        if first:
            self.receiver.count_delivery(first)
            # a consumer that took the inbox over may have another selector than the one that received them
            self.records.extendleft(reversed(self._wanted(first)))
            self.notify()
            self.changed(self)

    def give_back(self, record: ReceivedRecord) -> None:
        """Give a record back with a growing delay: to the broker, or to ourselves where nobody else can get it.

        An exclusive subscription has no one else, and Pulsar would answer a negative acknowledgement there by sending
        everything again; so the record is held here, unacknowledged.
        """
        delay = self._returns.next(record.message_id)
        if self.filter.shared:
            self.receiver.negative_acknowledge((record,), delay)
        else:
            self.receiver.count_delivery((record,))
            self._held.put(record, time.time() + delay)

    def give_back_left(self, records: Sequence[ReceivedRecord]) -> None:
        """Give back what the closed consumer of this inbox was delivered: at once, unless a delay is configured."""
        if not asks_for_delay(self.subscription.config):
            self.receiver.negative_acknowledge(records, 0.0)
            return
        for record in records:
            self.receiver.negative_acknowledge((record,), self._returns.next(record.message_id))

    def release(self, records: Sequence[ReceivedRecord] = ()) -> None:
        """Give back what the application never got: the inbox, what is held, and ``records``."""
        self.acknowledge_now()
        self.unread.release()
        rest = [*records, *self.records, *self._held.clear(), *self.siblings.leave(self)]
        self.records.clear()
        if rest:
            self.receiver.negative_acknowledge(rest, 0.0, counted=False)

    def linger(self) -> None:
        """The consumer is closed: what it did not get goes back, what it got can still be settled."""
        self.wanted = False
        self.lingering = True
        self.release()

    async def stop(self, timeout: float) -> None:
        """What the broker sent or would send to a lingering inbox is for others."""
        if self.lingering and self.filter.shared and not self.filter.alone:
            await self.receiver.stop(timeout)

    async def aclose(self, timeout: float) -> None:
        """Give back the rest and close the receiver; delete the subscription where it must not stay. Idempotent."""
        if self.closed:
            return
        self.closed = True
        self.share.leave(self)
        self.wanted = False
        self.notify()
        deadline = Deadline.after(timeout)
        dropped = not self.drop_at_close
        try:
            self.release()
            await self.siblings.give_back(self)
            dropped = dropped or await self._drop(timeout / 2)
        finally:
            if self.released is not None:
                self.released()
            await self.receiver.aclose(deadline.left())
        if not dropped and self.drop_left is not None:
            await self.drop_left(deadline.left())

    async def _drop(self, timeout: float) -> bool:
        """Delete the subscription; False for one that other consumers use, which the broker refuses."""
        try:
            await self.receiver.unsubscribe(timeout)
        except TransportError as error:
            _log.info("the subscription of %r is left to its other consumers: %s", self.destination, error)
            return False
        return True

    # ---------------------------------------------------------------- held until their time

    def _hold_if_early(self, record: ReceivedRecord, now: int) -> bool:
        time = due(record, now)
        if time:
            self._held.put(record, time / 1000)
        return time > 0

    def _take_due(self) -> None:
        due = self._held.due()
        if due:
            self._expiring = True  # they may have expired meanwhile
            self.records.extend(due)
            self.notify()
