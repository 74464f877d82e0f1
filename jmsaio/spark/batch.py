"""A batch read: the ranges of one ``load()``, and the tasks that read them."""

from __future__ import annotations

import asyncio

from pyspark.sql.datasource import DataSourceReader, InputPartition

from jmsaio.model.partitions import split_partition
from jmsaio.spark.model.value_type import value_type
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.planning.batch_planning import list_sources, plan_batch, source_of
from jmsaio.spark.planning.outage import Outage
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.task import TaskReader
from jmsaio.spark.worker import connected_by
from jmsaio.transport.waiting import together


class BatchReader(TaskReader, DataSourceReader):
    """Batch reader of the messages stored when Spark plans the query. It acknowledges nothing.

    It leaves nothing on the broker. Spark plans once for each ``load()``: a DataFrame that is used twice returns the
    same rows.
    """

    def partitions(self) -> list[InputPartition]:
        """Return one partition for each task: one range of entries or several; none for an empty destination.

        Raises:
            DataLossError: messages to read no longer exist.
            TransportError: the broker does not answer within ``outageTimeout``.
        """
        return self._tasks(asyncio.run(_plan(self._options)))


async def _plan(options: SourceOptions) -> list[Range]:
    async def plan() -> list[Range]:
        async with connected_by(options) as (transport, configuration):
            return await plan_batch(transport, source_of(options, configuration), options)

    return await Outage(options.outage_timeout).wait(plan)


def check_destination(options: SourceOptions) -> str | None:
    """Check that the destination to read exists.

    Returns:
        Type of the column ``value`` in Spark's DDL; None without that column.

    Raises:
        NotFoundError: no such topic.
        TransportError: the broker does not answer.
    """
    return asyncio.run(_check(options))


async def _check(options: SourceOptions) -> str | None:
    async with connected_by(options) as (transport, configuration):
        parts = await list_sources(transport, source_of(options, configuration))
        if not options.use_schema:
            return None
        assert transport.admin is not None  # checked with the options
        topics = dict.fromkeys(split_partition(part)[0] for part in parts)
        found = await together(transport.admin.schemas(topic) for topic in topics)
        return value_type(schema for versions in found for schema in reversed(versions))
