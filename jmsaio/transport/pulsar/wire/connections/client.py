"""What the producers, consumers and readers of one transport share, and whether a broker is connected."""

from __future__ import annotations

import asyncio
import logging
import math
import weakref
from itertools import count
from random import random

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
from jmsaio.transport.pulsar.wire.connections.topics import Topics
from jmsaio.transport.pulsar.wire.records.record import UnsettledEntries
from jmsaio.transport.waiting import Tasks

_log = logging.getLogger(__name__)


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
