"""Transacted sessions: with the broker's transactions (``enableTransaction``), or emulated.

Jakarta Messaging 3.1, 6.2.7 Transactions.

Emulated (``jms.emulateTransactions``): messages are sent at once, and received ones acknowledged at commit. Messages
stay sent after a rollback, so the first rollback warns.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable

import attrs

from jmsaio.client.callbacks import callback_context
from jmsaio.client.callbacks.callback_context import CallbackKind
from jmsaio.client.delivery.deliveries import Commands, confirm_each
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.lifetime.scope import Deadline
from jmsaio.client.runtime.session import SessionRuntime
from jmsaio.errors import (
    IllegalStateError,
    JMSError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    TransportError,
)
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.unit_of_work import UnitOfWork
from jmsaio.transport.base import Transaction

_log = logging.getLogger(__name__)

#: Numbers of transactions under ``jms.transactionsStickyPartitions``, counted for the whole process.
_sticky_keys = itertools.count(1)


@attrs.define(eq=False)
class LocalTransaction:
    """The local transaction of one transacted session.

    Attributes:
        runtime: the session's running part.
        real: whether the broker's transactions are used.
    """

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
    def _timeout(self) -> float:
        """Seconds after which the broker ends an open transaction."""
        return self.runtime.connection.configuration.transaction_timeout

    @property
    def to_begin(self) -> bool:
        """Whether the work needs a transaction of the transport but has none yet."""
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
            with contextlib.suppress(JMSError):  # commit begins it otherwise, and raises the error
                await self.begin()
            self._received.clear()
            if self.work.handle is not None:
                self.work.handle.join(*self._first)

    async def begin(self) -> None:
        """Begin the transport's transaction for the work, once for however many tasks request it.

        If another task has ended the work meanwhile, the transaction is aborted. Cancelling: another waiting task
        begins it.
        """
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
        """Make the work final and begin the next; see ``Session.commit``."""
        await self._exclusive("commit", self._commit)

    async def rollback(self) -> None:
        """Undo the work and begin the next; see ``Session.rollback``."""
        await self._exclusive("rollback", self._rollback)

    async def undo(self) -> None:
        """Roll back at the end of the session, which has already waited for its sends.

        A running commit or rollback ends first.
        """
        async with self._busy:
            await self._undo()

    async def _exclusive(self, call: str, step: Callable[[], Awaitable[None]]) -> None:
        callback_context.refuse(call, self.runtime, (CallbackKind.COMPLETION,))
        if self._busy.locked():
            raise IllegalStateError("another commit or rollback of this session is running; await it first")
        async with self._busy:
            await asyncio.sleep(0)  # a concurrent call is refused on every transport, even if no wait follows
            await step()

    async def _commit(self) -> None:
        runtime = self.runtime
        deadline = Deadline.after(runtime.connection.configuration.operation_timeout)
        await runtime.settle_sends(deadline.left())
        while True:  # messages sent while callbacks run, or the transaction begins, belong to this work, too
            await runtime.sends.settle(deadline.left())
            if not (len(runtime.deliveries.ledger) and self.to_begin):
                break
            await self.begin()  # before the ledger is emptied: if this fails, the work is unchanged
        failure = self.work.failed()  # from here to the next work nothing is awaited
        if failure is not None:
            await self._rollback()
            raise TransactionRolledBackError(f"a send failed, so the work was rolled back: {failure}") from failure
        deliveries = runtime.deliveries.ledger.take_all()
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
                inbox.acknowledge(records, handle)
            except Exception as error:
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
        """Undo a commit at once: until then readers of its topics receive no messages that were sent later.

        Args:
            rest: deliveries that were not acknowledged in it; the broker redelivers the others.
        """
        try:
            await handle.abort()
        except JMSError as error:
            text, about = "the broker undoes a transaction within %g s: %s", self.runtime.where()
            _log.warning(text, self._timeout, error, extra=about)
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
        return await self.runtime.connection.transport.begin(self._timeout)
