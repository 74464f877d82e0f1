"""Numbers, order and partitions of rows, which stay the same when a task or a batch is repeated.

A broker that deduplicates stores the highest sequence id for each producer name and partition, and drops every record
that is not above it. So a row must have the same producer, number and partition whenever it is sent, and the rows of a
producer must be sent in the order of their numbers: a late one would be lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Final

import attrs

from jmsaio.errors import IllegalArgumentError, MessageFormatError
from jmsaio.rules.routing import java_string_hash

if TYPE_CHECKING:  # importing this module loads no pyspark
    from pyspark.sql import Column, DataFrame

#: Bits of a position in its sequence id, ``ledger << 32 | entry << 12 | batch``, which sorts as positions do. The
#: ledger has the upper 31, so that the sign stays 0.
_LEDGER_BITS: Final = 31
_ENTRY_BITS: Final = 20
_BATCH_BITS: Final = 12
_SOURCE: Final = ("topic", "position")


def choose_partition(partition: int | None, key: str | None, sequence: int | None, partitions: int) -> int | None:
    """Choose a partition by the row alone: the one it names, else by its key as in Java, else by its number."""
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
    """Counts of the rows that a task sent to one topic."""

    topic: str
    rows: int  # with ``duplicates``
    duplicates: int  # rows that the broker had stored already
    producers: tuple[str, ...] = ()  # empty without deduplication


def check_tasks(producers: Iterable[Iterable[str]]) -> None:
    for name, tasks in Counter(chain.from_iterable(map(set, producers))).items():
        if tasks > 1:
            raise IllegalArgumentError(
                f"rows of producer {name!r:.100} came from two tasks, so the broker might have dropped some as "
                "duplicates; repartition by dedup_producer before writing, and check what was stored"
            )


def with_dedup(frame: DataFrame, job: str) -> DataFrame:
    """Add the columns that ``dedup=columns`` needs, so that a repeated task or batch stores no row twice.

    The producer of a row consists of the job and the topic or partition of the row; its sequence number is its position
    there. Both are the same whichever task sends the row, today or in a repeated batch. All rows of a topic are sent by
    one task, in their order. ``dedup_previous`` is the number of the preceding row. A task that did not send that row
    immediately before rejects the row, so that a later ``filter`` or ``repartition`` can't lose rows silently. Call
    this last.

    A row can become one message or none, never two: the second would have the same number. The broker forgets a
    producer after its configured time (``brokerDeduplicationProducerInactivityTimeoutMinutes``, 6 hours by default), so
    this protects against repeats within hours, not months.

    Args:
        frame: rows with the columns ``topic`` and ``position`` of the source ``jms``. The rows of a stream can't be
            sorted: call this for each batch in ``foreachBatch``.
        job: name of the job. Use the same name in each run, and no other job's that writes to the same topic.

    Returns:
        The rows with ``dedup_producer``, ``dedup_sequence`` and ``dedup_previous``.

    Raises:
        IllegalArgumentError: ``job`` is empty, a column is missing, or ``frame`` is a stream. A position too large for
            a number (ledger from 2^31, entry from 2^20, batch index from 2^12) or NULL fails the query.
    """
    from pyspark.sql import Window, functions as F

    if not job:
        raise IllegalArgumentError("with_dedup: job is empty; give the job a name that it keeps")
    if frame.isStreaming:
        raise IllegalArgumentError("with_dedup: the rows of a stream can't be sorted; call it in foreachBatch")
    missing = [name for name in _SOURCE if name not in frame.columns]
    if missing:
        needs = "with_dedup needs the columns topic and position, as the source jms reads them"
        raise IllegalArgumentError(f"{needs}; {' and '.join(missing)} is missing")
    producer = F.concat(F.lit(f"{job}:"), F.col("topic"))
    numbered = frame.withColumns({"dedup_producer": producer, "dedup_sequence": _sequence()})
    before = Window.partitionBy("dedup_producer").orderBy("dedup_sequence")
    return numbered.withColumn("dedup_previous", F.lag("dedup_sequence").over(before))


def _sequence() -> Column:
    """Return the sequence ids of positions; a batch index of -1, of an entry with one message, counts as 0."""
    from pyspark.sql import functions as F

    ledger, entry = F.col("position.ledger"), F.col("position.entry")
    batch = F.greatest(F.coalesce(F.col("position.batch"), F.lit(0)), F.lit(0)).cast("long")
    parts = ((ledger, _LEDGER_BITS), (entry, _ENTRY_BITS), (batch, _BATCH_BITS))
    fits = F.lit(True)
    for part, bits in parts:
        fits = fits & (part >= 0) & (part < 1 << bits)
    number = F.shiftleft(ledger, _ENTRY_BITS + _BATCH_BITS).bitwiseOR(F.shiftleft(entry, _BATCH_BITS)).bitwiseOR(batch)
    text = "with_dedup: position %s makes no dedup_sequence; number the rows by a column of your own"
    refused = F.raise_error(F.format_string(text, F.coalesce(F.col("position").cast("string"), F.lit("NULL"))))
    return F.when(fits, number).otherwise(refused.cast("long"))
