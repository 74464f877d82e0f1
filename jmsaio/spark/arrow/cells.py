"""The cells of a table to write, as Python values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, Final, NamedTuple

import pyarrow as pa

from jmsaio.spark.arrow.property_columns import Declared, Texts, read_maps, read_structs
from jmsaio.spark.arrow.write_columns import WRITE_COLUMNS

#: Average number of similar rows from which they are processed together.
SHARED: Final = 4


class Cells(NamedTuple):
    """One row of the table: a field for each of ``WRITE_COLUMNS``, in their order, None for NULL."""

    destination: str | None
    text: str | None
    data: bytes | None
    payload: bytes | None
    body_json: str | None
    body_type: str | None
    object_format: str | None
    key: str | None
    properties: Texts | None
    property_types: Texts | None
    props: Declared | None
    correlation_id: str | None
    correlation_bytes: bytes | None
    type: str | None
    reply_to: str | None
    reply_to_kind: str | None
    delivery_mode: str | None
    priority: int | None
    time_to_live: int | None
    deliver_at: int | None
    partition: int | None
    dedup_producer: str | None
    dedup_sequence: int | None
    dedup_previous: int | None


#: Columns by the names that ``Cells`` has for them; those that are missing or NULL throughout are left out.
Columns = Mapping[str, pa.Array]


def find_cells(batch: pa.RecordBatch, indexes: Mapping[str, int]) -> Columns:
    """Return the columns of a batch that contain values.

    Args:
        batch: a batch of rows.
        indexes: column indexes from ``find_columns``.
    """
    found = {
        field: batch.column(indexes[column.name])
        for field, column in zip(Cells._fields, WRITE_COLUMNS, strict=True)
        if column.name in indexes
    }
    return {field: column for field, column in found.items() if column.null_count < len(column)}


def recurs(values: pa.Array, width: int = 1) -> bool:
    """Return True if the first ``width`` values repeat throughout; with one, all values are equal."""
    found: bool = values.slice(width).equals(values.slice(0, len(values) - width))
    return found


def rows_of(columns: Columns, rows: int) -> Iterator[Cells]:
    """Iterate over the rows."""
    found = [read_cells(columns[field]) if field in columns else repeat(None, rows) for field in Cells._fields]
    return map(Cells._make, zip(*found, strict=True))


def read_cells(column: pa.Array) -> Iterable[Any]:
    """Return the values of a column: maps and structs as dicts, timestamps in milliseconds."""
    kind = column.type
    if pa.types.is_map(kind):
        return read_maps(column)
    if pa.types.is_struct(kind):
        return read_structs(column)
    if pa.types.is_timestamp(kind):
        moments = column.cast(pa.timestamp("us", tz="UTC"), safe=False).view(pa.int64()).to_pylist()
        return [None if moment is None else moment // 1000 for moment in moments]
    found: list[Any] = column.to_pylist()
    return found
