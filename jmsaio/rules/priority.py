"""A buffer of received records that returns higher JMS priorities first, and each priority in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import attrs

from jmsaio.model.wire import PRIORITY, ReceivedRecord

_DEFAULT = 4


def record_priority(record: ReceivedRecord) -> int:
    """JMSPriority of a record: 0 to 9, anything else on the wire counts as 4."""
    text = record.get(PRIORITY)
    return int(text) if text is not None and len(text) == 1 and text in "0123456789" else _DEFAULT


@attrs.define(eq=False)
class PriorityBuffer:
    """Ten queues, one for each priority, behind the part of ``deque``'s surface that an inbox uses."""

    _queues: list[deque[ReceivedRecord]] = attrs.field(factory=lambda: [deque() for _ in range(10)], init=False)
    _size: int = attrs.field(default=0, init=False)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[ReceivedRecord]:
        for queue in reversed(self._queues):
            yield from queue

    def append(self, record: ReceivedRecord) -> None:
        """Put a record behind those of its priority."""
        self._queues[record_priority(record)].append(record)
        self._size += 1

    def extend(self, records: Iterable[ReceivedRecord]) -> None:
        """Put records behind those of their priorities, in order."""
        for record in records:
            self.append(record)

    def appendleft(self, record: ReceivedRecord) -> None:
        """Put a record before those of its priority."""
        self._queues[record_priority(record)].appendleft(record)
        self._size += 1

    def extendleft(self, records: Iterable[ReceivedRecord]) -> None:
        """Put records before those of their priorities, one after the other, as ``deque.extendleft`` does."""
        for record in records:
            self.appendleft(record)

    def popleft(self) -> ReceivedRecord:
        """The first record of the highest priority. Raises IndexError when empty."""
        for queue in reversed(self._queues):
            if queue:
                self._size -= 1
                return queue.popleft()
        raise IndexError("pop from an empty buffer")

    def clear(self) -> None:
        """Forget everything."""
        for queue in self._queues:
            queue.clear()
        self._size = 0
