"""Signs of life of a topic and its subscriptions, from the broker's statistics.

The statistics tell when a subscription last asked for messages (``lastConsumedFlowTimestamp``), got some, and
acknowledged some, but they forget it when the topic is reloaded, and never tell when a consumer left. Loading a
topic makes a new ledger, whose time is therefore the earliest that anything is known for sure.
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
    """One subscription.

    Attributes:
        consumers: connected consumers.
        last: its last sign of life in milliseconds since the epoch, None if that can't be told.
    """

    consumers: int
    last: int | None


@attrs.frozen
class Activity:
    """A topic without partitions, or one partition.

    Attributes:
        producers: connected producers.
        last: last sign of life of the topic itself (made, loaded, sent to), None if that can't be told.
        now: the broker's time, in milliseconds since the epoch.
        subscriptions: by name.
    """

    producers: int
    last: int | None
    now: int
    subscriptions: Mapping[str, SubscriptionActivity]

    @property
    def clients(self) -> int:
        """Connected producers and consumers."""
        return self.producers + sum(one.consumers for one in self.subscriptions.values())

    @property
    def last_of_all(self) -> int | None:
        """Last sign of life of the topic and its subscriptions, None if that can't be told for one of them."""
        return latest([self.last, *(one.last for one in self.subscriptions.values())])


def latest(times: list[int | None]) -> int | None:
    """The latest of ``times``; None if one is not known."""
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def read_activity(
    statistics: Mapping[str, Any], internal: Mapping[str, Any], published: str | None, now: str
) -> Activity:
    """Signs of life in the broker's answers.

    Args:
        statistics: answer of ``stats``.
        internal: answer of ``internalStats``.
        published: ``X-Pulsar-Publish-Time`` of the last message, None if the topic keeps none.
        now: ``Date`` of an answer, so that the clock of this machine does not matter.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: not such answers.
    """
    loaded = _milliseconds(internal.get("lastLedgerCreatedTimestamp"))
    sent = [] if published is None else [_milliseconds(published)]
    cursors = internal.get("cursors") or {}
    subscriptions = {}
    for name, one in (statistics.get("subscriptions") or {}).items():
        switched = _milliseconds((cursors.get(cursor_key(name)) or {}).get("lastLedgerSwitchTimestamp"))
        times = [int(one[key]) if key in one else None for key in _TIMES]  # 0 is never
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
    """A time of the statistics, such as ``2026-11-21T06:02:37.282Z``; None for what is none."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int(time.replace(tzinfo=time.tzinfo or UTC).timestamp() * 1000)
