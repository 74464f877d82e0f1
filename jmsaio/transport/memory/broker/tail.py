"""A reader as a partition sees it."""

from __future__ import annotations

from collections import deque

from jmsaio.model.wire import WireId
from jmsaio.transport.base import Position
from jmsaio.transport.memory.broker.partition import Partition
from jmsaio.transport.memory.broker.ports import Port
from jmsaio.transport.memory.broker.record import StoredRecord


class Tail:
    """A reader's place in a log: what it has not read yet. It delivers delayed records at once, as Pulsar does.

    Args:
        log: the topic without partitions, or the partition.
        port: the reader's end towards its event loop.
        start: where it starts; see ``ReaderOptions``.
        inclusive: with an id: that record is read, too.
    """

    __slots__ = ("_since", "backlog", "log", "port")

    def __init__(self, log: Partition, port: Port, start: Position | WireId | int, inclusive: bool) -> None:
        self.log = log
        self.port = port
        self.backlog: deque[StoredRecord] = deque(log.after(start, inclusive))
        for record in self.backlog:
            record.references += 1
        self._since = start if isinstance(start, int) and not self.backlog else 0
        log.listen(self)

    def publish(self, record: StoredRecord, due: float | None) -> None:
        """Take a new record, unless the reader's start is a time that has not come yet."""
        if record.publish_time < self._since:
            self.log.release(record)
            return
        self._since = 0
        self.backlog.append(record)
        if self.port.armed:
            self.port.notify()

    def take(self, limit: int) -> list[StoredRecord]:
        """The next records, up to ``limit``."""
        records = [self.backlog.popleft() for _ in range(min(limit, len(self.backlog)))]
        for record in records:
            self.log.release(record)
        return records

    def leave(self) -> None:
        """Let go of everything."""
        self.log.silence(self)
        self.take(len(self.backlog))


def tails_of(log: Partition) -> list[Tail]:
    """The readers of a topic or partition."""
    return [listener for listener in log.listeners if isinstance(listener, Tail)]
