"""The columns of a schema passed by Spark: the source's own, or the user's from ``.schema(...)``."""

from __future__ import annotations

from typing import Final

import attrs
from pyspark.sql.types import StructField, StructType

from jmsaio.config.options import nearest
from jmsaio.errors import ConfigurationError
from jmsaio.spark.model.schema import COLUMNS, PROPERTY_TYPES, Column, Property, Type, find_column
from jmsaio.spark.model.value_type import VALUE
from jmsaio.spark.options.parse import SourceOptions

#: Types of declared properties by Spark's names.
_PROPERTY_TYPES: Final = {kind.value.lower(): kind for kind in PROPERTY_TYPES}


def choose_columns(options: SourceOptions, schema: StructType) -> SourceOptions:
    """Return the options with the columns of a schema, in its order.

    Raises:
        ConfigurationError: a column is unknown, has a different type, or is NOT NULL in the schema although it can be
            NULL.
    """
    own = [field for field in schema.fields if not (options.use_schema and field.name.lower() == VALUE)]
    columns = tuple(_column(field) for field in own)
    declared = next((_declared(field) for field in schema.fields if _is_properties(field)), ())
    return attrs.evolve(options, columns=columns, declared=declared)


def _column(field: StructField) -> Column:
    column = find_column(field.name)
    if column is None:
        known = nearest(field.name, [each.name for each in COLUMNS])
        raise ConfigurationError(f"schema: the source jms has no column {field.name!r}{known}", key=field.name)
    if not field.nullable:
        raise ConfigurationError(f"schema: column {field.name!r} can be NULL; leave out NOT NULL", key=field.name)
    wanted, given = _spark_type(column), field.dataType.simpleString()
    if column.type is not Type.PROPERTIES and given.lower() != wanted:
        raise ConfigurationError(f"schema: column {field.name!r} is {wanted.upper()}, not {given}", key=field.name)
    return column


def _spark_type(column: Column) -> str:
    return column.type.value.lower().replace(" ", "")


def _is_properties(field: StructField) -> bool:
    column = find_column(field.name)
    return column is not None and column.type is Type.PROPERTIES


def _declared(field: StructField) -> tuple[Property, ...]:
    if not isinstance(field.dataType, StructType) or not field.dataType.fields:
        raise ConfigurationError(f"schema: column {field.name!r} is a STRUCT of properties", key=field.name)
    return tuple(_property(each) for each in field.dataType.fields)


def _property(field: StructField) -> Property:
    kind = _PROPERTY_TYPES.get(field.dataType.simpleString())
    if kind is None:
        known = ", ".join(each.value for each in _PROPERTY_TYPES.values())
        given = field.dataType.simpleString()
        raise ConfigurationError(f"schema: property {field.name!r} is one of {known}, not {given}", key=field.name)
    return Property(field.name, kind)
