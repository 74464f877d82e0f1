"""``Reader`` of the embedded broker."""

from __future__ import annotations

import asyncio
from typing import cast

from jmsaio.errors import JMSError, ObjectClosedError
from jmsaio.model.wire import ReceivedRecord
from jmsaio.transport.base import ReaderOptions
from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.broker.consumer import Tail
from jmsaio.transport.memory.link import Link
from jmsaio.transport.waiting import Waiters

#: Hint for a topic with partitions.
READ_EACH = "read them one by one"


class MemoryReader:
    """Reads one topic; unread records stay in the broker's memory. Created with the broker's lock held."""

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
        self.armed = False
        self._link.defer(self)

    def reconnect(self) -> None:
        self.notify()

    def end(self, reason: JMSError | None) -> None:
        self._failure = reason
        self.notify()

    def run_deferred(self) -> None:
        self._arrived.wake()

    async def read(self, limit: int, timeout: float) -> list[ReceivedRecord]:
        await asyncio.sleep(0)  # reading a long topic must not block the loop
        try:
            async with asyncio.timeout(timeout):
                while not self._has_some():
                    await self._arrived.wait()
        except TimeoutError:
            return []
        with self._broker.lock:
            records = self._tail.read(limit)
            self._broker.freed()
        return cast("list[ReceivedRecord]", records)

    def _has_some(self) -> bool:
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
        return not self._tail.backlog

    async def aclose(self, timeout: float) -> None:
        with self._broker.lock:
            self.abandon()

    @property
    def closed(self) -> bool:
        return self._closed

    def abandon(self) -> None:
        self._closed = True
        self._tail.close()
        self._broker.freed()
        self.notify()
