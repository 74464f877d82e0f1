"""Readers of batches and streams: Spark's calls to plan, and the task that yields Arrow batches.

The processes that plan import this module as well: the code that reads and converts is imported in the task.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from jmsaio.codec.schemas.reading import schema_reader
from jmsaio.model.destinations import destination_text
from jmsaio.model.schema import Schema
from jmsaio.spark.model.value_type import VALUE
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.planning.batch_planning import admin_of, find_schemas, plan_batch, source_of
from jmsaio.spark.planning.plan import share_tasks
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.planning.stream_planning import StreamPlanner
from jmsaio.spark.worker import CONNECTION_ERRORS, Worker, call_broker, forget, without_collection, worker
from jmsaio.transport.waiting import together

if TYPE_CHECKING:
    import pyarrow as pa

    from jmsaio.codec.row_columns import RowColumns
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
        if partition.value is None:  # Spark starts one task if there is nothing to read
            return iter(())
        return read_ranges(self._options, partition.value, to_arrow_schema(self._schema, timezone="UTC"))


def read_ranges(
    options: SourceOptions, ranges: Sequence[Range], schema: pa.Schema
) -> Generator[pa.RecordBatch, None, None]:  # fmt: skip
    """Yield the rows of ranges as Arrow batches, one range after another; their first rows are read at the same time.

    ``schema`` has the columns under the names that the user chose. Closing the iterator closes the readers.
    """
    from jmsaio.spark.arrow.columns import RowBatches
    from jmsaio.spark.arrow.value_column import FIELDS
    from jmsaio.spark.planning.reading import RangeReading

    fields = RowBatches(options.columns, "", "").fields().union(() if options.schema is None else FIELDS)
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


def _batches(
    options: SourceOptions, here: Worker, span: Range, reading: RangeReading, columns: RowColumns | None,
    schema: pa.Schema,
) -> Generator[pa.RecordBatch, None, None]:  # fmt: skip
    import pyarrow as pa

    from jmsaio.spark.arrow.columns import RowBatches
    from jmsaio.spark.arrow.value_column import ValueColumn
    from jmsaio.spark.planning.tolerance import Outage

    assert options.destination is not None  # set for every reader
    destination = destination_text(type(options.destination), span.topic, here.configuration.system_namespace)
    batches = RowBatches(options.columns, destination, span.topic)
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
                here.run(outage.wait(partial(value.learn, admin_of(here.transport), columns["schema_version"])))
                values, problems = value.array(columns)
                arrays = batches.batch(columns, problems).columns
                arrays.insert(index, values)
            columns = None  # before the garbage collector runs again
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class BatchReader(TaskReader, DataSourceReader):
    """Batch reader of the messages stored when Spark plans the query, once per ``load()``. It acknowledges nothing."""

    def partitions(self) -> list[InputPartition]:
        options = self._options
        ranges = call_broker(
            options,
            lambda transport, configuration: plan_batch(transport, source_of(options, configuration), options),
            options.outage_timeout,
        )
        return self._tasks(ranges)


def check_destination(options: SourceOptions) -> list[Schema]:
    return call_broker(options, partial(find_schemas, options, schema_reader))


T = TypeVar("T")


class StreamReader(TaskReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of a destination, batch by batch. Spark creates one object to plan and one, pickled, for the tasks."""

    _worker: Worker | None = None
    _planner: StreamPlanner | None = None

    def initialOffset(self) -> dict[str, Any]:
        return self._run(lambda planner: planner.initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return a limit that Spark passes to ``latestOffset``, which has the actual ones in its options.

        It is never ``ReadAllAvailable``: only the trigger ``once`` passes that, and it must not end without a batch
        while the broker is unreachable.
        """
        return ReadMinRows(1)

    def prepareForTriggerAvailableNow(self) -> None:
        self._run(lambda planner: planner.freeze())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch. Spark calls it only after the batch ending at ``start`` is committed."""
        return self._run(lambda planner: planner.latest(start, limited=not isinstance(limit, ReadAllAvailable)))

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._run(lambda planner: planner.report())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        if start == end:
            return []
        return self._tasks(self._run(lambda planner: planner.ranges(start, end)))

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: Spark calls it a batch late, never for the last one. ``latestOffset`` moves the subscription."""

    def stop(self) -> None:
        worker, self._worker, self._planner = self._worker, None, None
        if worker is not None:
            worker.close()

    def _run(self, call: Callable[[StreamPlanner], Coroutine[Any, Any, T]]) -> T:
        """Call the planner, creating it on first use; tasks never have one."""
        if self._worker is None or self._planner is None:
            # Spark ends this process with SIGTERM, and calls stop() only after a return.
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
            self._worker = Worker.open(self._options)
            source = source_of(self._options, self._worker.configuration)
            self._planner = StreamPlanner(self._worker.transport, source, self._options)
        return self._worker.run(call(self._planner))
