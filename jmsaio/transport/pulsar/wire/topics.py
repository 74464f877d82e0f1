"""What brokers know of topics: who serves one, how many partitions it has, which a pattern matches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import cycle
from typing import Any

import attrs

from jmsaio.config import Configuration
from jmsaio.model.partitions import partition_names, split_partition, topic_pattern
from jmsaio.protocol.codes import TopicsMode
from jmsaio.protocol.commands import Command
from jmsaio.protocol.lookup import Address, Lookup, Step
from jmsaio.transport.pulsar.wire.connection import Connection
from jmsaio.transport.pulsar.wire.pool import Pool

#: CommandGetTopicsOfNamespace.Mode by the value of ``regexSubscriptionMode``.
_MODES = {
    "PersistentOnly": TopicsMode.PERSISTENT,
    "NonPersistentOnly": TopicsMode.NON_PERSISTENT,
    "AllTopics": TopicsMode.ALL,
}


class Topics:
    """Questions about topics, each bounded by the time-out of requests.

    Args:
        pool: the connections.
        config: the connection's options.
    """

    def __init__(self, pool: Pool, config: Configuration) -> None:
        self._pool = pool
        self._timeout = config.operation_timeout
        given: Mapping[str, Any] = config.client
        self._listener: str | None = given.get("listener_name")
        self._most_redirects = config.max_lookup_redirects
        self._looking_up = asyncio.Semaphore(given.get("concurrent_lookup_requests", 5000))
        self._slots = cycle(range(max(1, config.connections_per_broker)))

    async def owner(self, topic: str) -> Connection:
        """Return a connection to the broker that serves a topic without partitions, or one partition.

        Raises:
            TransportError: the broker can't tell, or passes the question on too often.
            As ``Pool.connect`` and ``Connection.request``.
        """
        async with self._looking_up:
            connection = await self._pool.connect_service()
            service = connection.address.broker
            lookup = Lookup(topic, service, self._pool.tls, self._listener, self._most_redirects)
            what = f"look up {topic}"
            while True:
                answer = await connection.request(what, self._timeout, Command.LOOKUP, **lookup.request())
                if lookup.answered(answer) is Step.FOUND:
                    return await self._pool.connect(attrs.evolve(lookup.address, slot=next(self._slots)))
                connection = await self._pool.connect(lookup.address)

    async def assigned(self, url: str) -> Connection:
        """Return a connection to the broker that another one named as the next for a topic."""
        return await self._pool.connect(Address(url, slot=next(self._slots)))

    async def partitions(self, topic: str) -> list[str]:
        """Return the full names of a topic's partitions in order, or its own name if it has none.

        Raises as ``Connection.request``.
        """
        if split_partition(topic)[1] >= 0:
            return [topic]
        connection = await self._pool.connect_service()
        answer = await connection.request(
            f"ask for the partitions of {topic}", self._timeout, Command.PARTITIONED_METADATA, topic=topic
        )
        return partition_names(topic, answer.get("partitions") or 0)

    async def matching(self, pattern: str, mode: str) -> list[str]:
        """Return the full names, without partitions, of the topics that match a pattern, sorted.

        Raises:
            InvalidDestinationError: the pattern is not a regular expression.
            As ``Connection.request``.
        """
        fits = topic_pattern(pattern).fullmatch
        namespace = "/".join(pattern.split("/")[2:4])
        connection = await self._pool.connect_service()
        answer = await connection.request(
            f"ask for the topics of {namespace}", self._timeout, Command.GET_TOPICS_OF_NAMESPACE,
            namespace=namespace, mode=_MODES[mode],
        )  # fmt: skip
        names = {split_partition(name)[0] for name in answer.get("topics") or ()}
        return sorted(name for name in names if fits(name))
