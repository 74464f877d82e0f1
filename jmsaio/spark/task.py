"""A task that reads: the messages of its ranges, as Arrow batches.

The processes that plan import this module, too: the code that reads and converts is imported in the task.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from jmsaio.model.destinations import destination_text
from jmsaio.spark.model.value_type import VALUE
from jmsaio.spark.options.parse import OnDecodeError, SourceOptions
from jmsaio.spark.planning.plan import share_tasks
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.worker import CONNECTION_ERRORS, Worker, forget, without_collection, worker
from jmsaio.transport.waiting import together

if TYPE_CHECKING:
    import pyarrow as pa

    from jmsaio.codec.row_columns import RowColumns
    from jmsaio.spark.arrow.columns import RowBatches
    from jmsaio.spark.planning.reading import RangeReading


class TaskReader:
    """Base of batch and stream readers: reads the ranges of a task."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def _tasks(self, ranges: Sequence[Range]) -> list[InputPartition]:
        options = self._options
        tasks = share_tasks(ranges, options.min_partitions, options.max_entries_per_partition)
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task's ranges as Arrow batches. Runs in the task."""
        if partition.value is None:  # Spark starts one task if there is nothing to read
            return iter(())
        return read_ranges(self._options, partition.value, to_arrow_schema(self._schema, timezone="UTC"))


def read_ranges(
    options: SourceOptions, ranges: Sequence[Range], schema: pa.Schema
) -> Generator[pa.RecordBatch, None, None]:  # fmt: skip
    """Yield the rows of ranges as Arrow batches, one range after another; their first rows are read at the same time.

    ``schema`` has the columns under the names that the user chose. A consumer that stops early (``limit``) closes the
    readers by closing the iterator.

    Raises:
        DataLossError: messages of a range no longer exist.
        OperationTimeoutError: nothing was received for ``readTimeout`` before the end of a range.
        TransportError: the broker failed. The next task in this process reconnects.
    """
    from jmsaio.spark.arrow.value_column import FIELDS
    from jmsaio.spark.planning.reading import RangeReading

    fields = _row_batches(options, "", "").fields().union(() if options.schema is None else FIELDS)
    try:
        here = worker(options)
        readings = [RangeReading(here.transport, each, options, here.configuration, fields) for each in ranges]
        try:
            with without_collection():
                first = here.run(together(reading.next_columns() for reading in readings))
            first.reverse()
            for span, reading in zip(ranges, readings, strict=True):
                yield from _batches(options, here, span, reading, first.pop(), schema)
        finally:
            here.run(together(reading.aclose() for reading in readings))
    except CONNECTION_ERRORS:
        forget(options)
        raise


def _row_batches(options: SourceOptions, destination: str, topic: str) -> RowBatches:
    from jmsaio.spark.arrow.columns import RowBatches

    fail = options.on_decode_error is OnDecodeError.FAIL
    return RowBatches(options.columns, options.declared, destination, topic, fail_on_error=fail)


def _batches(
    options: SourceOptions, here: Worker, span: Range, reading: RangeReading, columns: RowColumns | None,
    schema: pa.Schema,
) -> Generator[pa.RecordBatch, None, None]:  # fmt: skip
    """Yield the rows of a range, of which the first have been read."""
    import pyarrow as pa

    from jmsaio.spark.arrow.value_column import ValueColumn
    from jmsaio.spark.planning.outage import Outage

    assert options.destination is not None  # set for every reader
    destination = destination_text(type(options.destination), span.topic, here.configuration.system_namespace)
    batches = _row_batches(options, destination, span.topic)
    index = next((index for index, name in enumerate(schema.names) if name.lower() == VALUE), -1)
    value = None
    if options.schema is not None and index >= 0:
        value = ValueColumn(schema.field(index).type, span.topic, options.value_schema)
    outage = Outage(options.outage_timeout)
    while True:
        with without_collection():
            columns = columns or here.run(reading.next_columns())
            if columns is None:
                break
            if value is None:
                arrays = batches.batch(columns).columns
            else:
                here.run(outage.wait(partial(value.learn, here.transport.admin, columns["schema_version"])))
                values, problems = value.array(columns)
                arrays = batches.batch(columns, problems).columns
                arrays.insert(index, values)
            columns = None  # before the garbage collector runs again
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
