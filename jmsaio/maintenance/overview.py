"""State of queues and topics: their backlogs, rates and consumers, and why messages are not being received.

Functions that ask the broker raise TransportError if it does not answer, and JMSSecurityError without permission.
Cancelling them changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import anyio
import attrs

from jmsaio.config import Configuration
from jmsaio.errors import NotFoundError
from jmsaio.model.destinations import Queue, Resolved, Topic, resolve, short_name
from jmsaio.model.topic_names import COPY_PREFIX, JOB_PREFIX, PROBE_TOPIC, split_partition
from jmsaio.transport.administration import Admin, ConnectedConsumer, OpenTransaction, SubscriptionStats, TopicStats
from jmsaio.transport.subscriptions import list_partitions, list_topics
from jmsaio.transport.waiting import together

#: Topics whose statistics are requested at the same time.
_AT_ONCE: Final = 16
#: Prefixes of subscriptions that no application has: of jobs, copies, and readers of Pulsar's clients.
_NOT_APPLICATIONS: Final = (JOB_PREFIX, COPY_PREFIX, "reader-")
#: Seconds without an acknowledgement after which a consumer that holds messages counts as idle.
IDLE: Final = 10.0


@attrs.frozen(kw_only=True)
class DestinationState:
    """State of one subscription of a topic, such as a queue; without a subscription, of the topic itself.

    ``topic`` is without partitions, ``name`` also without the default namespace. ``rate_in`` is messages per second,
    None if the broker does not report it. Only ``read_states`` finds ``open_transaction``, which holds messages back.
    """

    topic: str
    name: str
    producers: int
    rate_in: float | None
    subscription: SubscriptionStats | None
    open_transaction: OpenTransaction | None = None


async def list_states(
    admin: Admin, configuration: Configuration, *, queues: bool | None = None
) -> list[DestinationState]:  # fmt: skip
    """Return the state of queues, or of all other subscriptions and topics, of ``jms.systemNamespace`` by name.

    A queue is a topic's subscription named ``jms.queueSubscriptionName``; without ``queues``, both are returned. Pulsar
    counts a batch as one message. The topic on which jmsaio checks the REST interface is left out.
    """
    namespace = configuration.system_namespace
    limiter = anyio.CapacityLimiter(_AT_ONCE)

    async def read(topic: str) -> TopicStats | None:
        async with limiter:
            try:
                return await admin.stats(topic)
            except NotFoundError:  # deleted meanwhile
                return None

    own = f"non-persistent://{namespace}/{PROBE_TOPIC}"
    topics = sorted({split_partition(topic)[0] for topic in await admin.topics(namespace)} - {own})
    found: list[DestinationState] = []
    for topic, stats in zip(topics, await together(read(topic) for topic in topics), strict=True):
        if stats is None:
            continue
        chosen = [
            one for name, one in sorted(stats.subscriptions.items())
            if queues in (None, name == configuration.queue_subscription_name)
        ]  # fmt: skip
        alone = not stats.subscriptions and not queues
        found += _states(topic, configuration, stats, [None] if alone else chosen)
    return found


async def read_states(
    admin: Admin, configuration: Configuration, destination: Queue | Topic
) -> list[DestinationState]:  # fmt: skip
    """Return the state of a queue, or of each subscription of a topic, for each topic and partition.

    The messages in batches are counted, up to the broker's limit (10,000 entries by default); a larger backlog is given
    in entries. Raises NotFoundError if the topic does not exist, or has no subscription of the queue.
    """
    resolved = resolve(destination, configuration.system_namespace)
    named = _subscription_of(destination, resolved, configuration)
    found: list[DestinationState] = []
    for topic in await list_topics(admin, resolved):
        for part in await list_partitions(admin, topic):
            stats = await admin.stats(part)
            chosen = [one for name, one in sorted(stats.subscriptions.items()) if named in (None, name)]
            exact = [await count_messages(admin, part, one) for one in chosen]
            waits = part.startswith("persistent:") and any(one.backlog for one in chosen)
            held = await admin.held_back(part) if waits else None
            found += _states(part, configuration, stats, exact or ([None] if named is None else []), held)
    if not found:
        kind = "queue" if isinstance(destination, Queue) else "topic"
        raise NotFoundError(f"there is no {kind} {resolved.visible_name}: check its name and kind")
    return found


def _subscription_of(destination: Queue | Topic, resolved: Resolved, configuration: Configuration) -> str | None:
    if resolved.subscription is None and isinstance(destination, Queue):
        return configuration.queue_subscription_name
    return resolved.subscription


async def list_names(admin: Admin, configuration: Configuration) -> list[str]:
    """Return the names of the topics of ``jms.systemNamespace``, sorted, without namespace and partitions."""
    namespace = configuration.system_namespace
    names = {short_name(split_partition(topic)[0], namespace) for topic in await admin.topics(namespace)}
    return sorted(name for name in names if not name.endswith(PROBE_TOPIC))


async def exists(admin: Admin, configuration: Configuration, destination: Queue | Topic) -> bool:
    """Return whether all topics of a destination exist, and for a queue its subscription; a pattern always does."""
    resolved = resolve(destination, configuration.system_namespace)
    named = _subscription_of(destination, resolved, configuration)
    for topic in resolved.topics:
        try:
            known = (await admin.stats(topic)).subscriptions
        except NotFoundError:
            return False
        if named is not None and named not in known:
            return False
    return True


async def find_shared(admin: Admin, topics: Iterable[str]) -> dict[str, list[str]]:
    """Return the subscriptions of each topic that has several: each of them delivers what is sent to the topic.

    Subscriptions of readers, and in which jmsaio's jobs and copies record their progress, are left out.
    """
    found = {}
    for topic in topics:
        with suppress(NotFoundError):  # a dry run names a queue that a redrive creates
            known = (await admin.stats(topic)).subscriptions
            names = sorted(name for name in known if not name.startswith(_NOT_APPLICATIONS))
            if len(names) > 1:
                found[topic] = names
    return found


async def list_letters(admin: Admin, configuration: Configuration) -> list[DestinationState]:
    """Return the subscriptions with messages of the topics of ``jms.systemNamespace`` that are named ...-DLQ.

    Messages are counted, as by ``read_states``.
    """
    found = []
    for state in await list_states(admin, configuration):
        one = state.subscription
        if one is not None and one.backlog and state.topic.endswith("-DLQ"):
            with suppress(NotFoundError):  # deleted meanwhile
                found.append(attrs.evolve(state, subscription=await count_messages(admin, state.topic, one)))
    return found


async def count_messages(admin: Admin, topic: str, stats: SubscriptionStats) -> SubscriptionStats:
    """Return statistics with the messages in batches counted, up to the broker's limit; beyond it, in entries."""
    return attrs.evolve(stats, backlog=max(stats.backlog, await admin.backlog(topic, stats.name)))


def _states(
    topic: str, configuration: Configuration, stats: TopicStats, subscriptions: Iterable[SubscriptionStats | None],
    held: OpenTransaction | None = None,
) -> list[DestinationState]:  # fmt: skip
    name = short_name(topic, configuration.system_namespace)
    return [
        DestinationState(
            topic=topic, name=name, producers=stats.producers, rate_in=stats.rate, subscription=one,
            open_transaction=held,
        )
        for one in subscriptions
    ]  # fmt: skip


def explain(stats: SubscriptionStats, now: float, held: OpenTransaction | None = None) -> Sequence[str]:
    """Return why messages of a subscription are not received, as sentences. ``now`` is in ms since the epoch."""
    if not stats.backlog:
        return []
    reasons = [text for one in stats.connected if (text := _explain_consumer(one, now)) is not None]
    if not stats.consumers:
        reasons.append(f"no consumer is connected; {stats.backlog} messages wait")
    elif stats.delayed:
        reasons.append(f"{stats.delayed} messages wait for their delivery time")
    return reasons if held is None else [*reasons, _explain_transaction(held, now)]


def _explain_transaction(held: OpenTransaction, now: float) -> str:
    waiting = f"messages of the last {max(now - held.since, 0) / 1000:.0f} s wait for transaction {held.id}"
    if not held.is_known:
        return f"{waiting}, which its coordinator does not know: commit another transaction that sends to the topic"
    owner = "" if held.owner is None else f" of {held.owner}"
    ends = "" if held.ends is None else f"; the broker rolls it back in {max(held.ends - now, 0) / 1000:.0f} s"
    return f"{waiting}{owner}, which is open{ends}"


def _explain_consumer(one: ConnectedConsumer, now: float) -> str | None:
    idle = None if one.last_acknowledged is None else (now - one.last_acknowledged) / 1000
    place = f" ({one.address})" if one.address else ""
    selects = None if one.selector is None else f"receives only messages that match {one.selector}"
    if not one.unacknowledged or (idle is not None and idle < IDLE and not one.blocked):
        return None if selects is None else f"consumer {one.name}{place} {selects}"
    text = f"consumer {one.name}{place} holds {one.unacknowledged} unacknowledged messages"
    if idle is not None:
        text += f" and has acknowledged nothing for {idle:.0f} s"
    if one.blocked:
        text += "; the broker sends it nothing more until it acknowledges"
    return text if selects is None else f"{text}; it {selects}"
