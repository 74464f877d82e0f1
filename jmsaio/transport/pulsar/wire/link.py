"""Whether there is a connection to the broker: losses are reported, and ended by connecting again."""

from __future__ import annotations

import asyncio
import logging
import math
from random import random

import attrs

from jmsaio.errors import BrokerUnavailableError, JMSError, JMSSecurityError
from jmsaio.protocol.backoff import STABLE, Backoff
from jmsaio.transport.base import LinkChange, LinkListener
from jmsaio.transport.pulsar.wire.pool import Pool
from jmsaio.transport.pulsar.wire.tasks import Tasks

_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class Link:
    """The connection of one client as a whole: it is lost while no broker is connected.

    Attributes:
        url: where it connects, for texts.
        listeners: functions called with its changes.
        loss: why no broker is connected; None while one is.
    """

    url: str
    _tasks: Tasks
    _backoff: Backoff
    listeners: set[LinkListener] = attrs.field(factory=set, init=False)
    loss: JMSError | None = attrs.field(default=None, init=False)
    _since: float = attrs.field(default=-math.inf, init=False)  # when it was connected again
    _failures: int = attrs.field(default=0, init=False)

    def lost(self, pool: Pool, error: JMSError) -> None:
        """Take the loss of the last connection, and connect again."""
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
