"""A task that reads: the messages of one range, as Arrow batches.

The processes that plan import this module, too: the code that reads and converts is imported in the task.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from jmsaio.spark.model.destination_text import destination_text
from jmsaio.spark.model.value_type import VALUE
from jmsaio.spark.options.parse import OnDecodeError, SourceOptions
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.worker import CONNECTION_ERRORS, forget, without_collection, worker

if TYPE_CHECKING:
    import pyarrow as pa


class TaskReader:
    """Base of batch and stream readers: reads one range.

    Args:
        options: with the columns to read.
        schema: Spark's schema of these columns.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one range as Arrow batches. Runs in a task."""
        if partition.value is None:  # Spark starts one task if there is nothing to read
            return iter(())
        return read_range(self._options, partition.value, to_arrow_schema(self._schema, timezone="UTC"))


def read_range(options: SourceOptions, span: Range, schema: pa.Schema) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of a range as Arrow batches.

    Args:
        options: with the columns to read.
        schema: the schema that Spark expects: the columns under the names that the user chose.

    Raises:
        DataLossError: messages of the range no longer exist.
        OperationTimeoutError: nothing was received for ``readTimeout`` before the end of the range.
        TransportError: the broker failed. The next task in this process reconnects.

    A consumer that stops early (``limit``) closes the reader by closing the iterator.
    """
    try:
        yield from _batches(options, span, schema)
    except CONNECTION_ERRORS:
        forget(options)
        raise


def _batches(options: SourceOptions, span: Range, schema: pa.Schema) -> Generator[pa.RecordBatch, None, None]:
    import pyarrow as pa

    from jmsaio.spark.arrow.columns import RowBatches
    from jmsaio.spark.arrow.value_column import ValueColumn
    from jmsaio.spark.planning.outage import Outage
    from jmsaio.spark.planning.reading import RangeReading

    here = worker(options)
    assert options.destination is not None  # set for every reader
    configuration = here.configuration
    destination = destination_text(type(options.destination), span.topic, configuration.system_namespace)
    fail = options.on_decode_error is OnDecodeError.FAIL
    batches = RowBatches(options.columns, options.declared, destination, span.topic, fail_on_error=fail)
    reading = RangeReading(here.transport, span, options, configuration)
    index = next((index for index, name in enumerate(schema.names) if name.lower() == VALUE), -1)
    value = ValueColumn(schema.field(index).type, span.topic) if options.use_schema and index >= 0 else None
    outage = Outage(options.outage_timeout)
    try:
        while True:
            with without_collection():
                columns = here.run(reading.next_columns())
                if columns is None:
                    return
                if value is None:
                    arrays = batches.batch(columns).columns
                else:
                    here.run(outage.wait(partial(value.learn, here.transport.admin, columns["schema_version"])))
                    values, problems = value.array(columns)
                    arrays = batches.batch(columns, problems).columns
                    arrays.insert(index, values)
                del columns  # before the garbage collector runs again
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    finally:
        here.run(reading.aclose())
