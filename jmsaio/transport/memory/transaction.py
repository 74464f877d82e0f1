"""Transactions: records invisible before the commit, and acknowledgements undone by an abort.

Atomic because commit and abort each run in one step, under the broker's lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum

from jmsaio.errors import JMSError, TransactionInDoubtError, TransactionRolledBackError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.rules.record_life import RecordEvent
from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.broker.partition import Partition, StoredRecord
from jmsaio.transport.memory.broker.subscription import BrokerSubscription


class TransactionState(enum.Enum):
    """State of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


class MemoryTransaction:
    """A transaction and its work, aborted after ``timeout`` seconds.

    All methods except ``commit`` and ``abort`` are called with the broker's lock held.
    """

    __slots__ = ("_broker", "_sent", "_timer", "_woken", "acknowledged", "failure", "state", "waiting")

    def __init__(self, broker: Broker, timeout: float) -> None:
        self._broker = broker
        self._timer = broker.timers.add(broker.steady() + timeout, self._overdue)
        broker.transactions.add(self)
        self.state = TransactionState.OPEN
        self.failure: JMSError | None = None
        self.acknowledged: set[tuple[BrokerSubscription, int]] = set()
        self.waiting = 0
        self._woken: asyncio.Future[None] | None = None  # ends when no send waits any more
        self._sent: list[tuple[Partition, OutgoingRecord, int, int, str | None, bytes | None]] = []

    def send(
        self,
        log: Partition,
        record: OutgoingRecord,
        size: int,
        sequence_id: int,
        producer_name: str | None = None,
        schema_version: bytes | None = None,
    ) -> None:
        self._sent.append((log, record, size, sequence_id, producer_name, schema_version))
        self._broker.used += size

    def settled_one(self) -> None:
        self.waiting -= 1
        if not self.waiting and self._woken is not None:
            woken, self._woken = self._woken, None
            with contextlib.suppress(RuntimeError):  # its loop is closed: there is no one to inform
                woken.get_loop().call_soon_threadsafe(_wake, woken)

    def acknowledge(
        self, subscription: BrokerSubscription, number: int, record: StoredRecord | None
    ) -> JMSError | None:
        """Acknowledge a record, None if the consumer does not hold it; return the conflict that prevents the commit."""
        if record is None:
            other = subscription.in_transaction.get(number)
            if other is not None and other[0] is self:
                return None
            why = "another transaction acknowledged it" if other is not None else "it was acknowledged or given back"
            message_id = subscription.log.message_id(number)
            self.failure = TransactionRolledBackError(
                f"conflict on record {message_id} of {subscription.log.name}: {why}"
            )
            return self.failure
        subscription.in_transaction[number] = (self, record)
        self.acknowledged.add((subscription, number))
        return None

    def withdraw(self, subscription: BrokerSubscription, number: int) -> None:
        self.acknowledged.discard((subscription, number))

    def join(self, topic: str, subscription: str) -> None:
        """Do nothing: a commit never waits for it."""

    async def commit(self) -> None:
        """Commit the transaction, once none of its sends waits for memory; each waits for the send timeout at most.

        Cancelling rolls it back.
        """
        while True:
            with self._broker.lock:
                if not self.waiting:
                    self.commit_now()
                    if self._broker.faults.loses_commit():
                        raise TransactionInDoubtError("the broker's answer to the commit was lost (scripted fault)")
                    return
                self._woken = woken = asyncio.get_running_loop().create_future()
            try:
                await woken
            except asyncio.CancelledError:
                await self.abort()
                raise

    async def abort(self) -> None:
        with self._broker.lock:
            self.abort_now()

    def commit_now(self) -> None:
        """Commit, or raise TransactionRolledBackError without any effect: it had failed or was aborted."""
        deleted = next((log.name for log, *_ in self._sent if self._broker.logs.get(log.name) is not log), None)
        if deleted is not None:
            self.failure = TransactionRolledBackError(f"topic {deleted} was deleted")
        if self.state is TransactionState.OPEN and self.failure is not None:
            self.abort_now()
        if self.state is TransactionState.ABORTED:
            reason = self.failure.reason if self.failure is not None else "it was aborted before"
            raise TransactionRolledBackError(f"the transaction was rolled back: {reason}") from self.failure
        if self.state is TransactionState.COMMITTED:
            return
        self.state = TransactionState.COMMITTED
        for subscription, number in list(self.acknowledged):
            subscription.end_transaction(number, RecordEvent.COMMITTED)
        now = self._broker.now()
        for log, outgoing, size, sequence_id, producer_name, schema_version in self._sent:
            self._broker.used -= size
            log.append(outgoing, size, sequence_id, now, producer_name, schema_version)
        self._end()

    def abort_now(self) -> None:
        """Roll back: acknowledged records are redelivered, counted. Ignored if the transaction has ended."""
        if self.state is not TransactionState.OPEN:
            return
        self.state = TransactionState.ABORTED
        subscriptions = set()
        for subscription, number in list(self.acknowledged):
            subscription.end_transaction(number, RecordEvent.ABORTED)
            subscriptions.add(subscription)
        self._broker.used -= sum(size for _, _, size, *_ in self._sent)
        self._end()
        for subscription in subscriptions:
            subscription.dispatch()

    def _end(self) -> None:
        self._sent, self.acknowledged = [], set()
        self._broker.transactions.discard(self)
        self._broker.timers.cancel(self._timer)
        self._broker.freed()

    def _overdue(self, argument: int, token: int) -> None:
        self.failure = TransactionRolledBackError("its time was over before the commit")
        self.abort_now()


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():  # the commit was cancelled
        woken.set_result(None)
