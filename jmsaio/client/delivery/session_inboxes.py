"""``SessionInboxes``: the inboxes of one session, from the opening of a consumer to the last settled delivery.

Its coroutine moves received records from the receivers to the inboxes and filters them by selector, noLocal and expiry.
It never runs application code, so no application can block it. A waiting receive or listener without selector and
noLocal is filled as soon as the transport announces records, without a turn of the coroutine: there is almost nothing
to filter.

An inbox whose consumer was closed *lingers* while the session has unsettled deliveries of it, or another session has
records that it received. A new consumer of the same subscription takes over a lingering inbox.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial

import anyio
import attrs

from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.lifetime.scope import Deadline, FirstError
from jmsaio.errors import JMSError
from jmsaio.model.arguments import shown
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.ledger import DeliveryLedger
from jmsaio.transport.base import CLIENT_SELECTOR, Subscription, Transport
from jmsaio.transport.waiting import Waiters

#: Number of fills before other tasks of the loop run.
_FILLS_A_TURN = 8
#: Maximum time in seconds before other tasks run: a fill might have to filter all of its records.
_LONGEST_TURN = 0.01
#: Number of inboxes that start to close in one turn of the loop.
_TOGETHER = 5


@attrs.define(eq=False)
class SessionInboxes:
    """The inboxes of one session, with a consumer or lingering; ``filled`` wakes the callback workers."""

    transport: Transport
    ledger: DeliveryLedger[Inbox, ReceivedRecord]
    filled: Callable[[], None]
    open: dict[Inbox, None] = attrs.field(factory=dict, init=False)
    lingering: dict[Inbox, None] = attrs.field(factory=dict, init=False)
    _marked: dict[Inbox, None] = attrs.field(factory=dict, init=False)
    _wake: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _settled: Waiters = attrs.field(factory=Waiters, init=False)  # for the last delivery of a lingering inbox
    _turns: Waiters = attrs.field(factory=Waiters, init=False)
    _ended: bool = attrs.field(default=False, init=False)  # whether ``run`` has ended
    _closing: bool = attrs.field(default=False, init=False)
    _raised: Exception | None = attrs.field(default=None, init=False)  # by a fill outside of ``run``

    def __iter__(self) -> Iterator[Inbox]:
        yield from (*self.open, *self.lingering)

    def announce(self, inbox: Inbox) -> None:
        """Fill ``inbox``, which the transport announced; at once if that is cheap and no other inbox waits."""
        if self._marked or self._ended or not (inbox.wanted and inbox.filter.plain):
            self.mark(inbox)
            return
        try:
            more = inbox.fill()
        except Exception as error:  # ends the session, as an error in ``run`` does
            self._raised, more = error, True
        if more:
            self.mark(inbox)
        self.filled()

    def mark(self, inbox: Inbox) -> None:
        self._marked[inbox] = None
        self._wake.set()

    async def turn(self, inbox: Inbox) -> None:
        """Wait until ``inbox`` was filled once, or the session ended. Cancelling changes nothing."""
        if not self._ended:
            self.mark(inbox)
            await self._turns.wait()

    async def run(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if self._raised is not None:
                    raise self._raised
                await self._fill_marked()
                self.filled()
                self._turns.wake()  # also of inboxes that were marked meanwhile: those are filled as well
        finally:
            self._ended = True
            self._turns.wake()

    async def _fill_marked(self) -> None:
        fills, begun = 0, time.perf_counter()
        while self._marked:
            inbox = next(iter(self._marked))
            del self._marked[inbox]
            if inbox.fill():
                self._marked[inbox] = None
            fills += 1
            if fills % _FILLS_A_TURN == 0 or time.perf_counter() - begun > _LONGEST_TURN:
                self.filled()
                await asyncio.sleep(0)
                begun = time.perf_counter()

    def take_over(self, subscription: Subscription) -> Inbox | None:
        """Return a lingering inbox of the same subscription, which the caller then owns; refuse other terms."""
        same = [inbox for inbox in self.lingering if inbox.subscription.identity == subscription.identity]
        if any(inbox.subscription.properties != subscription.properties for inbox in same):
            raise JMSError(
                f"the durable subscription {shown(subscription.name)} is active: it has unsettled messages; "
                "acknowledge, recover, commit or roll back before you open it with another selector or noLocal"
            )
        for inbox in same:
            # The broker can filter by the metadata, and keeps the first consumer's.
            if _filtering(inbox.subscription) == _filtering(subscription) and inbox.failure is None:
                del self.lingering[inbox]
                self._settled.wake()
                inbox.take_over()
                return inbox
        return None

    def linger(self, inbox: Inbox) -> None:
        self.open.pop(inbox, None)
        self.lingering[inbox] = None
        inbox.detach()

    def retain(self, inbox: Inbox, transport: Transport) -> bool:
        """Keep a detached inbox until its records in this session are settled; return False if this session can't."""
        if self._closing or transport is not self.transport:
            return False
        self.lingering[inbox] = None
        return True

    async def settled(self, inbox: Inbox) -> None:
        while inbox in self.lingering and self.ledger.concerns(inbox):
            await self._settled.wait()

    async def close_settled(self, deadline: Deadline) -> None:
        self._settled.wake()
        for inbox in [
            one for one in self.lingering if not one.settlement.transferred and not self.ledger.concerns(one)
        ]:
            self.lingering.pop(inbox, None)
            self._marked.pop(inbox, None)
            await inbox.aclose(deadline.left())

    async def close_all(
        self, deadline: Deadline, unsettled: dict[Inbox, list[ReceivedRecord]], errors: FirstError
    ) -> None:
        """Close all inboxes at once, or pass them to sessions that have records of them; redeliver ``unsettled``."""
        self._closing = True
        async with anyio.create_task_group() as group:
            for count, inbox in enumerate([*self], 1):
                close = partial(self._close, inbox, unsettled.get(inbox, []), deadline.left(1))
                what = f"closing a consumer of {inbox.destination!r}"
                group.start_soon(errors.guard_within, deadline, close, what)
                if count % _TOGETHER == 0:  # starting a close takes half a millisecond: let others run
                    await asyncio.sleep(0)
        self.open.clear()
        self.lingering.clear()
        self._settled.wake()

    async def _close(self, inbox: Inbox, unsettled: list[ReceivedRecord], timeout: float) -> None:
        transferred = inbox.settlement.transferred
        if transferred and inbox.attached:
            inbox.detach()
        if any(adopter.retain(inbox, self.transport) for adopter in transferred.values()):
            inbox.settlement.return_unsettled(unsettled)
            await inbox.stop(timeout)
        else:
            await inbox.aclose(timeout)


def _filtering(subscription: Subscription) -> dict[str, str]:
    """Return the metadata by which the broker can filter; the client's selector is there for statistics only."""
    return {key: value for key, value in subscription.metadata.items() if key != CLIENT_SELECTOR}
