"""What all parts of one transport share: whether a broker is connected, and what brokers know of topics."""

from __future__ import annotations

import asyncio
import logging
import math
import weakref
from collections.abc import Mapping
from itertools import count, cycle
from random import random
from typing import Any, Final

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import (
    BrokerUnavailableError,
    ForkError,
    JMSError,
    JMSSecurityError,
    ObjectClosedError,
    OperationTimeoutError,
    ProtocolError,
    TransportError,
)
from jmsaio.model.topic_names import partition_names, split_partition, topic_pattern
from jmsaio.protocol.commands import Command, LookupType, key_values
from jmsaio.rules.share import Share
from jmsaio.transport import forks
from jmsaio.transport.base import LinkChange, LinkListener
from jmsaio.transport.clock import Clock, clock_of
from jmsaio.transport.pulsar.wire.connections.answers import STABLE, Backoff, passes
from jmsaio.transport.pulsar.wire.connections.connection import Address, Connection
from jmsaio.transport.pulsar.wire.connections.pool import Pool
from jmsaio.transport.pulsar.wire.records.record import UnsettledEntries
from jmsaio.transport.waiting import Tasks

_log = logging.getLogger(__name__)
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
        """Return the names, without partitions, of topics that match. Raises InvalidDestinationError."""
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


class Client:
    """The connections of one transport, its tasks, and the numbers of its producers and consumers."""

    def __init__(self, config: Configuration) -> None:
        self.config = config
        self.loop = asyncio.get_running_loop()
        self.clock: Clock = clock_of(self.loop)
        self.tasks = Tasks()
        self.backoff = Backoff(config.initial_backoff, config.max_backoff)
        self.pool = Pool(config, self.tasks, self._lost)
        self.topics = Topics(self.pool, config, self.backoff)
        self.share = Share(config.receive_buffer_bytes // 2)  # the other half is for records held by the client
        self.ids = count(1)
        self.closed = False
        self.listeners: set[LinkListener] = set()
        self.loss: JMSError | None = None
        self._since = -math.inf  # when a broker was connected again
        self._failures = 0
        self._unsettled: weakref.WeakValueDictionary[tuple[str, str], UnsettledEntries] = weakref.WeakValueDictionary()
        self._forks = forks.count

    def unsettled(self, topic: str, subscription: str) -> UnsettledEntries:
        """Return what the consumers of a subscription share: nothing if the topic stores no entries."""
        if topic.startswith("non-persistent:"):
            return UnsettledEntries(None)
        found = self._unsettled.get((topic, subscription))
        if found is None:
            found = UnsettledEntries((self.config.service_url, topic, subscription))
            self._unsettled[topic, subscription] = found
        return found

    def _lost(self, error: JMSError) -> None:
        if self.loss is not None:
            return
        text = f"the connection to {self.config.service_url} is lost: {error}; it connects again by itself when it can"
        self.loss = BrokerUnavailableError(text)
        self.report(LinkChange(text, self.loss, whole=True))
        self.tasks.start(self._connect())

    async def _connect(self) -> None:
        begun, refusal = self.loop.time(), False
        self._failures = 0 if begun - self._since >= STABLE else self._failures + 1
        while True:
            if self._failures:
                await asyncio.sleep(self.backoff.delay(self._failures, random()))
            try:
                await self.pool.connect_service()
                break
            except JMSError as error:
                self._failures += 1
                if isinstance(error, JMSSecurityError) and not refusal:
                    refusal = True
                    self.report(LinkChange(str(error), error, whole=True))
        self.loss = None
        self._since = self.loop.time()
        seconds = self._since - begun
        text = f"the connection to {self.config.service_url} is back after {seconds:.0f} s"
        self.report(LinkChange(text, whole=True))

    def report(self, change: LinkChange) -> None:
        """Call the listeners with a change of the connection, or with what no call reports."""
        for listener in list(self.listeners):
            try:
                listener(change)
            except Exception:  # an error of one listener must not keep the others from knowing
                _log.exception("a listener of the connection to %s failed", self.config.service_url)

    def report_loss(self, text: str) -> None:
        """Report the loss of a message that no call reports: to the listeners, or else in the log."""
        if not self.listeners:
            _log.error("%s", text)
        self.report(LinkChange(text, TransportError(text)))

    def check(self) -> None:
        """Raise ObjectClosedError after close, and ForkError in a child process."""
        if self._forks != forks.count:
            raise ForkError("this connection belongs to the parent process; connect again in the child")
        if self.closed:
            raise ObjectClosedError("the connection to the broker is closed")
