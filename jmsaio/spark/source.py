"""The data source ``jms``.

Spark makes it in a process of its own, for which a session's first query waits. So readers, writers and what they need
are imported when they are used.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from jmsaio.errors import ConfigurationError
from jmsaio.spark.model.schema import ddl
from jmsaio.spark.model.value_type import VALUE
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options


class JmsSource(DataSource):
    """What ``spark.read.format("jms")`` and its like are given. Its options are a table: ``jmsaio guide spark``."""

    @classmethod
    def name(cls) -> str:
        """``jms``."""
        return "jms"

    def schema(self) -> str:
        """The columns of a row. Checks the options and asks the broker for the destination, before any task starts.

        Raises:
            ConfigurationError: an option that can't be used.
            NotFoundError: no such topic.
            TransportError: the broker does not answer.
        """
        from jmsaio.spark.batch import check_destination

        options = _read_options(self.options)
        value = check_destination(options)
        columns = ddl(options.columns, options.declared)
        return columns if value is None else f"{columns}, {VALUE} {value}"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads what is stored once.

        Args:
            schema: what ``schema`` gave, or what the user gave in its place.
        """
        from jmsaio.spark.batch import BatchReader
        from jmsaio.spark.requested import choose_columns

        return BatchReader(choose_columns(parse_options(self.options, Use.READ), schema), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reads what is stored, and what comes, batch by batch.

        Args:
            schema: as for ``reader``.
        """
        from jmsaio.spark.requested import choose_columns
        from jmsaio.spark.stream import StreamReader

        return StreamReader(choose_columns(parse_options(self.options, Use.READ_STREAM), schema), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Sends a table.

        Args:
            schema: of the table.
            overwrite: refused: a destination is not a table that could be replaced.

        Raises:
            ConfigurationError: an option or a column that can't be used.
        """
        from jmsaio.spark.sink import BatchWriter

        if overwrite:
            raise ConfigurationError("save mode overwrite: messages can't be replaced; write with mode append")
        return BatchWriter(parse_options(self.options, Use.WRITE), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Sends the batches of a stream.

        Args:
            schema: of the table.
            overwrite: refused, as for ``writer``; Spark's output mode ``complete`` asks for it.
        """
        from jmsaio.spark.sink import StreamWriter

        if overwrite:
            raise ConfigurationError("output mode complete: messages can't be replaced; use append or update")
        return StreamWriter(parse_options(self.options, Use.WRITE), schema)


def _read_options(given: Mapping[str, str]) -> SourceOptions:
    """The options of a batch, or of a stream where a batch refuses them: Spark does not say yet which it will be."""
    try:
        return parse_options(given, Use.READ)
    except ConfigurationError as refused:
        try:
            return parse_options(given, Use.READ_STREAM)
        except ConfigurationError:
            raise refused from None
