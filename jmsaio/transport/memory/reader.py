"""``Reader`` of the embedded broker."""

from __future__ import annotations

import asyncio
from typing import cast

from jmsaio.errors import JMSError, ObjectClosedError
from jmsaio.model.wire import ReceivedRecord
from jmsaio.transport.base import ReaderOptions
from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.broker.tail import Tail
from jmsaio.transport.memory.link import Link
from jmsaio.transport.waiters import Waiters

#: What to do with a topic that has partitions.
READ_EACH = "read them one by one"


class MemoryReader:
    """Reads one topic. See ``jmsaio.transport.base.Reader``. Made under the broker's lock.

    What it has not read yet stays in the broker's memory.

    Args:
        link: way to the event loop.
        options: what to read.

    Raises:
        InvalidDestinationError: a topic with partitions, or not a full name.
    """

    __slots__ = ("_arrived", "_broker", "_closed", "_failure", "_link", "_tail", "_topic", "armed")

    def __init__(self, link: Link, options: ReaderOptions) -> None:
        self._link = link
        self._broker: Broker = link.broker
        self._topic = options.topic
        self._broker.check_unpartitioned(options.topic, READ_EACH)
        self._tail = Tail(self._broker.open(options.topic)[0], self, options.start, options.inclusive)
        self._arrived = Waiters()
        self._failure: JMSError | None = None
        self._closed = False
        self.armed = False

    def notify(self) -> None:
        """Something is there, or never will be."""
        self.armed = False
        self._link.defer(self)

    def reconnect(self) -> None:
        """The broker can be reached again."""
        self.notify()

    def end(self, reason: JMSError | None) -> None:
        """The topic is gone."""
        self._failure = reason
        self.notify()

    def run_deferred(self) -> None:
        """Wake those who wait."""
        self._arrived.wake()

    async def read(self, limit: int, timeout: float) -> list[ReceivedRecord]:
        """Next records. See ``Reader.read``; at the end it waits for more. Cancelling loses nothing."""
        await asyncio.sleep(0)  # a long topic must not keep the loop from its other work
        try:
            async with asyncio.timeout(timeout):
                while not self._has_some():
                    await self._arrived.wait()
        except TimeoutError:
            return []
        with self._broker.lock:
            records = self._tail.take(limit)
            self._broker.freed()
        return cast("list[ReceivedRecord]", records)

    def _has_some(self) -> bool:
        """Records are there; else it is armed, or raises why there will be none."""
        with self._broker.lock:
            if self._tail.backlog and not self._broker.down:
                return True
            if self._closed:
                raise ObjectClosedError(f"the reader of {self._topic} is closed")
            if self._failure is not None:
                raise self._failure
            self.armed = True
            return False

    async def at_end(self) -> bool:
        """Nothing is stored behind the last record read."""
        return not self._tail.backlog

    async def aclose(self, timeout: float) -> None:
        """Close. Idempotent."""
        with self._broker.lock:
            self.abandon()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def abandon(self) -> None:
        """Close at once. With the lock held."""
        self._closed = True
        self._tail.leave()
        self._broker.freed()
        self.notify()
