"""What the producers, consumers and readers of one transport share."""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from itertools import count

from jmsaio.config import Configuration
from jmsaio.errors import ForkError, ObjectClosedError, TransportError
from jmsaio.protocol.backoff import Backoff
from jmsaio.rules.share import Share
from jmsaio.transport.base import LinkChange
from jmsaio.transport.clock import Clock, clock_of
from jmsaio.transport.pulsar.wire.known import Known
from jmsaio.transport.pulsar.wire.link import Link
from jmsaio.transport.pulsar.wire.pool import Pool
from jmsaio.transport.pulsar.wire.tasks import Tasks
from jmsaio.transport.pulsar.wire.topics import Topics

_log = logging.getLogger(__name__)
_forks = 0


def _after_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_after_fork)


class Client:
    """The connections of one transport, its tasks, and the numbers of its producers and consumers.

    Attributes:
        config: the connection's options.
        loop: the event loop of everything here.
        clock: the clock of that loop.
        tasks: owner of all background tasks.
        backoff: the pauses between attempts to connect.
        link: whether there is a connection.
        pool: the connections.
        topics: finds the brokers of topics.
        share: bytes that all receivers together can have sent ahead.
        ids: numbers of producers and consumers, which are never used twice.
        closed: whether the transport is closed.
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
        self._known: weakref.WeakValueDictionary[tuple[str, str], Known] = weakref.WeakValueDictionary()
        self._forks = _forks

    def known(self, topic: str, subscription: str) -> Known:
        """Return the entries that the consumers of a subscription of a topic or partition share.

        Nothing is shared on topics that are not persistent: they store no entries.
        """
        if topic.startswith("non-persistent:"):
            return Known(None)
        found = self._known.get((topic, subscription))
        if found is None:
            found = self._known[topic, subscription] = Known((self.config.service_url, topic, subscription))
        return found

    def report(self, text: str) -> None:
        """Report a loss that no call reports: to the listeners, or else in the log."""
        if not self.link.listeners:
            _log.error("%s", text)
        self.link.report(LinkChange(text, TransportError(text)))

    def check(self) -> None:
        """Raise ObjectClosedError after close, and ForkError in a child process."""
        if self._forks != _forks:
            raise ForkError("this connection belongs to the parent process; connect again in the child")
        if self.closed:
            raise ObjectClosedError("the connection to the broker is closed")
