"""A reader of a partition, in the broker."""

from __future__ import annotations

from collections import deque

from jmsaio.model.wire import WireId
from jmsaio.transport.base import StartPosition
from jmsaio.transport.memory.broker.consumer import Port
from jmsaio.transport.memory.broker.partition import Partition, StoredRecord


class Tail:
    """A reader's position in a log: its unread records. Delayed records are delivered at once, as in Pulsar.

    Args:
        log: the topic without partitions, or the partition.
        port: the broker's connection to the reader.
        start: start of the reader; see ``ReaderOptions``.
        inclusive: with an id: whether that record is read, too.
    """

    __slots__ = ("_since", "backlog", "log", "port")

    def __init__(self, log: Partition, port: Port, start: StartPosition | WireId | int, inclusive: bool) -> None:
        self.log = log
        self.port = port
        self.backlog: deque[StoredRecord] = deque(log.after(start, inclusive))
        for record in self.backlog:
            record.references += 1
        self._since = start if isinstance(start, int) and not self.backlog else 0
        log.listen(self)

    def publish(self, record: StoredRecord, due: float | None) -> None:
        """Receive a new record, unless its publish time is before the reader's start."""
        if record.publish_time < self._since:
            self.log.release(record)
            return
        self._since = 0
        self.backlog.append(record)
        if self.port.armed:
            self.port.notify()

    def take(self, limit: int) -> list[StoredRecord]:
        """Return the next records, up to ``limit``."""
        records = [self.backlog.popleft() for _ in range(min(limit, len(self.backlog)))]
        for record in records:
            self.log.release(record)
        return records

    def leave(self) -> None:
        """Release all records and stop listening."""
        self.log.silence(self)
        self.take(len(self.backlog))


def tails_of(log: Partition) -> list[Tail]:
    """Return the readers of a topic or partition."""
    return [listener for listener in log.listeners if isinstance(listener, Tail)]
