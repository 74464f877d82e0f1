"""Numbers, order and partitions of rows, which stay the same when a task or a batch is repeated.

A broker that deduplicates stores the highest sequence id for each producer name and partition, and drops every record
that is not above it. So a row must have the same producer, number and partition whenever it is sent, and the rows of a
producer must be sent in the order of their numbers: a late one would be lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Final

import attrs

from jmsaio.errors import IllegalArgumentError, MessageFormatError
from jmsaio.rules.routing import java_string_hash

#: Bits of a position in its sequence id, ``ledger << 32 | entry << 12 | batch``, which sorts as positions do. The
#: ledger has the upper 31, so that the sign stays 0.
LEDGER_BITS: Final = 31
ENTRY_BITS: Final = 20
BATCH_BITS: Final = 12


def choose_partition(partition: int | None, key: str | None, sequence: int | None, partitions: int) -> int | None:
    """Choose a row's partition by the row alone: the one it names, else by its key, else by its number.

    A key selects the same partition as in Java's client. Returns None if the row determines none. Raises
    IllegalArgumentError if the topic has no such partition.
    """
    if partition is not None:
        if not 0 <= partition < partitions:
            raise IllegalArgumentError(
                f"there is no partition {partition}: the topic has {partitions}; drop the column partition or change it"
            )
        return partition
    if key is not None:
        return java_string_hash(key) % partitions
    return None if sequence is None else sequence % partitions


@attrs.define
class AscendingCheck:
    """Check that the rows of each producer have strictly ascending sequence ids. Use one for each task.

    If ``chained``, the row before each one must be the last one checked: otherwise it could be sent later and be lost.
    """

    _chained: bool = False
    _last: dict[str, tuple[int, int]] = attrs.field(factory=dict, init=False)

    def check(self, producer: str | None, sequence: int | None, previous: int | None, row: int) -> None:
        """Check and record the next row, the task's row with the number ``row``.

        Raises:
            MessageFormatError: the row has no producer name or no sequence id.
            IllegalArgumentError: the id is not above the producer's last one, or the row before belongs to another task
                or was dropped. The last row stays unchanged.
        """
        if not producer:
            raise MessageFormatError("dedup_producer must be the name of a producer, not NULL or empty")
        if sequence is None or sequence < 0:
            shown = "NULL" if sequence is None else sequence
            raise MessageFormatError(f"dedup_sequence must be 0 or more, not {shown}")
        last, last_row = self._last.get(producer, (None, 0))
        if self._chained and previous != last:
            before = "no row" if previous is None else f"dedup_sequence {previous}"
            here = "has sent none" if last is None else f"has sent {last} last"
            raise IllegalArgumentError(
                f"row {row}: before it comes {before} of producer {producer!r:.100}, but this task {here}: rows were "
                "moved or left out after with_dedup; call it last, or the broker might drop rows"
            )

        if last is not None and sequence <= last:
            raise IllegalArgumentError(
                f"row {row}: dedup_sequence {sequence} of producer {producer!r:.100} must lie above {last} of row "
                f"{last_row}, or the broker would drop it; sort within partitions by dedup_producer and dedup_sequence"
            )
        self._last[producer] = (sequence, row)


@attrs.frozen
class Sent:
    """Counts of the rows that a task sent to one topic.

    Attributes:
        rows: rows confirmed by the broker, including duplicates.
        duplicates: rows that the broker dropped because it had stored them already.
        producers: names of the task's producers; empty without deduplication.
    """

    topic: str
    rows: int
    duplicates: int
    producers: tuple[str, ...] = ()


def check_tasks(producers: Iterable[Iterable[str]]) -> None:
    """Check that no producer had rows in two tasks, whose order is undefined: some can be lost."""
    for name, tasks in Counter(chain.from_iterable(map(set, producers))).items():
        if tasks > 1:
            raise IllegalArgumentError(
                f"rows of producer {name!r:.100} came from two tasks, so the broker might have dropped some as "
                "duplicates; repartition by dedup_producer before writing, and check what was stored"
            )
