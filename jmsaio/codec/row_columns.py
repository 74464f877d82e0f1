"""Converts many records to columns: the rows of ``rows.to_row``, transposed.

The records of a sender mostly have the same names in the same order, and the same kind and type words, which are
therefore examined once. For each record only its own texts are kept, and read at once, while it is in the cache: a
record with all its properties takes kilobytes. Then the headers are read column by column.

Records that have little in common with others become rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter, is_, itemgetter
from typing import Any, Final, Self

import attrs

from jmsaio.codec.alike_records import AlikeRecords, Parts, TextTable
from jmsaio.codec.rows import RawRow, to_row
from jmsaio.codec.shapes import Shape, known_shape, text_getter
from jmsaio.errors import MalformedMessageError
from jmsaio.model.wire import CONNECTION_ID, MESSAGE_TYPE, ReceivedRecord

#: Returns the fields of ``Parts``, which a row needs besides the properties, in one call.
_PARTS: Final[Callable[[ReceivedRecord], tuple[Any, ...]]] = attrgetter(*Parts._fields)
_FIELDS: Final = {name: index for index, name in enumerate(RawRow._fields)}
#: Maximum number of groups of records with the same names, kind and type words; the records of others become rows.
_GROUPS: Final = 64

Names = tuple[str, ...]
#: Function that sorts values into the order of all rows.
InOrder = Callable[[Sequence[Any]], Sequence[Any]]


@attrs.frozen(eq=False)
class RowColumns:
    """Rows as columns.

    Attributes:
        size: number of rows.
        values: a column for each field of ``RawRow``, in their order. The column of properties can be a ``TextTable``.
    """

    size: int
    values: Sequence[Any] = attrs.field(repr=False)  # no repr: asyncio's Runner formats a result

    @classmethod
    def of(cls, rows: Sequence[RawRow]) -> Self:
        """Create the columns of rows."""
        return cls(len(rows), tuple(zip(*rows, strict=True)) if rows else ((),) * len(_FIELDS))

    def __getitem__(self, field: str) -> Any:
        """Return the column of a field."""
        return self.values[_FIELDS[field]]

    def rows(self) -> list[RawRow]:
        """Return the rows, one by one."""
        return list(map(RawRow._make, zip(*self.values, strict=True)))


@attrs.frozen
class _SameNames:
    """Records with the same names: the shape of these names, and the records grouped by the other shared values."""

    shape: Shape
    common: Callable[[Mapping[str, str]], Names]
    kept: Names
    own: Callable[[Mapping[str, str]], Names]
    groups: dict[Names, AlikeRecords] = attrs.field(init=False, factory=dict)


class ColumnMaker:
    """Converts records to the columns of their rows.

    Args:
        namespace: ``tenant/namespace`` that is left out of the names of reply destinations.
        check_body: see ``to_row``.

    Attributes:
        size: number of records so far.
    """

    def __init__(self, namespace: str = "public/default", *, check_body: bool = True) -> None:
        self.size = 0
        self._namespace = namespace
        self._check_body = check_body
        self._known: dict[Names, _SameNames] = {}
        self._alike: list[AlikeRecords] = []
        self._rows: list[RawRow] = []
        self._numbers: list[int] = []  # numbers of these rows among all

    def take(self, records: Iterable[ReceivedRecord]) -> None:
        """Add records; each is released when the next one is requested."""
        last: Names | None = None
        alike: AlikeRecords | None = None
        for record in records:
            try:
                wire = record.properties
                names = tuple(wire)
                if names != last or alike is None:
                    last, alike = names, self._find(names, wire)
                elif (shared := alike.common(wire)) != alike.shared:
                    alike = self._known[names].groups.get(shared) or self._find(names, wire)
                parts = None if alike is None else _PARTS(record)
            except MalformedMessageError:
                parts = None
            if alike is None or parts is None or parts[-1] is not None:
                self._take_row(record)
                continue
            alike.texts.append(alike.own(wire))
            alike.parts.append(parts)
            alike.numbers.append(self.size)
            self.size += 1

    def _take_row(self, record: ReceivedRecord) -> None:
        self._rows.append(to_row(record, self._namespace, check_body=self._check_body))
        self._numbers.append(self.size)
        self.size += 1

    def _find(self, names: Names, wire: Mapping[str, str]) -> AlikeRecords | None:
        """Return the group of a record with these properties; None if it has to be converted by itself."""
        known = self._known.get(names)
        if known is None:
            shape = known_shape(names)
            if shape is None or len(self._known) == _GROUPS:
                return None
            common = text_getter((MESSAGE_TYPE, *shape.marks) if MESSAGE_TYPE in wire else shape.marks)
            dropped = {MESSAGE_TYPE, CONNECTION_ID, *shape.marks}.difference(shape.names)
            kept = tuple(name for name in names if name not in dropped)
            known = self._known[names] = _SameNames(shape, common, kept, text_getter(kept))
        shared = known.common(wire)
        found = known.groups.get(shared)
        if found is None and len(self._alike) < _GROUPS:
            shape, kind = known.shape, wire.get(MESSAGE_TYPE, "bytes")
            words = shape.words_of(shape.read_words(wire), wire)
            found = AlikeRecords(names, shared, known.common, known.kept, known.own, shape.names, kind, words)
            known.groups[shared] = found
            self._alike.append(found)
        return found

    def columns(self) -> RowColumns:
        """Return the columns of all added records."""
        found = [each for each in self._alike if each.numbers]
        groups = [(each.numbers, each.columns(self._namespace, self._check_body)) for each in found]
        if self._rows or not groups:
            groups.append((self._numbers, list(RowColumns.of(self._rows).values)))
        if len(groups) == 1:
            return RowColumns(self.size, groups[0][1])
        order = list(chain.from_iterable(numbers for numbers, _ in groups))
        in_order: InOrder = itemgetter(*sorted(range(self.size), key=order.__getitem__))
        columns = zip(*(values for _, values in groups), strict=True)
        return RowColumns(self.size, [_joined(each, in_order) for each in columns])


def _joined(parts: Sequence[Any], in_order: InOrder) -> Any:
    """Join one column of the groups of rows, in the order of all rows."""
    if all(isinstance(part, TextTable) for part in parts) and len({part.names for part in parts}) == 1:
        columns = zip(*(part.columns for part in parts), strict=True)
        texts = [in_order(list(chain.from_iterable(each))) for each in columns]
        return TextTable(parts[0].names, texts, sum(map(len, parts)))
    values = list(chain.from_iterable(parts))
    return values if all(map(is_, values, repeat(values[0]))) else in_order(values)
