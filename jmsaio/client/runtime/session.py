"""``SessionRuntime``: the running part of a Session: its tasks, sends and deliveries, and its orderly end.

A session's task group runs in its own task, started by the connection's owner task; the coroutine that fills the
inboxes and the callback workers are its children. ``close`` sends that task a request, so any task can call it in any
order.

A transacted session also has a ``LocalTransaction`` (Jakarta Messaging 3.1, 6.2.7 Transactions): the broker's
(``enableTransaction``), or an emulated one (``jms.emulateTransactions``), which sends at once and acknowledges at
commit. Messages stay sent after its rollback, so the first rollback warns.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import attrs

from jmsaio.client.callbacks import callback_context
from jmsaio.client.callbacks.callback_context import CallbackKind
from jmsaio.client.callbacks.completion import Completions
from jmsaio.client.callbacks.worker import CallbackWorker, Job, NoExceptionError
from jmsaio.client.delivery.deliveries import Commands, Deliveries, Reply, confirm_each
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.delivery.listeners import Listeners
from jmsaio.client.delivery.session_inboxes import SessionInboxes
from jmsaio.client.lifetime.scope import BackgroundTask, Closable, Deadline
from jmsaio.client.runtime.connection import ConnectionRuntime
from jmsaio.client.senders.pending import PendingSends
from jmsaio.errors import (
    IllegalStateError,
    JMSError,
    ObjectClosedError,
    OperationTimeoutError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    TransportError,
)
from jmsaio.model.log_fields import log_fields
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.ledger import DeliveryLedger
from jmsaio.rules.unit_of_work import UnitOfWork
from jmsaio.transport.base import Transaction


class SessionRuntime:
    """The running part of one session."""

    def __init__(
        self,
        connection: ConnectionRuntime,
        mode: AcknowledgeMode,
        ledger: DeliveryLedger[Inbox, ReceivedRecord],
        number: int,
        reply: Reply,
    ) -> None:
        self.connection = connection
        self.number = number
        self.affinity = connection.affinity
        self.mode = mode
        self.callbacks = CallbackWorker(self._next_job)
        self.inboxes = SessionInboxes(connection.transport, ledger, self._wake_listeners)
        transacted = mode is AcknowledgeMode.TRANSACTED
        self.transaction = LocalTransaction(self, connection.configuration.enable_transaction) if transacted else None
        delivered = self.transaction.delivered if self.transaction is not None and self.transaction.real else None
        self.deliveries = Deliveries(
            mode, ledger, self.inboxes, self.check_call, reply, delivered, connection.configuration
        )
        self.listeners = Listeners(self.deliveries, connection.reports, connection, self, self.where)
        self.completions = Completions(self, connection, self.callbacks, connection.reports, self.where)
        self.sends = PendingSends(lambda: connection.states.outage)
        self.children: dict[Closable, None] = {}  # producers and the like, which are closed with it
        self.drains: dict[Inbox, Callable[[Deadline], Awaitable[None]]] = {}  # drain the inbox's open consumer
        self.failure: JMSError | None = None  # why the session ended by itself
        self.closing = self.consumers_closed = False  # after the second, consumers no longer deliver
        self.task = BackgroundTask()

    def where(self) -> dict[str, str | int]:
        return log_fields(connection=self.connection.connection_id, session=self.number)

    @property
    def started(self) -> bool:
        return self.connection.started and not self.closing

    @property
    def close_timeout(self) -> float:
        return self.connection.configuration.close_timeout

    @property
    def ended_by_callback(self) -> bool:
        """Whether a callback ended it by raising something that is not an Exception."""
        return self.failure is not None and isinstance(self.failure.__cause__, NoExceptionError)

    def refuses(self) -> bool:
        """Return whether calls are refused: the session was closed, and the caller is not one of its listeners."""
        return self.closing and not callback_context.listens(self)

    def check_open(self) -> None:
        self.affinity.check_process()
        if self.refuses():
            raise ObjectClosedError("the session is closed; create a new one")

    def check_call(self) -> None:
        self.affinity.check()
        if self.closing:
            self.check_open()

    async def run(self) -> None:
        callback_context.unmark()
        self.connection.inboxes[self.inboxes] = None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self.inboxes.run)
                group.start_soon(self.listeners.fetch_schemas)
                if self.transaction is not None:
                    group.start_soon(self.transaction.run)
                for _ in range(self.connection.configuration.listener_concurrency):
                    group.start_soon(self.callbacks.run)
                self.task.running.set()
                await self.task.requested.wait()
                await self._end_work()
                group.cancel_scope.cancel()
            if not self.task.requested.is_set():
                raise JMSError("a callback cancelled the task that ran it")
        except* Exception as errors:
            cause = errors.exceptions[0]
            self.failure = JMSError(f"the session ended by itself, its messages are redelivered: {cause}")
            self.failure.__cause__ = cause
            self.connection.reports.add(self.failure, about=self.where())
            if self.ended_by_callback:
                self.task.errors.add(self.failure)
        finally:
            self.closing = True
            with anyio.CancelScope(shield=True):
                await self._close_children()
            self.connection.inboxes.pop(self.inboxes, None)
            self.task.ended.set()

    def wake(self) -> None:
        for inbox in self.inboxes.open:
            inbox.notify()
            inbox.wake()

    def abandon(self) -> None:
        """End the session because the call that created it was cancelled."""
        self.closing = True
        self.task.requested.set()

    async def close(self, deadline: Deadline | None = None) -> None:
        if self.affinity.forked:
            self.closing = self.consumers_closed = True  # its tasks belong to the parent
            return
        self.affinity.check()
        self.closing = True
        for inbox in self.inboxes.open:
            inbox.notify()
        await self.task.end("the session", deadline or Deadline.after(self.close_timeout), self.close_timeout)
        self.task.errors.raise_once()

    async def _end_work(self) -> None:
        """Let callbacks and sends end, then undo an open transaction. Closing the children takes three more steps."""
        deadline, guard = self._deadline(), self.task.errors.guard
        await guard(partial(self.wait_idle, deadline.left(4)))  # first, because a running listener can still send
        await guard(partial(self.settle_sends, deadline.left(4)))
        if self.transaction is not None:
            undo = self.transaction.undo
            await self.task.errors.guard_within(deadline, undo, "the rollback of a closing session", 3)

    async def _close_children(self) -> None:
        """Close every consumer and producer; nothing is acknowledged here."""
        deadline, errors = self._deadline(), self.task.errors
        if self.failure is not None:  # it ended by itself, so its sends have not been awaited yet
            with suppress(OperationTimeoutError):
                await self.sends.settle(deadline.left(3))
        await errors.guard(partial(self.completions.finish, deadline.left(2)))
        self.consumers_closed = True
        unsettled = dict(self.deliveries.ledger.close())
        async with anyio.create_task_group() as group:  # concurrently: all have the same time
            for child in list(self.children):
                group.start_soon(errors.guard_within, deadline, child.close, "closing a producer of the session")
            group.start_soon(self.inboxes.close_all, deadline, unsettled, errors)

    def _deadline(self) -> Deadline:
        return (self.task.deadline or Deadline.after(self.close_timeout)).before(1)

    async def wait_idle(self, timeout: float) -> None:
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

    def _wake_listeners(self) -> None:
        if self.listeners.by_inbox:  # most sessions only receive
            self.callbacks.wake()

    def _next_job(self) -> Job | None:
        return self.listeners.next_job() if self.started else None

    async def settle_sends(self, timeout: float) -> None:
        """Wait until every send has its outcome and every completion listener has returned."""
        deadline = Deadline.after(timeout)
        await self.sends.settle(timeout)
        if len(self.completions):
            await asyncio.sleep(0)  # an outcome reaches the completions one turn of the loop after its send ended
        await self._wait_for_callbacks(deadline.left())

    async def close_consumer(self, inbox: Inbox, deadline: Deadline) -> None:
        self.listeners.unset(inbox)
        self.inboxes.linger(inbox)  # before the first await: however this call ends, the session closes the inbox
        await self._wait_for_callbacks(deadline.left(1))
        await self.inboxes.close_settled(deadline)
        transferred = bool(inbox.settlement.transferred)
        if inbox in self.inboxes.lingering and (transferred or not self.deliveries.self_acknowledging):
            await inbox.stop(deadline.left())


_log = logging.getLogger(__name__)

#: Numbers of transactions under ``jms.transactionsStickyPartitions``, counted for the whole process.
_sticky_keys = itertools.count(1)


@attrs.define(eq=False)
class LocalTransaction:
    """The local transaction of one transacted session; ``real`` if the broker's transactions are used."""

    runtime: SessionRuntime
    real: bool
    work: UnitOfWork[Transaction] = attrs.field(init=False)
    _warned: bool = attrs.field(default=False, init=False)
    _received: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)  # a message, before it was begun
    _first: tuple[str, str] = attrs.field(default=("", ""), init=False)  # topic and subscription of that message
    _busy: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _beginning: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.work = self._new_work()

    def _new_work(self) -> UnitOfWork[Transaction]:
        sticky = self.runtime.connection.configuration.transactions_sticky_partitions
        return UnitOfWork(sticky_key=next(_sticky_keys) if sticky else None)

    @property
    def to_begin(self) -> bool:
        return self.real and self.work.handle is None

    def delivered(self, inbox: Inbox, record: ReceivedRecord) -> None:
        """Let the subscription of a delivered message take part in the transaction, which is begun if necessary."""
        handle, part = self.work.handle, (record.topic, inbox.subscription.name)
        if handle is not None:
            handle.join(*part)
        elif not self._received.is_set():
            self._first = part
            self._received.set()

    async def run(self) -> None:
        """Begin each unit of work when its first message was delivered, so that commit need not wait for that."""
        while True:
            await self._received.wait()
            with suppress(JMSError):  # commit begins it otherwise, and raises the error
                await self.begin()
            self._received.clear()
            if self.work.handle is not None:
                self.work.handle.join(*self._first)

    async def begin(self) -> None:
        """Begin the transaction for the work, once for all tasks; abort it if the work has ended meanwhile."""
        async with self._beginning:
            if not self.to_begin:
                return
            work = self.work
            handle = await self._begin()
            if work is self.work:
                work.begin(handle)
            else:
                await handle.abort()

    async def commit(self) -> None:
        async with self._exclusive("commit"):
            await self._commit()

    async def rollback(self) -> None:
        async with self._exclusive("rollback"):
            await self._rollback()

    async def undo(self) -> None:
        async with self._busy:
            await self._undo()

    @asynccontextmanager
    async def _exclusive(self, call: str) -> AsyncIterator[None]:
        callback_context.refuse(call, self.runtime, (CallbackKind.COMPLETION,))
        if self._busy.locked():
            raise IllegalStateError("another commit or rollback of this session is running; await it first")
        async with self._busy:
            await asyncio.sleep(0)  # a concurrent call is refused on every transport, even if no wait follows
            yield

    async def _commit(self) -> None:
        runtime = self.runtime
        deadline = Deadline.after(runtime.connection.configuration.operation_timeout)
        await runtime.settle_sends(deadline.left())
        while True:  # messages sent while callbacks run, or the transaction begins, also belong to this work
            await runtime.sends.settle(deadline.left())
            if not (len(runtime.deliveries.ledger) and self.to_begin):
                break
            await self.begin()  # before the ledger is emptied: if this fails, the work is unchanged
        failure = self.work.failed()  # from here to the next work nothing is awaited
        if failure is not None:
            await self._rollback()
            raise TransactionRolledBackError(f"a send failed, so the work was rolled back: {failure}") from failure
        deliveries = runtime.deliveries.ledger.remove_all()
        handle = self.work.handle
        self.work = self._new_work()
        if handle is not None:
            await self._commit_real(handle, deliveries)
            return
        await self._commit_emulated(deliveries)

    async def _commit_emulated(self, deliveries: Commands) -> None:
        runtime = self.runtime
        try:
            await runtime.deliveries.carry_out(deliveries)
            timeout = runtime.connection.configuration.operation_timeout
            await confirm_each(deliveries, timeout, if_open=True)  # ``carry_out`` might have closed settled ones
        except JMSError as error:
            raise TransactionInDoubtError(
                f"messages that the transaction received might not be acknowledged, and are redelivered then; what it"
                f" sent is stored: {error}"
            ) from error

    async def _commit_real(self, handle: Transaction, deliveries: Commands) -> None:
        for number, (inbox, records) in enumerate(deliveries):
            try:
                inbox.settlement.acknowledge(records, handle)
            except Exception as error:
                if isinstance(error, ObjectClosedError):  # the receiver has returned them, as the transaction will
                    number += 1
                await self._abort_commit(handle, deliveries[number:])
                raise TransactionRolledBackError(
                    f"a received message could not be acknowledged, so the work was rolled back: {error}"
                ) from error
        try:
            try:
                await handle.commit()
            except TransactionInDoubtError:
                raise
            except TransportError as error:
                raise TransactionInDoubtError(f"the transaction might have been committed: {error}") from error
        finally:  # after a rollback the broker redelivers the messages acknowledged in it
            await self.runtime.deliveries.close_settled()

    async def _abort_commit(self, handle: Transaction, rest: Commands) -> None:
        """Undo a commit now: until then its topics' readers receive no later messages. It did not settle ``rest``."""
        try:
            await handle.abort()
        except JMSError as error:
            limit = self.runtime.connection.configuration.transaction_timeout
            text, about = "the broker undoes a transaction within %g s: %s", self.runtime.where()
            _log.warning(text, limit, error, extra=about)
        finally:
            try:
                await self.runtime.deliveries.redeliver(rest)
            except JMSError as error:  # the broker redelivers the records of an ended receiver
                _log.warning("some messages are redelivered later: %s", error, extra=self.runtime.where())

    async def _rollback(self) -> None:
        try:
            await self.runtime.settle_sends(self.runtime.connection.configuration.operation_timeout)
        finally:
            await self._undo()

    async def _undo(self) -> None:
        work, self.work = self.work, self._new_work()
        try:
            if work.handle is not None:
                await work.handle.abort()
            elif not self.real and not self._warned and (sent := work.sent + self.runtime.sends.count):
                self._warned = True
                _log.warning(
                    "rollback of an emulated transaction: %d messages that it sent stay sent "
                    "(jms.emulateTransactions sends at once)",
                    sent,
                    extra=self.runtime.where(),
                )
        finally:
            await self.runtime.deliveries.redeliver_all()

    async def _begin(self) -> Transaction:
        connection = self.runtime.connection
        return await connection.transport.begin(connection.configuration.transaction_timeout)
