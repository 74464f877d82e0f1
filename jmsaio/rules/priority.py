"""A buffer of received records that returns higher JMS priorities first, and each priority in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import attrs

from jmsaio.model.wire import ReceivedRecord


@attrs.define(eq=False)
class PriorityBuffer:
    """Ten queues, one per priority, with the methods of ``deque`` that an inbox uses.

    Args:
        priority: returns JMSPriority of a record, 0 to 9.
    """

    _priority: Callable[[ReceivedRecord], int]
    _queues: list[deque[ReceivedRecord]] = attrs.field(factory=lambda: [deque() for _ in range(10)], init=False)
    _size: int = attrs.field(default=0, init=False)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[ReceivedRecord]:
        for queue in reversed(self._queues):
            yield from queue

    def append(self, record: ReceivedRecord) -> None:
        self._queues[self._priority(record)].append(record)
        self._size += 1

    def extend(self, records: Iterable[ReceivedRecord]) -> None:
        """Append records after the others of their priorities, in order."""
        for record in records:
            self.append(record)

    def appendleft(self, record: ReceivedRecord) -> None:
        self._queues[self._priority(record)].appendleft(record)
        self._size += 1

    def extendleft(self, records: Iterable[ReceivedRecord]) -> None:
        """Insert records before the others of their priorities, one by one, as ``deque.extendleft``."""
        for record in records:
            self.appendleft(record)

    def popleft(self) -> ReceivedRecord:
        """Remove and return the first record of the highest priority. Raises IndexError if empty."""
        for queue in reversed(self._queues):
            if queue:
                self._size -= 1
                return queue.popleft()
        raise IndexError("pop from an empty buffer")

    def clear(self) -> None:
        for queue in self._queues:
            queue.clear()
        self._size = 0
