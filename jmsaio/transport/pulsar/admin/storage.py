"""What ``internalStats`` says about a topic's storage: its ledgers, and how far a cursor is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jmsaio.errors import AdminError, NotFoundError
from jmsaio.model.partitions import split_partition
from jmsaio.model.wire import WireId
from jmsaio.transport.pulsar.admin.answers import understanding
from jmsaio.transport.pulsar.admin.paths import cursor_key, read_place


def place_body(topic: str, place: WireId) -> dict[str, int | bool]:
    """A place as the body of a call; the broker checks that the index is that of the partition it is asked about."""
    return {
        "ledgerId": place.ledger, "entryId": place.entry, "partitionIndex": split_partition(topic)[1],
        "batchIndex": -1, "isExcluded": False,
    }  # fmt: skip


def has_advanced(internal: Any, subscription: str, place: WireId, what: str) -> bool:
    """True when the cursor of ``subscription`` is at ``place`` or behind it.

    Args:
        internal: answer of ``internalStats``.
        subscription: its name.
        place: where the cursor is to be.
        what: the call, for errors.

    Raises:
        NotFoundError: no such subscription.
        AdminError: status 409, ``place`` is after the topic's last entry; status 200, not such an answer.
    """
    with understanding(what):
        cursor = (internal.get("cursors") or {}).get(cursor_key(subscription))
        if cursor is None:
            raise NotFoundError(f"{what}: no subscription {subscription}")
        last = read_place(internal["lastConfirmedEntry"])
        wanted = (place.ledger, place.entry)
        if wanted > last:
            stored = _last_stored(internal, last)
            end = (
                "its start, as it is empty" if stored is None else f"its last entry, {WireId(*stored, place.partition)}"
            )
            raise AdminError(f"{what}: {place} is after {end}; advance to the last entry at most", 409)
        target = _last_stored(internal, wanted)
        return target is None or read_place(cursor["markDeletePosition"]) >= target


def read_ledgers(internal: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """Id, entries and bytes of each ledger, oldest first; those of the open one do not stand in the list.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: not an answer of ``internalStats``.
    """
    found = [(int(one["ledgerId"]), int(one["entries"]), int(one["size"])) for one in internal["ledgers"]]
    if found and internal["state"] == "LedgerOpened":
        found[-1] = (found[-1][0], int(internal["currentLedgerEntries"]), int(internal["currentLedgerSize"]))
    return found


def _last_stored(internal: Mapping[str, Any], place: tuple[int, int]) -> tuple[int, int] | None:
    """The last entry that the topic keeps at ``place`` or before; None if it keeps none there.

    A cursor stops there, where ``place`` itself was never written: behind the end of a closed ledger.
    """
    for ledger, entries, _ in reversed(read_ledgers(internal)):
        last = min(place[1], entries - 1) if ledger == place[0] else entries - 1
        if ledger <= place[0] and last >= 0:
            return ledger, last
    return None
