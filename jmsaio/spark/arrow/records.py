"""Record batches of a writer to outgoing records. Columns are taken whole; what a row may say is the codec's rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, Final, NamedTuple

import pyarrow as pa

from jmsaio.codec.bodies import encode_body
from jmsaio.codec.rows import PERSISTENT, RawRow, to_record
from jmsaio.errors import InvalidDestinationError, MessageFormatError
from jmsaio.spark.arrow.property_columns import Declared, Texts, read_maps, read_properties, read_structs
from jmsaio.spark.arrow.write_columns import WRITE_COLUMNS, find_columns
from jmsaio.spark.model.body_json import read_json
from jmsaio.spark.model.dedup import AscendingCheck
from jmsaio.spark.model.outgoing import OutgoingRow

_LAST_TIME: Final = (1 << 63) - 1


class _Cells(NamedTuple):
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
    priority: int | None
    delivery_mode: str | None
    time_to_live: int | None
    deliver_at: int | None
    partition: int | None
    dedup_producer: str | None
    dedup_sequence: int | None
    dedup_previous: int | None


class RecordMaker:
    """Makes the records of the rows of one task.

    Args:
        schema: of its record batches.
        connection_id: JMSConnectionID. Message ids are made of it and the number of the row, so each task needs one of
            its own: a new UUID.
        namespace: ``tenant/namespace`` of reply destinations without one.
        destination: queue or topic of all rows; None: the column ``destination`` names it.
        dedup: give rows the identity of ``dedup_producer`` and ``dedup_sequence``, and check the order of these.

    Raises:
        ConfigurationError: the table can't be written; see ``find_columns``.
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
        self._indexes = [columns.get(column.name) for column in WRITE_COLUMNS]
        self._connection_id, self._namespace, self._destination = connection_id, namespace, destination
        #: The check of the order of numbers, which knows the producers that were seen; None without ``dedup``.
        self.order = AscendingCheck() if dedup else None
        self._chained = "dedup_previous" in columns
        #: Rows taken so far.
        self.rows = 0
        bodies = columns.keys() & {"text", "bytes", "payload", "body_json"}
        self._without_body = not bodies
        self._default_type = {frozenset({"text"}): "text", frozenset({"bytes"}): "bytes"}.get(frozenset(bodies))

    def records(self, batch: pa.RecordBatch, now_ms: int) -> Iterator[OutgoingRow]:
        """The rows of a batch, one by one, so that those before a row that is refused can be sent.

        Args:
            batch: of the schema.
            now_ms: when they are sent, in milliseconds since the epoch: JMSTimestamp.

        Raises:
            MessageFormatError: a row that no message can carry. Like the others it names the number of the row.
            InvalidDestinationError: a row without a destination.
            IllegalArgumentError: a row whose number does not lie above the one before it of its producer, or that does
                not follow the one that it names.
        """
        columns = [
            repeat(None, batch.num_rows) if index is None else _cells(batch.column(index)) for index in self._indexes
        ]
        for cells in map(_Cells._make, zip(*columns, strict=True)):
            number, self.rows = self.rows, self.rows + 1
            try:
                yield self._outgoing(cells, number, now_ms)
            except MessageFormatError as error:
                raise MessageFormatError(f"row {number}: {error}") from error

    def _outgoing(self, cells: _Cells, number: int, now: int) -> OutgoingRow:
        destination = self._destination or cells.destination
        if not destination:
            raise InvalidDestinationError(f"row {number}: it has no destination: the column is NULL or empty")
        partition = cells.partition
        if partition is not None and partition < 0:
            raise MessageFormatError(f"partition must be 0 or more, not {partition}")
        deliver_at = None if cells.deliver_at is None or cells.deliver_at <= now else cells.deliver_at
        record = to_record(
            self._raw_row(cells, number, now, deliver_at), self._connection_id, self._namespace, deliver_at=deliver_at
        )
        record.sticky_key = partition
        if self.order is None:
            return OutgoingRow(destination, record, number)
        producer, sequence = _identity(cells)
        if self._chained:
            self.order.follow(producer, cells.dedup_previous, number)
        self.order.take(producer, sequence, number)
        record.sequence_id = sequence
        return OutgoingRow(destination, record, number, producer)

    def _raw_row(self, cells: _Cells, number: int, now: int, deliver_at: int | None) -> RawRow:
        kind, data = self._body(cells)
        texts, words = read_properties(cells.properties or {}, cells.property_types or {}, cells.props or {})
        return RawRow(
            kind, cells.text, data, cells.object_format, texts, words, cells.key, cells.correlation_id,
            cells.correlation_bytes, cells.type, cells.reply_to, cells.reply_to_kind,
            f"ID:{self._connection_id}:1:1:{number}", now, now if deliver_at is None else deliver_at,
            _expiration(cells.time_to_live, now), _priority(cells.priority), cells.delivery_mode or PERSISTENT,
        )  # fmt: skip

    def _body(self, cells: _Cells) -> tuple[str, bytes | None]:
        """The kind of message, and the payload of one that has no text."""
        kind, text, data = cells.body_type, cells.text, cells.data
        if cells.body_json is not None:
            return _json_body(cells.body_json, cells)
        if data is None:
            data = cells.payload
        if text is not None and data is not None:
            raise MessageFormatError("it has two bodies, text and bytes: one must be NULL")
        if kind is None:
            kind = self._default_type
            if kind is None:
                if cells.payload is not None:
                    raise MessageFormatError("it has a payload, but its body_type is NULL")
                kind = "text" if text is not None else "header" if data is None else "bytes"
        elif text is not None and kind != "text":
            raise MessageFormatError(f"it has a text, but its body_type is {kind!r:.100}")
        elif self._without_body and kind != "header":
            raise MessageFormatError(f"its body_type is {kind!r:.100}, but the table has no column for the body")
        return kind, data


def _json_body(text: str, cells: _Cells) -> tuple[str, bytes | None]:
    """The kind of message and its payload, by its JSON."""
    body = read_json(text)
    kind = "map" if isinstance(body, dict) else "stream"
    if cells.text is not None:
        raise MessageFormatError("it has two bodies, text and body_json: one must be NULL")
    if cells.body_type not in (None, kind):
        raise MessageFormatError(
            f"its body_json is that of a {kind} message, but its body_type is {cells.body_type!r:.100}"
        )
    return kind, encode_body(kind, body, {})


def _cells(column: pa.Array) -> Iterable[Any]:
    """The values of a column: maps and structs as dicts, moments in milliseconds."""
    kind = column.type
    if column.null_count == len(column):
        return repeat(None, len(column))
    if pa.types.is_map(kind):
        return read_maps(column)
    if pa.types.is_struct(kind):
        return read_structs(column)
    if pa.types.is_timestamp(kind):
        moments = column.cast(pa.timestamp("us", tz="UTC"), safe=False).view(pa.int64()).to_pylist()
        return [None if moment is None else moment // 1000 for moment in moments]
    found: list[Any] = column.to_pylist()
    return found


def _expiration(time_to_live: int | None, now: int) -> int:
    if not time_to_live:
        return 0
    if not 0 < time_to_live <= _LAST_TIME - now:
        raise MessageFormatError(f"time_to_live must be 0 to {_LAST_TIME - now} ms, not {time_to_live}")
    return now + time_to_live


def _priority(level: int | None) -> int:
    if level is None:
        return 4
    if not 0 <= level <= 9:
        raise MessageFormatError(f"JMSPriority must be 0 to 9, not {level}")
    return level


def _identity(cells: _Cells) -> tuple[str, int]:
    producer, sequence = cells.dedup_producer, cells.dedup_sequence
    if not producer:
        raise MessageFormatError("dedup_producer must be the name of a producer, not NULL or empty")
    if sequence is None or sequence < 0:
        raise MessageFormatError(f"dedup_sequence must be 0 or more, not {'NULL' if sequence is None else sequence}")
    return producer, sequence
