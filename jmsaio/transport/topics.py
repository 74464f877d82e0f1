"""Current topics and partitions of a destination, from the administration of its broker."""

from __future__ import annotations

from jmsaio.errors import NotFoundError
from jmsaio.model.destinations import Resolved
from jmsaio.model.partitions import partition_names, split_partition, topic_pattern
from jmsaio.transport.administration import Browsable
from jmsaio.transport.base import Subscription


async def list_topics(admin: Browsable, resolved: Resolved | Subscription) -> list[str]:
    """Return the full names of the topics of a destination or subscription, without partitions.

    Listed topics keep the order of the list, and need not exist. Topics matched by a pattern exist now, and are sorted
    by name.

    Raises:
        InvalidDestinationError: the pattern is not a regular expression.
        TransportError: the broker does not answer.

    Cancelling changes nothing.
    """
    if resolved.pattern is None:
        return list(resolved.topics)
    return list(dict.fromkeys(split_partition(name)[0] for name in await list_matching(admin, resolved.pattern)))


async def list_partitions(admin: Browsable, topic: str) -> list[str]:
    """Return the full names of a topic's partitions in the order of their indexes, or its own if it has none.

    Empty if the topic does not exist.

    Raises:
        TransportError: the broker does not answer.

    Cancelling changes nothing.
    """
    try:
        count = await admin.partitions(topic)
    except NotFoundError:
        return []
    return partition_names(topic, count)


async def list_matching(admin: Browsable, pattern: str) -> list[str]:
    """Return the full names of the topics without partitions, and of the partitions, that match a pattern, sorted.

    The number of calls does not depend on that of the topics. A partition that never had a client can be missing.

    Raises:
        As ``list_topics``.
    """
    fits = topic_pattern(pattern).fullmatch
    names = set(await admin.topics("/".join(pattern.split("/")[2:4])))
    return [name for name in sorted(names, key=split_partition) if fits(split_partition(name)[0])]
