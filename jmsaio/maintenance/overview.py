"""State of queues and topics: their backlogs, rates and consumers, and why messages are not being received."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
import attrs

from jmsaio.config import Configuration
from jmsaio.errors import NotFoundError
from jmsaio.model.destinations import Queue, Topic, resolve, short_name
from jmsaio.model.partitions import split_partition
from jmsaio.transport.administration import Admin, ConnectedConsumer, SubscriptionStats, TopicStats
from jmsaio.transport.topics import list_partitions, list_topics
from jmsaio.transport.waiting import together

#: Topics whose statistics are requested at the same time.
_AT_ONCE: Final = 16
#: Seconds without an acknowledgement after which a consumer that holds messages counts as idle.
IDLE: Final = 10.0


@attrs.frozen(kw_only=True)
class DestinationState:
    """State of one subscription of a topic. A queue is one, too.

    Attributes:
        topic: full name of the topic, without partitions.
        name: the topic's name, without the default namespace.
        producers: number of connected producers of the topic.
        rate_in: messages sent to the topic per second; None if the broker does not report it.
        subscription: the subscription; None for a topic that has none, so that sent messages are not kept.
    """

    topic: str
    name: str
    producers: int
    rate_in: float | None
    subscription: SubscriptionStats | None


async def list_states(
    admin: Admin, configuration: Configuration, *, queues: bool | None = None
) -> list[DestinationState]:  # fmt: skip
    """Return the state of queues, or of all other subscriptions and topics, of ``jms.systemNamespace`` by name.

    A queue is a topic's subscription named ``jms.queueSubscriptionName``. Pulsar counts a batch as one message.

    Args:
        admin: admin client of the broker.
        configuration: names the namespace and the subscription.
        queues: whether to return queues, or else topics; None: both.

    Raises:
        TransportError: the broker does not answer.
        JMSSecurityError: no permission.

    Cancelling changes nothing.
    """
    namespace = configuration.system_namespace
    limiter = anyio.CapacityLimiter(_AT_ONCE)

    async def read(topic: str) -> TopicStats | None:
        async with limiter:
            try:
                return await admin.stats(topic)
            except NotFoundError:  # deleted meanwhile
                return None

    topics = sorted({split_partition(topic)[0] for topic in await admin.topics(namespace)})
    found: list[DestinationState] = []
    for topic, stats in zip(topics, await together(read(topic) for topic in topics), strict=True):
        if stats is None:
            continue
        chosen = [
            one for name, one in sorted(stats.subscriptions.items())
            if queues in (None, name == configuration.queue_subscription_name)
        ]  # fmt: skip
        found += _states(topic, configuration, stats, chosen, alone=not stats.subscriptions and not queues)
    return found


async def read_states(
    admin: Admin, configuration: Configuration, destination: Queue | Topic
) -> list[DestinationState]:  # fmt: skip
    """Return the state of a queue, or of each subscription of a topic, for each topic and partition.

    The messages in batches are counted, up to the broker's limit (10,000 entries by default); a larger backlog is given
    in entries.

    Raises:
        NotFoundError: the topic does not exist, or has no subscription of the queue.
        TransportError: the broker does not answer.
        JMSSecurityError: no permission.

    Cancelling changes nothing.
    """
    resolved = resolve(destination, configuration.system_namespace)
    named = resolved.subscription
    if named is None and isinstance(destination, Queue):
        named = configuration.queue_subscription_name
    found: list[DestinationState] = []
    for topic in await list_topics(admin, resolved):
        for part in await list_partitions(admin, topic):
            stats = await admin.stats(part)
            chosen = [one for name, one in sorted(stats.subscriptions.items()) if named in (None, name)]
            counts = [max(one.backlog, await admin.backlog(part, one.name)) for one in chosen]
            exact = [attrs.evolve(one, backlog=count) for one, count in zip(chosen, counts, strict=True)]
            found += _states(part, configuration, stats, exact, alone=not exact and named is None)
    if not found:
        kind = "queue" if isinstance(destination, Queue) else "topic"
        raise NotFoundError(f"there is no {kind} {resolved.visible_name}: check its name and kind")
    return found


def _states(
    topic: str, configuration: Configuration, stats: TopicStats, subscriptions: Sequence[SubscriptionStats],
    *, alone: bool,
) -> list[DestinationState]:  # fmt: skip
    """Return the state of each subscription of a topic; with ``alone`` that of the topic without one."""
    return [
        DestinationState(
            topic=topic, name=short_name(topic, configuration.system_namespace), producers=stats.producers,
            rate_in=stats.rate, subscription=one,
        )
        for one in ([None] if alone else subscriptions)
    ]  # fmt: skip


def explain(stats: SubscriptionStats, now: float) -> Sequence[str]:
    """Return the reasons why messages of a subscription are not being received, as sentences; empty if there are none.

    Args:
        stats: the subscription.
        now: current time in milliseconds since the epoch.
    """
    if not stats.backlog:
        return []
    if not stats.consumers:
        return [f"no consumer is connected; {stats.backlog} messages wait"]
    reasons = [text for one in stats.connected if (text := _explain_consumer(one, now)) is not None]
    if stats.delayed:
        reasons.append(f"{stats.delayed} messages wait for their delivery time")
    return reasons


def _explain_consumer(one: ConnectedConsumer, now: float) -> str | None:
    idle = None if one.last_acknowledged is None else (now - one.last_acknowledged) / 1000
    if not one.unacknowledged or (idle is not None and idle < IDLE and not one.blocked):
        return None
    place = f" ({one.address})" if one.address else ""
    text = f"consumer {one.name}{place} holds {one.unacknowledged} unacknowledged messages"
    if idle is not None:
        text += f" and has acknowledged nothing for {idle:.0f} s"
    if one.blocked:
        text += "; the broker sends it nothing more until it acknowledges"
    return text
