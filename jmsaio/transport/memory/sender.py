"""``Sender`` of the embedded broker."""

from __future__ import annotations

import asyncio
import copy
import math
from collections import deque
from collections.abc import Mapping, Sequence
from random import random
from typing import NamedTuple, cast

from jmsaio.errors import (
    JMSError,
    ObjectClosedError,
    OperationTimeoutError,
    ResourceAllocationError,
    SendError,
    SendInDoubtError,
    TransactionRolledBackError,
)  # fmt: skip
from jmsaio.model.arguments import brief, shown
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.rules.routing import make_turns, partition_of
from jmsaio.transport.base import SenderOptions, Token, Transaction
from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.broker.partition import Partition, StoredRecord, weigh
from jmsaio.transport.memory.link import Link
from jmsaio.transport.memory.transaction import MemoryTransaction, TransactionState
from jmsaio.transport.sending import SequenceIds
from jmsaio.transport.waiting import SLICE, Waiters

#: A record that waits for memory: log, record, size, sequence id, token, transaction, and deadline.
_Waiting = tuple[Partition, OutgoingRecord, int, int, Token, MemoryTransaction | None, float]

#: Result of a send: stored, the answer to a duplicate, an error, or None for a record kept for a transaction.
_Result = StoredRecord | WireId | JMSError | None
#: An outcome not yet reported: the token, the result, and the size of the record.
_Outcome = tuple[Token, "_Result | _Numbered", int]


class _Numbered(NamedTuple):
    """Result of a record with a sequence id, and the full name of its partition or topic."""

    result: _Result
    partition: str
    sequence_id: int


class MemorySender:
    """Sends to one topic; its records wait while the broker uses ``limit`` bytes of memory or more."""

    __slots__ = (
        "_broker", "_bytes", "_changed", "_closed", "_end", "_failing", "_failure", "_late", "_link", "_logs", "_name",
        "_options", "_outcomes", "_route", "_scheduled", "_schema_version", "_sequence", "_sequence_ids", "_settled",
        "_special", "_topic", "_turns", "_waiting", "_window_bytes", "_window_records", "limit",
    )  # fmt: skip

    def __init__(self, link: Link, logs: Sequence[Partition], topic: str, options: SenderOptions, limit: int) -> None:
        self._broker: Broker = link.broker
        self._link = link
        self._logs = logs
        self._topic = topic
        self._options = options
        self._settled = options.settled
        self._window_records = options.window_records
        self._window_bytes = options.window_bytes
        self.limit = limit
        schema = options.schema
        self._schema_version = None if schema is None else link.broker.register(topic, schema)
        self._name = options.config.producer_name or link.broker.next_producer_name()
        if any(self._name in log.senders for log in logs):
            raise ResourceAllocationError(
                f"another producer of {brief(topic)} is named {shown(self._name)} (producerConfig.producerName): "
                "close it, or give this one another name", "ProducerBusy",
            )  # fmt: skip
        first = options.config.initial_sequence_id
        self._sequence_ids = SequenceIds(topic, batching=False)
        for log in logs:
            self._sequence_ids.last[log.name] = log.sequence_ids.get(self._name, -1) if first is None else first
        self._sequence = max(self._sequence_ids.last.values())
        self._route = options.route
        self._turns = make_turns(options.config.message_routing_mode, random)
        self._outcomes: list[_Outcome] = []
        self._scheduled = False
        self._waiting: deque[_Waiting] = deque()
        self._end: JMSError | None = None  # the error for all waiting records
        self._failing = False  # more waiting records are to fail when outcomes are reported
        self._late: dict[int, _Outcome] = {}
        self._bytes = 0
        self._changed = Waiters()  # outcomes were reported, or the sender was closed
        self._failure: JMSError | None = None
        self._closed = False
        self._special = False  # closed, failed, or records wait: send must use the general path
        for log in logs:
            log.senders[self._name] = self

    @property
    def full(self) -> bool:
        on_way = len(self._outcomes)
        if self._special or self._late:
            on_way += len(self._waiting) + len(self._late)
        return on_way >= self._window_records or self._bytes >= self._window_bytes

    def send(self, record: OutgoingRecord, token: Token, transaction: Transaction | None = None) -> None:
        size = weigh(record)
        logs = self._logs
        log = logs[0] if len(logs) == 1 else logs[partition_of(record, len(logs), self._route, self._turns)]
        broker = self._broker
        with broker.lock:
            if (
                transaction is None
                and record.sequence_id is None
                and not self._special
                and not broker.disturbed
                and broker.used < self.limit
            ):
                self._sequence = sequence = self._sequence + 1
                stored = log.append(record, size, sequence, broker.now(), self._name, self._schema_version)
                self._outcomes.append((token, stored, size))
            else:
                self._send_closely(log, record, size, token, transaction)
            self._bytes += size
            if not self._scheduled:
                self._schedule()

    def _schedule(self) -> None:
        self._scheduled = True
        self._link.defer(self)

    def _send_closely(
        self, log: Partition, record: OutgoingRecord, size: int, token: Token, transaction: Transaction | None
    ) -> None:
        if self._closed:
            raise ObjectClosedError(f"the sender to {self._topic} is closed")
        sequence = record.sequence_id
        if sequence is None:
            self._sequence = sequence = self._sequence + 1
        else:
            self._sequence_ids.checked(sequence)
        if self._failure is not None and not self._waiting:
            self._outcomes.append((token, self._failure, size))
            return
        work = transaction if isinstance(transaction, MemoryTransaction) else None
        if work is not None:
            work.waiting += 1
        timeout = self._options.config.send_timeout
        last = self._broker.steady() + timeout if timeout > 0 else float("inf")
        self._waiting.append((log, record, size, sequence, token, work, last))
        if self._failure is not None:
            return  # it fails after the records before it
        self.admit()
        if len(self._waiting) == 1 and timeout > 0:  # it is the first that waits
            self._broker.timers.add(last, self._fail_some)

    def admit(self) -> None:
        broker = self._broker
        while self._waiting:
            if broker.down or broker.used >= self.limit:
                self._special = True
                broker.block(self)
                break
            self._store(self._waiting.popleft())
        else:
            self._special = self._closed  # nothing waits once the topic has ended
        if self._outcomes and not self._scheduled:
            self._schedule()

    def _store(self, waiting: _Waiting) -> None:
        log, record, size, sequence, token, transaction, _ = waiting
        broker = self._broker
        fault = broker.faults.next_send(self._topic) if broker.faults.sends else None
        broker.update_disturbed()
        result: _Result = None
        if fault is not None and not fault.stored:
            result = fault.error
        elif transaction is None and broker.deduplicates and not log.note_sequence_id(self._name, sequence):
            result = WireId(-1, -1, log.partition)
        elif transaction is None:
            result = log.append(record, size, sequence, broker.now(), self._name, self._schema_version)
        elif transaction.state is TransactionState.OPEN:
            transaction.send(log, record, size, sequence, self._name, self._schema_version)
        else:
            result = TransactionRolledBackError(f"the transaction of this message is {transaction.state.value} already")
        if transaction is not None:
            transaction.settled_one()
        if fault is not None and fault.stored:
            result = fault.error
        reported: _Result | _Numbered = result
        if record.sequence_id is not None and transaction is None:
            reported = _Numbered(result, log.name, sequence)
        if fault is not None and fault.delay > 0:
            timer = broker.timers.add(broker.steady() + fault.delay, self._come_late)
            self._late[timer] = (token, reported, size)
        else:
            self._outcomes.append((token, reported, size))

    def _come_late(self, argument: int, token: int) -> None:
        outcome = self._late.pop(token, None)
        if outcome is not None:
            self._outcomes.append(outcome)
            if not self._scheduled:
                self._schedule()

    def _fail_some(self, argument: int = 0, token: int = 0) -> None:
        """Fail a slice of the records that waited too long, or of all if the topic or the sender ended."""
        broker, end = self._broker, self._end
        now = broker.steady() if end is None else math.inf
        for _ in range(SLICE):
            if not self._waiting or self._waiting[0][6] > now:
                break
            _, _, size, _, token, transaction, _ = self._waiting.popleft()
            if transaction is not None:
                transaction.settled_one()
            self._outcomes.append((token, self._overdue() if end is None else copy.copy(end), size))
        self._failing = bool(self._waiting) and self._waiting[0][6] <= now
        if not self._waiting:
            broker.unblock(self)
        elif not self._failing:
            broker.timers.add(self._waiting[0][6], self._fail_some)
        if self._outcomes and not self._scheduled:
            self._schedule()

    def _overdue(self) -> SendError:
        broker, timeout = self._broker, self._options.config.send_timeout
        why = f"it was down for {timeout:g} s" if broker.down else (
            f"its memory was full for {timeout:g} s ({broker.used} of {self.limit} bytes): receive and acknowledge "
            f"messages, or raise memory_limit"
        )  # fmt: skip
        return SendError(f"the embedded broker did not accept the message to {self._topic}: {why}")

    @property
    def last_sequence_ids(self) -> Mapping[str, int]:
        return self._sequence_ids.last

    @property
    def outdated(self) -> bool:
        return self._failure is not None

    def topic_ended(self, error: JMSError) -> None:
        self._special = True
        self._failure = error
        self._fail_all(error)

    def _fail_all(self, error: JMSError) -> None:
        self._end = self._end or error
        self._broker.unblock(self)
        self._fail_some()

    def run_deferred(self) -> None:
        """Report outcomes, one slice per turn of the loop."""
        with self._broker.lock:
            if self._failing:
                self._fail_some()
            outcomes = self._outcomes[:SLICE]
            del self._outcomes[:SLICE]
            self._bytes -= sum([size for _, _, size in outcomes])
            self._scheduled = False
            if self._outcomes:
                self._schedule()
        settled = self._settled
        for token, result, _ in outcomes:  # one by one: each record is an entry of its own
            try:
                if type(result) is StoredRecord:  # not isinstance: twice as fast, and called for each message
                    settled((token,), result.message_id, None)
                else:
                    self._report(token, result)
            except Exception as error:
                context = {"message": "the callback of a sent record raised", "exception": error}
                self._link.loop.call_exception_handler(context)
        self._changed.wake()

    def _report(self, token: Token, result: _Result | _Numbered) -> None:
        """Report an outcome, except that of a stored record without a sequence id."""
        if type(result) is _Numbered:
            result, partition, number = result
            if not isinstance(result, JMSError):
                self._sequence_ids.confirm(partition, number)
        if isinstance(result, StoredRecord):
            self._settled((token,), result.message_id, None)
        elif isinstance(result, WireId):
            self._settled((token,), result, None)
        else:
            self._settled((token,), None, cast(JMSError | None, result))

    async def ready(self) -> None:
        while self.full and not self._closed:
            await self._changed.wait()

    async def drain(self, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                while self._outcomes or self._waiting or self._late:
                    await self._changed.wait()
        except TimeoutError as error:
            open_ = len(self._outcomes) + len(self._waiting) + len(self._late)
            raise OperationTimeoutError(f"{open_} messages to {self._topic} had no answer in {timeout:g} s") from error

    async def aclose(self, timeout: float) -> None:
        self._closed = self._special = True
        try:
            await self.drain(timeout)
        except OperationTimeoutError:
            pass  # the remaining records fail now
        finally:
            with self._broker.lock:
                self.abandon()
        while not self.closed:
            await self._changed.wait()

    @property
    def closed(self) -> bool:
        return self._closed and not (self._outcomes or self._waiting or self._late)

    def abandon(self) -> None:
        """Close at once; records without outcome fail, which is reported soon. With the lock held."""
        self._closed = self._special = True
        for token, _, size in self._late.values():
            error = SendInDoubtError(f"the sender to {self._topic} was closed before the broker answered")
            self._outcomes.append((token, error, size))
        self._late.clear()
        self._fail_all(SendError(f"the sender to {self._topic} was closed before the message was stored"))
        for log in self._logs:
            if log.senders.get(self._name) is self:
                del log.senders[self._name]
