"""Paths of the REST interface, positions in its answers, and turns for calls that must not overlap.

Mutual exclusion between creating a subscription through REST and subscribing to it, per topic and subscription.

The broker creates a subscription at the topic's end and then resets its cursor. A client that subscribes in between is
refused with "Subscription is fenced", and one that subscribed just before is disconnected. All clients of one event
loop take turns here; other processes can't be excluded. If the topic is unloaded meanwhile, the cursor is not
reset: the resulting subscription would skip everything stored, so ``RestAdmin`` recreates it.

If the broker dies in between, nothing shows that the cursor was not reset: the next attempt finds a subscription ("409
Conflict") that looks like one created and used by others. Resetting or deleting it would redeliver or lose their
messages; checking for its existence before each creation would not help the attempts of a later call or process. So it
is left as it is.
"""

from __future__ import annotations

import asyncio
import re
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote, quote_plus, unquote

import anyio
import attrs

from jmsaio.errors import InvalidDestinationError, OperationTimeoutError
from jmsaio.model.arguments import shown
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import EntryId
from jmsaio.transport.base import StartPosition

_LATEST = 9223372036854775807
_RANGE = re.compile(r"([(\[])\s*(-?\d+):(-?\d+)\s*(?:\.\.|‥|,)\s*(-?\d+):(-?\d+)\s*([\])])")


def topic_path(topic: str) -> str:
    """Return ``/admin/v2/persistent/tenant/namespace/topic`` for a full topic name.

    All functions here raise InvalidDestinationError for malformed names.
    """
    domain, separator, rest = topic.partition("://")
    parts = rest.split("/", 2)
    if not separator or domain not in ("persistent", "non-persistent") or len(parts) != 3 or not all(parts):
        raise InvalidDestinationError(f"{shown(topic)} is not a full topic name: persistent://tenant/namespace/topic")
    return "/".join(["/admin/v2", domain, *map(_segment, parts)])


def topic_of(path: str) -> str | None:
    """Return the full name of the topic with which a path starts, as by ``topic_path``; None for other paths."""
    front, version, domain, *names = path[1:].split("/", 5)
    if (front, version) != ("admin", "v2") or domain not in ("persistent", "non-persistent") or len(names) < 3:
        return None
    tenant, namespace, rest = map(unquote, (names[0], names[1], names[2].partition("/")[0]))
    return f"{domain}://{tenant}/{namespace}/{rest}"


def since_path(topic: str, time: int) -> str:
    return f"{topic_path(topic)}/messageid/{min(max(time, 0), _LATEST)}"


def transaction_path(txn_id: tuple[int, int]) -> str:
    return f"/admin/v3/transactions/transactionMetadata/{txn_id[0]}/{txn_id[1]}"


def transaction_buffer_path(topic: str, txn_id: tuple[int, int] | None = None) -> str:
    if txn_id is None:
        return _transactions_path("transactionBufferStats", topic)
    return f"{_transactions_path('transactionInBufferStats', topic)}/{txn_id[0]}/{txn_id[1]}"


def pending_acks_path(topic: str, name: str) -> str:
    return f"{_transactions_path('pendingAckStats', topic)}/{_segment(name)}"


def _transactions_path(kind: str, topic: str) -> str:
    front = "/admin/v2/persistent/"
    path = topic_path(topic)
    if not path.startswith(front):
        raise InvalidDestinationError(f"{topic} is not persistent: it stores nothing")
    return f"/admin/v3/transactions/{kind}/{path.removeprefix(front)}"


def schema_path(topic: str, version: int | None = None) -> str:
    name = topic_path(topic).split("/", 4)[4]
    return f"/admin/v2/schemas/{name}/" + ("schemas" if version is None else f"schema/{version}")


def subscription_path(topic: str, name: str) -> str:
    if not name:
        raise InvalidDestinationError(f"a subscription of {topic} needs a name")
    # The broker decodes these names twice, which would turn + into a blank and fail on 100%.
    return f"{topic_path(topic)}/subscription/{_segment(cursor_key(name))}"


def namespace_path(domain: str, namespace: str) -> str:
    parts = namespace.split("/")
    if len(parts) != 2 or not all(parts):
        raise InvalidDestinationError(f"{shown(namespace)} is not a namespace: tenant/namespace")
    return "/".join(["/admin/v2", domain, *map(_segment, parts)])


def _segment(name: str) -> str:
    """Encode a name as one segment of a path.

    ``.`` and ``..`` are also encoded: as steps in the path they would address something else, such as the topic.
    """
    if name in (".", ".."):
        return name.replace(".", "%2E")
    try:
        return quote(name, safe="")
    except UnicodeEncodeError:
        raise InvalidDestinationError(f"{shown(name)} is not a name: it holds half a character") from None


def cursor_key(subscription: str) -> str:
    """Return the key of a subscription among a topic's cursors: its name encoded like Java's ``URLEncoder`` does."""
    try:
        return quote_plus(subscription, safe="*").replace("~", "%7E")
    except UnicodeEncodeError:
        raise InvalidDestinationError(f"{shown(subscription)} is not a name: it holds half a character") from None


def start_position(position: StartPosition) -> dict[str, int]:
    number = -1 if position is StartPosition.EARLIEST else _LATEST
    return {"ledgerId": number, "entryId": number, "partitionIndex": -1, "batchIndex": -1, "batchSize": 0}


def read_entry_id(text: str) -> EntryId:
    ledger, _, entry = text.partition(":")
    return int(ledger), int(entry)


def read_ranges(text: str) -> tuple[tuple[EntryId, EntryId], ...]:
    """Parse deleted ranges, ``[(3:1..3:4],(3:6..3:7]]``, into closed ranges: a round bracket excludes its end."""
    found = []
    for match in _RANGE.finditer(text):
        left, *ends, right = match.groups()
        first_ledger, first, last_ledger, last = map(int, ends)
        found.append(((first_ledger, first + (left == "(")), (last_ledger, last - (right == ")"))))
    return tuple(found)


@attrs.define(eq=False)
class _Turns:
    """A subscription of one topic, over all partitions.

    ``lock`` is held by the caller that creates it, or waits for those that subscribe; ``idle`` is set while nobody
    does.
    """

    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    subscribing: int = 0
    idle: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def enter(self, what: str, timeout: float, *, alone: bool) -> None:
        try:
            with anyio.fail_after(timeout):
                await self.lock.acquire()
                try:
                    while alone and self.subscribing:
                        await self.idle.wait()
                except BaseException:
                    self.lock.release()
                    raise
        except TimeoutError:
            raise OperationTimeoutError(
                f"{what}: others of this process have been creating it, or subscribing to it, for {timeout:g} s"
            ) from None


#: By event loop, topic and subscription, while callers hold them.
_TURNS: weakref.WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str, str], _Turns] = weakref.WeakValueDictionary()


def _turns(topic: str, subscription: str) -> _Turns:
    return _TURNS.setdefault((asyncio.get_running_loop(), split_partition(topic)[0], subscription), _Turns())


@asynccontextmanager
async def creating(topic: str, subscription: str, timeout: float) -> AsyncIterator[None]:
    """Exclude others that create it or subscribe, on this event loop; wait for them up to ``timeout`` seconds."""
    turns = _turns(topic, subscription)
    await turns.enter(f"create subscription {subscription} of {topic}", timeout, alone=True)
    try:
        yield
    finally:
        turns.lock.release()


@asynccontextmanager
async def subscribing(topic: str, subscription: str, timeout: float) -> AsyncIterator[None]:
    """Exclude others that create it, on this event loop; wait for them up to ``timeout`` seconds."""
    turns = _turns(topic, subscription)
    await turns.enter(f"subscribe {subscription} to {topic}", timeout, alone=False)
    turns.subscribing += 1
    turns.idle.clear()
    turns.lock.release()
    try:
        yield
    finally:
        turns.subscribing -= 1
        if not turns.subscribing:
            turns.idle.set()
