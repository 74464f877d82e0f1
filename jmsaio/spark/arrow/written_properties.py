"""The properties of a batch on the wire, processed by column: what rows have in common is checked once.

An unusual row (own names, a text that does not fit its type, an invalid name) is left to ``read_properties`` and the
codec, which raise the errors.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Final, NamedTuple

import pyarrow as pa

from jmsaio.codec.written_shapes import learn_shape
from jmsaio.spark.arrow.cells import SHARED, recurs
from jmsaio.spark.arrow.property_columns import Declared, Texts, are_of_type, read_maps, read_structs, without_nulls

#: Properties of one row on the wire, which rows can share; None: process the row individually.
Written = Mapping[str, str] | None

#: Rows that can all differ before the attempt is given up.
_TRIED: Final = 100
_NOTHING: Final[Mapping[str, str]] = {}


class _Shape(NamedTuple):
    """Common structure of rows: the names of their texts, and their type words with the names of these."""

    names: tuple[str, ...]
    typed: tuple[str, ...]
    words: tuple[str, ...]


#: Shape and texts of one row.
_Row = tuple[_Shape, tuple[str, ...]]


def written_properties(
    texts: pa.MapArray | None, words: pa.MapArray | None, declared: pa.StructArray | None, rows: int
) -> Sequence[Written]:
    """Return the properties of each row.

    Args:
        texts: the column ``properties``; None if it is missing or NULL throughout.
        words: the column ``property_types``, or None.
        declared: the column ``props``, or None.
        rows: number of rows, at least one.
    """
    if declared is not None:
        if texts is not None or words is not None:  # both can have a property: check each row
            return [None] * rows
        return _by_shape(map(_of_fields, read_structs(declared)), rows, checked=True)
    alike, typed = _read_alike(texts, rows), _read_alike(words, rows)
    if alike is None or typed is None or not recurs(typed[1], len(typed[0])):
        return _by_shape(map(_of_maps, _maps(texts, rows), _maps(words, rows)), rows, checked=False)
    (names, items), (keys, kinds) = alike, typed
    found = items.to_pylist()
    columns = [found[start :: len(names)] for start in range(len(names))]
    shape = _Shape(names, keys, tuple(kinds.slice(0, len(keys)).to_pylist()))
    written = _write(shape, columns, rows, checked=False)
    return [None] * rows if written is None else list(written)


def _read_alike(column: pa.MapArray | None, rows: int) -> tuple[tuple[str, ...], pa.Array] | None:
    """Return the keys common to all rows, and the items of all rows; None if keys differ or an item is NULL."""
    if column is None:
        return (), pa.array([], pa.string())
    offsets = column.offsets.to_pylist()
    first, last = offsets[0], offsets[-1]
    width = offsets[1] - first
    if column.null_count or set(map(operator.sub, offsets[1:], offsets)) != {width}:
        return None
    keys, items = (each.slice(first, last - first) for each in (column.keys, column.items))
    if items.null_count or not recurs(keys, width):
        return None
    return tuple(keys.slice(0, width).to_pylist()), items


def _maps(column: pa.MapArray | None, rows: int) -> Iterable[Texts | None]:
    return repeat(None, rows) if column is None else read_maps(column)


def _of_maps(texts: Texts | None, words: Texts | None) -> _Row:
    items, kinds = without_nulls(texts or {}, words or {})
    return _Shape(tuple(items), tuple(kinds), tuple(kinds.values())), tuple(items.values())


def _of_fields(declared: Declared) -> _Row:
    words = {name: word for name, (_, word) in declared.items() if word is not None}
    texts = tuple(text for text, _ in declared.values())
    return _Shape(tuple(declared), tuple(words), tuple(words.values())), texts


def _by_shape(rows: Iterable[_Row], count: int, *, checked: bool) -> list[Written]:
    """Return the properties of rows; each shape is checked once.

    Args:
        rows: ``count`` rows.
        count: number of rows.
        checked: the texts are known to be of their types.
    """
    found: list[Written] = [None] * count
    shapes: dict[_Shape, tuple[list[int], list[tuple[str, ...]]]] = {}
    for number, (shape, texts) in enumerate(rows):
        numbers, column = shapes.setdefault(shape, ([], []))
        numbers.append(number)
        column.append(texts)
        if len(shapes) * SHARED > max(number, _TRIED):
            return found  # too many shapes
    if len(shapes) * SHARED > count:
        return found
    for shape, (numbers, texts_of_rows) in shapes.items():
        columns = list(zip(*texts_of_rows, strict=True))
        for number, written in zip(numbers, _write(shape, columns, len(numbers), checked=checked) or (), strict=False):
            found[number] = written
    return found


def _write(
    shape: _Shape, columns: Sequence[Sequence[str]], rows: int, *, checked: bool
) -> Iterator[Mapping[str, str]] | None:
    """Return the properties of rows of one shape; None if each row must be processed individually.

    Args:
        shape: shape of the rows.
        columns: texts by name.
        rows: number of rows.
        checked: the texts are known to be of their types.
    """
    words = dict(zip(shape.typed, shape.words, strict=True))
    if not shape.names and not words:
        return repeat(_NOTHING, rows)
    found = learn_shape(shape.names, words)
    if found is None:
        return None
    if not checked and not all(map(are_of_type, columns, map(words.get, shape.names))):
        return None
    return found.write(columns)
