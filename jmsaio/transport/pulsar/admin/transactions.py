"""What the REST interface says about transactions: how one has ended, and which one holds a topic back.

A coordinator forgets a transaction once it has ended. The topics and subscriptions in it then decide:

=================== ============================= ================================ ===================
transaction         its topic: in the buffer      its subscription: pending, and   coordinator
                                                  the record it acknowledged
=================== ============================= ================================ ===================
open                ``startPosition``             not acknowledged                 ``OPEN``
committed           nothing                       acknowledged                     "not found"
aborted, timed out  ``aborted``                   not acknowledged                 "not found"
never begun         nothing                       as it was                        "not found"
=================== ============================= ================================ ===================

Each of these can mislead, and is checked. A buffer that is being recovered says nothing about any transaction, which
looks like a commit: it is read again afterwards, and must be the same and ready. It forgets aborted transactions when
their ledger is deleted: the ledger of a message sent in it must still be there. A record can be acknowledged by
another consumer after an abort: this counts only while the transaction's time is not over, as the broker does not abort
it before. A part of a batch is not listed as acknowledged.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Final, Protocol

import anyio

from jmsaio.errors import AdminError, JMSSecurityError, NotFoundError
from jmsaio.model.wire import WireId
from jmsaio.transport.administration import Cursor, Ledger, OpenTransaction, StoredEntry, TopicLog
from jmsaio.transport.pulsar.admin.answers import understanding
from jmsaio.transport.pulsar.admin.paths import pending_acks_path, transaction_buffer_path, transaction_path

#: Id of a transaction: its most and its least significant bits. The first one of a broker is (0, 0).
TransactionId = tuple[int, int]
#: Seconds between two attempts to get an answer from a broker that is recovering.
_PAUSE: Final = 0.2
#: Start of the answer of a coordinator that does not know a transaction. One that is not loaded is not found either.
_FORGOTTEN: Final = "The transaction with this"
#: Status with which a coordinator answers about a transaction in a subscription whose name has a slash.
_FAILED: Final = 500
#: States of a buffer or of pending acknowledgements that end without a request.
_RECOVERING: Final = frozenset({"None", "Initializing", "Close"})


class TransactionOutcome(enum.Enum):
    """Outcome of a transaction, as far as the broker tells."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    UNKNOWN = "unknown"


#: What a coordinator is about to do with a transaction is as good as done: it continues after a restart.
_STATUS: Final[Mapping[str, TransactionOutcome]] = {
    "OPEN": TransactionOutcome.OPEN,
    "COMMITTING": TransactionOutcome.COMMITTED,
    "COMMITTED": TransactionOutcome.COMMITTED,
    "ABORTING": TransactionOutcome.ABORTED,
    "ABORTED": TransactionOutcome.ABORTED,
    "TIMEOUT": TransactionOutcome.ABORTED,
}


def decide(
    coordinator: TransactionOutcome | None, topics: Iterable[TransactionOutcome],
    subscriptions: Iterable[TransactionOutcome], *, expired: bool,
) -> TransactionOutcome:  # fmt: skip
    """Return the outcome of a transaction whose commit was requested.

    ``coordinator`` is UNKNOWN if it has forgotten the transaction, None if it could not be asked. ``subscriptions`` has
    COMMITTED for each on which a record that it acknowledged is acknowledged, ABORTED for each on which one is not.
    ``expired``: its time might have been over before the coordinator forgot it.
    """
    if coordinator not in (None, TransactionOutcome.UNKNOWN):
        return coordinator
    ends = {TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED}
    found = set(topics) & ends
    if not found and coordinator is not None:
        found = set(subscriptions) & ends
        if expired and found == {TransactionOutcome.COMMITTED}:  # perhaps acknowledged by another consumer
            found = set()
    return found.pop() if len(found) == 1 else TransactionOutcome.UNKNOWN


def read_topic(before: Any, found: Any, is_stored: bool, after: Any) -> TransactionOutcome | None:
    """Return what a topic says about a transaction that sent something to it; None while it is being recovered.

    It could have been unloaded between ``before`` and ``after``. ``is_stored``: the ledger of a message is there.
    """
    if not _same(before, after):
        return None
    if before["state"] != "Ready":
        return TransactionOutcome.UNKNOWN
    if found["aborted"]:
        return TransactionOutcome.ABORTED
    if found.get("startPosition") is not None:
        return TransactionOutcome.OPEN
    return TransactionOutcome.COMMITTED if is_stored else TransactionOutcome.UNKNOWN


def read_subscription(before: Any, cursor: Cursor, message_id: WireId, after: Any) -> TransactionOutcome | None:
    """Return whether a record that a transaction acknowledged is; None while they are being recovered.

    The record has an index if only a part of its batch is in the transaction.
    """
    if not _same(before, after):
        return None
    if before["state"] != "Ready":
        return TransactionOutcome.UNKNOWN
    if cursor.is_acknowledged(message_id):
        return TransactionOutcome.COMMITTED
    return TransactionOutcome.ABORTED if message_id.batch_index < 0 else TransactionOutcome.UNKNOWN


def _same(before: Any, after: Any) -> bool:
    """Return whether two answers are of the same recovery, which has ended."""
    keys = "state", "recoverStartTime"
    return before["state"] not in _RECOVERING and all(before[key] == after[key] for key in keys)


class Asker(Protocol):
    """The calls of ``RestAdmin`` that are needed here."""

    async def ask(self, method: str, path: str, what: str) -> str: ...

    async def cursor(self, topic: str, subscription: str) -> Cursor: ...

    async def ledgers(self, topic: str) -> tuple[Ledger, ...]: ...

    async def log(self, topic: str) -> TopicLog: ...

    async def entry(self, topic: str, message_id: WireId) -> StoredEntry: ...


async def find_outcome(
    admin: Asker, txn_id: TransactionId, *, sent: Mapping[str, WireId],
    acknowledged: Mapping[tuple[str, str], WireId], expires: float, timeout: float,
) -> TransactionOutcome:  # fmt: skip
    """Return the outcome of a transaction whose commit was requested, without an answer.

    Waits up to ``timeout`` seconds for brokers, topics and subscriptions that are being recovered. UNKNOWN if nothing
    tells, REST can't be used, or the rights to send and to receive are missing. Cancelling changes nothing.

    Args:
        sent: one message that it sent, by topic or partition (full names).
        acknowledged: one record that it acknowledged, by topic or partition, and subscription; with index -1 if the
            transaction acknowledged its whole entry, which is preferred.
        expires: loop time from which on the broker might have rolled the transaction back.
    """
    outcome = TransactionOutcome.UNKNOWN
    with anyio.move_on_after(timeout):
        while True:
            with understanding(f"transaction {txn_id}"):
                coordinator = await _attempt(_ask_coordinator(admin, txn_id))
                expired = anyio.current_time() >= expires
                topics = [await _attempt(_ask_topic(admin, txn_id, *one)) for one in sent.items()]
                parts = [await _attempt(_ask_subscription(admin, *of, one)) for of, one in acknowledged.items()]
            outcome = decide(coordinator, filter(None, topics), filter(None, parts), expired=expired)
            if outcome is not TransactionOutcome.UNKNOWN or None not in (coordinator, *topics, *parts):
                break
            await anyio.sleep(_PAUSE)
    return outcome


async def _attempt(work: Awaitable[TransactionOutcome | None]) -> TransactionOutcome | None:
    """Return what a part of the broker says: UNKNOWN if it never will, None if it has to be asked again."""
    try:
        return await work
    except JMSSecurityError:
        return TransactionOutcome.UNKNOWN
    except (NotFoundError, AdminError):  # unloaded meanwhile, or not reachable
        return None


async def _ask_coordinator(admin: Asker, txn_id: TransactionId) -> TransactionOutcome | None:
    try:
        found = await _read(admin, transaction_path(txn_id), f"transaction {txn_id}")
    except NotFoundError as error:
        return TransactionOutcome.UNKNOWN if _FORGOTTEN in error.reason else None
    except JMSSecurityError:  # it is another role's, and known
        return None
    return _STATUS.get(found["status"])


async def _ask_topic(admin: Asker, txn_id: TransactionId, topic: str, message_id: WireId) -> TransactionOutcome | None:
    what, buffer = f"transaction {txn_id} in {topic}", transaction_buffer_path(topic)
    try:
        await admin.ledgers(topic)  # loads the topic, which the other calls do not
    except NotFoundError:
        return TransactionOutcome.UNKNOWN
    before = await _read(admin, buffer, what)
    found = await _read(admin, transaction_buffer_path(topic, txn_id), what)
    is_stored = message_id.ledger in {ledger.id for ledger in await admin.ledgers(topic)}
    return read_topic(before, found, is_stored, await _read(admin, buffer, what))


async def _ask_subscription(admin: Asker, topic: str, name: str, message_id: WireId) -> TransactionOutcome | None:
    what, pending = f"acknowledgements of subscription {name} of {topic}", pending_acks_path(topic, name)
    try:
        await admin.cursor(topic, name)  # loads the topic
    except NotFoundError:
        return TransactionOutcome.UNKNOWN
    before = await _read(admin, pending, what)
    cursor = await admin.cursor(topic, name)
    return read_subscription(before, cursor, message_id, await _read(admin, pending, what))


async def find_holder(admin: Asker, topic: str) -> OpenTransaction | None:
    log = await admin.log(topic)
    first = first_held(log) if log.is_readable_known else None
    if first is None:
        return None
    try:
        entry = await admin.entry(topic, first)
    except (NotFoundError, JMSSecurityError):
        return None
    if entry.transaction is None:  # it has ended meanwhile
        return None
    txn_id, since = entry.transaction, entry.publish_time
    try:
        known = await _read(admin, transaction_path(txn_id), f"transaction {txn_id}")
    except NotFoundError:
        return OpenTransaction(id=txn_id, since=since, is_known=False)
    except JMSSecurityError:  # another role's
        return OpenTransaction(id=txn_id, since=since)
    except AdminError as error:
        if error.status != _FAILED:
            raise
        return OpenTransaction(id=txn_id, since=since)
    with understanding(f"transaction {txn_id}"):
        ends = int(known["openTimestamp"]) + int(known["timeoutAt"])
        return OpenTransaction(id=txn_id, since=since, ends=ends, owner=known.get("owner"))


def first_held(log: TopicLog) -> WireId | None:
    """Return the first stored entry of a topic that readers do not receive yet; None if they receive all."""
    if log.last is None or log.last_readable == log.last:
        return None
    last, entry = (-1, -1) if log.last_readable is None else log.last_readable[:2]
    for ledger in log.ledgers:
        start = entry + 1 if ledger.id == last else 0
        if ledger.id >= last and start < ledger.entries:
            return WireId(ledger.id, start, log.last.partition)
    return None


async def _read(admin: Asker, path: str, what: str) -> Any:
    text = await admin.ask("GET", path, what)
    with understanding(what):
        return json.loads(text)
