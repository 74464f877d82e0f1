"""Rows in which nothing is unusual: what they share is made once, and the rest of them is taken as columns.

A row of such rows has a body of text or bytes, a key, a partition and properties of its own. Its other headers it
shares with many, so that the record of one of them, without body and properties, is the head of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple

from jmsaio.errors import MessageFormatError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.spark.arrow.cells import SHARED, Cells, Columns, recurs

_BODIES: Final = ("text", "data", "payload")
#: Cells that say in which head a row has its part, besides the body that it has.
_HEADERS: Final = ("body_type", "type", "reply_to", "reply_to_kind", "priority", "delivery_mode", "time_to_live")
#: Cells that mostly differ from row to row, and bodies that are to be read.
_OWN: Final = frozenset({"body_json", "object_format", "correlation_id", "correlation_bytes", "deliver_at"})
_EMPTY: Final = Cells(*repeat(None, len(Cells._fields)))

#: Makes the record of cells without properties.
Make = Callable[[Cells], OutgoingRecord]


class AlikeRows(NamedTuple):
    """Columns of such rows; ``heads`` are records, whose properties on the wire begin those of each row."""

    destinations: Iterable[str]
    heads: Iterable[OutgoingRecord]
    payloads: Iterable[bytes | None]
    keys: Iterable[str | None]
    partitions: Iterable[int | None]
    producers: Iterable[str | None]
    sequences: Iterable[int | None]
    previous: Iterable[int | None]


def read_alike(columns: Columns, rows: int, destination: str | None, dedup: bool, make: Make) -> AlikeRows | None:
    """The rows as columns.

    Args:
        columns: of the table; properties are left to the caller.
        rows: how many there are, at least one.
        destination: that of all rows; None: the column.
        dedup: each row needs a producer and its number.
        make: makes the record of cells.

    Returns:
        None where the rows are to be made one by one: they have little in common, or one may have to be refused.
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
    """The body of each row, which has one at most."""
    texts = columns.get("text")
    found = [columns[name].to_pylist() for name in ("data", "payload") if name in columns]
    if texts is not None:
        found.append([None if text is None else text.encode() for text in texts.to_pylist()])
    if len(found) < 2:
        return found[0] if found else repeat(None, rows)
    return [next((body for body in bodies if body is not None), None) for bodies in zip(*found, strict=True)]


def _heads(columns: Columns, rows: int, make: Make) -> Iterable[OutgoingRecord] | None:
    """What the rows share: for each its head."""
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
    """The record of a row without its own parts; None where the row is refused.

    Args:
        names: of the columns.
        cells: the value of each; of a body whether there is one.
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
