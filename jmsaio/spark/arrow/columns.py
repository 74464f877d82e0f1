"""Conversion of rows to Arrow record batches, by column; only requested columns are built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from jmsaio.codec.row_columns import PAYLOAD, RowColumns, TextTable
from jmsaio.errors import MessageFormatError
from jmsaio.model.headers import HEADER_COLUMNS
from jmsaio.model.topic_names import split_partition
from jmsaio.spark.model.body_json import body_json
from jmsaio.spark.model.schema import COLUMNS, Column, Type

#: Spark's TIMESTAMP: an instant in microseconds.
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
TEXTS: Final = pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string()))
POSITION: Final = pa.struct([("ledger", pa.int64()), ("entry", pa.int64()), ("batch", pa.int32())])

#: Arrow types by column type.
ARROW: Final[Mapping[Type, pa.DataType]] = {
    Type.STRING: pa.string(),
    Type.BINARY: pa.binary(),
    Type.BOOLEAN: pa.bool_(),
    Type.INT: pa.int32(),
    Type.LONG: pa.int64(),
    Type.TIMESTAMP: TIMESTAMP,
    Type.TEXTS: TEXTS,
    Type.POSITION: POSITION,
}


#: First and last millisecond that Spark and Python can represent: years 1 to 9999.
_FIRST: Final = -62_135_596_800_000
_LAST: Final = 253_402_300_799_999
_MILLISECONDS: Final = pa.timestamp("ms", tz="UTC")

#: Rows with the same texts that are converted before Arrow copies them.
_BLOCK: Final = 64
#: Average number of rows sharing a map from which it is converted only once.
_SHARED: Final = 4


@attrs.define
class _Batch:
    """The rows of one batch as columns, and the reasons for NULL values."""

    source: RowBatches
    columns: RowColumns
    problems: list[tuple[int, str]]


_Build = Callable[[_Batch], pa.Array]


@attrs.frozen(eq=False)
class _NoRows(RowColumns):
    """Columns without rows, which record the fields that are requested."""

    requested: set[str] = attrs.field(factory=set, init=False)

    def __getitem__(self, field: str) -> Any:
        self.requested.add(field)
        return ()

    def payloads(self) -> tuple[Any, Any]:
        self.requested.add(PAYLOAD)
        return (), ()


class RowBatches:
    """Maker of record batches of the rows of one topic or one partition."""

    def __init__(self, columns: Sequence[Column], destination: str, topic: str) -> None:
        #: Arrow schema of the batches, which Spark expects for these columns.
        self.schema: pa.Schema = pa.schema([(column.name, ARROW[column.type]) for column in columns])
        self.destination, self.topic = destination, topic
        _, index = split_partition(topic)
        self.partition = None if index < 0 else index
        # decode_error is built last, because the other columns report their problems first.
        builders = [_BUILDERS[column.name] for column in columns]
        self._builders = sorted(enumerate(builders), key=lambda item: item[1] is _decode_error)

    def fields(self) -> frozenset[str]:
        self.batch(none := _NoRows(0, ()))
        return frozenset(none.requested)

    def batch(self, columns: RowColumns, problems: Iterable[tuple[int, str]] = ()) -> pa.RecordBatch:
        """Return the record batch of some rows; ``problems`` are known ones, each with the index of its row."""
        batch = _Batch(self, columns, list(problems))
        arrays: list[Any] = [None] * len(self._builders)
        for index, build in self._builders:
            arrays[index] = build(batch)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _copied(column: Column) -> _Build:
    field, arrow = _FIELDS.get(column.name, column.name), ARROW[column.type]
    if not field:
        return lambda batch: pa.nulls(batch.columns.size, arrow)
    if column.type is Type.TIMESTAMP:
        return _time(field, column.name)
    return lambda batch: pa.array(batch.columns[field], arrow)


def _constant(attribute: str, kind: pa.DataType) -> _Build:
    return lambda batch: pa.repeat(pa.scalar(getattr(batch.source, attribute), kind), batch.columns.size)


def _position(batch: _Batch) -> pa.Array:
    parts = [pa.array(batch.columns[field.name], field.type) for field in POSITION]
    return pa.StructArray.from_arrays(parts, fields=list(POSITION))


def _time(field: str, name: str, zero: bool = False) -> _Build:
    """Return a builder of milliseconds since the epoch; 0 is NULL, unless ``zero`` makes it a time."""

    def build(batch: _Batch) -> pa.Array:
        values = batch.columns[field]
        try:
            numbers = pa.array(values, pa.int64())
            bounds = pc.min_max(numbers)
            first, last = bounds["min"].as_py() or 0, bounds["max"].as_py() or 0
        except OverflowError:
            return _checked_times(values, name, batch, zero)
        if first < _FIRST or last > _LAST:
            return _checked_times(values, name, batch, zero)
        if first <= 0 <= last and not zero:
            numbers = pc.if_else(pc.not_equal(numbers, 0), numbers, None)
        return numbers.view(_MILLISECONDS).cast(TIMESTAMP)

    return build


def _checked_times(values: Sequence[int], name: str, batch: _Batch, zero: bool) -> pa.Array:
    """Convert times individually: one out of range becomes NULL, with a reason."""
    found: list[int | None] = []
    for row, value in enumerate(values):
        fits = _FIRST <= value <= _LAST
        found.append(value * 1000 if fits and (value or zero) else None)
        if not fits:
            batch.problems.append((row, f"{name} is no time of the years 1 to 9999: {value} ms since 1970"))
    return pa.array(found, pa.int64()).view(TIMESTAMP)


def _texts(field: str) -> _Build:
    """Return a builder of maps. Rows can share one, which Arrow then repeats."""

    def build(batch: _Batch) -> pa.Array:
        maps = batch.columns[field]
        if isinstance(maps, TextTable):
            texts = pa.array(list(chain.from_iterable(zip(*maps.columns, strict=True))), pa.string())
            return _same_keys(maps.names, texts, len(maps))
        own = dict(zip(map(id, maps), maps, strict=True))
        if len(own) == 1:
            return _same_keys(list(maps[0]), _repeated(list(maps[0].values()), len(maps)), len(maps))
        if len(own) * _SHARED > len(maps):
            return _maps(maps)
        numbers = dict(zip(own, range(len(own)), strict=True))
        rows = pa.array(list(map(numbers.__getitem__, map(id, maps))), pa.int32())
        return _maps(list(own.values())).take(rows)

    return build


def _same_keys(keys: Sequence[str], texts: pa.Array, size: int) -> pa.MapArray:
    width = len(keys)
    offsets = pa.array(range(0, size * width + 1, width) if width else [0] * (size + 1), pa.int32())
    return pa.MapArray.from_arrays(offsets, _repeated(keys, size), texts, type=TEXTS)


def _repeated(texts: Sequence[str], times: int) -> pa.Array:
    """Repeat texts. Arrow copies most of them, which is faster than converting each one."""
    blocks, rest = divmod(times, _BLOCK)
    block = pa.array(list(texts) * min(times, _BLOCK), pa.string())
    return pa.concat_arrays([*[block] * blocks, block.slice(0, rest * len(texts))])


def _maps(maps: Sequence[Mapping[str, str]]) -> pa.MapArray:
    offsets = pa.array(accumulate(map(len, maps), initial=0), pa.int32())
    keys = pa.array(list(chain.from_iterable(maps)), pa.string())
    texts: Iterable[str] = chain.from_iterable(map(dict.values, maps))  # type: ignore[arg-type]  # rows have dicts
    return pa.MapArray.from_arrays(offsets, keys, pa.array(list(texts), pa.string()), type=TEXTS)


def _payload(batch: _Batch) -> pa.Array:
    found, data = batch.columns.payloads()
    texts = pa.array(found, pa.string())
    if texts.null_count == batch.columns.size:
        return pa.array(data, pa.binary())
    if texts.null_count == 0:
        return texts.cast(pa.binary())
    return pc.coalesce(texts.cast(pa.binary()), pa.array(data, pa.binary()))


def _body_json(batch: _Batch) -> pa.Array:
    found: list[str | None] = []
    for row, (kind, payload) in enumerate(zip(batch.columns["body_type"], batch.columns["data"], strict=True)):
        try:
            found.append(body_json(kind, payload))
        except MessageFormatError as error:
            found.append(None)
            if batch.columns["decode_error"][row] is None:  # otherwise already reported
                batch.problems.append((row, f"no readable {kind} body: {error}"))
    return pa.array(found, pa.string())


def _errors(batch: _Batch) -> Sequence[str | None]:
    found: Sequence[str | None] = batch.columns["decode_error"]
    if not batch.problems:
        return found
    joined = list(found)
    for row, reason in batch.problems:
        joined[row] = "; ".join(filter(None, (joined[row], reason)))
    return joined


def _decode_error(batch: _Batch) -> pa.Array:
    return pa.array(_errors(batch), pa.string())


#: Fields of the rows by the names of columns with another name.
_FIELDS: Final = {column.name: column.field for column in HEADER_COLUMNS} | {"bytes": "data"}
#: Builders of columns that are not the copy of one field, by name.
_MADE: Final[Mapping[str, _Build]] = {
    "destination": _constant("destination", pa.string()),
    "topic": _constant("topic", pa.string()),
    "partition": _constant("partition", pa.int32()),
    "position": _position,
    "publish_time": _time("publish_time", "publish_time", zero=True),
    "properties": _texts("properties"),
    "property_types": _texts("property_types"),
    "payload": _payload,
    "body_json": _body_json,
    "decode_error": _decode_error,
}
_BUILDERS: Final = {column.name: _MADE.get(column.name) or _copied(column) for column in COLUMNS}
