"""``SessionRuntime``: the running part of a Session: its tasks, sends and deliveries, and its orderly end.

A session's task group runs in its own task, started by the connection's owner task; the coroutine that fills the
inboxes and the callback workers are its children. ``close`` sends that task a request, so any task can call it in any
order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

import anyio

from jmsaio.client.callbacks import callback_context
from jmsaio.client.callbacks.completion import Completions
from jmsaio.client.callbacks.worker import CallbackWorker, Job, NoExceptionError
from jmsaio.client.delivery.deliveries import Deliveries, Reply
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.delivery.listeners import Listeners
from jmsaio.client.delivery.session_inboxes import SessionInboxes
from jmsaio.client.lifetime.scope import BackgroundTask, Closable, Deadline
from jmsaio.client.runtime.connection import ConnectionRuntime
from jmsaio.client.senders.pending import PendingSends
from jmsaio.errors import JMSError, ObjectClosedError, OperationTimeoutError
from jmsaio.model.log_fields import log_fields
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.ledger import DeliveryLedger


class SessionRuntime:
    """The running part of one session.

    Attributes:
        connection: the part of its connection that all its sessions share.
        number: number among the connection's sessions, from 1.
        affinity: event loop and process.
        callbacks: runs its listeners.
        deliveries: messages delivered to the application and not settled.
        listeners: its message listeners.
        completions: its completion listeners.
        sends: sent messages without an outcome.
        children: producers and the like, which are closed with it.
        drains: drains the open consumer of an inbox by a deadline.
        failure: why the session ended by itself, or None.
        closing: whether ``close`` was called, or it ended by itself.
        consumers_closed: whether its consumers no longer deliver messages.
        task: start and end of its own task, with the errors of its end.
    """

    def __init__(
        self,
        connection: ConnectionRuntime,
        mode: AcknowledgeMode,
        ledger: DeliveryLedger[Inbox, ReceivedRecord],
        number: int,
        reply: Reply,
        delivered: Callable[[Inbox, ReceivedRecord], object] | None = None,
    ) -> None:
        self.connection = connection
        self.number = number
        self.affinity = connection.affinity
        self.mode = mode
        self.callbacks = CallbackWorker(self._next_job)
        self.inboxes = SessionInboxes(connection.transport, ledger, self.callbacks.wake)
        self.deliveries = Deliveries(
            mode, ledger, self.inboxes, self.check_call, reply, delivered, connection.configuration
        )
        self.listeners = Listeners(self.deliveries, connection.reports, connection, self, self.where)
        self.completions = Completions(self, connection, self.callbacks, connection.reports, self.where)
        self.sends = PendingSends(lambda: connection.states.outage)
        self.children: dict[Closable, None] = {}
        self.drains: dict[Inbox, Callable[[Deadline], Awaitable[None]]] = {}
        self.failure: JMSError | None = None
        self.closing = self.consumers_closed = False
        self.task = BackgroundTask()

    def where(self) -> dict[str, str | int]:
        """Return the fields of log records about the session."""
        return log_fields(connection=self.connection.connection_id, session=self.number)

    @property
    def started(self) -> bool:
        """Whether messages can be delivered."""
        return self.connection.started and not self.closing

    @property
    def close_timeout(self) -> float:
        """Maximum time of a whole close, in seconds."""
        return self.connection.configuration.close_timeout

    @property
    def ended_by_callback(self) -> bool:
        """Whether a callback ended it by raising something that is not an Exception."""
        return self.failure is not None and isinstance(self.failure.__cause__, NoExceptionError)

    def refuses(self) -> bool:
        """Return whether calls are refused: the session was closed, and the caller is not one of its listeners."""
        return self.closing and not callback_context.listens(self)

    def check_open(self) -> None:
        """Raise ObjectClosedError if the session is closed, ForkError in a child process."""
        self.affinity.check_process()
        if self.refuses():
            raise ObjectClosedError("the session is closed; create a new one")

    def check_call(self) -> None:
        """Check as ``check_open`` for calls that use the event loop; raise IllegalStateError outside of it."""
        self.affinity.check()
        if self.closing:
            self.check_open()

    async def run(
        self,
        begin_work: Callable[[], Coroutine[Any, Any, None]] | None,
        undo_work: Callable[[], Awaitable[None]] | None,
    ) -> None:
        """Run the session's own task until ``close`` or the failure of a child, which it reports.

        Args:
            begin_work: runs meanwhile, to begin transactions; None unless the session is transacted.
            undo_work: undoes an open transaction at close; None unless the session is transacted.
        """
        callback_context.leave()
        self.connection.inboxes[self.inboxes] = None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self.inboxes.run)
                group.start_soon(self.listeners.fetch_schemas)
                if begin_work is not None:
                    group.start_soon(begin_work)
                for _ in range(self.connection.configuration.listener_concurrency):
                    group.start_soon(self.callbacks.run)
                self.task.running.set()
                await self.task.requested.wait()
                await self._end_work(undo_work)
                group.cancel_scope.cancel()
            if not self.task.requested.is_set():
                raise JMSError("a callback cancelled the task that ran it")
        except* Exception as errors:
            cause = errors.exceptions[0]
            self.failure = JMSError(f"the session ended by itself, its messages are redelivered: {cause}")
            self.failure.__cause__ = cause
            self.connection.reports.add(self.failure, about=self.where())
            if self.ended_by_callback:
                self.task.errors.keep(self.failure)
        finally:
            self.closing = True
            with anyio.CancelScope(shield=True):
                await self._close_children()
            self.connection.inboxes.pop(self.inboxes, None)
            self.task.ended.set()

    def wake(self) -> None:
        """Check for messages, also for listeners, after the connection was started."""
        for inbox in self.inboxes.open:
            inbox.notify()
            inbox.wake()

    def abandon(self) -> None:
        """End the session because the call that created it was cancelled."""
        self.closing = True
        self.task.requested.set()

    async def close(self, deadline: Deadline | None = None) -> None:
        """Request the session's end, and wait; see ``Session.close``."""
        if self.affinity.forked:
            self.closing = self.consumers_closed = True  # its tasks belong to the parent
            return
        self.affinity.check()
        self.closing = True
        for inbox in self.inboxes.open:
            inbox.notify()
        await self.task.end("the session", deadline or Deadline.after(self.close_timeout), self.close_timeout)
        self.task.errors.raise_once()

    async def _end_work(self, undo_work: Callable[[], Awaitable[None]] | None) -> None:
        """Let callbacks and sends end, then undo an open transaction. Closing the children takes three more steps."""
        deadline, guard = self._deadline(), self.task.errors.guard
        await guard(partial(self.wait_idle, deadline.left(4)))  # first, because a running listener can still send
        await guard(partial(self.settle_sends, deadline.left(4)))
        if undo_work is not None:
            await self.task.errors.guard_within(deadline, undo_work, "the rollback of a closing session", 3)

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
        """Wait until no callback is running. Raises OperationTimeoutError if one does not return in time."""
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

    def _next_job(self) -> Job | None:
        return self.listeners.next_job() if self.started else None

    async def settle_sends(self, timeout: float) -> None:
        """Wait until every send has its outcome and every completion listener has returned.

        Raises OperationTimeoutError; cancelling changes nothing.
        """
        deadline = Deadline.after(timeout)
        await self.sends.settle(timeout)
        if len(self.completions):
            await asyncio.sleep(0)  # an outcome reaches the completions one turn of the loop after its send ended
        await self._wait_for_callbacks(deadline.left())

    async def close_consumer(self, inbox: Inbox, deadline: Deadline) -> None:
        """Close the inbox of a closed consumer, or keep it until its deliveries are settled."""
        self.listeners.unset(inbox)
        self.inboxes.linger(inbox)  # before the first await: however this call ends, the session closes the inbox
        await self._wait_for_callbacks(deadline.left(1))
        await self.inboxes.close_settled(deadline)
        transferred = bool(inbox.receiver.transferred)
        if inbox in self.inboxes.lingering and (transferred or not self.deliveries.self_acknowledging):
            await inbox.stop(deadline.left())
