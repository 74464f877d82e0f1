"""The Arrow types of columns, as Spark expects them of a source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from jmsaio.spark.model.schema import Column, Property, Type

#: Spark's TIMESTAMP: an instant in microseconds.
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
TEXTS: Final = pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string()))
POSITION: Final = pa.struct([("ledger", pa.int64()), ("entry", pa.int64()), ("batch", pa.int32())])

#: Arrow types by column type. That of ``PROPERTIES`` depends on the declaration.
ARROW: Final[Mapping[Type, pa.DataType]] = {
    Type.STRING: pa.string(),
    Type.BINARY: pa.binary(),
    Type.BOOLEAN: pa.bool_(),
    Type.BYTE: pa.int8(),
    Type.SHORT: pa.int16(),
    Type.INT: pa.int32(),
    Type.LONG: pa.int64(),
    Type.FLOAT: pa.float32(),
    Type.DOUBLE: pa.float64(),
    Type.TIMESTAMP: TIMESTAMP,
    Type.TEXTS: TEXTS,
    Type.POSITION: POSITION,
}


def schema_of(columns: Iterable[Column], declared: Sequence[Property] = ()) -> pa.Schema:
    """Return the Arrow schema of a table with these columns, all nullable.

    Args:
        columns: columns in order.
        declared: fields of ``props``, in order.
    """
    return pa.schema([(column.name, _type_of(column, declared)) for column in columns])


def _type_of(column: Column, declared: Sequence[Property]) -> pa.DataType:
    if column.type is Type.PROPERTIES:
        return pa.struct([(each.name, ARROW[each.type]) for each in declared])
    return ARROW[column.type]
