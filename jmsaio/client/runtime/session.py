"""What lives behind a Session: its tasks, its deliveries, and its orderly end.

A session's task group lives in a task of its own that the connection's owner task started; the dispatch coroutine and
the callback workers are its children. ``close`` sends that task a request, so it may come from any task in any order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import anyio
import attrs

from jmsaio.client.callbacks import callback_context
from jmsaio.client.callbacks.callback_context import CallbackContext, CallbackKind
from jmsaio.client.callbacks.completion import Completions
from jmsaio.client.callbacks.worker import CallbackWorker, Job, NoExceptionError, run_inside
from jmsaio.client.delivery.dispatch import Dispatch
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.lifetime.deadline import GRACE, Deadline
from jmsaio.client.lifetime.home import Home
from jmsaio.client.lifetime.opening import Closable
from jmsaio.client.senders.pending import PendingSends
from jmsaio.errors import JMSError, MalformedMessageError, ObjectClosedError, OperationTimeoutError
from jmsaio.model.messages.message import Message
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.ledger import Ledger
from jmsaio.transport.base import Subscription, Transaction, Transport

if TYPE_CHECKING:
    from jmsaio.client.connection import Connection
    from jmsaio.client.consumer import MessageConsumer
    from jmsaio.client.runtime.local_transaction import LocalTransaction


@attrs.define(eq=False)
class SessionRuntime:
    """The running part of one session.

    Attributes:
        connection: the connection it belongs to.
        number: its number among the sessions of the connection, from 1.
        mode: acknowledge mode.
        ledger: deliveries that are not settled.
        concurrency: callback workers.
        failure: why the session ended by itself, or None.
        transaction: ends the work of a transacted session at close.
    """

    connection: Connection
    number: int
    mode: AcknowledgeMode
    ledger: Ledger[Inbox, ReceivedRecord]
    concurrency: int = 1
    failure: JMSError | None = None
    transaction: LocalTransaction | None = None
    home: Home = attrs.field(init=False)
    self_acknowledging: bool = attrs.field(init=False)
    dispatch: Dispatch = attrs.field(init=False)
    callbacks: CallbackWorker = attrs.field(init=False)
    completions: Completions = attrs.field(init=False)
    consumers: dict[MessageConsumer, None] = attrs.field(factory=dict, init=False)
    _producers: int = attrs.field(default=0, init=False)
    children: dict[Closable, None] = attrs.field(factory=dict, init=False)
    sends: PendingSends = attrs.field(factory=PendingSends, init=False)
    turn: int = attrs.field(default=0, init=False)  # millisecond in which a send last let the loop go on
    closing: bool = attrs.field(default=False, init=False)
    closed: bool = attrs.field(default=False, init=False)
    _lingering: dict[Inbox, None] = attrs.field(factory=dict, init=False)
    _listening: deque[MessageConsumer] = attrs.field(factory=deque, init=False)
    _requested: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _running: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _ended: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _close_error: JMSError | None = attrs.field(default=None, init=False)
    _deadline: Deadline | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.home = self.connection.home
        self.self_acknowledging = self.mode in (AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK)
        self.callbacks = CallbackWorker(self._next_job)
        self.dispatch = Dispatch(self.callbacks.wake)
        self.completions = Completions(self, self.connection, self.callbacks)

    # ---------------------------------------------------------------- life

    @property
    def started(self) -> bool:
        """True while messages may be delivered."""
        return self.connection.started and not self.closing

    @property
    def close_timeout(self) -> float:
        """Bound of a whole close, in seconds."""
        return self.connection.configuration.close_timeout

    async def run(self) -> None:
        """The session's own task; ends after ``close`` or when a child failed, which it reports."""
        callback_context.leave()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self.dispatch.run)
                for _ in range(self.concurrency):
                    group.start_soon(self.callbacks.run)
                self._running.set()
                await self._requested.wait()
                await self._shut_down()
                group.cancel_scope.cancel()
            if not self._requested.is_set():
                raise JMSError("a callback cancelled the task that ran it")
        except* Exception as errors:
            cause = errors.exceptions[0]
            self.failure = JMSError(f"the session ended by itself, its messages come again: {cause}")
            self.failure.__cause__ = cause
            self.connection.report(self.failure)
            if isinstance(cause, NoExceptionError):
                self._close_error = self.failure
                self.connection.session_failed(self)
        finally:
            self.closing = True
            with anyio.CancelScope(shield=True):
                await self._let_go()
            self.closed = True
            self.connection.forget(self)
            self._ended.set()

    async def wait_running(self) -> None:
        """Wait until the tasks run."""
        await self._running.wait()

    def abandon(self) -> None:
        """Let the session end by itself: the call that made it was cancelled."""
        self.closing = True
        self._requested.set()

    async def close(self, deadline: Deadline | None = None) -> None:
        """Ask the session to end, and wait; see ``Session.close``."""
        if self.home.forked:
            self.closing = self.closed = True  # its tasks are the parent's
            return
        self.home.check()
        self.closing = True
        deadline = deadline or Deadline.after(self.close_timeout)
        if self._deadline is None or deadline.at < self._deadline.at:
            self._deadline = deadline
        for consumer in self.consumers:
            consumer._inbox.notify()
        self._requested.set()
        with anyio.move_on_after(self._deadline.left() + GRACE):
            await self._ended.wait()
        if not self._ended.is_set():
            raise OperationTimeoutError(f"the session did not close within {self.close_timeout:g} s (close_timeout)")
        self.raise_close_error()

    def raise_close_error(self) -> None:
        """Raise what went wrong with the end of the session, once."""
        error, self._close_error = self._close_error, None
        if error is not None:
            raise error

    async def _shut_down(self) -> None:
        """Let what runs end; then undo an open transaction. What ``_let_go`` does has three steps."""
        deadline = self._deadline or Deadline.after(self.close_timeout)
        await self._quietly(self.wait_idle(deadline.left(4)))  # first, because a running listener may still send
        await self._quietly(self.settle_sends(deadline.left(4)))
        if self.transaction is not None:
            await self._quietly(deadline.bound(self.transaction.undo(), "the rollback of a closing session", 3))

    async def _let_go(self) -> None:
        """Close every consumer and producer; nothing is acknowledged here."""
        deadline = self._deadline or Deadline.after(self.close_timeout)
        await self._quietly(self.completions.finish(deadline.left(2)))
        for consumer in self.consumers:
            consumer._closed = True
        inboxes = [*(consumer._inbox for consumer in self.consumers), *self._lingering]
        unsettled = dict(self.ledger.take_all())
        async with anyio.create_task_group() as group:  # at once: all have the same time
            for child in list(self.children):
                group.start_soon(self._end, deadline, child.close, "closing what a session has made")
            for inbox in inboxes:
                close = partial(self._leave, inbox, unsettled.get(inbox, []), deadline.left(1))
                group.start_soon(self._end, deadline, close, f"closing a consumer of {inbox.destination!r}")
        self.consumers.clear()
        self._lingering.clear()

    async def _leave(self, inbox: Inbox, unsettled: list[ReceivedRecord], timeout: float) -> None:
        """Close an inbox, or leave it to a session that has its records: what this one did not settle comes again."""
        if inbox.receiver.bequeath(inbox, self.connection.transport):
            inbox.give_back_left(unsettled)
            await inbox.stop(timeout)
        else:
            await inbox.aclose(timeout)

    async def _end(self, deadline: Deadline, close: Callable[[], Awaitable[None]], what: str) -> None:
        await self._quietly(deadline.bound(close(), what))

    async def _quietly(self, closing: object) -> None:
        try:
            await closing  # type: ignore[misc]  # any of our close coroutines
        except JMSError as error:
            self._close_error = self._close_error or error

    async def wait_idle(self, timeout: float) -> None:
        """Wait until no callback runs. Raises OperationTimeoutError when one does not return in time."""
        with anyio.move_on_after(timeout) as scope:
            await self.callbacks.idle()
        if scope.cancelled_caught:
            raise OperationTimeoutError(
                f"a listener or completion callback did not return within {timeout:.3g} s; "
                "make it return, or raise close_timeout"
            )

    async def _wait_for_callbacks(self, timeout: float) -> None:
        callback = callback_context.current()
        if callback is None or callback.session is not self:  # a callback of this session would wait for itself
            await self.wait_idle(timeout)

    # ---------------------------------------------------------------- sends

    def next_message_prefix(self) -> str:
        """The front of the JMSMessageIDs of a new producer: ``ID:<connection uuid>:<session>:<producer>:``.

        With three integers at the end, Starlight's selector engine takes it.
        """
        self._producers += 1
        return f"ID:{self.connection.uuid}:{self.number}:{self._producers}:"

    async def settle_sends(self, timeout: float) -> None:
        """Wait until every send has its outcome and every completion listener was told.

        Raises OperationTimeoutError; cancelling changes nothing.
        """
        deadline = Deadline.after(timeout)
        await self.sends.settle(timeout)
        if len(self.completions):
            await asyncio.sleep(0)  # an outcome reaches the completions one turn of the loop after its send ended
        await self._wait_for_callbacks(deadline.left())

    # ---------------------------------------------------------------- deliveries

    def delivered(self, inbox: Inbox, record: ReceivedRecord, message: Message, hold: bool) -> int:
        """Note that the application gets ``message``; AUTO and DUPS_OK acknowledge at once unless ``hold``.

        Returns:
            The delivery's number in the ledger, 0 when it is settled already.
        """
        if self.self_acknowledging:
            message._acknowledge = self.acknowledge_nothing
            if not hold:
                inbox.acknowledge_soon(record)
                return 0
            return self.ledger.delivered(inbox, record)
        number = self.ledger.delivered(inbox, record)
        if self.mode is AcknowledgeMode.TRANSACTED:
            message._acknowledge = self.acknowledge_nothing
        else:
            message._acknowledge = partial(self.acknowledge, number)
        return number

    async def acknowledge_nothing(self) -> None:
        """``acknowledge`` in AUTO, DUPS_OK and transacted sessions: ignored while the session is open."""
        self.check_call()

    async def acknowledge(self, number: int) -> None:
        """``acknowledge`` of one delivery: as far as the ledger's scope says."""
        self.check_call()
        await self.carry_out(self.ledger.acknowledge(number))

    async def acknowledge_all(self) -> None:
        """Acknowledge every delivery of the session."""
        await self.carry_out(self.ledger.take_all())

    async def acknowledge_one(self, number: int) -> None:
        """Acknowledge one delivery, whatever the scope; left to commit in a transacted session."""
        if self.mode is AcknowledgeMode.TRANSACTED:
            return
        entry = self.ledger.take(number)
        if entry is not None:
            await self.carry_out([(entry[0], [entry[1]])])

    async def carry_out(
        self, commands: list[tuple[Inbox, list[ReceivedRecord]]], transaction: Transaction | None = None
    ) -> None:
        """Acknowledge at the transport; wait for the broker only where ``ackReceiptEnabled`` asks for it."""
        for inbox, records in commands:
            inbox.acknowledge(records, transaction)
        if self.connection.configuration.consumer.ack_receipt_enabled:
            for inbox, _ in commands:
                await inbox.receiver.settle(self.connection.configuration.operation_timeout)
        if self._lingering:
            await self._close_lingering()

    def settle_held(self, number: int) -> None:
        """AUTO: the held delivery is acknowledged."""
        entry = self.ledger.take(number)
        if entry is not None:
            entry[0].acknowledge((entry[1],))

    def undo_held(self, number: int) -> None:
        """AUTO: the held delivery did not happen; its message is first in line again, uncounted."""
        entry = self.ledger.take(number)
        if entry is not None:
            entry[0].put_back(entry[1])

    async def redeliver_one(self, number: int) -> None:
        """One delivery failed: its message comes again, counted."""
        entry = self.ledger.take(number)
        if entry is not None:
            self._redeliver(entry[0], [entry[1]])
            await self._close_lingering()

    async def redeliver_all(self) -> None:
        """Every unsettled delivery comes again, counted, in its order, before later messages."""
        for inbox, records in self.ledger.take_all():
            self._redeliver(inbox, records)
        await self._close_lingering()

    def _redeliver(self, inbox: Inbox, records: list[ReceivedRecord]) -> None:
        if inbox in self._lingering:
            inbox.give_back_left(records)
        else:
            inbox.redeliver(records)

    def refuses(self) -> bool:
        """Whether calls are refused: it was closed, and it is no listener that calls, which runs on meanwhile."""
        return self.closing and not callback_context.listens(self)

    def check_open(self) -> None:
        """Raise ObjectClosedError when the session is closed, ForkError in a child process."""
        self.home.check_process()
        if self.refuses():
            raise ObjectClosedError("the session is closed; create a new one")

    def check_call(self) -> None:
        """``check_open`` for what uses the event loop: IllegalStateError outside of it."""
        self.home.check()
        self.check_open()

    # ---------------------------------------------------------------- consumers

    def add_consumer(self, consumer: MessageConsumer) -> None:
        """A consumer was opened."""
        self.consumers[consumer] = None

    def adopt(self, subscription: Subscription) -> Inbox | None:
        """The inbox that a closed consumer of the same subscription left with unsettled deliveries, or None."""
        for inbox in self._lingering:
            if inbox.subscription.identity == subscription.identity and inbox.failure is None:
                del self._lingering[inbox]
                if inbox.released is not None:
                    inbox.released()
                    inbox.released = None
                return inbox
        return None

    def linger(self, inbox: Inbox) -> None:
        """Keep an inbox without consumer until its deliveries are settled, or the session ends."""
        self._lingering[inbox] = None
        inbox.linger()

    def keep(self, inbox: Inbox, transport: Transport) -> bool:
        """Look after another session's inbox until its records that this session has are settled."""
        if self.closing or transport is not self.connection.transport:
            return False
        self._lingering[inbox] = None
        return True

    async def close_consumer(self, consumer: MessageConsumer) -> None:
        """Let a closed consumer's inbox go, or keep it until its deliveries are settled."""
        self.consumers.pop(consumer, None)
        if consumer in self._listening:
            self._listening.remove(consumer)
        inbox = consumer._inbox
        self.linger(inbox)  # before the first await: however this call ends, the session lets the inbox go
        deadline = Deadline.after(self.close_timeout)
        await self._wait_for_callbacks(deadline.left(1))
        await self._close_lingering(deadline)
        if inbox in self._lingering and (inbox.receiver.lent or not self.self_acknowledging):
            await inbox.stop(deadline.left())

    async def _close_lingering(self, deadline: Deadline | None = None) -> None:
        deadline = deadline or Deadline.after(self.close_timeout)
        for inbox in [one for one in self._lingering if not one.receiver.lent and not self.ledger.concerns(one)]:
            self._lingering.pop(inbox, None)
            self.dispatch.forget(inbox)
            await inbox.aclose(deadline.left())

    def wake(self) -> None:
        """The connection was started: look for messages and for listeners' work."""
        for consumer in self.consumers:
            consumer._inbox.notify()
            self.dispatch.mark(consumer._inbox)
        self.callbacks.wake()

    # ---------------------------------------------------------------- listeners

    def listening(self, consumer: MessageConsumer) -> None:
        """A consumer's listener was set or unset."""
        if consumer in self._listening:
            self._listening.remove(consumer)
        if consumer._listener is not None:
            self._listening.append(consumer)
            self.dispatch.mark(consumer._inbox)
            self.callbacks.wake()

    def _next_job(self) -> Job | None:
        if not self.started:
            return None
        for _ in range(len(self._listening)):
            consumer = self._listening.popleft()
            inbox = consumer._inbox
            record = inbox.take()
            if record is None and inbox.failure is not None:
                self.connection.report(inbox.failure)  # no receive will raise it, and nothing comes any more
                continue
            self._listening.append(consumer)
            if record is not None:
                return partial(self._listen, consumer, record)
            if inbox.more:  # marking it always would keep an idle session busy
                self.dispatch.mark(inbox)
        return None

    async def _listen(self, consumer: MessageConsumer, record: ReceivedRecord) -> None:
        inbox, listener = consumer._inbox, consumer._function
        if listener is None or consumer._listener is None:
            inbox.put_back(record)
            return
        try:
            message = consumer._open(record)
        except MalformedMessageError as malformed:
            self.connection.report(malformed)
            return
        if message is None:
            return
        number = self.delivered(inbox, record, message, hold=True)
        callback = CallbackContext(CallbackKind.LISTENER, self.connection, self, consumer)
        error = await run_inside(callback, listener, message, in_thread=consumer._in_thread)
        if error is not None:
            self.connection.report(
                error, f"the listener of {inbox.destination!r} failed on message {message.jms_message_id}"
            )
        if self.self_acknowledging:
            if error is None:
                self.settle_held(number)
            else:
                await self.redeliver_one(number)
        if self._lingering:
            await self._close_lingering()
