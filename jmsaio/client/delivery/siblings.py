"""Consumers of one process that share a subscription: each passes the records that it rejects to the others.

A record is settled by the receiver that received it, whichever consumer delivers it. Records that none of them selects
rest (``jmsaio.rules.resting``) and are returned to the broker from time to time, for consumers of other processes. They
are returned in slices, so as not to block the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from weakref import WeakValueDictionary

import attrs

from jmsaio.client.delivery.settlement import Member, Settlement
from jmsaio.errors import JMSError
from jmsaio.model.log_fields import log_fields
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.resting import Bundle, Resting
from jmsaio.transport.base import Subscription, SubscriptionType
from jmsaio.transport.clock import LoopTimers, Timer

_log = logging.getLogger(__name__)

#: Seconds between two returned bundles, in which other tasks run.
_PAUSE = 0.002

_Key = tuple[asyncio.AbstractEventLoop, str, tuple[str, tuple[str, ...], str | None]]
_groups: WeakValueDictionary[_Key, Siblings] = WeakValueDictionary()


@attrs.define(eq=False)
class Siblings:
    """The inboxes of one event loop on one shared subscription, with one clock."""

    _key: _Key | None = None
    _timers: LoopTimers = attrs.field(factory=LoopTimers)
    _members: list[Member] = attrs.field(factory=list, init=False)
    _resting: Resting = attrs.field(factory=Resting, init=False)
    _fresh: dict[Settlement, list[ReceivedRecord]] = attrs.field(factory=dict, init=False)
    _timer: Timer | None = attrs.field(default=None, init=False)
    _warned: bool = attrs.field(default=False, init=False)
    _turn: int = attrs.field(default=0, init=False)

    def join(self, inbox: Member) -> None:
        """Add a consumer. It might select resting records, so they are returned to be redelivered."""
        if inbox not in self._members:
            self._members.append(inbox)
            self._resting.hasten()
            self._arm()

    def leave(self, inbox: Member) -> list[ReceivedRecord]:
        """Remove a consumer; return the undelivered records that it passed to others. Its resting ones return soon."""
        if inbox in self._members:
            self._members.remove(inbox)
        settlement = inbox.settlement
        withdrawn = [record for member in self._members for record in member.withdraw(settlement)]
        self._resting.hasten(settlement)
        self._arm()
        return withdrawn

    async def return_resting(self, inbox: Member) -> None:
        """Return the resting records of an inbox that has left, before its receiver is closed.

        Cancelling: all are returned nevertheless, so that none counts as delivered.
        """
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

    def reject(self, inbox: Member, record: ReceivedRecord) -> None:
        """Hand a record that ``inbox`` rejects to a sibling that accepts it; else it rests after ``set_aside``."""
        owner = inbox.settlement.release(record)
        if len(self._members) > 1:
            acceptor = self._acceptor(inbox, record)
            if acceptor is not None:
                acceptor.add(record, owner)
                return
        self._fresh.setdefault(owner, []).append(record)

    def _acceptor(self, inbox: Member, record: ReceivedRecord) -> Member | None:
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
        """Let the rejected records that no sibling accepted rest from now on."""
        if not self._fresh:
            return
        fresh, self._fresh = self._fresh, {}
        now, sooner = self._timers.clock.steady(), False
        for owner, records in fresh.items():
            for record in owner.own.set_aside(records):
                sooner = self._resting.add(owner, record, now) or sooner
        if sooner:
            self._arm()

    def has_room(self, inbox: Member) -> bool:
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


def siblings(broker: str, subscription: Subscription, timers: LoopTimers) -> Siblings:
    """Return this loop's consumers of a subscription; none share Key_Shared ones, whose broker chooses the receiver."""
    if subscription.type is not SubscriptionType.SHARED:
        return Siblings(timers=timers)
    key = asyncio.get_running_loop(), broker, subscription.identity
    group = _groups.get(key)
    if group is None:
        group = _groups[key] = Siblings(key, timers)
    return group
