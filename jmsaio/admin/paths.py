"""Names of topics and subscriptions to paths of the REST interface, and positions in its answers."""

from __future__ import annotations

import re
from urllib.parse import quote

from jmsaio.errors import InvalidDestinationError
from jmsaio.model.wire import WireId
from jmsaio.transport.base import Position

_LATEST = 9223372036854775807
_RANGE = re.compile(r"[(\[]\s*(\d+):(-?\d+)\s*(?:\.\.|‥|,)\s*(\d+):(-?\d+)\s*[\])]")


def topic_path(topic: str) -> str:
    """``/admin/v2/persistent/tenant/namespace/topic`` of a full topic name.

    Raises:
        InvalidDestinationError: not a full name.
    """
    domain, separator, rest = topic.partition("://")
    parts = rest.split("/", 2)
    if not separator or domain not in ("persistent", "non-persistent") or len(parts) != 3 or not all(parts):
        raise InvalidDestinationError(f"{topic!r} is not a full topic name: persistent://tenant/namespace/topic")
    return "/".join(["/admin/v2", domain, *(quote(part, safe="") for part in parts)])


def subscription_path(topic: str, name: str) -> str:
    """Path of a subscription."""
    return f"{topic_path(topic)}/subscription/{quote(name, safe='')}"


def namespace_path(domain: str, namespace: str) -> str:
    """Path of the list of topics of ``tenant/namespace``."""
    return f"/admin/v2/{domain}/{quote(namespace)}"


def start_position(position: Position) -> dict[str, int]:
    """Body of the call that creates a subscription (Starlight 3.6)."""
    place = -1 if position is Position.EARLIEST else _LATEST
    return {"ledgerId": place, "entryId": place, "partitionIndex": -1, "batchIndex": -1, "batchSize": 0}


def read_position(text: str) -> WireId | None:
    """``ledger:entry`` of an answer; None before the first entry."""
    ledger, _, entry = text.partition(":")
    return None if int(ledger) < 0 or int(entry) < 0 else WireId(int(ledger), int(entry))


def read_ranges(text: str) -> tuple[tuple[tuple[int, int], tuple[int, int]], ...]:
    """Deleted ranges of an answer, ``[(3:1..3:4],(3:6..3:7]]``: the lower end is excluded there, included here."""
    found = []
    for match in _RANGE.finditer(text):
        first_ledger, before, last_ledger, last = map(int, match.groups())
        found.append(((first_ledger, before + 1), (last_ledger, last)))
    return tuple(found)
