"""Addresses and answers of the REST interface: validation, errors for refusals, contents of the statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from jmsaio.errors import AdminError, ConfigurationError, JMSSecurityError, NotFoundError
from jmsaio.model.arguments import shown
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import EntryId, WireId
from jmsaio.transport.administration import Activity, StoredEntry, SubscriptionActivity, latest
from jmsaio.transport.base import (
    CLIENT_SELECTOR,
    SELECTOR,
    ConnectedConsumer,
    Cursor,
    Ledger,
    SubscriptionStats,
    TopicLog,
    TopicStats,
)
from jmsaio.transport.pulsar.admin.credentials import Credentials, flaw
from jmsaio.transport.pulsar.admin.paths import cursor_key, read_entry_id, read_ranges

if TYPE_CHECKING:
    import httpx

#: Start of the broker's message for a known client without permission, sent with the status of an unknown client.
_NO_RIGHT = "Unauthorized to"


def error_of(status: int, reason: str, what: str, credentials: Credentials | None = None, token: str = "") -> Exception:
    if status in (401, 403):
        if status == 403 or _NO_RIGHT in reason:
            return JMSSecurityError(f"{what}: the credentials have no right to do this [{status}] ({reason})")
        words = "" if reason.startswith("<") else f" ({reason})"  # an HTML page for browsers
        said = f"{what}: the broker refused the credentials [{status}]{words}: {flaw(credentials, token)}"
        return JMSSecurityError(said)
    if status == 404:
        return NotFoundError(f"{what}: does not exist ({reason})")
    return AdminError(f"{what}: status {status} ({reason})", status)


def reason_of(answer: httpx.Response) -> str:
    """Return the broker's reason: JSON with ``reason``, or the first line of plain text; limited to 300 characters."""
    try:
        text = str(answer.json()["reason"])
    except (ValueError, KeyError, TypeError):
        text = answer.text
    text = text.strip().splitlines()[0] if text.strip() else answer.reason_phrase
    return text[:300]


def base_url(text: str) -> str:
    key = "webServiceUrl"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port, or half an IPv6 address
        raise ConfigurationError(f"option {key}: not a URL of one host: http://host:port", key=key) from None
    if parts.username is not None:  # it would appear in messages and logs
        raise ConfigurationError(f"option {key}: credentials do not belong here but in authParams", key=key)
    if not usable or parts.query or parts.fragment:
        raise ConfigurationError(f"option {key} = {shown(text)}: needs http://host:port or https://host:port", key=key)
    return text.rstrip("/")


@contextmanager
def understanding(what: str) -> Iterator[None]:
    """Raise an AdminError for an answer that is not from Pulsar's REST interface."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        text = f"{what}: the answer is not one of Pulsar's REST interface; check webServiceUrl"
        raise AdminError(text, 200) from error


def moved(url: str, location: str, status: int) -> str:
    """Return the target of a redirect; refuse one from https to http, which would expose the credentials."""
    try:
        target = urljoin(url, location)
        usable = urlsplit(target).port != 0 and target.startswith(("http://", "https://"))
    except ValueError:  # as in base_url
        usable = False
    if not usable:
        raise AdminError(f"the broker redirects from {url} to {shown(location)}, which is no address", status)
    if url.startswith("https:") and not target.startswith("https:"):
        raise AdminError(f"the broker redirects from {url} to the unprotected {target}", status)
    return target


#: Answer of a broker without transactions, with status 503; it names the setting.
NO_TRANSACTIONS = "not configured with transactionCoordinatorEnabled"
#: States of a topic's transactions in which ``maxReadPosition`` is valid; during recovery it might be too late.
_SETTLED = ("Ready", "NoSnapshot")
#: States of a topic's storage in which its list counts the entries of all ledgers.
_COUNTED = ("ClosedLedger", "CreatingLedger")


def message_id_body(topic: str, message_id: WireId) -> dict[str, int | bool]:
    return {
        "ledgerId": message_id.ledger, "entryId": message_id.entry, "partitionIndex": split_partition(topic)[1],
        "batchIndex": -1, "isExcluded": False,
    }  # fmt: skip


def read_entry(headers: Mapping[str, str]) -> StoredEntry:
    chunk, chunks = (headers.get(f"X-Pulsar-{name}") for name in ("chunk-id", "num-chunks-from-msg"))
    bits = [headers.get(f"X-Pulsar-txnid-{name}-bits") for name in ("most", "least")]
    most, least = (int(bit or 0) for bit in bits)
    return StoredEntry(
        publish_time=round(datetime.fromisoformat(headers["X-Pulsar-publish-time"]).timestamp() * 1000),
        chunks_left=None if chunk is None or chunks is None or chunks == "1" else int(chunks) - int(chunk) - 1,
        hidden="X-Pulsar-marker-type" in headers or headers.get("X-Pulsar-txn-aborted") == "true",
        transaction=None if None in bits else (most, least),
    )


def has_advanced(internal: Any, subscription: str, message_id: WireId, what: str) -> bool:
    """Return whether a cursor is at or after ``message_id``. AdminError 409: that is after the topic's last entry."""
    with understanding(what):
        cursor = _cursor(internal, subscription, what)
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


def _cursor(internal: Any, subscription: str, what: str) -> Any:
    found = (internal.get("cursors") or {}).get(cursor_key(subscription))
    if found is None:
        raise NotFoundError(f"{what}: no subscription {subscription}")
    return found


def read_cursor(internal: Any, subscription: str, what: str) -> Cursor:
    """Create a cursor from an answer of ``internalStats``. Raises NotFoundError for a missing subscription.

    ``7:-1`` is the position before ledger 7: it is not an entry, but all ledgers before it are acknowledged (those
    retained by the namespace).
    """
    found = _cursor(internal, subscription, what)
    ledger, entry = read_entry_id(found["markDeletePosition"])
    deleted = read_ranges(found.get("individuallyDeletedMessages") or "")
    # -1:-1 is before all entries, 7:-1 before those of ledger 7
    end = WireId(*read_entry_id(internal["lastConfirmedEntry"]))
    if ledger >= 0 and entry >= 0:
        return Cursor(WireId(ledger, entry), deleted, end)
    return Cursor(None, (((0, 0), (ledger, entry)), *deleted) if ledger > 0 else deleted, end)


def read_ledgers(internal: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """Return id, entries and bytes of each ledger, oldest first; an open one is not counted in the list."""
    found = [(int(one["ledgerId"]), int(one["entries"]), int(one["size"])) for one in internal["ledgers"]]
    if found and not found[-1][1] and internal["state"] not in _COUNTED:
        found[-1] = (found[-1][0], int(internal["currentLedgerEntries"]), int(internal["currentLedgerSize"]))
    return found


def read_log(topic: str, internal: Any, stats: Any, buffer: Any, has_transactions: bool) -> TopicLog:
    """Describe a topic's storage; ``buffer``, its transactions, is None if the right to read them is missing."""
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

    A cursor stops there if ``entry`` was never written: after the end of a closed ledger.
    """
    for ledger, entries, _ in reversed(read_ledgers(internal)):
        last = min(entry[1], entries - 1) if ledger == entry[0] else entries - 1
        if ledger <= entry[0] and last >= 0:
            return ledger, last
    return None


def read_stats(found: Mapping[str, Any]) -> TopicStats:
    subscriptions = {
        name: SubscriptionStats(
            name=name,
            type=one.get("type") or "None",
            backlog=int(one.get("msgBacklog", 0)),
            consumers=len(one.get("consumers") or ()),
            properties=one.get("subscriptionProperties") or {},
            active_consumer=_active(one),
            connected=tuple(_read_consumer(consumer) for consumer in one.get("consumers") or ()),
            delayed=int(one.get("msgDelayed", 0)),
            rate=float(one.get("msgRateOut", 0)),
            redelivery_rate=float(one.get("msgRateRedeliver", 0)),
        )
        for name, one in (found.get("subscriptions") or {}).items()
    }
    return TopicStats(len(found.get("publishers") or ()), subscriptions, float(found.get("msgRateIn", 0)))


def read_entry_filters(found: Mapping[str, Any] | None) -> frozenset[str]:
    names = (found or {}).get("entryFilterNames") or ""
    return frozenset(filter(None, names.replace(" ", "").split(",")))


def _read_consumer(found: Mapping[str, Any]) -> ConnectedConsumer:
    metadata = found.get("metadata") or {}
    return ConnectedConsumer(
        name=found.get("consumerName") or "",
        address=found.get("address") or "",
        unacknowledged=int(found.get("unackedMessages", 0)),
        last_acknowledged=int(found.get("lastAckedTimestamp", 0)) or _milliseconds(found.get("connectedSince")),
        blocked=bool(found.get("blockedConsumerOnUnackedMsgs", False)),
        selector=metadata.get(SELECTOR) or metadata.get(CLIENT_SELECTOR),
    )


def _active(statistics: Mapping[str, Any]) -> str | None:
    """Return the active consumer of a subscription, unless another one has the same name."""
    active: str | None = statistics.get("activeConsumerName")
    return active if [one.get("consumerName") for one in statistics.get("consumers") or ()].count(active) == 1 else None


_TIMES = ("lastConsumedFlowTimestamp", "lastConsumedTimestamp", "lastAckedTimestamp")


def read_activity(
    statistics: Mapping[str, Any], internal: Mapping[str, Any], published: str | None, now: str
) -> Activity:
    """Extract the activity from the broker's answers.

    ``stats`` has the times when a subscription last requested messages (``lastConsumedFlowTimestamp``), received some
    and acknowledged some. It loses them when the topic is reloaded. Loading creates a new ledger, whose creation is
    therefore the earliest time with certain knowledge. ``published`` is the last message's ``X-Pulsar-Publish-Time``,
    ``now`` the ``Date`` of an answer, so that this machine's clock is irrelevant.
    """
    loaded = _milliseconds(internal.get("lastLedgerCreatedTimestamp"))
    sent = [] if published is None else [_milliseconds(published)]
    cursors = internal.get("cursors") or {}
    subscriptions = {}
    for name, one in (statistics.get("subscriptions") or {}).items():
        switched = _milliseconds((cursors.get(cursor_key(name)) or {}).get("lastLedgerSwitchTimestamp"))
        times = [int(one[key]) if key in one else None for key in _TIMES]  # 0 means never
        subscriptions[name] = SubscriptionActivity(
            consumers=len(one.get("consumers") or ()), last=latest([loaded, switched, *times])
        )
    return Activity(
        producers=len(statistics.get("publishers") or ()),
        last=latest([loaded, *sent]),
        now=int(parsedate_to_datetime(now).timestamp() * 1000),
        subscriptions=subscriptions,
    )


def _milliseconds(text: str | None) -> int | None:
    """Parse a time such as ``2026-11-21T06:02:37.282Z``; return None if it is missing or malformed."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int(time.replace(tzinfo=time.tzinfo or UTC).timestamp() * 1000)
