"""Last activity of a topic and its subscriptions, from the broker's statistics.

The statistics contain the times when a subscription last requested messages (``lastConsumedFlowTimestamp``), received
some and acknowledged some. They lose these times when the topic is reloaded, and never contain the time when a consumer
left. Loading a topic creates a new ledger, whose creation is therefore the earliest time with certain knowledge.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import attrs

from jmsaio.transport.pulsar.admin.paths import cursor_key

_TIMES = ("lastConsumedFlowTimestamp", "lastConsumedTimestamp", "lastAckedTimestamp")


@attrs.frozen
class SubscriptionActivity:
    """Activity of one subscription.

    Attributes:
        consumers: number of connected consumers.
        last: last activity in milliseconds since the epoch; None if unknown.
    """

    consumers: int
    last: int | None


@attrs.frozen
class Activity:
    """Activity of a topic without partitions, or of one partition.

    Attributes:
        producers: number of connected producers.
        last: last activity of the topic itself (created, loaded, message sent); None if unknown.
        now: time of the broker in milliseconds since the epoch.
        subscriptions: activity of the subscriptions by name.
    """

    producers: int
    last: int | None
    now: int
    subscriptions: Mapping[str, SubscriptionActivity]

    @property
    def clients(self) -> int:
        """Number of connected producers and consumers."""
        return self.producers + sum(one.consumers for one in self.subscriptions.values())

    @property
    def last_of_all(self) -> int | None:
        """Last activity of the topic and its subscriptions; None if unknown for one of them."""
        return latest([self.last, *(one.last for one in self.subscriptions.values())])


def latest(times: list[int | None]) -> int | None:
    """Return the latest of ``times``; None if one is unknown."""
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def read_activity(
    statistics: Mapping[str, Any], internal: Mapping[str, Any], published: str | None, now: str
) -> Activity:
    """Extract the activity from the broker's answers.

    Args:
        statistics: answer of ``stats``.
        internal: answer of ``internalStats``.
        published: ``X-Pulsar-Publish-Time`` of the last message; None if the topic stores none.
        now: ``Date`` of an answer, so that this machine's clock is irrelevant.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: the answers are malformed.
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
