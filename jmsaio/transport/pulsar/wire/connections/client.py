"""What the producers, consumers and readers of one transport share, and whether a broker is connected."""

from __future__ import annotations

import asyncio
import logging
import math
import weakref
from itertools import count
from random import random

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import (
    BrokerUnavailableError,
    ForkError,
    JMSError,
    JMSSecurityError,
    ObjectClosedError,
    TransportError,
)
from jmsaio.rules.share import Share
from jmsaio.transport import forks
from jmsaio.transport.base import LinkChange, LinkListener
from jmsaio.transport.clock import Clock, clock_of
from jmsaio.transport.pulsar.wire.connections.answers import STABLE, Backoff
from jmsaio.transport.pulsar.wire.connections.pool import Pool
from jmsaio.transport.pulsar.wire.connections.tasks import Tasks
from jmsaio.transport.pulsar.wire.connections.topics import Topics
from jmsaio.transport.pulsar.wire.records.unsettled import UnsettledEntries

_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class Link:
    """The connection of one client as a whole: it is lost while no broker is connected."""

    url: str
    _tasks: Tasks
    _backoff: Backoff
    listeners: set[LinkListener] = attrs.field(factory=set, init=False)
    loss: JMSError | None = attrs.field(default=None, init=False)
    _since: float = attrs.field(default=-math.inf, init=False)  # when it was connected again
    _failures: int = attrs.field(default=0, init=False)

    def lost(self, pool: Pool, error: JMSError) -> None:
        """Report the loss of the last connection, and connect again."""
        if self.loss is not None:
            return
        text = f"the connection to {self.url} is lost: {error}; it connects again by itself when it can"
        self.loss = BrokerUnavailableError(text)
        self.report(LinkChange(text, self.loss, whole=True))
        self._tasks.start(self._connect(pool))

    async def _connect(self, pool: Pool) -> None:
        loop = asyncio.get_running_loop()
        begun, refusal = loop.time(), False
        self._failures = 0 if begun - self._since >= STABLE else self._failures + 1
        while True:
            if self._failures:
                await asyncio.sleep(self._backoff.delay(self._failures, random()))
            try:
                await pool.connect_service()
                break
            except JMSError as error:
                self._failures += 1
                if isinstance(error, JMSSecurityError) and not refusal:
                    refusal = True
                    self.report(LinkChange(str(error), error, whole=True))
        self.loss = None
        self._since = loop.time()
        seconds = self._since - begun
        self.report(LinkChange(f"the connection to {self.url} is back after {seconds:.0f} s", whole=True))

    def report(self, change: LinkChange) -> None:
        """Call the listeners with a change, or with what no call reports."""
        for listener in list(self.listeners):
            try:
                listener(change)
            except Exception:  # an error of one listener must not keep the others from knowing
                _log.exception("a listener of the connection to %s failed", self.url)


class Client:
    """The connections of one transport, its tasks, and the numbers of its producers and consumers.

    Attributes:
        share: bytes that all receivers together can have sent ahead.
        ids: numbers of producers and consumers, which are never used twice.
    """

    def __init__(self, config: Configuration) -> None:
        self.config = config
        self.loop = asyncio.get_running_loop()
        self.clock: Clock = clock_of(self.loop)
        self.tasks = Tasks()
        self.backoff = Backoff(config.initial_backoff, config.max_backoff)
        self.link = Link(config.service_url, self.tasks, self.backoff)
        self.pool = Pool(config, self.tasks, lambda error: self.link.lost(self.pool, error))
        self.topics = Topics(self.pool, config)
        self.share = Share(config.receive_buffer_bytes // 2)  # the other half is for records held by the client
        self.ids = count(1)
        self.closed = False
        self._unsettled: weakref.WeakValueDictionary[tuple[str, str], UnsettledEntries] = weakref.WeakValueDictionary()
        self._forks = forks.count

    def unsettled(self, topic: str, subscription: str) -> UnsettledEntries:
        """Return the entries that the consumers of a subscription of a topic or partition share.

        Nothing is shared on topics that are not persistent: they store no entries.
        """
        if topic.startswith("non-persistent:"):
            return UnsettledEntries(None)
        found = self._unsettled.get((topic, subscription))
        if found is None:
            found = UnsettledEntries((self.config.service_url, topic, subscription))
            self._unsettled[topic, subscription] = found
        return found

    def report(self, text: str) -> None:
        """Report a loss that no call reports: to the listeners, or else in the log."""
        if not self.link.listeners:
            _log.error("%s", text)
        self.link.report(LinkChange(text, TransportError(text)))

    def check(self) -> None:
        """Raise ObjectClosedError after close, and ForkError in a child process."""
        if self._forks != forks.count:
            raise ForkError("this connection belongs to the parent process; connect again in the child")
        if self.closed:
            raise ObjectClosedError("the connection to the broker is closed")
