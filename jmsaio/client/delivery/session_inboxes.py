"""``SessionInboxes``: the inboxes of one session, from the opening of a consumer to the last settled delivery.

An inbox whose consumer was closed *lingers* while the session has unsettled deliveries of it, or another session has
records that it received. A new consumer of the same subscription takes over a lingering inbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

import anyio
import attrs

from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.lifetime.closing import Deadline, FirstError
from jmsaio.model.wire import ReceivedRecord
from jmsaio.transport.base import Subscription, Transport

#: Number of inboxes that start to close in one turn of the loop.
_TOGETHER = 5


@attrs.define(eq=False)
class SessionInboxes:
    """The inboxes of one session.

    Attributes:
        transport: the transport of all inboxes.
        unsettled: whether the session has unsettled deliveries of an inbox.
        forget: called when an inbox is closed, to stop filling it.
        open: inboxes with a consumer.
        lingering: inboxes whose consumer is closed.
    """

    transport: Transport
    unsettled: Callable[[Inbox], bool]
    forget: Callable[[Inbox], None]
    open: dict[Inbox, None] = attrs.field(factory=dict, init=False)
    lingering: dict[Inbox, None] = attrs.field(factory=dict, init=False)

    def __iter__(self) -> Iterator[Inbox]:
        yield from (*self.open, *self.lingering)

    def take_over(self, subscription: Subscription) -> Inbox | None:
        """Return the inbox that a closed consumer of the same subscription left with unsettled deliveries, or None.

        The caller then owns it, and adds it again to ``open`` or with ``keep``.
        """
        for inbox in self.lingering:
            same = inbox.subscription.identity == subscription.identity
            # The broker can filter by the metadata, and keeps that of the first consumer.
            if same and inbox.subscription.metadata == subscription.metadata and inbox.failure is None:
                del self.lingering[inbox]
                inbox.free_name()
                return inbox
        return None

    def linger(self, inbox: Inbox) -> None:
        """Keep an inbox without a consumer until its deliveries are settled, or the session ends."""
        self.open.pop(inbox, None)
        self.lingering[inbox] = None
        inbox.detach()

    def keep(self, inbox: Inbox, transport: Transport) -> bool:
        """Keep a detached inbox, perhaps another session's, until its records in this session are settled.

        Returns:
            False for an inbox of another transport, which is not kept.
        """
        if transport is not self.transport:
            return False
        self.lingering[inbox] = None
        return True

    async def close_settled(self, deadline: Deadline) -> None:
        """Close the lingering inboxes whose deliveries are all settled."""
        for inbox in [one for one in self.lingering if not one.receiver.transferred and not self.unsettled(one)]:
            self.lingering.pop(inbox, None)
            self.forget(inbox)
            await inbox.aclose(deadline.left())

    async def close_all(
        self, deadline: Deadline, unsettled: dict[Inbox, list[ReceivedRecord]], errors: FirstError
    ) -> None:
        """Close all inboxes concurrently; hand over an inbox to another session that has records of it.

        Args:
            deadline: deadline of all of them.
            unsettled: the unsettled deliveries of each, which the broker redelivers.
            errors: keeps the first error.
        """
        async with anyio.create_task_group() as group:
            for count, inbox in enumerate([*self], 1):
                close = partial(self._close, inbox, unsettled.get(inbox, []), deadline.left(1))
                what = f"closing a consumer of {inbox.destination!r}"
                group.start_soon(errors.guard_within, deadline, close, what)
                if count % _TOGETHER == 0:  # starting a close takes half a millisecond: let others run
                    await asyncio.sleep(0)
        self.open.clear()
        self.lingering.clear()

    async def _close(self, inbox: Inbox, unsettled: list[ReceivedRecord], timeout: float) -> None:
        if self._hand_over(inbox):
            inbox.give_back_left(unsettled)
            await inbox.stop(timeout)
        else:
            await inbox.aclose(timeout)

    def _hand_over(self, inbox: Inbox) -> bool:
        """Leave an inbox to a session that has records of it; return False if none has any, or none can keep it."""
        transferred = inbox.receiver.transferred
        if transferred and inbox.attached:
            inbox.detach()
        return any(adopter.keep is not None and adopter.keep(inbox, self.transport) for adopter in transferred.values())
