"""A batch read: the ranges of one ``load()``, and the tasks that read them."""

from __future__ import annotations

from functools import partial

from pyspark.sql.datasource import DataSourceReader, InputPartition

from jmsaio.codec.schemas.reading import schema_reader
from jmsaio.model.schema import Schema
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.planning.batch_planning import find_schemas, plan_batch, source_of
from jmsaio.spark.task import TaskReader
from jmsaio.spark.worker import call_broker


class BatchReader(TaskReader, DataSourceReader):
    """Batch reader of the messages stored when Spark plans the query. It acknowledges nothing.

    It leaves nothing on the broker. Spark plans once for each ``load()``: a DataFrame that is used twice returns the
    same rows.
    """

    def partitions(self) -> list[InputPartition]:
        """Return one partition for each task: one range of entries or several; none for an empty destination.

        Raises DataLossError if messages to read no longer exist.
        """
        options = self._options
        ranges = call_broker(
            options,
            lambda transport, configuration: plan_batch(transport, source_of(options, configuration), options),
            options.outage_timeout,
        )
        return self._tasks(ranges)


def check_destination(options: SourceOptions) -> list[Schema]:
    """Check that the destination to read exists. Returns and raises as ``find_schemas``."""
    return call_broker(options, partial(find_schemas, options, schema_reader))
