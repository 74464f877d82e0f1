"""Conversion of a writer's record batches to outgoing records: which columns are written, and the records of rows.

Rows mostly share their headers and the kind of their body. So each row consists of a head, the record of these, which
is made once per part of a batch, and of its own body, properties, key, partition and producer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import repeat
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from jmsaio.codec.bodies import encode_body
from jmsaio.codec.headers import write_correlation_id
from jmsaio.codec.rows import RawRow, to_record
from jmsaio.codec.schemas.writing import SchemaWriter
from jmsaio.errors import (
    ConfigurationError,
    IllegalArgumentError,
    InvalidDestinationError,
    JMSError,
    MessageFormatError,
)
from jmsaio.model.arguments import shown, with_article
from jmsaio.model.headers import HEADER_COLUMNS
from jmsaio.model.names import allowed_names, check_property_name
from jmsaio.model.wire import GROUP_ID, MESSAGE_ID, MESSAGE_TYPE, OutgoingRecord
from jmsaio.spark.arrow.value_column import python_value
from jmsaio.spark.arrow.written_properties import FIELD_WORDS, flat_map, learn_shape, written_properties
from jmsaio.spark.model.body_json import read_json
from jmsaio.spark.model.dedup import AscendingCheck
from jmsaio.spark.model.schema import COLUMNS, Column, Type
from jmsaio.spark.model.value_type import VALUE

#: Columns that can be written. Each can be missing or NULL unless its description says otherwise.
WRITE_COLUMNS: Final = (
    *(column for column in COLUMNS if column.written),
    Column(
        "props", Type.PROPERTIES, "",
        written="properties with the types of their fields, besides those in `properties`; NULL is left out",
    ),
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


def names_of(kind: Type) -> str:
    return _WHOLE if kind in (Type.INT, Type.LONG) else kind.value


#: Columns of the body, in place of which ``value`` is written with a schema.
_REPLACED: Final = ("text", "bytes", "payload", "body_json", "body_type", "object_format")
DEDUP: Final = ("dedup_producer", "dedup_sequence", "dedup_previous")

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
    """Return the index of each column to write, by name; warn about others. ``values``: the body is ``value``."""
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
        left_out += [name for name in _REPLACED if found.pop(name, None) is not None]
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
    """Reject a table with two bodies in one row, such as that of ``body=both``: a change of one could be lost."""
    typed = [name for name in ("text", "bytes") if name in found]
    if "payload" in found:
        if typed:
            raise ConfigurationError(f"payload and {' and '.join(typed)} are two bodies: drop one or the other")
        if "body_type" not in found:
            raise ConfigurationError("payload requires the column body_type")
    elif len(typed) == 2 and "body_type" not in found:
        raise ConfigurationError("text and bytes are two bodies: drop one, or add body_type to select one per row")


#: Rows made together: few enough to be in the processor's cache when they are sent.
_PART: Final = 1000
_LAST_TIME: Final = (1 << 63) - 1
_BODIES: Final = ("text", "bytes", "payload", "body_json")
_CORRELATIONS: Final = ("JMSCorrelationID", "correlation_bytes")
#: Cells of a row's own, in place of which the head has an empty one.
_OWN: Final[Mapping[str, str | bytes]] = {
    "text": "", "bytes": b"", "payload": b"", "body_json": "", "JMSCorrelationID": "", "correlation_bytes": b"",
}  # fmt: skip
#: Fields of a row by the names of their columns.
_COPIED: Final = {column.name: column.field for column in HEADER_COLUMNS if column.written}
#: Columns that, with the presence of each own cell, determine the head of a row.
_HEAD: Final = ("body_type", "object_format", "time_to_live", "deliver_at", *_COPIED.keys() - _OWN.keys())
#: Kind of message by the only body column of its table.
_DEFAULT_TYPES: Final = {frozenset({"text"}): "text", frozenset({"bytes"}): "bytes"}
_NULL_ROW: Final = RawRow("", None, None, None, {}, {}, None, None, None, None, None, None, "", 0, 0)


class OutgoingRow(NamedTuple):
    """A row ready to be sent."""

    destination: str  # ``queue://name`` or ``topic://name``
    record: OutgoingRecord  # its ``sticky_key`` is the partition that the row names, which can be out of range
    number: int  # of the row in its task, from 0
    producer: str | None = None


#: Makes a row from a tuple of all its fields, in half the time of the class.
_row_of: Final[Callable[[tuple[Any, ...]], OutgoingRow]] = partial(tuple.__new__, OutgoingRow)


class RecordMaker:
    """Maker of the records of one task's rows. Message ids contain ``connection_id``, so each task needs a new UUID."""

    def __init__(
        self,
        schema: pa.Schema,
        *,
        connection_id: str,
        namespace: str = "public/default",
        destination: str | None = None,
        dedup: bool = False,
        writer: SchemaWriter | None = None,
    ) -> None:
        columns = find_columns(schema, destination=destination, dedup=dedup, values=writer is not None)
        self._writer = writer
        self._names = None if "payload" in columns else columns.get("properties")  # raw rows are copies of messages
        if "props" in columns and "payload" not in columns:
            for field in schema.field(columns["props"]).type:
                _check_name(field.name, "column props", ConfigurationError)
        self._columns, self._destination = columns, destination
        bodies = columns.keys() & {*_BODIES}
        self._without_body = not bodies
        self._default_type = _DEFAULT_TYPES.get(frozenset(bodies))
        if writer is not None:
            self._default_type = "text" if writer.jms else "bytes"
        self._connection_id, self._namespace = connection_id, namespace
        #: Check of the sequence order; None without ``dedup``.
        self.order = AscendingCheck("dedup_previous" in columns) if dedup else None
        #: Number of rows so far.
        self.rows = 0

    def records(self, batch: pa.RecordBatch, now_ms: int) -> Iterator[OutgoingRow]:
        """Yield the rows of a batch as records, sent at ``now_ms`` (JMSTimestamp); an invalid row raises an error."""
        self._check_names(batch)
        try:
            for start in range(0, batch.num_rows, _PART):
                yield from self._part(batch.slice(start, _PART), now_ms)
        except MessageFormatError as error:
            raise MessageFormatError(f"row {self.rows}: {error}") from error

    def _check_names(self, batch: pa.RecordBatch) -> None:
        if self._names is None or not len(batch) or pa.types.is_null((column := batch.column(self._names)).type):
            return
        _, keys, _ = flat_map(column)
        names = set(pc.unique(keys).to_pylist()) - allowed_names
        for row, items in enumerate(column.to_pylist() if names else ()):
            for name, _ in items or ():
                if name in names and learn_shape((name,), {}) is not None:  # otherwise the codec rejects it
                    _check_name(name, f"row {self.rows + row}", MessageFormatError)
                names.discard(name)

    def _part(self, batch: pa.RecordBatch, now: int) -> Iterator[OutgoingRow]:
        columns = {name: batch.column(index) for name, index in self._columns.items()}
        columns = {name: column for name, column in columns.items() if column.null_count < len(column)}
        rows, get = batch.num_rows, columns.get
        properties = written_properties(get("properties"), get("property_types"), get("props"), rows)

        def values(name: str) -> Iterable[Any]:
            return columns[name].to_pylist() if name in columns else repeat(None, rows)

        destinations = repeat(self._destination, rows) if self._destination else values("destination")
        names = ("body_json", "key", "partition", "dedup_producer", "dedup_sequence", "dedup_previous")
        own = [values(name) for name in names]
        prefix, heads = f"ID:{self._connection_id}:1:1:", self._heads(columns, rows, now)
        bodies, correlations = _first(columns, _BODIES[:3], rows), _first(columns, _CORRELATIONS, rows)
        if self._writer is not None and VALUE in columns:
            bodies = _written_values(self._writer, columns[VALUE])
        numbers = range(self.rows, self.rows + rows)
        # Unpacked at once, which is cheaper than reading attributes.
        for (
            number, head, body, correlation, texts, destination, json, key, partition, producer, sequence, previous,
        ) in zip(numbers, heads, bodies, correlations, properties, destinations, *own, strict=True):  # fmt: skip
            if not destination:
                raise InvalidDestinationError(f"row {self.rows}: it has no destination: the column is NULL or empty")
            if partition is not None and partition < 0:
                raise MessageFormatError(f"partition must be 0 or more, not {partition}")
            wire = head.properties.copy()
            wire[MESSAGE_ID] = f"{prefix}{number}"
            if correlation is not None:
                write_correlation_id(correlation, wire)
            wire |= texts
            if json is not None:
                body = _json_body(json, wire)
            record = OutgoingRecord(
                body, wire, key or texts.get(GROUP_ID) or None, now,
                head.deliver_at, head.priority, partition, sequence,
            )  # fmt: skip
            if self.order is not None:
                self.order.check(producer, sequence, previous, number)
            self.rows = number + 1
            yield _row_of((destination, record, number, producer))

    def _heads(self, columns: Mapping[str, pa.Array], rows: int, now: int) -> Iterator[OutgoingRecord]:
        names = [name for name in _HEAD if name in columns]
        own = [name for name in _OWN if name in columns]
        cells = [_numbers(columns[name]) for name in names] + [columns[name].is_valid().to_pylist() for name in own]

        @cache
        def head(*key: Any) -> OutgoingRecord:
            return self._head(dict(zip([*names, *own], key, strict=True)), now)

        if all(cell.count(cell[0]) == rows for cell in cells):
            return repeat(head(*(cell[0] for cell in cells)), rows)
        return map(head, *cells)

    def _head(self, cells: dict[str, Any], now: int) -> OutgoingRecord:
        """Return the record of a row, from its cells in ``_HEAD``, and whether it has some in ``_OWN``."""
        for name, empty in _OWN.items():
            cells[name] = empty if cells.get(name) else None
        kind, data = self._body(cells)
        life = cells.get("time_to_live") or 0
        if not 0 <= life <= _LAST_TIME - now:
            raise MessageFormatError(f"time_to_live must be 0 to {_LAST_TIME - now} ms, not {life}")
        deliver_at = cells.get("deliver_at")
        deliver_at = None if deliver_at is None or deliver_at <= now else deliver_at
        row = _NULL_ROW._replace(
            body_type=kind,
            text=cells["text"],
            data=data,
            object_format=cells.get("object_format"),
            timestamp=now,
            delivery_time=deliver_at or now,
            expiration=now + life if life else 0,
            **{field: cells[name] for name, field in _COPIED.items() if cells.get(name) is not None},
        )
        if not 0 <= row.priority <= 9:
            raise MessageFormatError(f"JMSPriority must be 0 to 9, not {row.priority}")
        record = to_record(row, self._connection_id, self._namespace, deliver_at=deliver_at)
        if self._writer is not None and not self._writer.jms:
            del record.properties[MESSAGE_TYPE]
        return record

    def _body(self, cells: Mapping[str, Any]) -> tuple[str, bytes | None]:
        kind, text, data = cells.get("body_type"), cells["text"], cells["bytes"]
        if cells["body_json"] is not None:
            if text is not None:
                raise MessageFormatError("it has two bodies, text and body_json: one must be NULL")
            return kind or "", None  # each row has the kind of its JSON
        if data is None:
            data = cells["payload"]
        if text is not None and data is not None:
            raise MessageFormatError("it has two bodies, text and bytes: one must be NULL")
        if kind is None:
            kind = self._default_type
            if kind is None:
                if cells["payload"] is not None:
                    raise MessageFormatError("it has a payload, but its body_type is NULL")
                kind = "text" if text is not None else "header" if data is None else "bytes"
        elif text is not None and kind != "text":
            raise MessageFormatError(f"it has a text, but its body_type is {kind!r:.100}")
        elif self._without_body and kind != "header":
            raise MessageFormatError(f"its body_type is {kind!r:.100}, but the table has no column for the body")
        return kind, data


def _check_name(name: str, where: str, kind: type[JMSError]) -> None:
    try:
        check_property_name(name)
    except IllegalArgumentError as error:
        raise kind(f"{where}: {error}") from error


def _numbers(column: pa.Array) -> list[Any]:
    """Return the values of a column; timestamps in milliseconds since the epoch."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", tz="UTC"), safe=False).view(pa.int64())
    found: list[Any] = column.to_pylist()
    return found


def _first(columns: Mapping[str, pa.Array], names: Sequence[str], rows: int) -> Iterable[bytes | None]:
    """Return the first value of each row, a text in UTF-8; the head of a row with several is invalid."""
    found = [columns[name].cast(pa.large_binary()).to_pylist() for name in names if name in columns]
    if len(found) < 2:
        return found[0] if found else repeat(None, rows)
    return [next((value for value in values if value is not None), None) for values in zip(*found, strict=True)]


def _written_values(writer: SchemaWriter, column: pa.Array) -> Iterator[bytes | None]:
    for found in column.to_pylist():
        value = python_value(found, column.type)
        try:
            yield None if value is None else writer.write(value)
        except MessageFormatError as error:
            raise MessageFormatError(f"column {VALUE} = {shown(value, 200)}: {error}") from error


def _json_body(text: str, wire: dict[str, str]) -> bytes | None:
    """Return the payload of a JSON body; write the kind of message, which ``body_type`` must not contradict."""
    body, declared = read_json(text), wire[MESSAGE_TYPE]
    kind = wire[MESSAGE_TYPE] = "map" if isinstance(body, dict) else "stream"
    if declared not in ("", kind):
        raise MessageFormatError(
            f"its body_json is that of {with_article(kind)} message, but its body_type is {declared!r:.100}"
        )
    return encode_body(kind, body, {})
