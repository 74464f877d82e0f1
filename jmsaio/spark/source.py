"""The data source ``jms``.

Spark creates it in a process of its own, which a session's first query waits for. Readers, writers and their
dependencies are therefore imported when they are used.
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
    """Data source for ``spark.read.format("jms")`` and similar calls; ``jmsaio guide spark`` lists its options."""

    @classmethod
    def name(cls) -> str:
        """Return ``jms``."""
        return "jms"

    def schema(self) -> str:
        """Return the columns of a row. Checks the options and the destination before any task starts.

        Raises:
            ConfigurationError: an option is invalid.
            NotFoundError: no such topic.
            TransportError: the broker does not answer.
        """
        from jmsaio.spark.batch import check_destination

        options = _read_options(self.options)
        value = check_destination(options)
        columns = ddl(options.columns, options.declared)
        return columns if value is None else f"{columns}, {VALUE} {value}"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the stored messages.

        Args:
            schema: the result of ``schema``, or the user's own.
        """
        from jmsaio.spark.batch import BatchReader
        from jmsaio.spark.requested import choose_columns

        return BatchReader(choose_columns(parse_options(self.options, Use.READ), schema), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of stored and new messages, batch by batch.

        Args:
            schema: as for ``reader``.
        """
        from jmsaio.spark.requested import choose_columns
        from jmsaio.spark.stream import StreamReader

        return StreamReader(choose_columns(parse_options(self.options, Use.READ_STREAM), schema), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer of a table.

        Args:
            schema: of the table.
            overwrite: refused: a destination can't be replaced.

        Raises:
            ConfigurationError: an option or a column is invalid.
        """
        from jmsaio.spark.sink import BatchWriter

        if overwrite:
            raise ConfigurationError("save mode overwrite: messages can't be replaced; write with mode append")
        return BatchWriter(parse_options(self.options, Use.WRITE), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return a writer of a stream's batches.

        Args:
            schema: of the table.
            overwrite: refused, as for ``writer``; Spark sets it for output mode ``complete``.
        """
        from jmsaio.spark.sink import StreamWriter

        if overwrite:
            raise ConfigurationError("output mode complete: messages can't be replaced; use append or update")
        return StreamWriter(parse_options(self.options, Use.WRITE), schema)


def _read_options(given: Mapping[str, str]) -> SourceOptions:
    """Parse options as a batch's, else as a stream's: Spark does not say yet which it will be."""
    try:
        return parse_options(given, Use.READ)
    except ConfigurationError as refused:
        try:
            return parse_options(given, Use.READ_STREAM)
        except ConfigurationError:
            raise refused from None
