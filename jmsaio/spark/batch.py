"""A batch read: the ranges of one ``load()``, and the tasks that read them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from jmsaio.spark.files import configuration_of
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.planning.batch_planning import Wanted, plan_batch
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.task import read_range
from jmsaio.transport.registry import open_transport


class BatchReader(DataSourceReader):
    """Reads what is stored when Spark plans the query. Nothing is acknowledged, and nothing stays on the broker.

    Spark plans once for each ``load()``: a DataFrame that is used twice gives the same rows.

    Args:
        options: with the columns to read.
        schema: Spark's words for these columns.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """One for each range of entries; an empty destination has none.

        Raises:
            DataLossError: what is to be read is not there any more.
            TransportError: the broker does not answer.
        """
        return [InputPartition(each) for each in asyncio.run(_plan(self._options))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range, in Arrow batches. Runs in a task."""
        if partition.value is None:  # Spark starts one task where there is nothing to read
            return iter(())
        return read_range(self._options, partition.value, to_arrow_schema(self._schema, timezone="UTC"))


async def _plan(options: SourceOptions) -> list[Range]:
    configuration = configuration_of(options)
    transport = await open_transport(configuration)
    try:
        return await plan_batch(transport, Wanted.by(options, configuration))
    finally:
        await transport.aclose(configuration.close_timeout)
