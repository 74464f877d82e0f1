"""Transactions of the broker: their coordinators; begun, also ahead; filled with work; and ended."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import count
from random import random
from typing import Any, Final, Protocol

import attrs

from jmsaio.errors import (
    IllegalStateError,
    JMSError,
    JMSSecurityError,
    NotFoundError,
    ObjectClosedError,
    OperationTimeoutError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsaio.model.wire import WireId
from jmsaio.protocol.commands import Command, TxnAction
from jmsaio.protocol.metadata import TxnId
from jmsaio.protocol.transacting import Event, Move, State, Transacting
from jmsaio.transport.pulsar.admin.transactions import TransactionOutcome
from jmsaio.transport.pulsar.wire.connections.answers import Backoff, passes
from jmsaio.transport.pulsar.wire.connections.client import Client, Topics
from jmsaio.transport.pulsar.wire.connections.connection import Connection
from jmsaio.transport.pulsar.wire.records.record import Entry, OwnerAcks
from jmsaio.transport.waiting import Waiters, shielded

TOPIC: Final = "persistent://pulsar/system/transaction_coordinator_assign"
#: Seconds that a broker keeps a transaction longer than its client, which rolls it back when its time is over: what is
#: sent in a transaction that the broker has ended is accepted, and stalls its topic.
LONGER: Final = 5.0
#: How often a coordinator that is not there yet is asked, and the seconds between: it moves with its partition.
_ATTEMPTS, _PAUSE = 10, 1.0
_NOT_FOUND: Final = "TransactionCoordinatorNotFoundError"
#: Codes of an answer to END for a transaction that has ended, or that the coordinator has forgotten.
_ENDED: Final = frozenset({"TransactionNotFound", "InvalidTxnStatusError"})
_NONE: Final = (
    "this broker has no transactions: set transactionCoordinatorEnabled=true and systemTopicEnabled=true in its "
    "configuration (in a cluster, also run 'bin/pulsar initialize-transaction-coordinator-metadata' once), or use "
    "jms.emulateTransactions=true"
)
_NO_RIGHT: Final = (
    "clients with transactions need the right to consume in pulsar/system: "
    "'pulsar-admin namespaces grant-permission pulsar/system --role ROLE --actions consume'"
)


@attrs.frozen
class Answer:
    """The answer to a request, sent at the loop time ``since`` (infinity for an error).

    ``lost``: the request was also sent before, without an answer, or with an error that passes, and might have been
    carried out then.
    """

    fields: dict[str, Any]
    error: JMSError | None = None
    lost: bool = False
    since: float = math.inf


class Coordinators:
    """The coordinators of one cluster, as one transport sees them."""

    def __init__(self, topics: Topics, backoff: Backoff) -> None:
        self._topics = topics
        self._backoff = backoff
        self._count = 0
        self._turn = count()
        self._connections: dict[int, Connection] = {}  # on which the coordinator knows this client
        self._connecting: dict[int, asyncio.Lock] = {}

    async def ready(self, timeout: float) -> None:
        """Find out how many coordinators there are. Raises as ``Transport.ready_for_transactions``."""
        if self._count:
            return
        try:
            async with asyncio.timeout(timeout):
                partitions = await self._topics.partitions(TOPIC)
                if partitions != [TOPIC]:  # the partitions stay when transactions are switched off
                    await self._connected(0, "ask for the transaction coordinators")
                    self._count = len(partitions)
        except TimeoutError:
            text = f"ask for the transaction coordinators: no answer within {timeout:g} s"
            raise OperationTimeoutError(text) from None
        except JMSSecurityError as error:
            raise JMSSecurityError(f"{error}; {_NO_RIGHT}", error.error_code) from error
        except JMSError as error:
            if not isinstance(error, NotFoundError) and error.error_code != "NotAllowedError":
                raise
            raise IllegalStateError(_NONE) from error
        if not self._count:
            raise IllegalStateError(_NONE)

    async def begin(self, timeout: float, deadline: float) -> tuple[TxnId, float]:
        """Begin a transaction at the next coordinator in turn; return its id, and the time from which it counts."""
        await self.ready(deadline - asyncio.get_running_loop().time())
        number = next(self._turn) % self._count
        milliseconds = round((timeout + LONGER) * 1000)  # whatever the field is called; the caller rolls back earlier
        answer = await self.ask(
            number, "begin a transaction", deadline, Command.NEW_TXN, txn_ttl_seconds=milliseconds, tc_id=number
        )
        if answer.error is not None:
            raise answer.error
        return TxnId(answer.fields["txnid_most_bits"], answer.fields["txnid_least_bits"]), answer.since

    async def ask(self, number: int, what: str, deadline: float, command: Command, **fields: Any) -> Answer:
        """Send a request to a coordinator, again if its answer is lost."""
        loop = asyncio.get_running_loop()
        lost = asked = False
        failures = missed = 0
        last: JMSError = OperationTimeoutError(f"{what}: the transaction coordinator does not answer in time")
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    try:
                        connection = await self._connected(number, what)
                        asked, since = True, loop.time()
                        found = await connection.start_request(command, **fields)
                        if "error" not in found:
                            return Answer(found, lost=lost, since=since)
                        error: JMSError = connection.error_of(what, found)
                        asked = passes(error, again=False)  # the broker can continue with it
                    except JMSError as raised:
                        error = raised
                    lost, asked = lost or asked, False
                    failures, last = failures + 1, error
                    away = error.error_code == _NOT_FOUND
                    if away:
                        self._connections.pop(number, None)
                        missed += 1
                    if missed >= _ATTEMPTS or not (away or passes(error, again=False)):
                        return Answer({}, error, lost)
                    await asyncio.sleep(_PAUSE if away else self._backoff.delay(failures, random()))
        except TimeoutError:
            return Answer({}, last, lost or asked)

    async def _connected(self, number: int, what: str) -> Connection:
        async with self._connecting.setdefault(number, asyncio.Lock()):
            found = self._connections.get(number)
            if found is not None and found.error is None:
                return found
            connection = await self._topics.owner(f"{TOPIC}-partition-{number}")
            answer = await connection.start_request(Command.TC_CLIENT_CONNECT_REQUEST, tc_id=number)
            if "error" in answer:
                raise connection.error_of(what, answer)
            self._connections[number] = connection
            return connection


@attrs.frozen(eq=False)
class Work:
    """Something to be sent in a transaction: exactly one of its two functions is called."""

    write: Callable[[], object]  # sends it. Its answer is passed to ``WireTransaction.answered``
    refuse: Callable[[JMSError], object]  # called with the error if it must not be sent; that is its answer


#: Returns from topics and subscriptions how a transaction ended, as ``find_outcome``.
FindOutcome = Callable[..., Awaitable[TransactionOutcome]]


class Withdrawer(Protocol):
    """A producer, as a transaction sees it."""

    def withdraw(self, transaction: WireTransaction) -> None:
        """Fail what it has not written of a transaction that can't be committed."""

    async def fence(self, transaction: WireTransaction) -> None:
        """Return once nothing that it has written of a transaction can arrive any more."""


class WireTransaction:
    """A ``Transaction`` of the transport."""

    def __init__(
        self, client: Client, coordinators: Coordinators, txn: TxnId, deadline: float,
        find: FindOutcome, ending: Callable[[], object], ended: Callable[[WireTransaction], object],
    ) -> None:  # fmt: skip
        self.txn = txn
        self.producers: set[Withdrawer] = set()  # producers that have something of it, or had
        self._client = client
        self._coordinators = coordinators
        self._deadline = deadline  # loop time until which it can be committed
        self._state: Transacting[Work] = Transacting()
        self._changed = Waiters()
        self._find = find
        self._on_ending = ending
        self._on_ended = ended
        self._timer = client.loop.call_at(deadline, self._overdue)
        self._sent: dict[str, WireId] = {}  # one message for each topic
        self._acknowledged: dict[OwnerAcks, dict[Entry, list[int]]] = {}
        self._commit = False
        self._over = False  # it has ended at the broker, or in doubt
        self._ending: asyncio.Task[JMSError | None] | None = None  # returns why the broker does not tell its end

    def __repr__(self) -> str:
        return f"<WireTransaction ({self.txn.most},{self.txn.least}), {self._state.state.value}>"

    # what happens in it

    def add(self, topic: str, subscription: str | None, work: Work) -> None:
        """Send something, once the coordinator knows its topic or subscription; or refuse it in the next turn."""
        part = (topic, subscription)
        move = self._state.add(part, work)
        if move is Move.WRITE:
            work.write()
        elif move is Move.REFUSE:
            self._client.loop.call_soon(work.refuse, self._refusal())
            self._client.loop.call_soon(self._return_late)
        elif move is Move.REGISTER:
            self._client.tasks.start(self._register(part))

    def join(self, topic: str, subscription: str) -> None:
        """Register a subscription ahead of its first acknowledgement, unless its topic stores nothing."""
        part = (topic, subscription)
        if not topic.startswith("non-persistent:") and self._state.join(part):
            self._client.tasks.start(self._register(part))

    def stored(self, topic: str, place: WireId) -> None:
        self._sent[topic] = place

    def answered(self, error: JMSError | None = None) -> None:
        """Count the answer to work, or the error with which it failed or lost its answer."""
        self._state.answered(error)
        self._changed.wake()

    def fail(self, error: JMSError) -> None:
        self._state.fail(error)
        self._changed.wake()

    def acknowledged(self, consumer: OwnerAcks, entry: Entry, index: int) -> None:
        self._acknowledged.setdefault(consumer, {}).setdefault(entry, []).append(index)

    def _return_late(self) -> None:
        """Return what was acknowledged since the rollback began, once the broker has ended it."""
        if self._over:
            late, self._acknowledged = self._acknowledged, {}
            for consumer, entries in late.items():
                consumer.records_ended(entries, False)
                consumer.transaction_ended(entries, False)

    def contains(self, consumer: OwnerAcks, entry: Entry, index: int) -> bool:
        return index in self._acknowledged.get(consumer, {}).get(entry, ())

    def _overdue(self) -> None:
        self.fail(TransactionRolledBackError("its time is over (transaction_timeout)"))
        self.roll_back()

    def roll_back(self) -> None:
        """Begin to roll back, unless it is being ended."""
        if self._ending is None:
            self._ending = self._client.tasks.start(self._finish())

    def _refusal(self) -> JMSError:
        failure = self._state.failure
        why = f"it is {self._state.state.value} already" if failure is None else str(failure)
        error = TransactionRolledBackError(f"the transaction can't be committed any more: {why}")
        error.__cause__ = failure
        return error

    async def _register(self, part: tuple[str, str | None]) -> None:
        topic, subscription = part
        deadline = self._client.loop.time() + self._client.config.operation_timeout
        if subscription is None:
            answer = await self._ask(f"add {topic} to a transaction", deadline, Command.ADD_PARTITION_TO_TXN,
                                     partitions=[topic])  # fmt: skip
        else:
            answer = await self._ask(
                f"add subscription {subscription} of {topic} to a transaction", deadline,
                Command.ADD_SUBSCRIPTION_TO_TXN, subscription=[{"topic": topic, "subscription": subscription}],
            )  # fmt: skip
        for work in self._state.registered(part, answer.error):
            if self._state.state is State.OPEN:
                work.write()
            else:
                self._state.answered()
                work.refuse(self._refusal())
        self._changed.wake()

    async def _ask(self, what: str, deadline: float, command: Command, **fields: object) -> Answer:
        txn = self.txn
        return await self._coordinators.ask(
            txn.most, what, deadline, command, txnid_most_bits=txn.most, txnid_least_bits=txn.least, **fields
        )

    # its end

    async def commit(self) -> None:
        """Commit the transaction. See ``Transaction.commit``.

        Takes up to ``operation_timeout`` for the answers to what was sent in it, as long for that to the commit, and as
        long to find out how it ended without that; as long again, before a rollback, until nothing of it can arrive.
        Cancelling before the broker is asked rolls it back; else the commit continues.
        """
        self._commit = self._commit or self._ending is None
        error = await self._end()
        state, failure = self._state.state, self._state.failure or error
        if state is State.IN_DOUBT:
            raise TransactionInDoubtError(f"it is unknown whether the transaction was committed: {error}") from error
        if state is not State.COMMITTED:
            raise TransactionRolledBackError(f"the transaction was rolled back: {failure or 'as asked'}") from failure

    async def abort(self) -> None:
        """Roll back, unless it has ended. See ``Transaction.abort``. Cancelling lets it continue."""
        error = await self._end()
        if error is not None and not self._commit:
            raise error

    async def _end(self) -> JMSError | None:
        """End it, once; return the coordinator's error."""
        if self._ending is None:
            self._on_ending()
            self._ending = self._client.tasks.start(self._finish())
        try:
            return await shielded(self._ending)
        except ObjectClosedError as error:
            if self._state.state is State.COMMITTING:
                self._state.step(Event.UNKNOWN)
            return error
        except asyncio.CancelledError:
            self._commit = False  # no effect once END is sent
            raise

    async def _finish(self) -> JMSError | None:
        self._timer.cancel()
        if not self._commit:
            self.fail(TransactionRolledBackError("it is rolled back"))
        timeout = self._client.config.operation_timeout
        await self._all_answered(timeout, unless_failed=True)
        if self._state.failure is not None:
            for producer in list(self.producers):
                producer.withdraw(self)
            await self._all_answered(timeout, unless_failed=False)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    for producer in list(self.producers):
                        await producer.fence(self)
        committing = self._state.step(Event.COMMIT if self._commit else Event.ABORT) is State.COMMITTING
        acknowledged, self._acknowledged = self._acknowledged, {}
        if not committing:  # before the broker redelivers them
            for consumer, entries in acknowledged.items():
                consumer.records_ended(entries, False)
        action = TxnAction.COMMIT if committing else TxnAction.ABORT
        deadline = self._client.loop.time() + timeout
        answer = await self._ask("end a transaction", deadline, Command.END_TXN, txn_action=int(action))
        error = answer.error
        if error is None:
            self._state.step(Event.DONE)
        elif error.error_code in _ENDED and not answer.lost:
            self._state.step(Event.GONE)
        elif self._state.step(Event.UNKNOWN) is State.IN_DOUBT:
            await self._decide(acknowledged, timeout)
        for consumer, entries in acknowledged.items():
            if committing:
                consumer.records_ended(entries, self._state.state is State.COMMITTED)
            consumer.transaction_ended(entries, error is None)
        self._on_ended(self)
        self._over = True
        self._client.loop.call_soon(self._return_late)  # after the refusals of this turn
        gone = not committing and error is not None and error.error_code in _ENDED
        return None if gone else error

    async def _decide(self, acknowledged: Mapping[OwnerAcks, Mapping[Entry, list[int]]], timeout: float) -> None:
        """Find out from topics and subscriptions how it ended, which its coordinator does not tell."""
        records: dict[tuple[str, str], WireId] = {}
        for consumer, entries in acknowledged.items():
            for entry, indexes in entries.items():
                whole = len(indexes) == len(entry.states)
                if whole or (entry.topic, consumer.subscription_name) not in records:
                    place = WireId(entry.ledger, entry.number, entry.partition, -1 if whole else indexes[0])
                    records[entry.topic, consumer.subscription_name] = place
        outcome = await self._find(
            self.txn, sent=self._sent, acknowledged=records, expires=self._deadline + LONGER, timeout=timeout
        )
        if outcome is TransactionOutcome.COMMITTED:
            self._state.step(Event.FOUND_COMMITTED)
        elif outcome is TransactionOutcome.ABORTED:
            self._state.step(Event.FOUND_ABORTED)

    async def _all_answered(self, timeout: float, *, unless_failed: bool) -> None:
        """Wait until everything in it has an answer; after ``timeout`` seconds it can only be rolled back."""
        state = self._state
        try:
            async with asyncio.timeout(timeout):
                while state.unanswered and not (unless_failed and state.failure is not None):
                    await self._changed.wait()
        except TimeoutError:
            text = f"{state.unanswered} sends or acknowledgements in it have no answer within {timeout:g} s"
            self.fail(OperationTimeoutError(text))


#: Seconds for which a transaction that was begun ahead is kept, and that part of its time at most.
_KEPT, _PART = 5.0, 0.1
_Begun = asyncio.Task[WireTransaction]


class Transactions:
    """Begins transactions, and knows those that are open.

    When a transaction ends, the next one is begun at once: a session that commits usually continues. If nothing uses it
    within 5 seconds, it is rolled back; it is empty, and so holds nothing back.
    """

    def __init__(self, client: Client, find: FindOutcome) -> None:
        self._client = client
        self._find = find
        self._coordinators = Coordinators(client.topics, client.backoff)
        self._open: set[WireTransaction] = set()
        self._ahead: defaultdict[float, list[_Begun]] = defaultdict(list)  # by their time-outs
        self._beginning: set[_Begun] = set()
        self._closing = False

    async def ready(self, timeout: float) -> None:
        await self._coordinators.ready(timeout)

    async def begin(self, timeout: float) -> WireTransaction:
        ahead = self._ahead[timeout]
        task = ahead.pop() if ahead else self._start(timeout)
        try:
            return await shielded(task)
        except asyncio.CancelledError:
            self._retain(timeout, task)
            raise

    def _start(self, timeout: float) -> _Begun:
        task = self._client.tasks.start(self._begin(timeout))
        self._beginning.add(task)
        task.add_done_callback(partial(self._begun, timeout))
        return task

    async def _begin(self, timeout: float) -> WireTransaction:
        deadline = self._client.loop.time() + self._client.config.operation_timeout
        txn, since = await self._coordinators.begin(timeout, deadline)
        made = WireTransaction(
            self._client,
            self._coordinators,
            txn,
            since + timeout,
            self._find,
            partial(self._begin_ahead, timeout),
            self._open.discard,
        )
        self._open.add(made)
        return made

    def _begun(self, timeout: float, task: _Begun) -> None:
        """Forget one that could not be begun; whoever waits for it has the error."""
        self._beginning.discard(task)
        if _failed(task) and task in self._ahead[timeout]:
            self._ahead[timeout].remove(task)

    def _begin_ahead(self, timeout: float) -> None:
        """Begin another transaction, because one is about to end."""
        if not self._closing:
            self._retain(timeout, self._start(timeout))

    def _retain(self, timeout: float, task: _Begun) -> None:
        if _failed(task):
            return
        self._ahead[timeout].append(task)
        self._client.loop.call_later(min(_KEPT, timeout * _PART), self._drop, timeout, task)

    def _drop(self, timeout: float, task: _Begun) -> None:
        """Roll back a transaction that nothing has used."""
        if task in self._ahead[timeout]:
            self._ahead[timeout].remove(task)
            task.add_done_callback(_roll_back)

    async def aclose(self, timeout: float) -> None:
        """Roll back all open transactions; what is not answered within ``timeout`` seconds ends with its time."""
        self._closing = True
        for transaction in list(self._open):
            transaction.roll_back()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await asyncio.gather(*self._beginning, return_exceptions=True)
                await asyncio.gather(*(one.abort() for one in self._open), return_exceptions=True)


def _failed(task: _Begun) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _roll_back(task: _Begun) -> None:
    if not _failed(task):
        task.result().roll_back()
