"""Writing: Spark's calls for batches and streams.

The process that makes the writer, that of the task and that which commits are three, each of which imports this module.
So what a task needs is imported when it is used.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from jmsaio.config import load
from jmsaio.errors import IllegalArgumentError
from jmsaio.spark.model.dedup import check_tasks
from jmsaio.spark.model.outgoing import Sent, count_by_topic
from jmsaio.spark.options.parse import SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)
#: Spark gives None in place of the message of a task that failed.
_Messages = Sequence[WriterCommitMessage | None]


@attrs.frozen
class Written(WriterCommitMessage):
    """What a task sent.

    Attributes:
        sent: by topic.
    """

    sent: tuple[Sent, ...]


class _Writer:
    """What both kinds of writer share. Checks the table when Spark makes it, before a task starts.

    Args:
        options: of the write.
        schema: of the table.

    Raises:
        ConfigurationError: the table can't be written as messages.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        from jmsaio.spark.writing import make_records

        self._options = options
        make_records(options, to_arrow_schema(schema, timezone="UTC"), load(options.connection))  # needs no secret yet

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of one task, at least once: a task that Spark repeats sends its rows again.

        Raises:
            JMSError: the first row that can't be sent; the error names it. Rows before it may be stored.
        """
        from jmsaio.spark.writing import write_batches

        return Written(write_batches(self._options, iterator))


def _report(messages: _Messages, what: str) -> None:
    """Log what became of a batch."""
    sent = [each for message in messages if isinstance(message, Written) for each in message.sent]
    for topic, (rows, duplicates) in sorted(count_by_topic(sent).items()):
        _log.info("%s: %d rows sent to %s, of which the broker had %d already", what, rows, topic, duplicates)


def _finish(messages: _Messages, what: str) -> None:
    _report(messages, what)
    try:
        check_tasks(
            {name for each in message.sent for name in each.producers}
            for message in messages
            if isinstance(message, Written)
        )
    except IllegalArgumentError as error:
        raise IllegalArgumentError(f"{what}: {error}") from error


def _abort(messages: _Messages, what: str) -> None:
    """Nothing can be taken back."""
    _report(messages, f"{what} failed")
    failed = sum(message is None for message in messages)
    _log.warning("%s failed: what its %d complete tasks sent stays", what, len(messages) - failed)


class BatchWriter(_Writer, DataSourceArrowWriter):
    """Sends a table."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Report it. Raises IllegalArgumentError where two tasks used one producer's name."""
        _finish(messages, "write")

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Report what stays."""
        _abort(messages, "write")


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Sends the batches of a stream."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Report a batch. Raises IllegalArgumentError where two tasks used one producer's name."""
        _finish(messages, f"batch {batchId}")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Report what stays."""
        _abort(messages, f"batch {batchId}")
