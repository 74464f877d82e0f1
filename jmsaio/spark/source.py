"""The data source ``jms``.

Spark creates it in a process of its own, which a session's first query waits for. Readers, writers and their
dependencies are therefore imported when they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructField, StructType

from jmsaio.config.options import nearest
from jmsaio.errors import ConfigurationError
from jmsaio.model.arguments import shown
from jmsaio.model.schema import Schema
from jmsaio.spark.model.schema import COLUMNS, Column, ddl, find_column
from jmsaio.spark.model.value_type import VALUE, value_type
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.options.table import OPTIONS, SCHEMAS


class JmsSource(DataSource):
    """Data source for ``spark.read.format("jms")`` and similar calls; ``jmsaio guide spark`` lists its options."""

    #: Schemas found by ``schema``, which Spark calls first, unless the user gives the columns.
    _schemas: Sequence[Schema] = ()

    @classmethod
    def name(cls) -> str:
        return "jms"

    def schema(self) -> str:
        """Return the columns of a row. Checks the options and the destination before any task starts."""
        from jmsaio.spark.readers import check_destination

        options = _read_options(self.options)
        self._schemas = check_destination(options)
        columns = ddl(options.columns)
        return columns if options.schema is None else f"{columns}, {VALUE} {value_type(self._schemas)}"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the stored messages; ``schema`` is the method's result, or the user's own."""
        from jmsaio.spark.readers import BatchReader

        return BatchReader(self._chosen(Use.READ, schema), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of stored and new messages, batch by batch."""
        from jmsaio.spark.readers import StreamReader

        return StreamReader(self._chosen(Use.READ_STREAM, schema), schema)

    def _chosen(self, use: Use, schema: StructType) -> SourceOptions:
        from jmsaio.spark.readers import check_destination

        options = choose_columns(parse_options(self.options, use), schema)
        if options.schema in (None, *SCHEMAS[use]):
            return options
        return attrs.evolve(options, value_schema=(self._schemas or check_destination(options))[0])

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer of a table. ``overwrite`` is refused, since a destination can't be replaced."""
        from jmsaio.spark.sink import BatchWriter

        if overwrite:
            raise ConfigurationError("save mode overwrite: messages can't be replaced; write with mode append")
        return BatchWriter(parse_options(self.options, Use.WRITE), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return a writer of a stream's batches. Output mode ``complete``, which sets ``overwrite``, is refused."""
        from jmsaio.spark.sink import StreamWriter

        if overwrite:
            raise ConfigurationError("output mode complete: messages can't be replaced; use append or update")
        return StreamWriter(parse_options(self.options, Use.WRITE), schema)


def _read_options(given: Mapping[str, str]) -> SourceOptions:
    """Parse options as a batch's, else as a stream's: Spark does not say yet which it will be."""
    try:
        return parse_options(given, Use.READ)
    except ConfigurationError as error:
        of_batch = error
    try:
        return parse_options(given, Use.READ_STREAM)
    except ConfigurationError:
        if any(row.name == of_batch.key and Use.READ not in row.uses for row in OPTIONS):
            raise  # no batch has that option, so this is a stream, with another fault
    raise of_batch


def choose_columns(options: SourceOptions, schema: StructType) -> SourceOptions:
    own = [field for field in schema.fields if not (options.schema is not None and field.name.lower() == VALUE)]
    return attrs.evolve(options, columns=tuple(map(_column, own)))


def _column(field: StructField) -> Column:
    column = find_column(field.name)
    if column is None:
        known = nearest(field.name, [each.name for each in COLUMNS])
        raise ConfigurationError(f"schema: the source jms has no column {shown(field.name)}{known}", key=field.name)
    if not field.nullable:
        raise ConfigurationError(f"schema: column {shown(field.name)} can be NULL; leave out NOT NULL", key=field.name)
    wanted, given = column.type.value.lower().replace(" ", ""), field.dataType.simpleString()
    if given.lower() != wanted:
        raise ConfigurationError(f"schema: column {shown(field.name)} is {wanted.upper()}, not {given}", key=field.name)
    return column
