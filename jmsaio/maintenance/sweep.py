"""Leftovers of crashed clients: temporary destinations, and subscriptions that should have ended with a consumer.

Only topics whose name begins with ``jms-temp-`` and subscriptions whose name begins with ``jmsaio-nd-`` are inspected.
Only those without any producer and consumer that have been inactive long enough are deleted, and without force, so that
the broker refuses if a client has connected meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import anyio
import attrs

from jmsaio.errors import JMSError, NotFoundError
from jmsaio.model.topic_names import SUBSCRIPTION_PREFIX, split_partition
from jmsaio.transport.administration import Activity, Admin, SubscriptionActivity, latest
from jmsaio.transport.waiting import together

#: Prefix of temporary destinations of jmsaio and Java.
TOPIC_PREFIX = "jms-temp-"
#: Topics inspected at the same time.
_AT_ONCE = 8


@attrs.frozen
class Leftover:
    """A temporary topic (``subscription`` is None), or a subscription, without a connected client.

    ``idle``: seconds since its last activity; None if unknown, then it is never deleted.
    """

    topic: str
    subscription: str | None
    idle: float | None


async def find_leftovers(admin: Admin, namespace: str, idle: float) -> list[Leftover]:
    """Find leftovers in ``tenant/namespace`` that are idle for ``idle`` seconds or longer, or for an unknown time."""
    parts: dict[str, list[str]] = {}
    for topic in await admin.topics(namespace):
        if topic.startswith("persistent://"):
            parts.setdefault(split_partition(topic)[0], []).append(topic)
    limit = anyio.CapacityLimiter(_AT_ONCE)

    async def inspect(base: str, topics: list[str]) -> list[Leftover]:
        async with limit:
            return await _leftovers(admin, base, topics)

    found = chain.from_iterable(await together(inspect(base, topics) for base, topics in parts.items()))
    old = [one for one in found if one.idle is None or one.idle >= idle]
    return sorted(old, key=lambda one: (one.topic, one.subscription or ""))


async def _leftovers(admin: Admin, base: str, topics: list[str]) -> list[Leftover]:
    temporary = base.rpartition("/")[2].startswith(TOPIC_PREFIX)
    try:
        names = [] if temporary else [name for topic in topics for name in await admin.subscriptions(topic)]
        if not temporary and not any(name.startswith(SUBSCRIPTION_PREFIX) for name in names):
            return []
        activities = [await admin.activity(topic) for topic in topics]
        if topics != [base] and await admin.partitions(base) != len(topics):
            return []  # only named like partitions, or some are being created or deleted
    except NotFoundError:  # deleted meanwhile
        return []
    if temporary:
        if any(activity.clients for activity in activities):
            return []
        last = latest([activity.last_of_all for activity in activities])
        return [Leftover(base, None, _idle(activities, last))]
    found: dict[str, list[SubscriptionActivity]] = {}
    for name, one in chain.from_iterable(activity.subscriptions.items() for activity in activities):
        if name.startswith(SUBSCRIPTION_PREFIX):
            found.setdefault(name, []).append(one)
    return [
        Leftover(base, name, _idle(activities, latest([part.last for part in parts])))
        for name, parts in found.items()
        if not any(part.consumers for part in parts)
    ]


def _idle(activities: list[Activity], last: int | None) -> float | None:
    return None if last is None else max(0.0, (min(activity.now for activity in activities) - last) / 1000)


async def delete_leftovers(
    admin: Admin, namespace: str, idle: float, leftovers: Iterable[Leftover], watch: float
) -> dict[Leftover, JMSError | None]:
    """Watch leftovers for ``watch`` seconds, then delete those that are still leftovers and have a known age.

    A client that lost its connection can reconnect within a minute: the second inspection detects it. Returns the
    reason why each was not deleted, or None.
    """
    wanted = [one for one in leftovers if one.idle is not None]
    if not wanted:
        return {}
    await anyio.sleep(watch)
    found = await find_leftovers(admin, namespace, idle)
    still = {(one.topic, one.subscription) for one in found if one.idle is not None}
    gone = JMSError("it is in use again, or gone")
    return {
        one: await _delete(admin, one) if (one.topic, one.subscription) in still else gone for one in wanted
    }  # fmt: skip


async def _delete(admin: Admin, one: Leftover) -> JMSError | None:
    try:
        if one.subscription is None:
            await admin.delete_topic(one.topic)
        else:
            await admin.delete_subscription(one.topic, one.subscription)
    except JMSError as error:
        return error
    return None
