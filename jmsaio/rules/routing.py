"""Chooses the partition of a record: by priority, the sticky key of a transaction, or group.

The partitions are the same as Starlight's with ``jms.enableJMSPriority``, ``jms.priorityMapping`` and
``jms.transactionsStickyPartitions``.

These are pure functions of a record and the number of partitions, so a transport can call them from any thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count, repeat

from jmsaio.model.wire import OutgoingRecord

_DEFAULT_PRIORITY = 4


def java_string_hash(text: str) -> int:
    """Return the low 31 bits of Java's ``String.hashCode``: ``h = 31 * h + unit`` over UTF-16 units, 32-bit wrap."""
    value = 0
    if text.isascii():
        for byte in text.encode("ascii"):
            value = (31 * value + byte) & 0xFFFFFFFF
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for index in range(0, len(units), 2):
            value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value & 0x7FFFFFFF


def make_turns(mode: str, uniform: Callable[[], float]) -> Iterator[int]:
    """Return the numbers that choose the partition of records without a group id, modulo the number of partitions.

    ``messageRoutingMode``: ``RoundRobinPartition``, all in turn, or ``SinglePartition``, a random one for all.
    """
    return repeat(math.floor(uniform() * 2**31)) if mode == "SinglePartition" else count()


def partition_of(
    record: OutgoingRecord,
    partitions: int,
    route: Callable[[OutgoingRecord, int], int | None] | None,
    turns: Iterator[int],
) -> int:
    """Return the partition of a record: by the sender's route, else by the record's key, else the next of ``turns``."""
    index = None if route is None else route(record, partitions)
    if index is None:
        index = next(turns) if record.key is None else java_string_hash(record.key)
    return index % partitions


def linear_partition(priority: int, partitions: int, uniform: float) -> int:
    """Return the partition for a priority, priorities spread evenly; a higher partition is a higher priority.

    A priority outside 0 to 9 counts as the nearest. ``uniform``, random in [0, 1), spreads one over its partitions.
    """
    if partitions == 2:
        return 0 if priority <= _DEFAULT_PRIORITY else 1
    if partitions == 3:
        return (priority > _DEFAULT_PRIORITY) + (priority >= _DEFAULT_PRIORITY)
    width = partitions / 10.0
    level = min(max(priority, 0), 9)
    return min(math.floor(math.floor(width * level) + uniform * width), partitions - 1)


def non_linear_partition(priority: int, partitions: int, uniform: float) -> int:
    """Return the partition for a priority: a quarter each for low (0-3) and high (5-9), half for the default (4)."""
    if partitions <= 1:
        return 0
    width = partitions / 4.0
    if priority < _DEFAULT_PRIORITY:
        return math.floor(uniform * width)
    if priority == _DEFAULT_PRIORITY:
        if partitions <= 3:
            return partitions - 2
        return math.floor(math.ceil(width) + uniform * 2 * width)
    return min(math.floor(math.ceil(3 * width) + uniform * width), partitions - 1)


def make_route(
    mapping: str | None, sticky: bool, uniform: Callable[[], float]
) -> Callable[[OutgoingRecord, int], int | None]:
    """Return the function that chooses a partition for a sender; None lets the transport choose the next in turn.

    ``mapping`` is ``linear`` or ``non-linear`` if JMS priority is enabled. As in Starlight, priority overrides the
    group id. ``sticky``: records of a transaction go to one partition (``jms.transactionsStickyPartitions``).
    """
    by_priority = {None: None, "linear": linear_partition, "non-linear": non_linear_partition}[mapping]

    def route(record: OutgoingRecord, partitions: int) -> int | None:
        if sticky and record.sticky_key is not None:
            return record.sticky_key % partitions
        if by_priority is not None:
            priority = record.priority if 0 <= record.priority <= 9 else _DEFAULT_PRIORITY
            return by_priority(priority, partitions, uniform())
        if record.key is not None:
            return java_string_hash(record.key) % partitions
        return None

    return route
