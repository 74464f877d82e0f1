"""``Inbox``: a consumer's use of one subscription, with the records that were received and not delivered."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Protocol
from weakref import WeakValueDictionary

import attrs

from jmsaio.client.delivery.filter import Filter, may_expire
from jmsaio.client.delivery.settlement import Settlement
from jmsaio.client.lifetime.scope import Deadline
from jmsaio.client.lifetime.stats import ConsumerStats
from jmsaio.codec.headers import expiration, priority
from jmsaio.codec.properties import as_dead_letter
from jmsaio.errors import JMSError, MalformedMessageError
from jmsaio.model.destinations import Destination
from jmsaio.model.log_fields import log_fields
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.fate import Fate, Rejection
from jmsaio.rules.priority import PriorityBuffer
from jmsaio.rules.resting import Bundle, Resting
from jmsaio.rules.share import Share
from jmsaio.transport.base import Subscription, SubscriptionType, Transport
from jmsaio.transport.clock import LoopTimers, Timer

_log = logging.getLogger(__name__)

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
#: Maximum number of batches that siblings add before the first record is delivered.
_ADDED = 8

#: Seconds between two returned bundles, in which other tasks run.
_PAUSE = 0.002


_size_of = attrgetter("size")


class InboxSession(Protocol):
    """The session that fills an inbox, a marked one in the next turn; see ``SessionInboxes``."""

    def mark(self, inbox: Inbox) -> None: ...
    def announce(self, inbox: Inbox) -> None: ...
    def retain(self, inbox: Inbox, transport: Transport) -> bool: ...


@attrs.define(eq=False)
class Siblings:
    """The inboxes of one event loop on one shared subscription: each passes the records that it rejects to the others.

    A record is settled by the receiver that received it, whichever consumer delivers it. Records that none selects rest
    (``jmsaio.rules.resting``) and are returned to the broker from time to time, in slices so as not to block the loop,
    for consumers of other processes.
    """

    _key: _Key | None = None
    _timers: LoopTimers = attrs.field(factory=LoopTimers)
    _members: list[Inbox] = attrs.field(factory=list, init=False)
    _resting: Resting = attrs.field(factory=Resting, init=False)
    _fresh: dict[Settlement, list[ReceivedRecord]] = attrs.field(factory=dict, init=False)
    _timer: Timer | None = attrs.field(default=None, init=False)
    _warned: bool = attrs.field(default=False, init=False)
    _turn: int = attrs.field(default=0, init=False)

    def join(self, inbox: Inbox) -> None:
        """Add a consumer. It might select resting records, so they are returned to be redelivered."""
        if inbox not in self._members:
            self._members.append(inbox)
            self._resting.hasten()
            self._arm()

    def leave(self, inbox: Inbox) -> list[ReceivedRecord]:
        """Remove a consumer; return the undelivered records that it passed to others. Its resting ones return soon."""
        if inbox in self._members:
            self._members.remove(inbox)
        settlement = inbox.settlement
        withdrawn = [record for member in self._members for record in member.withdraw(settlement)]
        self._resting.hasten(settlement)
        self._arm()
        return withdrawn

    async def return_resting(self, inbox: Inbox) -> None:
        """Return all resting records of an inbox that has left, even if cancelled: none counts as delivered."""
        cancelled: asyncio.CancelledError | None = None
        while (bundle := self._resting.pop_hastened(inbox.settlement, self._timers.clock.steady())) is not None:
            self._return(bundle)
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError as error:
                cancelled = error
        self._arm()
        if cancelled is not None:
            raise cancelled

    def reject(self, inbox: Inbox, record: ReceivedRecord) -> None:
        """Hand a record that ``inbox`` rejects to a sibling that accepts it; else it rests after ``set_aside``."""
        owner = inbox.settlement.release(record)
        if len(self._members) > 1:
            acceptor = self._acceptor(inbox, record)
            if acceptor is not None:
                acceptor.add(record, owner)
                return
        self._fresh.setdefault(owner, []).append(record)

    def _acceptor(self, inbox: Inbox, record: ReceivedRecord) -> Inbox | None:
        """Return a sibling that accepts a record: in turn, starting with those that wait for one."""
        now = self._timers.milliseconds()
        self._turn = turn = (self._turn + 1) % len(self._members)
        others = [one for one in (*self._members[turn:], *self._members[:turn]) if one is not inbox]
        for waiting in (True, False):
            for member in others:
                if member.wanted is waiting and member.accepts(record, now):
                    return member
        return None

    def set_aside(self) -> None:
        if not self._fresh:
            return
        fresh, self._fresh = self._fresh, {}
        now, sooner = self._timers.clock.steady(), False
        for owner, records in fresh.items():
            for record in owner.own.set_aside(records):
                sooner = self._resting.add(owner, record, now) or sooner
        if sooner:
            self._arm()

    def has_room(self, inbox: Inbox) -> bool:
        """Return whether more records of an inbox can rest; if not, receiving pauses, which is logged once."""
        settlement = inbox.settlement
        if self._resting.count(settlement) < settlement.max_resting:
            return True
        self._resting.full.add(settlement)
        if not self._warned:
            self._warned = True
            _log.warning(
                "receiving from %r has nearly stopped: %d messages that no selector here matches come before the "
                "others, as many as a consumer can keep unacknowledged; consume or remove them, or raise the option "
                "max_unacknowledged_rejected together with the broker's settings maxUnackedMessagesPerConsumer and "
                "maxUnackedMessagesPerSubscription, which have to be higher", inbox.destination, settlement.max_resting,
                extra=log_fields(destination=inbox.destination),
            )  # fmt: skip
        return False

    def _arm(self) -> None:
        wait = self._resting.wait(self._timers.clock.steady())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wait is not None:
            self._timer = self._timers.call_later(max(_PAUSE, wait), self._ring)
        # Not while records rest: an inbox that is taken over must find its own here, and return them when it closes.
        elif not self._members and self._key is not None and _groups.get(self._key) is self:
            del _groups[self._key]

    def _ring(self) -> None:
        self._timer = None
        bundle = self._resting.pop(self._timers.clock.steady())
        if bundle is not None:
            self._return(bundle)
        self._arm()

    def _return(self, bundle: Bundle) -> None:
        owner = bundle.owner
        assert isinstance(owner, Settlement)
        try:
            owner.own.negative_acknowledge(bundle.records, 0.0, counted=False)
        except JMSError as error:
            _log.debug("resting records were given back when their receiver ended: %s", error)
        if owner in self._resting.full:
            if 2 * self._resting.count(owner) < owner.max_resting:
                self._resting.full.discard(owner)
            for member in self._members:
                if member.settlement is owner:
                    member.wake()


@attrs.define(eq=False)
class Inbox:
    """A consumer's use of one subscription.

    ``attach`` sets its consumer. After ``detach`` it receives nothing; delivered records can still be settled, and
    another consumer can be attached.
    """

    destination: Destination
    subscription: Subscription
    settlement: Settlement
    by_priority: bool = False  # among all received records: reads further ones even while undelivered ones wait
    batch: int = BATCH  # maximum number of records in the inbox
    share: Share = attrs.field(factory=lambda: Share(INBOX_BYTES))  # maximum bytes, shared with others
    filter: Filter = attrs.field(factory=Filter, init=False)
    siblings: Siblings = attrs.field(factory=Siblings, init=False)
    records: deque[ReceivedRecord] | PriorityBuffer = attrs.field(init=False)
    wanted: bool = attrs.field(default=False, init=False)  # whether a receive or a listener waits for a record
    failure: JMSError | None = attrs.field(default=None, init=False)  # why the receiver ended
    refusal: JMSError | None = attrs.field(default=None, init=False)  # the broker currently refuses the credentials
    attached: bool = attrs.field(default=False, init=False)
    taken_over: bool = attrs.field(default=False, init=False)  # by a new consumer, which might not be attached yet
    closed: bool = attrs.field(default=False, init=False)
    more: bool = attrs.field(default=True, init=False)  # whether the last fill might have left records
    use_schema: bool = attrs.field(default=False, init=False)
    session: InboxSession | None = attrs.field(default=None, init=False)
    _free_name: Callable[[], None] | None = attrs.field(default=None, init=False)
    _waiter: asyncio.Future[None] | None = attrs.field(default=None, init=False)
    _largest: int = attrs.field(default=FIRST, init=False)  # bytes of the largest of the latest records
    _refill: int = attrs.field(default=-1, init=False)  # length at which a full inbox is refilled
    _expiring: bool = attrs.field(default=False, init=False)  # whether records might expire in the inbox

    def __attrs_post_init__(self) -> None:
        self.records = PriorityBuffer(priority) if self.by_priority else deque()
        self.settlement.report_to(self.fail)
        self.share.join(self)

    def attach(
        self,
        session: InboxSession,
        filter: Filter,
        siblings: Siblings,
        free_name: Callable[[], None] | None = None,
        use_schema: bool = False,
    ) -> None:
        """Start to receive for a consumer; ``free_name`` is called when it no longer uses its subscription's name."""
        self.session = session
        self.filter = filter
        self.siblings = siblings
        self._free_name = free_name
        self.use_schema = use_schema
        self.attached = self.more = True
        siblings.join(self)
        if filter.concerns_others:
            session.mark(self)

    def detach(self) -> None:
        self.wanted = False
        self.attached = self.taken_over = False
        self.release()

    def take_over(self) -> None:
        """Reserve a detached inbox for a new consumer, under another use of its subscription's name."""
        self.taken_over = True
        self.free_name()

    def free_name(self) -> None:
        free, self._free_name = self._free_name, None
        if free is not None:
            free()

    def wake(self) -> None:
        if self.session is not None:
            self.session.mark(self)

    def retain(self, inbox: Inbox, transport: Transport) -> bool:
        """Make the session retain another inbox, of which this one has records; return False if it can't."""
        return self.session is not None and self.session.retain(inbox, transport)

    def arrival(self) -> asyncio.Future[None]:
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        if self.more or self.trouble is not None:  # otherwise the receiver wakes it
            self.wake()
        return waiter

    def notify(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def fill(self) -> bool:
        """Read records from the receiver and add the selected ones; return whether more might be readable at once."""
        self.more = True
        if self.closed or not self.attached:
            return False
        # by number and by size, estimated from the latest ones
        room = min(self.batch, self.share.each // max(1, self._largest) or 1) - len(self.records)
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
            records = self.settlement.own.receive(room)
        except JMSError as error:
            self.fail(error)
            records = []
        if records:
            self._largest = max(records[0].size, records[-1].size, self._largest // 2)
            self.settlement.counts.add(len(records), sum(map(_size_of, records)), self.settlement.timers.milliseconds())
            self.records.extend(self._selected(records))
            if self.records:
                self.notify()
        elif self.refusal is not None:
            self.notify()
        self.more = len(records) == room
        return self.more

    def _selected(self, records: list[ReceivedRecord]) -> list[ReceivedRecord]:
        plain = self.filter.plain
        if may_expire(records):
            self._expiring = True
        elif plain:
            return records
        now = self.settlement.timers.milliseconds()
        selected = []
        for record in records:
            try:
                rejection = self.filter.rejects(record, now)
                if rejection is not None:
                    self._reject(record, rejection)
                else:
                    selected.append(record)
            except MalformedMessageError:  # decoding raises the same error for the consumer
                selected.append(record)
        if not plain:  # without selector and noLocal nothing rests: most batches skip the call
            self.siblings.set_aside()
        return selected

    def _reject(self, record: ReceivedRecord, rejection: Rejection) -> None:
        self.settlement.counts.rejected += 1
        match self.filter.fate(rejection):
            case Fate.GIVE_BACK:
                self.siblings.reject(self, record)
            case Fate.LATER:
                self.settlement.negative_acknowledge((record,), _SOON, counted=False)
            case Fate.DEAD_LETTER:
                self.settlement.dead_letter(record, as_dead_letter(record.properties))
            case Fate.ACKNOWLEDGE:
                self.settlement.drop(record)

    def accepts(self, record: ReceivedRecord, now: int) -> bool:
        if self.closed or not self.attached or self.failure is not None:
            return False
        if self.records:
            most = min(_ADDED * self.batch, self.share.each // max(1, self._largest, record.size))
            if len(self.records) >= most:
                return False
        return self.filter.rejects(record, now) is None

    def add(self, record: ReceivedRecord, owner: Settlement) -> None:
        if owner is not self.settlement:
            self.settlement.adopt(record, owner, self)
        self._expiring = self._expiring or record.may_expire
        self._largest = max(self._largest, record.size) if self.records else record.size
        self.records.append(record)
        self.notify()
        self.wake()

    def withdraw(self, owner: Settlement) -> list[ReceivedRecord]:
        found = [record for record in self.records if self.settlement.owner(record) is owner]
        if found:
            rest = [record for record in self.records if self.settlement.owner(record) is not owner]
            self.records.clear()
            self.records.extend(rest)
            for record in found:
                self.settlement.release(record)
            if len(rest) <= self._refill:
                self._fill_again()
        return found

    def fail(self, error: JMSError) -> None:
        self.failure = error
        self.notify()

    def refuse(self, refusal: JMSError | None) -> None:
        self.refusal = refusal
        if refusal is not None:
            self.notify()

    @property
    def trouble(self) -> JMSError | None:
        return self.failure or self.refusal

    def pop(self) -> ReceivedRecord | None:
        """Remove and return the application's next record, or None. Records that expired meanwhile are removed."""
        records = self.records
        if not records:
            self._expiring = False
            return None
        if not self._expiring:
            record = records.popleft()
            if len(records) <= self._refill:
                self._fill_again()
            return record
        while records:
            record = records.popleft()
            if len(records) <= self._refill:
                self._fill_again()
            try:
                if record.may_expire and 0 < expiration(record) <= self.settlement.timers.milliseconds():
                    self._reject(record, Rejection.EXPIRED)
                    continue
            except MalformedMessageError:  # decoding raises the error for the consumer
                return record
            return record
        return None

    def _fill_again(self) -> None:
        self._refill = -1
        if self.by_priority:  # a task that always finds a message never yields to the fills
            while self.fill():
                pass
        else:
            self.wake()

    def put_back(self, record: ReceivedRecord) -> None:
        """Return an undelivered record to the front, uncounted."""
        self._expiring = True
        self.records.appendleft(record)
        self.notify()

    def redeliver(self, records: Sequence[ReceivedRecord]) -> None:
        """Redeliver records that the application returned, in order, before later ones."""
        first = self.settlement.redeliver(records)
        if first:
            # a consumer that took over the inbox can have another selector
            self.records.extendleft(reversed(self._selected(first)))
            self.notify()
            self.wake()

    def where(self, record: ReceivedRecord | None = None) -> dict[str, str | int]:
        message_id = None if record is None else str(record.message_id)
        return log_fields(
            destination=self.destination, subscription=self.subscription.name, message_id=message_id,
            attempt=None if record is None else self.settlement.delivery_count(record),
        )  # fmt: skip

    def stats(self, in_flight: int) -> ConsumerStats:
        return ConsumerStats(
            destination=self.destination, subscription=self.subscription.name, buffered=len(self.records),
            in_flight=in_flight, **attrs.asdict(self.settlement.counts),
        )  # fmt: skip

    def release(self) -> None:
        """Return all undelivered records to the broker, including resting ones."""
        self.settlement.detach()
        rest = [*self.records, *self.siblings.leave(self)]
        self.records.clear()
        if rest:
            self.settlement.negative_acknowledge(rest, counted=False)

    async def stop(self, timeout: float) -> None:
        """Stop the receiver of a detached inbox, so that others receive its messages, in their order."""
        if self.filter.shared:
            try:
                await self.siblings.return_resting(self)
            finally:
                if not self.taken_over:  # else a new consumer receives from it
                    await self.settlement.own.stop(timeout)

    async def aclose(self, timeout: float) -> None:
        if self.closed:
            return
        self.closed = True
        self.share.leave(self)
        self.wanted = False
        self.notify()
        deadline = Deadline.after(timeout)
        try:
            self.release()
            await self.siblings.return_resting(self)
        finally:
            try:
                await self.settlement.aclose(deadline.left())
            finally:
                self.free_name()


_Key = tuple[asyncio.AbstractEventLoop, str, tuple[str, tuple[str, ...], str | None]]
_groups: WeakValueDictionary[_Key, Siblings] = WeakValueDictionary()


def siblings(broker: str, subscription: Subscription, timers: LoopTimers) -> Siblings:
    """Return this loop's consumers of a subscription; none share Key_Shared ones, whose broker chooses the receiver."""
    if subscription.type is not SubscriptionType.SHARED:
        return Siblings(timers=timers)
    key = asyncio.get_running_loop(), broker, subscription.identity
    group = _groups.get(key)
    if group is None:
        group = _groups[key] = Siblings(key, timers)
    return group
