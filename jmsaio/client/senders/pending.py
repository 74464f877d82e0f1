"""The sends of a session whose outcome is not known yet; each reports it to its future and its unit of work."""

from __future__ import annotations

import asyncio

import anyio

from jmsaio.client.senders.receipt import Receipt
from jmsaio.codec import Stamp
from jmsaio.errors import JMSError, OperationTimeoutError
from jmsaio.model.destinations import Destination
from jmsaio.model.wire import WireId
from jmsaio.rules.unit_of_work import UnitOfWork
from jmsaio.transport.base import Transaction
from jmsaio.transport.waiters import Waiters


class PendingSend(asyncio.Future[Receipt]):
    """The future of one message on its way; the transport calls it with the outcome.

    The only object that lives as long as the send, because every message creates one.

    Args:
        sends: the pending sends of its session.
        work: the unit of work it belongs to, or None.
        stamp: the headers that the send set.
        destination: where it goes.
        loop: the event loop of the future.
    """

    __slots__ = ("destination", "message_id", "sends", "timestamp", "work")

    def __init__(
        self,
        sends: PendingSends,
        work: UnitOfWork[Transaction] | None,
        stamp: Stamp,
        destination: Destination,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(loop=loop)
        self.sends = sends
        self.work = work
        self.message_id, self.timestamp = stamp.message_id, stamp.timestamp
        self.destination = destination

    def __call__(self, place: WireId | None, error: JMSError | None) -> None:
        work = self.work
        if not self.done():  # done only when the application cancelled it
            if error is None:
                message_id = self.message_id
                if message_id is None and place is not None:
                    message_id = str(place)
                # As Receipt(...), without the frame of its constructor: every send creates one.
                self.set_result(tuple.__new__(Receipt, (message_id, place, self.destination, self.timestamp)))
            else:
                self.set_exception(error)
                if work is not None:
                    self.exception()  # commit raises it, so asyncio need not complain that no one awaited it
        if work is not None:
            work.send_ended(error)
        self.sends.complete(self)


class PendingSends(set[PendingSend]):
    """The pending sends of one session: ``add`` each that the transport has taken, ``complete`` removes it.

    Attributes:
        turn: millisecond in which a send last let other tasks run.
    """

    __slots__ = ("_none_left", "turn")

    def __init__(self) -> None:
        self.turn = 0
        self._none_left = Waiters()

    def complete(self, send: PendingSend) -> None:
        """The outcome of a send is known."""
        self.discard(send)
        if not self:
            self._none_left.wake()

    async def settle(self, timeout: float) -> None:
        """Wait until every send has its outcome, for ``timeout`` seconds at most. Cancelling changes nothing.

        Raises:
            OperationTimeoutError: some have none yet.
        """
        with anyio.move_on_after(timeout) as scope:
            while self:
                await self._none_left.wait()
        if scope.cancelled_caught:
            raise OperationTimeoutError(f"{len(self)} sends had no outcome within {timeout:.3g} s")
