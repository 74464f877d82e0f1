"""The table of columns that can be written, and the check of a table's schema."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Mapping
from typing import Final

import attrs
import pyarrow as pa

from jmsaio.errors import ConfigurationError
from jmsaio.model.headers import HEADER_COLUMNS
from jmsaio.spark.model.schema import COLUMNS


class ColumnKind(enum.Enum):
    """Type of a column; the value lists Spark's type names."""

    TEXT = "STRING"
    BYTES = "BINARY"
    WHOLE = "BIGINT, INT, SMALLINT or TINYINT"
    MOMENT = "TIMESTAMP"
    TEXTS = "MAP<STRING, STRING>"
    PROPERTIES = "STRUCT of STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT or DOUBLE"


@attrs.frozen
class WriteColumn:
    """One column. It can be missing or NULL unless ``doc`` says otherwise.

    Attributes:
        name: name of the column; Spark ignores its case.
        kind: type of the column.
        doc: description for the guide.
    """

    name: str
    kind: ColumnKind
    doc: str


_KINDS: Final = {"STRING": ColumnKind.TEXT, "BINARY": ColumnKind.BYTES, "INT": ColumnKind.WHOLE}

WRITE_COLUMNS: Final = (
    WriteColumn("destination", ColumnKind.TEXT, "queue or topic of the row, never NULL; overridden by an option"),
    WriteColumn("text", ColumnKind.TEXT, "body of a text message"),
    WriteColumn("bytes", ColumnKind.BYTES, "body of a bytes message; with `body_type`, of any message, encoded"),
    WriteColumn("payload", ColumnKind.BYTES, "body of any message, encoded; requires `body_type`"),
    WriteColumn(
        "body_json",
        ColumnKind.TEXT,
        "body of a map message (an object) or a stream message (an array) as typed JSON; ignored if"
        " the table has `bytes` or `payload`",
    ),
    WriteColumn("body_type", ColumnKind.TEXT, "`text`, `bytes`, `map`, `stream`, `object`; `header` without a body"),
    WriteColumn("object_format", ColumnKind.TEXT, "`json` if an object message contains JSON of jmsaio"),
    WriteColumn("key", ColumnKind.TEXT, "partition key: JMSXGroupID"),
    WriteColumn("properties", ColumnKind.TEXTS, "properties by name, as text; NULL is left out"),
    WriteColumn("property_types", ColumnKind.TEXTS, "type names of properties that are not strings"),
    WriteColumn("props", ColumnKind.PROPERTIES, "properties with the types of their fields; NULL is left out"),
    *(WriteColumn(each.name, _KINDS[each.type], each.written) for each in HEADER_COLUMNS if each.written),
    WriteColumn("time_to_live", ColumnKind.WHOLE, "milliseconds until it expires; NULL or 0: never"),
    WriteColumn("deliver_at", ColumnKind.MOMENT, "delivery time"),
    WriteColumn("partition", ColumnKind.WHOLE, "index of the partition"),
    WriteColumn("dedup_producer", ColumnKind.TEXT, "producer of the row, never NULL; only with `dedup=columns`"),
    WriteColumn("dedup_sequence", ColumnKind.WHOLE, "number of the row, never NULL; only with `dedup=columns`"),
    WriteColumn(
        "dedup_previous",
        ColumnKind.WHOLE,
        "number of the producer's previous row, NULL for the first: a task"
        " that did not send that row raises an error. `jmsaio.spark.with_dedup` adds the column",
    ),
)

#: Columns of a read row that are not written: the provider sets them.
PROVIDED: Final = frozenset(column.name for column in COLUMNS) - {column.name for column in WRITE_COLUMNS}
DEDUP: Final = ("dedup_producer", "dedup_sequence", "dedup_previous")

#: Type words of properties by the type of their field in ``props``; None is a string.
FIELD_WORDS: Final[Mapping[pa.DataType, str | None]] = {
    pa.string(): None,
    pa.large_string(): None,
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
}


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string())


def _is_texts(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) and _is_text(kind.key_type) and _is_text(kind.item_type)


def _is_properties(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and all(field.type in FIELD_WORDS for field in kind)


_FITS: Final[Mapping[ColumnKind, Callable[[pa.DataType], bool]]] = {
    ColumnKind.TEXT: _is_text,
    ColumnKind.BYTES: lambda kind: kind in (pa.binary(), pa.large_binary()),
    ColumnKind.WHOLE: pa.types.is_signed_integer,
    ColumnKind.MOMENT: lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
    ColumnKind.TEXTS: _is_texts,
    ColumnKind.PROPERTIES: _is_properties,
}
_KNOWN: Final = {column.name.lower(): column for column in WRITE_COLUMNS}
_PROVIDED: Final = {name.lower(): name for name in PROVIDED}


def find_columns(schema: pa.Schema, *, destination: str | None = None, dedup: bool = False) -> dict[str, int]:
    """Return the columns of a table that are written; warn about columns that are left out.

    Args:
        schema: schema of the table.
        destination: destination of all rows; None: each row names its own.
        dedup: rows are identified by ``dedup_producer`` and ``dedup_sequence``.

    Returns:
        Index of each column by its name in ``WRITE_COLUMNS``.

    Raises:
        ConfigurationError: a column is unknown, occurs twice or has another type; there are two bodies, or no
            destination.
    """
    found: dict[str, int] = {}
    left_out: list[str] = []
    for index, field in enumerate(schema):
        name = field.name.lower()
        if name in _PROVIDED:
            left_out.append(_PROVIDED[name])
            continue
        column = _KNOWN.get(name)
        if column is None:
            raise ConfigurationError(f"there is no column {field.name!r:.100} to write: drop it, or make it a property")
        if column.name in found:
            raise ConfigurationError(f"the column {column.name} occurs twice")
        if not pa.types.is_null(field.type) and not _FITS[column.kind](field.type):
            raise ConfigurationError(
                f"the column {column.name} must be {column.kind.value}, not of the Arrow type {field.type}"
            )
        found[column.name] = index
    _check_bodies(found)
    if "body_json" in found and found.keys() & {"bytes", "payload"}:  # a copy of the same body
        del found["body_json"]
        left_out.append("body_json")
    if destination is None and "destination" not in found:
        raise ConfigurationError("no destination: set the option queue or topic, or add a column destination")
    _check_dedup(found, dedup, left_out)
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


def _check_dedup(found: dict[str, int], dedup: bool, left_out: list[str]) -> None:
    for name in DEDUP:
        if dedup and name not in found and name != "dedup_previous":
            raise ConfigurationError(f"dedup=columns requires the column {name}")
        if not dedup and found.pop(name, None) is not None:
            left_out.append(name)
