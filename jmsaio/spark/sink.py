"""Writing: Spark's calls for batches and streams.

Three processes import this module: the one that creates the writer, the task, and the one that commits. A task's
dependencies are therefore imported when they are used.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from jmsaio.config import load
from jmsaio.errors import IllegalArgumentError
from jmsaio.model.log_fields import log_fields
from jmsaio.spark.model.dedup import Sent, check_tasks
from jmsaio.spark.options.parse import SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)


@attrs.frozen
class Written(WriterCommitMessage):
    """Rows that a task sent, with one item for each topic."""

    sent: tuple[Sent, ...]


def _report(messages: Sequence[WriterCommitMessage | None], what: str) -> list[Written]:
    """Log how many rows of a batch were sent to each topic; return the messages of complete tasks."""
    done = [message for message in messages if isinstance(message, Written)]  # Spark passes None for a failed task
    rows, duplicates = Counter[str](), Counter[str]()
    for each in (each for message in done for each in message.sent):
        rows[each.topic] += each.rows
        duplicates[each.topic] += each.duplicates
    for topic, count in sorted(rows.items()):
        text, about = "%s: %d rows sent to %s, of which the broker had %d already", log_fields(destination=topic)
        _log.info(text, what, count, topic, duplicates[topic], extra=about)
    return done


class _SinkWriter:
    """Base of both writers. Checks the table when Spark creates the writer, before a task starts.

    Spark passes the number of the batch for a stream only.

    Raises:
        ConfigurationError: the table can't be written as messages.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        from jmsaio.spark.sending import make_records, with_schema

        table = to_arrow_schema(schema, timezone="UTC")
        self._options = with_schema(options, table)
        make_records(self._options, table, load(options.connection))  # needs no secret yet

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of one task; see ``write_batches``."""
        from jmsaio.spark.sending import write_batches

        return Written(write_batches(self._options, iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int | None = None) -> None:
        """Report the write. Raises IllegalArgumentError if two tasks used the same producer name."""
        what = _name(batchId)
        try:
            check_tasks({name for each in done.sent for name in each.producers} for done in _report(messages, what))
        except IllegalArgumentError as error:
            raise IllegalArgumentError(f"{what}: {error}") from error

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int | None = None) -> None:
        """Report what stays stored; nothing can be rolled back."""
        what = _name(batchId)
        done = _report(messages, f"{what} failed")
        _log.warning("%s failed: what its %d complete tasks sent stays", what, len(done))


def _name(batch: int | None) -> str:
    return "write" if batch is None else f"batch {batch}"


class BatchWriter(_SinkWriter, DataSourceArrowWriter):
    """Writer of a table."""


class StreamWriter(_SinkWriter, DataSourceStreamArrowWriter):
    """Writer of a stream's batches."""
