"""Fast path for similar rows: their common headers are built once, the other values are processed by column.

Such a row has its own body of text or bytes, key, partition and properties. It shares its other headers with many rows,
so the record of one of them, without body and properties, is the template (the head) of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple

from jmsaio.errors import MessageFormatError
from jmsaio.model.headers import HEADER_COLUMNS
from jmsaio.model.wire import OutgoingRecord
from jmsaio.spark.arrow.cells import SHARED, Cells, Columns, recurs

_BODIES: Final = ("text", "data", "payload")
#: Cells that usually differ from row to row, or must be parsed.
_OWN: Final = frozenset({"body_json", "object_format", "correlation_id", "correlation_bytes", "deliver_at"})
_WRITTEN: Final = [column.field for column in HEADER_COLUMNS if column.written and column.field not in _OWN]
#: Cells that, with the kind of body, determine a row's head.
_HEADERS: Final = ("body_type", *_WRITTEN, "time_to_live")
_EMPTY: Final = Cells(*repeat(None, len(Cells._fields)))

#: Function that makes the record of cells without properties.
Make = Callable[[Cells], OutgoingRecord]


class AlikeRows(NamedTuple):
    """Columns of similar rows; the properties of ``heads`` are the first properties of each row on the wire."""

    destinations: Iterable[str]
    heads: Iterable[OutgoingRecord]
    payloads: Iterable[bytes | None]
    keys: Iterable[str | None]
    partitions: Iterable[int | None]
    producers: Iterable[str | None]
    sequences: Iterable[int | None]
    previous: Iterable[int | None]


def read_alike(columns: Columns, rows: int, destination: str | None, dedup: bool, make: Make) -> AlikeRows | None:
    """Return similar rows as columns.

    Args:
        columns: columns of the table; the caller handles properties.
        rows: number of rows, at least one.
        destination: destination of all rows; None: the column.
        dedup: each row needs a producer and a sequence number.
        make: makes the record of cells.

    Returns:
        None if the rows must be made one by one: they have little in common, or one can be invalid.
    """
    if columns.keys() & _OWN:
        return None

    def values(name: str) -> Sequence[Any]:
        found = columns.get(name)
        return [None] * rows if found is None else found.to_pylist()

    destinations = [destination] * rows if destination else values("destination")
    partitions, producers, sequences = values("partition"), values("dedup_producer"), values("dedup_sequence")
    if not all(destinations) or _below_zero(partitions):
        return None
    if dedup and (None in sequences or _below_zero(sequences) or not all(producers)):
        return None
    heads = _heads(columns, rows, make)
    if heads is None:
        return None
    previous = values("dedup_previous")
    return AlikeRows(
        destinations, heads, _payloads(columns, rows), values("key"), partitions, producers, sequences, previous
    )


def _below_zero(numbers: Sequence[int | None]) -> bool:
    return any(number is not None and number < 0 for number in numbers)


def _payloads(columns: Columns, rows: int) -> Iterable[bytes | None]:
    """Return the body of each row; a row has no more than one."""
    texts = columns.get("text")
    found = [columns[name].to_pylist() for name in ("data", "payload") if name in columns]
    if texts is not None:
        found.append([None if text is None else text.encode() for text in texts.to_pylist()])
    if len(found) < 2:
        return found[0] if found else repeat(None, rows)
    return [next((body for body in bodies if body is not None), None) for bodies in zip(*found, strict=True)]


def _heads(columns: Columns, rows: int, make: Make) -> Iterable[OutgoingRecord] | None:
    """Return the head of each row; None if the rows must be made one by one."""
    names = [name for name in _HEADERS if name in columns]
    bodies = [name for name in _BODIES if name in columns]
    kinds = [columns[name] for name in names] + [columns[name].is_valid() for name in bodies]
    if all(map(recurs, kinds)):
        found = _head([*names, *bodies], [kind[0].as_py() for kind in kinds], make)
        return None if found is None else repeat(found, rows)
    keys = list(zip(*(kind.to_pylist() for kind in kinds), strict=True))
    different = set(keys)
    if len(different) * SHARED > rows:
        return None
    heads: dict[tuple[Any, ...], OutgoingRecord] = {}
    for key in different:
        found = _head([*names, *bodies], key, make)
        if found is None:
            return None
        heads[key] = found
    return map(heads.__getitem__, keys)


def _head(names: Sequence[str], cells: Sequence[Any], make: Make) -> OutgoingRecord | None:
    """Return the record of a row without its own values; None if the row is invalid.

    Args:
        names: names of the columns.
        cells: the value of each column; for a body, whether there is one.
        make: makes the record of cells.
    """
    given = dict(zip(names, cells, strict=True))
    for name, empty in (("text", ""), ("data", b""), ("payload", b"")):
        if name in given:
            given[name] = empty if given[name] else None
    try:
        return make(_EMPTY._replace(**given))
    except MessageFormatError:
        return None
