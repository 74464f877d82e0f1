"""What brokers know of topics: who serves one, how many partitions it has, which a pattern matches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import cycle
from random import random
from typing import Any, Final

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import JMSError, OperationTimeoutError, ProtocolError, TransportError
from jmsaio.model.topic_names import partition_names, split_partition, topic_pattern
from jmsaio.protocol.commands import Command, LookupType, key_values
from jmsaio.transport.pulsar.wire.connections.answers import Backoff, passes
from jmsaio.transport.pulsar.wire.connections.connection import Address, Connection
from jmsaio.transport.pulsar.wire.connections.pool import Pool

#: Maximum number of a topic's partitions: a name is made of each, before anything else can refuse a damaged answer.
MOST_PARTITIONS: Final = 100_000
#: CommandGetTopicsOfNamespace.Mode by the value of ``regexSubscriptionMode``.
_MODES: Final = {"PersistentOnly": 0, "NonPersistentOnly": 1, "AllTopics": 2}


class Topics:
    """Questions about topics, each bounded by the time-out of requests."""

    def __init__(self, pool: Pool, config: Configuration, backoff: Backoff) -> None:
        self._pool = pool
        self._timeout = config.operation_timeout
        self._backoff = backoff
        self._listener = config.listener_name
        self._most_redirects = config.max_lookup_redirects
        self._properties = config.lookup_properties
        self._lookups = asyncio.Semaphore(config.concurrent_lookup_requests)
        self._slots = cycle(range(max(1, config.connections_per_broker)))

    async def owner(self, topic: str, cluster: str = "") -> Connection:
        """Return a connection to the broker that serves a topic without partitions, or one partition.

        ``cluster``: service URL of the cluster to which it has moved. Raises TransportError if the broker can't tell;
        otherwise as ``Pool.connect`` and ``Connection.request``.
        """
        async with self._lookups:
            connection = await self._pool.connect_service(cluster)
            what, address, authoritative = f"look up {topic}", connection.address, False
            service = address.broker
            for _ in range(self._most_redirects + 1):
                connection = await self._pool.connect(address)
                answer = await connection.request(
                    what, self._timeout, Command.LOOKUP, topic=topic, authoritative=authoritative,
                    properties=key_values(self._properties), advertised_listener_name=self._listener,
                )  # fmt: skip
                address = _address(what, answer, service, self._pool.tls)
                if answer["response"] == LookupType.Connect:
                    return await self._pool.connect(attrs.evolve(address, slot=next(self._slots)))
                authoritative = answer["authoritative"]
            raise TransportError(f"{what}: passed on {self._most_redirects + 1} times", "LookupError")

    async def assigned(self, url: str) -> Connection:
        """Return a connection to the broker that another one named as the next for a topic."""
        return await self._pool.connect(Address(url, slot=next(self._slots)))

    async def partitions(self, topic: str) -> list[str]:
        """Return the full names of a topic's partitions, or its own if it has none. Raises as ``count``."""
        return partition_names(topic, await self.count(topic)) if split_partition(topic)[1] < 0 else [topic]

    async def count(self, topic: str, *, create: bool = True) -> int:
        """Return how many partitions a topic has, 0 if it has none. With ``create`` the broker can create it.

        Raises NotFoundError if it does not exist and is not created, ProtocolError for more than ``MOST_PARTITIONS``,
        and as ``Connection.request``.
        """
        what, command = f"ask for the partitions of {topic}", Command.PARTITIONED_METADATA
        answer = await self._ask(what, command, topic=topic, metadata_auto_creation_enabled=create)
        number: int = answer.get("partitions") or 0
        if number > MOST_PARTITIONS:
            raise ProtocolError(f"{what}: the broker announces {number}; up to {MOST_PARTITIONS} are supported")
        return number

    async def matching(self, pattern: str, mode: str) -> list[str]:
        """Return the full names, without partitions, of the topics that match a pattern, sorted.

        Raises InvalidDestinationError if the pattern is not a regular expression; otherwise as ``Connection.request``.
        """
        fits = topic_pattern(pattern).fullmatch
        names = {split_partition(name)[0] for name in await self.of_namespace("/".join(pattern.split("/")[2:4]), mode)}
        return sorted(name for name in names if fits(name))

    async def of_namespace(self, namespace: str, mode: str) -> list[str]:
        """Return the full names of the topics of ``tenant/namespace``, each partition by itself."""
        what, command = f"ask for the topics of {namespace}", Command.GET_TOPICS_OF_NAMESPACE
        return list((await self._ask(what, command, namespace=namespace, mode=_MODES[mode])).get("topics") or ())

    async def ping(self, timeout: float) -> None:
        connection = await self._pool.connect_service()
        topic = "non-persistent://public/default/jmsaio-ping"
        await connection.request("ping", timeout, Command.PARTITIONED_METADATA, topic=topic)

    async def _ask(self, what: str, command: Command, **fields: Any) -> dict[str, Any]:
        """Send a request to any broker, and again after an error that passes, until the time is over."""
        failures = 0
        last: JMSError = OperationTimeoutError(f"{what}: no answer within {self._timeout:g} s")
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    try:
                        connection = await self._pool.connect_service()
                        return await connection.request(what, self._timeout, command, **fields)
                    except JMSError as error:
                        if not passes(error, again=False):
                            raise
                        failures, last = failures + 1, error
                    await asyncio.sleep(self._backoff.delay(failures, random()))
        except TimeoutError:
            raise last from None


def _address(what: str, answer: Mapping[str, Any], service: str, tls: bool) -> Address:
    """Return the address in an answer; behind the proxy ``service`` if the broker might be out of reach."""
    kind = answer.get("response")
    if kind not in (LookupType.Redirect, LookupType.Connect):
        raise TransportError(f"{what}: an answer of unknown kind {kind}", "LookupError")
    url = answer.get("broker_service_url_tls" if tls else "broker_service_url")
    if not url:
        way = "with" if tls else "without"
        raise TransportError(f"{what}: its broker names no address for connections {way} TLS", "LookupError")
    return Address(url, service if answer["proxy_through_service_url"] else "")
