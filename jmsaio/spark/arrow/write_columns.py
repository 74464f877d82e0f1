"""The table of columns that can be written, and the check of a table's schema."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from jmsaio.errors import ConfigurationError
from jmsaio.spark.arrow.columns import ARROW
from jmsaio.spark.model.schema import COLUMNS, PROPERTY_TYPES, Column, Type
from jmsaio.spark.model.value_type import VALUE

#: Columns that can be written. Each can be missing or NULL unless its description says otherwise.
WRITE_COLUMNS: Final = (
    *(column for column in COLUMNS if column.written),
    Column(VALUE, Type.ANY, "", written="body, a value of the schema; only with `schema`"),
    Column("time_to_live", Type.LONG, "", written="milliseconds until it expires; NULL or 0: never"),
    Column("deliver_at", Type.TIMESTAMP, "", written="delivery time"),
    Column("dedup_producer", Type.STRING, "", written="producer of the row, never NULL; only with `dedup=columns`"),
    Column("dedup_sequence", Type.LONG, "", written="number of the row, never NULL; only with `dedup=columns`"),
    Column(
        "dedup_previous", Type.LONG, "",
        written="number of the producer's previous row, NULL for the first: a task that did not send that row raises"
        " an error. `jmsaio.spark.with_dedup` adds the column",
    ),
)  # fmt: skip
_WHOLE: Final = "BIGINT, INT, SMALLINT or TINYINT"
#: Spark's names of the types that a written column can have, by its type, if there are several.
_NAMES: Final[Mapping[Type, str]] = {
    Type.INT: _WHOLE,
    Type.LONG: _WHOLE,
    Type.PROPERTIES: "STRUCT of STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT or DOUBLE",
}


def names_of(kind: Type) -> str:
    """Return Spark's names of the types that a written column of this type can have."""
    return _NAMES.get(kind, kind.value)


#: Columns of the body, in place of which ``value`` is written with a schema.
_BODIES: Final = ("text", "bytes", "payload", "body_json", "body_type", "object_format")
DEDUP: Final = ("dedup_producer", "dedup_sequence", "dedup_previous")

#: Type words of properties by the type of their field in ``props``; None is a string.
FIELD_WORDS: Final[Mapping[pa.DataType, str | None]] = {
    pa.large_string(): None, **{ARROW[kind]: word for kind, word in PROPERTY_TYPES.items()},
}  # fmt: skip
_TEXT: Final = (pa.string(), pa.large_string())
_FITS: Final[Mapping[Type, Callable[[pa.DataType], bool]]] = {
    Type.STRING: _TEXT.__contains__,
    Type.BINARY: lambda kind: kind in (pa.binary(), pa.large_binary()),
    Type.INT: pa.types.is_signed_integer,
    Type.LONG: pa.types.is_signed_integer,
    Type.ANY: lambda kind: True,
    Type.TIMESTAMP: lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
    Type.TEXTS: lambda kind: pa.types.is_map(kind) and kind.key_type in _TEXT and kind.item_type in _TEXT,
    Type.PROPERTIES: lambda kind: pa.types.is_struct(kind) and all(field.type in FIELD_WORDS for field in kind),
}
_KNOWN: Final = {column.name.lower(): column for column in (*COLUMNS, *WRITE_COLUMNS)}


def find_columns(
    schema: pa.Schema, *, destination: str | None = None, dedup: bool = False, values: bool = False
) -> dict[str, int]:  # fmt: skip
    """Return the index of each column that is written, by its name in ``WRITE_COLUMNS``; warn about the others.

    Args:
        destination: destination of all rows; None: each row names its own.
        dedup: rows are identified by ``dedup_producer`` and ``dedup_sequence``.
        values: the body is the column ``value``.

    Raises:
        ConfigurationError: a column is unknown, occurs twice or has another type; there are two bodies, or no
            destination.
    """
    found: dict[str, int] = {}
    left_out: list[str] = []
    for index, field in enumerate(schema):
        column = _KNOWN.get(field.name.lower())
        if column is not None and not column.written:  # the provider sets it
            left_out.append(column.name)
            continue
        if column is None or (column.name == VALUE and not values):
            instead = "drop it, or make it a property" if column is None else "drop it, or set the option schema"
            raise ConfigurationError(f"there is no column {field.name!r:.100} to write: {instead}")
        if column.name in found:
            raise ConfigurationError(f"the column {column.name} occurs twice")
        if not pa.types.is_null(field.type) and not _FITS[column.type](field.type):
            raise ConfigurationError(
                f"the column {column.name} must be {names_of(column.type)}, not of the Arrow type {field.type}"
            )
        found[column.name] = index
    if values:
        if VALUE not in found:
            raise ConfigurationError(f"the option schema needs the body as column {VALUE}, such as struct('*')")
        left_out += [name for name in _BODIES if found.pop(name, None) is not None]
    _check_bodies(found)
    if "body_json" in found and found.keys() & {"bytes", "payload"}:  # a copy of the same body
        del found["body_json"]
        left_out.append("body_json")
    if destination is None and "destination" not in found:
        raise ConfigurationError("no destination: set the option queue or topic, or add a column destination")
    for name in DEDUP:
        if dedup and name not in found and name != "dedup_previous":
            raise ConfigurationError(f"dedup=columns requires the column {name}")
        if not dedup and found.pop(name, None) is not None:
            left_out.append(name)
    if left_out:
        warnings.warn(f"columns that are not written: {', '.join(left_out)}", stacklevel=2)
    return found


def _check_bodies(found: Mapping[str, int]) -> None:
    """Reject a table that could have two bodies in one row.

    Rows read with ``body=typed`` are accepted: ``body_type`` determines whether ``text`` or ``bytes`` is the body. Rows
    read with ``body=both`` have each body twice, and a change of one could be lost.
    """
    typed = [name for name in ("text", "bytes") if name in found]
    if "payload" in found:
        if typed:
            raise ConfigurationError(f"payload and {' and '.join(typed)} are two bodies: drop one or the other")
        if "body_type" not in found:
            raise ConfigurationError("payload requires the column body_type")
    elif len(typed) == 2 and "body_type" not in found:
        raise ConfigurationError("text and bytes are two bodies: drop one, or add body_type to select one per row")
