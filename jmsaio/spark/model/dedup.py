"""Rows that keep their identity when a task or a batch is repeated: their numbers, order and partition.

A broker that deduplicates keeps, for each producer name and partition, the highest sequence id that it stored, and
leaves out every record that does not lie above. So a row must have the same producer, number and partition whenever it
is sent, and the rows of a producer must come in the order of their numbers: one that is late would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from jmsaio.errors import IllegalArgumentError
from jmsaio.rules.routing import java_string_hash

#: Bits of entry and batch index in a sequence id; the ledger has the 31 above them, so that the sign stays 0.
LEDGER_BITS: Final = 31
ENTRY_BITS: Final = 20
BATCH_BITS: Final = 12


def pack(ledger: int, entry: int, batch: int) -> int:
    """The sequence id of the message at a position: ``ledger << 32 | entry << 12 | batch``.

    It sorts as positions do.

    Args:
        ledger: ledger id, below 2^31.
        entry: entry id, below 2^20.
        batch: index in the batch, below 2^12; -1, for an entry that is one message, counts as 0.

    Raises:
        IllegalArgumentError: a part that does not fit.
    """
    parts = (("ledger", ledger, LEDGER_BITS), ("entry", entry, ENTRY_BITS), ("batch index", max(batch, 0), BATCH_BITS))
    for name, value, bits in parts:
        if not 0 <= value < 1 << bits:
            raise IllegalArgumentError(
                f"position {ledger}:{entry}:{batch} makes no sequence id: its {name} must be below {1 << bits}; "
                "number the rows by a column of your own"
            )
    return ledger << ENTRY_BITS + BATCH_BITS | entry << BATCH_BITS | max(batch, 0)


def choose_partition(partition: int | None, key: str | None, sequence: int | None, partitions: int) -> int | None:
    """The partition of a row, by the row alone: the one it names, else that of its key, else that of its number.

    Args:
        partition: the one that the row names, or None.
        key: the record's key, or None. Its partition is the one that Java's client takes.
        sequence: the row's sequence id, or None.
        partitions: number of partitions, at least 1.

    Returns:
        Its index; None where the row says nothing.

    Raises:
        IllegalArgumentError: the topic has no such partition.
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
    """Checks that the rows of each producer come in the strictly ascending order of their sequence ids.

    One serves one task.
    """

    _last: dict[str, tuple[int, int]] = attrs.field(factory=dict, init=False)

    @property
    def producers(self) -> list[str]:
        """The producers that were seen, in the order of their first rows."""
        return list(self._last)

    def follow(self, producer: str, previous: int | None, row: int) -> None:
        """Check that the row before the next one is the last that was taken. Else that one may be sent later, and lost.

        Args:
            producer: the next row's producer.
            previous: sequence id of the row before it, None where it is the first.
            row: its number in the task, for the error.

        Raises:
            IllegalArgumentError: another task has the row before, or it was left out.
        """
        last, _ = self._last.get(producer, (None, 0))
        if previous != last:
            before = "no row" if previous is None else f"dedup_sequence {previous}"
            here = "has sent none" if last is None else f"has sent {last} last"
            raise IllegalArgumentError(
                f"row {row}: before it comes {before} of producer {producer!r:.100}, but this task {here}: rows were "
                "moved or left out after with_dedup; call it last, or the broker may drop rows"
            )

    def take(self, producer: str, sequence: int, row: int) -> None:
        """Take the next row.

        Args:
            producer: its producer's name.
            sequence: its sequence id.
            row: its number in the task, for the error.

        Raises:
            IllegalArgumentError: it does not lie above the row of this producer before it. That row stays the last.
        """
        last = self._last.get(producer)
        if last is not None and sequence <= last[0]:
            raise IllegalArgumentError(
                f"row {row}: dedup_sequence {sequence} of producer {producer!r:.100} must lie above {last[0]} of row "
                f"{last[1]}, or the broker would drop it; sort within partitions by dedup_producer and dedup_sequence"
            )
        self._last[producer] = (sequence, row)


def check_tasks(producers: Iterable[Iterable[str]]) -> None:
    """Check that no producer had rows in two tasks, which may have come in any order.

    Args:
        producers: those of each task.

    Raises:
        IllegalArgumentError: one had; rows of it may be lost.
    """
    seen: set[str] = set()
    for names in producers:
        for name in set(names):
            if name in seen:
                raise IllegalArgumentError(
                    f"rows of producer {name!r:.100} came from two tasks, so the broker may have dropped some as "
                    "duplicates; repartition by dedup_producer before writing, and check what was stored"
                )
            seen.add(name)
