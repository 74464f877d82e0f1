"""Writing: Spark's calls for batches and streams.

Three processes import this module: the one that creates the writer, the task, and the one that commits. A task's
dependencies are therefore imported when they are used.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import attrs
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from jmsaio.config import load
from jmsaio.errors import IllegalArgumentError, IllegalStateError
from jmsaio.model.log_fields import log_fields
from jmsaio.spark.model.dedup import Sent, check_tasks
from jmsaio.spark.options.parse import SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

#: Property that Spark gives the tasks of a micro-batch: the id of the query, which its checkpoint contains.
_QUERY: Final = "sql.streaming.queryId"


@attrs.frozen
class Written(WriterCommitMessage):
    """Rows that a task sent, with one item for each topic."""

    sent: tuple[Sent, ...]


@attrs.frozen
class Returned(WriterCommitMessage):
    """Rows of a task for the driver, which sends them in a transaction, and the id of its query; None for a table."""

    batches: tuple[pa.RecordBatch, ...]
    query: str | None


def _report(sent: Iterable[Sent], what: str) -> None:
    rows, duplicates = Counter[str](), Counter[str]()
    for each in sent:
        rows[each.topic] += each.rows
        duplicates[each.topic] += each.duplicates
    for topic, count in sorted(rows.items()):
        text, about = "%s: %d rows sent to %s, of which the broker had %d already", log_fields(destination=topic)
        _log.info(text, what, count, topic, duplicates[topic], extra=about)


class _SinkWriter:
    """Base of both writers. Checks the table when Spark creates the writer, before a task starts.

    Spark passes the number of the batch for a stream only.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        from jmsaio.spark.sending import make_records, with_schema

        table = to_arrow_schema(schema, timezone="UTC")
        self._options = with_schema(options, table)
        make_records(self._options, table, load(options.connection))  # needs no secret yet

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of one task, see ``write_batches``; return them if the driver sends them in a transaction."""
        if self._options.transaction:
            context = TaskContext.get()
            return Returned(tuple(iterator), None if context is None else context.getLocalProperty(_QUERY))
        from jmsaio.spark.sending import write_batches

        return Written(write_batches(self._options, iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int | None = None) -> None:
        """Report the write; with ``transaction``, send the rows first, see ``commit_rows``."""
        what = _name(batchId)
        done = [message for message in messages if isinstance(message, Written)]
        sent = [each for message in done for each in message.sent]
        if self._options.transaction:
            sent = self._commit([message for message in messages if isinstance(message, Returned)], batchId)
        _report(sent, what)
        try:
            check_tasks({name for each in message.sent for name in each.producers} for message in done)
        except IllegalArgumentError as error:
            raise IllegalArgumentError(f"{what}: {error}") from error

    def _commit(self, returned: Sequence[Returned], number: int | None) -> list[Sent]:
        from jmsaio.spark.transaction import MicroBatch, commit_rows

        tasks = [message.batches for message in returned if any(map(len, message.batches))]
        if not tasks:
            return []
        query = returned[0].query
        if number is None:
            return commit_rows(self._options, tasks, None)
        if query is None:
            raise IllegalStateError("transaction: Spark did not tell the tasks the id of the query")
        return commit_rows(self._options, tasks, MicroBatch(query, number))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int | None = None) -> None:
        """Report what stays stored; rows that were sent without ``transaction`` can't be removed."""
        what = _name(batchId)
        done = [message for message in messages if isinstance(message, Written)]  # Spark passes None for a failed task
        _report((each for message in done for each in message.sent), f"{what} failed")
        if self._options.transaction:
            _log.warning("%s failed: its rows were not sent, unless the error says that this is in doubt", what)
        else:
            _log.warning("%s failed: what its %d complete tasks sent stays", what, len(done))


def _name(batch: int | None) -> str:
    return "write" if batch is None else f"batch {batch}"


class BatchWriter(_SinkWriter, DataSourceArrowWriter):
    """Writer of a table."""


class StreamWriter(_SinkWriter, DataSourceStreamArrowWriter):
    """Writer of a stream's batches."""
