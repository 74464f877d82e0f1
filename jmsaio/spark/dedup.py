"""Rows with an identity that is derived from their position and stays the same whenever they are sent."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window, functions as F

from jmsaio.errors import IllegalArgumentError
from jmsaio.spark.model.dedup import BATCH_BITS, ENTRY_BITS, LEDGER_BITS

_SOURCE: Final = ("topic", "position")


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
    ledger, entry = F.col("position.ledger"), F.col("position.entry")
    batch = F.greatest(F.coalesce(F.col("position.batch"), F.lit(0)), F.lit(0)).cast("long")
    parts = ((ledger, LEDGER_BITS), (entry, ENTRY_BITS), (batch, BATCH_BITS))
    fits = F.lit(True)
    for part, bits in parts:
        fits = fits & (part >= 0) & (part < 1 << bits)
    number = F.shiftleft(ledger, ENTRY_BITS + BATCH_BITS).bitwiseOR(F.shiftleft(entry, BATCH_BITS)).bitwiseOR(batch)
    text = "with_dedup: position %s makes no dedup_sequence; number the rows by a column of your own"
    refused = F.raise_error(F.format_string(text, F.coalesce(F.col("position").cast("string"), F.lit("NULL"))))
    return F.when(fits, number).otherwise(refused.cast("long"))
