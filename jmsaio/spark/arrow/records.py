"""Conversion of a writer's record batches to outgoing records, by column; the codec validates the rows.

Similar rows are made together, see ``alike``. If a row of a part can be invalid, the rows of that part are made one by
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from jmsaio.codec.written_shapes import learn_shape
from jmsaio.errors import (
    ConfigurationError,
    IllegalArgumentError,
    InvalidDestinationError,
    JMSError,
    MessageFormatError,
)
from jmsaio.model.names import allowed_names, check_property_name
from jmsaio.model.wire import GROUP_ID, MESSAGE_ID, OutgoingRecord
from jmsaio.spark.arrow.alike import AlikeRows, read_alike
from jmsaio.spark.arrow.cells import Cells, Columns, find_cells, rows_of
from jmsaio.spark.arrow.row_records import RowRecords
from jmsaio.spark.arrow.write_columns import find_columns
from jmsaio.spark.arrow.written_properties import Written, written_properties
from jmsaio.spark.model.dedup import AscendingCheck
from jmsaio.spark.model.outgoing import OutgoingRow

#: Rows made together: few enough to be in the processor's cache when they are sent.
_PART: Final = 1000
_PROPERTIES: Final = frozenset({"properties", "property_types", "props"})
#: Makes a row from a tuple of all its fields, in half the time of the class.
_row_of: Final[Callable[[tuple[Any, ...]], OutgoingRow]] = partial(tuple.__new__, OutgoingRow)


class RecordMaker:
    """Maker of the records of one task's rows.

    Args:
        schema: schema of the record batches.
        connection_id: JMSConnectionID. Message ids contain it and the row number, so each task needs its own: a new
            UUID.
        namespace: ``tenant/namespace`` of reply destinations without one.
        destination: queue or topic of all rows; None: the column ``destination`` names it.
        dedup: identify rows by ``dedup_producer`` and ``dedup_sequence``, and check the order of the latter.

    Raises:
        ConfigurationError: the table can't be written, see ``find_columns``.
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        connection_id: str,
        namespace: str = "public/default",
        destination: str | None = None,
        dedup: bool = False,
    ) -> None:
        columns = find_columns(schema, destination=destination, dedup=dedup)
        self._names = None if "payload" in columns else columns.get("properties")  # raw rows are copies of messages
        if "props" in columns and "payload" not in columns:
            for field in schema.field(columns["props"]).type:
                _check_name(field.name, "column props", ConfigurationError)
        self._columns, self._destination = columns, destination
        self._row_records = RowRecords(columns, connection_id, namespace)
        #: Check of the sequence order, with the producers so far; None without ``dedup``.
        self.order = AscendingCheck() if dedup else None
        self._chained = "dedup_previous" in columns
        #: Number of rows so far.
        self.rows = 0

    def records(self, batch: pa.RecordBatch, now_ms: int) -> Iterator[OutgoingRow]:
        """Yield the rows of a batch one by one, so that rows before an invalid one can be sent.

        Args:
            batch: a batch of the schema.
            now_ms: send time in milliseconds since the epoch: JMSTimestamp.

        Raises:
            MessageFormatError: no message can represent a row. All errors name the number of the row. A property name
                that the client rejects raises it before the first row of the batch.
            InvalidDestinationError: a row has no destination.
            IllegalArgumentError: a row's sequence number is not above the producer's previous one, or the row does not
                follow the one that it names.
        """
        self._check_names(batch)
        for start in range(0, batch.num_rows, _PART):
            part = batch.slice(start, _PART)
            columns = find_cells(part, self._columns)
            written = written_properties(
                columns.get("properties"), columns.get("property_types"), columns.get("props"), part.num_rows
            )
            alike = None if None in written else self._alike(columns, part.num_rows, now_ms)
            if alike is None:
                yield from self._one_by_one(columns, written, now_ms)
            else:
                yield from self._together(alike, written, now_ms)

    def _check_names(self, batch: pa.RecordBatch) -> None:
        """Reject names of properties that the client rejects."""
        if self._names is None or pa.types.is_null((column := batch.column(self._names)).type):
            return
        offsets = column.offsets
        first, last = (0, 0) if not len(column) else (offsets[0].as_py(), offsets[-1].as_py())
        names = set(pc.unique(column.keys.slice(first, last - first)).to_pylist())
        for row, items in enumerate(() if names <= allowed_names else column.to_pylist()):
            for name, _ in items or ():
                if learn_shape((name,), {}) is not None:  # otherwise the codec rejects it
                    _check_name(name, f"row {self.rows + row}", MessageFormatError)

    def _alike(self, columns: Columns, rows: int, now: int) -> AlikeRows | None:
        def make(cells: Cells) -> OutgoingRecord:
            return self._row_records.make(cells, 0, now, {})

        return read_alike(columns, rows, self._destination, self.order is not None, make)

    def _together(self, alike: AlikeRows, written: Sequence[Written], now: int) -> Iterator[OutgoingRow]:
        """Yield the rows; only their sequence numbers can still be invalid."""
        prefix, order = self._row_records.id_prefix, self.order
        # Unpacked at once, which is cheaper than eight attributes.
        for properties, destination, head, payload, key, partition, producer, sequence, previous in zip(
            written, *alike, strict=True
        ):
            number, self.rows = self.rows, self.rows + 1
            wire = head.properties.copy()
            wire[MESSAGE_ID] = f"{prefix}{number}"
            wire |= properties
            group = key or properties.get(GROUP_ID) or None
            record = OutgoingRecord(payload, wire, group, now, None, head.priority, partition, sequence)
            if order is not None:
                self._check_order(producer, sequence, previous, number)
            yield _row_of((destination, record, number, producer))

    def _one_by_one(self, columns: Columns, written: Sequence[Written], now: int) -> Iterator[OutgoingRow]:
        """Yield the rows up to an invalid one."""
        if None not in written:  # already converted
            columns = {name: column for name, column in columns.items() if name not in _PROPERTIES}
        for cells, properties in zip(rows_of(columns, len(written)), written, strict=True):
            number, self.rows = self.rows, self.rows + 1
            try:
                yield self._outgoing(cells, number, now, properties)
            except MessageFormatError as error:
                raise MessageFormatError(f"row {number}: {error}") from error

    def _outgoing(self, cells: Cells, number: int, now: int, written: Written) -> OutgoingRow:
        destination = self._destination or cells.destination
        if not destination:
            raise InvalidDestinationError(f"row {number}: it has no destination: the column is NULL or empty")
        record = self._row_records.make(cells, number, now, written)
        if self.order is None:
            return OutgoingRow(destination, record, number)
        producer, record.sequence_id = _identity(cells)
        self._check_order(producer, record.sequence_id, cells.dedup_previous, number)
        return OutgoingRow(destination, record, number, producer)

    def _check_order(self, producer: str, sequence: int, previous: int | None, number: int) -> None:
        assert self.order is not None
        if self._chained:
            self.order.follow(producer, previous, number)
        self.order.take(producer, sequence, number)


def _check_name(name: str, where: str, kind: type[JMSError]) -> None:
    try:
        check_property_name(name)
    except IllegalArgumentError as error:
        raise kind(f"{where}: {error}") from error


def _identity(cells: Cells) -> tuple[str, int]:
    producer, sequence = cells.dedup_producer, cells.dedup_sequence
    if not producer:
        raise MessageFormatError("dedup_producer must be the name of a producer, not NULL or empty")
    if sequence is None or sequence < 0:
        raise MessageFormatError(f"dedup_sequence must be 0 or more, not {'NULL' if sequence is None else sequence}")
    return producer, sequence
