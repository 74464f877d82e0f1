"""The sends of a session without an outcome; each reports it to its future and its unit of work. Their receipts."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, ParamSpec, TypeVar

import anyio
import attrs

from jmsaio.client.lifetime.stats import SendCounts
from jmsaio.errors import JMSError, OperationTimeoutError, SendInDoubtError
from jmsaio.model.destinations import Destination
from jmsaio.model.messages.tracing import SendTrace
from jmsaio.model.public import public
from jmsaio.model.wire import WireId
from jmsaio.rules.unit_of_work import UnitOfWork
from jmsaio.transport.base import Transaction
from jmsaio.transport.waiting import Waiters

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

#: Number of sends woken together, after the first one: one turn of the loop for each would be slow.
_TOGETHER = 100


class Lines(dict[str, OrderedDict[object, asyncio.Future[None]]]):
    """The waiting sends of one session, by topic: sends to one topic don't wait for those to another.

    A send that finds its topic here waits in line, even if the sender has room: it would overtake others.
    """

    @asynccontextmanager
    async def turn(self, topic: str) -> AsyncIterator[None]:
        """Wait for earlier sends. The record is sent in the same turn of the loop in which this is left."""
        loop, ticket = asyncio.get_running_loop(), object()
        line = self.setdefault(topic, OrderedDict())
        line[ticket] = loop.create_future()
        try:
            while next(iter(line)) is not ticket:  # woken together with an earlier one that still has to wait
                await line[ticket]
                line[ticket] = loop.create_future()
            yield
        finally:
            del line[ticket]
            if not line:
                del self[topic]
            else:
                _wake(line)


def _wake(line: OrderedDict[object, asyncio.Future[None]]) -> None:
    for count, waiting in enumerate(line.values()):
        if waiting.done() or count == _TOGETHER:
            return
        waiting.set_result(None)


@public
class Receipt(NamedTuple):
    """The broker's confirmation of one message. A named tuple, because every message sent creates one.

    Attributes:
        jms_message_id: JMSMessageID of the message, or None if message ids are disabled and ``place`` is unknown.
        place: Pulsar's message id, or None if several messages were confirmed at once without their ids, as over
            pulsar-client (``Capabilities.message_ids``), or in a transaction. Its ``duplicate`` is true if the broker
            deduplicates and already had the message.
        destination: the message's destination.
        timestamp: JMSTimestamp in milliseconds since the epoch.
    """

    jms_message_id: str | None
    place: WireId | None
    destination: Destination
    timestamp: int


@attrs.define(eq=False)
class SendOrigin:
    """Common values of a producer's sends in one millisecond, for their receipts and their session."""

    sends: PendingSends
    work: UnitOfWork[Transaction] | None
    destination: Destination
    timestamp: int
    counts: SendCounts

    def confirmed(self, number: int) -> None:
        """Count confirmed sends, all at once: a broker confirms many together."""
        self.counts.confirmed += number
        self.sends.ended(number)


class PendingSend(asyncio.Future[Receipt]):
    """The future of one message in flight, and the token by which the transport identifies it.

    It is the only object created per send, so it has no constructor either: the creator sets its attributes.
    """

    __slots__ = ("message_id", "origin")

    message_id: str | None
    origin: SendOrigin


class PendingSends:
    """The pending sends of one session. Passing one to the transport increments the count; ``settled`` decrements it.

    The count is exact, because a transport reports one outcome per token. ``outage`` returns how the connection to the
    broker was lost, or None if it is not known to be lost.
    """

    __slots__ = ("_all_settled", "_outage", "_task", "alone", "count", "lines", "turn")

    def __init__(self, outage: Callable[[], JMSError | None] = lambda: None) -> None:
        self._outage = outage
        self.count = 0
        self.turn = 0  # millisecond in which a send last let other tasks run, or found that they had run
        self.alone = False  # there was a send since the loop's last turn: other tasks have not run since
        self.lines = Lines()  # sends that were not passed to the transport yet
        self._task = 0  # identity of the task that sends, since the loop's last turn or the last ``blocks_others``
        self._all_settled = Waiters()

    def passed(self, loop: asyncio.AbstractEventLoop, turn: int) -> None:
        self.count += 1
        self.turn = turn
        if not self.alone:  # the first one of this turn of the loop
            self.alone = True
            self._task = id(asyncio.current_task(loop))
            loop.call_soon(self._end_turn)

    def blocks_others(self) -> bool:
        """Return whether the sending task has not let others run since its last send. False if each task sends once."""
        before, self._task = self._task, id(asyncio.current_task())
        return self.alone and self._task == before

    def _end_turn(self) -> None:
        self.alone = False

    def ended(self, number: int) -> None:
        self.count -= number
        if not self.count:
            self._all_settled.wake()

    @staticmethod
    def settled(group: Sequence[PendingSend], place: WireId | None, error: JMSError | None) -> None:
        """Report the outcome to sends, of any sessions. See ``SenderOptions.settled``."""
        if error is not None:
            _fail(group, error)
            return
        new = tuple.__new__  # as Receipt(...) and WireId(...), without the frames of their constructors
        index: int | None = None  # batch index, if more of its entry follow
        if place is not None and len(group) > 1:
            ledger, entry, partition, index = place
        last, number = group[0].origin, 0
        for send in group:
            origin = send.origin
            if origin is not last:
                last.confirmed(number)
                last, number = origin, 0
            number += 1
            if not send.done():  # done only if the application cancelled it
                message_id = send.message_id
                if message_id is None and place is not None:
                    message_id = str(place)
                send.set_result(new(Receipt, (message_id, place, origin.destination, origin.timestamp)))
            if origin.work is not None:
                origin.work.send_ended(None)
            if index is not None:
                index += 1
                place = new(WireId, (ledger, entry, partition, index))
        last.confirmed(number)

    async def settle(self, timeout: float) -> None:
        with anyio.move_on_after(timeout) as scope:
            # The scope is checked because it does not cancel a task that is woken in each turn.
            while self.count and not scope.cancel_called:
                await self._all_settled.wait()
        if scope.cancel_called and self.count:  # not if the last outcome arrived in the same turn of the loop
            late = OperationTimeoutError(f"{self.count} sends had no outcome within {timeout:.3g} s")
            raise self.explained(late)

    def explained(self, error: JMSError) -> JMSError:
        """Return a copy of the error of a missing answer that has the lost connection as its cause, if one is known."""
        outage = self._outage()
        unanswered = isinstance(error, SendInDoubtError | OperationTimeoutError)
        if outage is None or not unanswered or error.__cause__ is not None:
            return error
        explained = copy.copy(error)
        explained.reason = f"{error}; {outage}"
        explained.args, explained.__cause__ = (explained.reason,), outage
        return explained


def _fail(group: Sequence[PendingSend], error: JMSError) -> None:
    """Fail sends. Each receives its own error, because an error that is raised collects its traceback."""
    in_doubt = isinstance(error, SendInDoubtError)
    for send in group:
        origin = send.origin
        origin.counts.fail(in_doubt)
        own = origin.sends.explained(error)
        if own is error and send is not group[0]:
            own = copy.copy(error)
            own.__cause__ = error.__cause__
        if not send.done():
            send.set_exception(own)
            if origin.work is not None:
                send.exception()  # commit raises it; asyncio need not log that it was never awaited
        if origin.work is not None:
            origin.work.send_ended(own)
        origin.sends.ended(1)


def call_trace(method: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T | None:
    try:
        return method(*arguments, **keywords)
    except Exception:
        _log.exception("tracing failed; messages are not affected")
        return None


class TracedSend(PendingSend):
    """A PendingSend that also reports its outcome to a trace."""

    __slots__ = ("trace",)

    def __init__(self, loop: asyncio.AbstractEventLoop, trace: SendTrace) -> None:
        super().__init__(loop=loop)
        self.trace = trace

    def set_result(self, receipt: Receipt) -> None:
        call_trace(self.trace.sent, receipt.jms_message_id)
        super().set_result(receipt)

    def set_exception(self, error: BaseException | type[BaseException]) -> None:
        assert isinstance(error, BaseException)  # senders pass no classes
        call_trace(self.trace.failed, error)
        super().set_exception(error)

    def cancel(self, msg: object = None) -> bool:
        cancelled = super().cancel(msg)
        if cancelled:
            call_trace(self.trace.failed, asyncio.CancelledError("the future of the send was cancelled"))
        return cancelled
