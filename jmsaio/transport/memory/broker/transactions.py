"""Transactions: records invisible before the commit, and acknowledgements undone by an abort.

Atomic because commit and abort each run in one step, under the broker's lock.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable
from typing import Protocol

from jmsaio.errors import JMSError, TransactionRolledBackError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport.memory.broker.faults import Faults
from jmsaio.transport.memory.broker.partition import Partition
from jmsaio.transport.memory.broker.ports import Services
from jmsaio.transport.memory.broker.record import StoredRecord
from jmsaio.transport.memory.broker.subscription import BrokerSubscription


class Coordinator(Services, Protocol):
    """Services of the broker for transactions; see the attributes of ``Broker``."""

    lock: threading.Lock
    faults: Faults
    now: Callable[[], float]
    logs: dict[str, Partition]
    units: set[Unit]

    def freed(self) -> None: ...


class TransactionState(enum.Enum):
    """State of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Unit:
    """The work of one transaction. All methods are called with the broker's lock held.

    Args:
        broker: broker of the transaction.
        timeout: seconds after which it is aborted.

    Attributes:
        state: open, committed or aborted.
        failure: the reason why it can't be committed, or None.
        acknowledged: records acknowledged in it: subscription and record number.
        waiting: number of accepted sends waiting for memory.
        notify: called once no send waits any more.
    """

    __slots__ = ("_sent", "_timer", "acknowledged", "broker", "failure", "notify", "state", "waiting")

    def __init__(self, broker: Coordinator, timeout: float) -> None:
        self.broker = broker
        self._timer = broker.timers.add(broker.steady() + timeout, self._overdue)
        broker.units.add(self)
        self.state = TransactionState.OPEN
        self.failure: JMSError | None = None
        self.acknowledged: set[tuple[BrokerSubscription, int]] = set()
        self.waiting = 0
        self.notify: Callable[[], object] | None = None
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
        """Keep a record for the commit. Arguments as for ``Partition.append``."""
        self._sent.append((log, record, size, sequence_id, producer_name, schema_version))
        self.broker.used += size

    def settled_one(self) -> None:
        """Count the outcome of a waiting send."""
        self.waiting -= 1
        if not self.waiting and self.notify is not None:
            notify, self.notify = self.notify, None
            notify()

    def acknowledge(
        self, subscription: BrokerSubscription, number: int, record: StoredRecord | None
    ) -> JMSError | None:
        """Acknowledge a record; ``record`` is None if the consumer does not hold it.

        Returns:
            The conflict with the record's state, if any, after which the transaction can't be committed.
        """
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
        """Remove the acknowledgement of a record that was settled otherwise."""
        self.acknowledged.discard((subscription, number))

    def commit(self) -> None:
        """Commit the transaction.

        Raises:
            TransactionRolledBackError: it had failed or was aborted, without any effect.
        """
        deleted = next((log.name for log, *_ in self._sent if self.broker.logs.get(log.name) is not log), None)
        if deleted is not None:
            self.failure = TransactionRolledBackError(f"topic {deleted} was deleted")
        if self.state is TransactionState.OPEN and self.failure is not None:
            self.abort()
        if self.state is TransactionState.ABORTED:
            reason = self.failure.reason if self.failure is not None else "it was aborted before"
            raise TransactionRolledBackError(f"the transaction was rolled back: {reason}") from self.failure
        if self.state is TransactionState.COMMITTED:
            return
        self.state = TransactionState.COMMITTED
        for subscription, number in self.acknowledged:
            _, record = subscription.in_transaction.pop(number)
            subscription.settle(record)
        now = self.broker.now()
        for log, outgoing, size, sequence_id, producer_name, schema_version in self._sent:
            self.broker.used -= size
            log.append(outgoing, size, sequence_id, now, producer_name, schema_version)
        self._end()

    def abort(self) -> None:
        """Roll back: acknowledged records are redelivered, counted. Ignored if the transaction has ended."""
        if self.state is not TransactionState.OPEN:
            return
        self.state = TransactionState.ABORTED
        subscriptions = set()
        for subscription, number in self.acknowledged:
            subscription.roll_back(number)
            subscriptions.add(subscription)
        self.broker.used -= sum(size for _, _, size, *_ in self._sent)
        self._end()
        for subscription in subscriptions:
            subscription.dispatch()

    def _end(self) -> None:
        self._sent, self.acknowledged = [], set()
        self.broker.units.discard(self)
        self.broker.timers.cancel(self._timer)
        self.broker.freed()

    def _overdue(self, argument: int, token: int) -> None:
        """Abort the transaction at its time-out."""
        self.failure = TransactionRolledBackError("its time was over before the commit")
        self.abort()
