"""Parsing of ``internalStats``: a topic's ledgers and cursors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jmsaio.errors import AdminError, NotFoundError
from jmsaio.model.partitions import split_partition
from jmsaio.model.wire import EntryId, WireId
from jmsaio.transport.base import Ledger, TopicLog
from jmsaio.transport.pulsar.admin.answers import understanding
from jmsaio.transport.pulsar.admin.paths import cursor_key, read_entry_id

#: Answer of a broker without transactions, with status 503; it names the setting.
NO_TRANSACTIONS = "not configured with transactionCoordinatorEnabled"
#: States of a topic's transactions in which ``maxReadPosition`` is valid; during recovery it might be too late.
_SETTLED = ("Ready", "NoSnapshot")
#: States of a topic's storage in which its list counts the entries of all ledgers.
_COUNTED = ("ClosedLedger", "CreatingLedger")


def message_id_body(topic: str, message_id: WireId) -> dict[str, int | bool]:
    """Return a message id as the body of a call; the broker checks that its partition is the addressed one."""
    return {
        "ledgerId": message_id.ledger, "entryId": message_id.entry, "partitionIndex": split_partition(topic)[1],
        "batchIndex": -1, "isExcluded": False,
    }  # fmt: skip


def is_chunk_before_last(headers: Mapping[str, str]) -> bool:
    """Return whether the headers of the answer for an entry describe a chunk other than the last of its message."""
    return _chunks_behind(headers) > 0


def is_last_chunk(headers: Mapping[str, str]) -> bool:
    """Return whether the headers of the answer for an entry describe the last one of several chunks."""
    return _chunks_behind(headers) == 0 and headers["X-Pulsar-chunk-id"] != "0"


def _chunks_behind(headers: Mapping[str, str]) -> int:
    """Return the number of chunks of the message that follow an entry; -1 if it is not a chunk."""
    chunk, chunks = (headers.get(f"X-Pulsar-{name}") for name in ("chunk-id", "num-chunks-from-msg"))
    return -1 if chunk is None or chunks is None else int(chunks) - int(chunk) - 1


def has_advanced(internal: Any, subscription: str, message_id: WireId, what: str) -> bool:
    """Return whether the cursor of ``subscription`` is at or after ``message_id``.

    Args:
        internal: answer of ``internalStats``.
        subscription: name of the subscription.
        message_id: target of the cursor.
        what: the call, for errors.

    Raises:
        NotFoundError: the subscription does not exist.
        AdminError: with status 409, ``message_id`` is after the topic's last entry; with status 200, the answer is
            malformed.
    """
    with understanding(what):
        cursor = (internal.get("cursors") or {}).get(cursor_key(subscription))
        if cursor is None:
            raise NotFoundError(f"{what}: no subscription {subscription}")
        last = read_entry_id(internal["lastConfirmedEntry"])
        wanted = (message_id.ledger, message_id.entry)
        if wanted > last:
            stored = _last_stored(internal, last)
            end = (
                "its start, as it is empty"
                if stored is None
                else f"its last entry, {WireId(*stored, message_id.partition)}"
            )
            raise AdminError(f"{what}: {message_id} is after {end}; advance no further than the last entry", 409)
        target = _last_stored(internal, wanted)
        return target is None or read_entry_id(cursor["markDeletePosition"]) >= target


def read_ledgers(internal: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """Return id, entries and bytes of each ledger, oldest first.

    The list counts the entries of a ledger only once the ledger is closed, which it is not yet while its topic is
    closing.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: not an answer of ``internalStats``.
    """
    found = [(int(one["ledgerId"]), int(one["entries"]), int(one["size"])) for one in internal["ledgers"]]
    if found and not found[-1][1] and internal["state"] not in _COUNTED:
        found[-1] = (found[-1][0], int(internal["currentLedgerEntries"]), int(internal["currentLedgerSize"]))
    return found


def read_log(topic: str, internal: Any, stats: Any, buffer: Any, has_transactions: bool) -> TopicLog:
    """Create the description of a topic's storage.

    Args:
        topic: full name of a topic without partitions, or of one partition.
        internal: answer of ``internalStats``.
        stats: answer of ``stats``.
        buffer: answer of ``transactionBufferStats``; None if there is none.
        has_transactions: whether the broker has transactions; without, everything stored is readable.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: an answer is malformed.
    """
    partition = split_partition(topic)[1]

    def message_id(of: EntryId | None) -> WireId | None:
        return None if of is None else WireId(*of, partition)

    end = read_entry_id(internal["lastConfirmedEntry"])
    readable: EntryId | None = end
    if has_transactions:
        settled = buffer is not None and buffer["state"] in _SETTLED
        # messages might have been sent since the end was read
        readable = min(read_entry_id(buffer["maxReadPosition"]), end) if settled else None
    return TopicLog(
        ledgers=tuple(Ledger(*one) for one in read_ledgers(internal)),
        last=message_id(_last_stored(internal, end)),
        last_readable=None if readable is None else message_id(_last_stored(internal, readable)),
        is_readable_known=readable is not None,
        deduplication=stats["deduplicationStatus"] == "Enabled",
        kept_after=message_id(min(_durable_marks(internal, stats), default=None)),
    )


def _durable_marks(internal: Mapping[str, Any], stats: Any) -> list[EntryId]:
    """Return the last acknowledged entry of each durable subscription; the broker keeps nothing for a reader's cursor.

    A subscription created while nothing is stored starts before a ledger that might be deleted already, at its entry
    -1, which says nothing about earlier entries.
    """
    cursors = internal.get("cursors") or {}
    durable = [name for name, one in (stats.get("subscriptions") or {}).items() if one.get("isDurable")]
    marks = [read_entry_id(cursors[key]["markDeletePosition"]) for key in map(cursor_key, durable) if key in cursors]
    return [mark for mark in marks if mark[1] >= 0]


def _last_stored(internal: Mapping[str, Any], entry: EntryId) -> EntryId | None:
    """Return the last entry stored at or before ``entry``; None if there is none.

    A cursor stops there if ``entry`` itself was never written: after the end of a closed ledger.
    """
    for ledger, entries, _ in reversed(read_ledgers(internal)):
        last = min(entry[1], entries - 1) if ledger == entry[0] else entries - 1
        if ledger <= entry[0] and last >= 0:
            return ledger, last
    return None
