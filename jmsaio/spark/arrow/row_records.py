"""Conversion of one table row to a record, by all its cells."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from jmsaio.codec.bodies import encode_body
from jmsaio.codec.rows import RawRow, to_record
from jmsaio.errors import MessageFormatError
from jmsaio.model.arguments import with_article
from jmsaio.model.headers import PERSISTENT
from jmsaio.model.wire import OutgoingRecord
from jmsaio.spark.arrow.cells import Cells
from jmsaio.spark.arrow.property_columns import read_properties
from jmsaio.spark.arrow.written_properties import Written
from jmsaio.spark.model.body_json import read_json

_LAST_TIME: Final = (1 << 63) - 1
_BODIES: Final = frozenset({"text", "bytes", "payload", "body_json"})
#: Kind of message by the only body column of its table.
_DEFAULT_TYPES: Final = {frozenset({"text"}): "text", frozenset({"bytes"}): "bytes"}


class RowRecords:
    """Maker of the record of a row.

    Args:
        columns: names of the table's columns.
        connection_id: JMSConnectionID.
        namespace: ``tenant/namespace`` of reply destinations without one.
    """

    def __init__(self, columns: Collection[str], connection_id: str, namespace: str) -> None:
        bodies = _BODIES & frozenset(columns)
        self._without_body = not bodies
        self._default_type = _DEFAULT_TYPES.get(bodies)
        self._connection_id, self._namespace = connection_id, namespace
        #: Prefix of each row's JMSMessageID, without its number.
        self.id_prefix: Final = f"ID:{connection_id}:1:1:"

    def make(self, cells: Cells, number: int, now: int, written: Written = None) -> OutgoingRecord:
        """Make the record of a row; the caller sets ``sequence_id``.

        Args:
            cells: cells of the row.
            number: number of the row in its task.
            now: send time in milliseconds since the epoch: JMSTimestamp.
            written: the row's properties on the wire; None: from the cells.

        Raises:
            MessageFormatError: no message can represent the row.
        """
        partition = cells.partition
        if partition is not None and partition < 0:
            raise MessageFormatError(f"partition must be 0 or more, not {partition}")
        deliver_at = None if cells.deliver_at is None or cells.deliver_at <= now else cells.deliver_at
        kind, data = self._body(cells)
        texts, words = (
            read_properties(cells.properties or {}, cells.property_types or {}, cells.props or {})
            if written is None
            else ({}, {})
        )
        row = RawRow(
            kind, cells.text, data, cells.object_format, texts, words, cells.key, cells.correlation_id,
            cells.correlation_bytes, cells.type, cells.reply_to, cells.reply_to_kind,
            f"{self.id_prefix}{number}", now, now if deliver_at is None else deliver_at,
            _expiration(cells.time_to_live, now), _priority(cells.priority), cells.delivery_mode or PERSISTENT,
        )  # fmt: skip
        record = to_record(row, self._connection_id, self._namespace, deliver_at=deliver_at, written=written)
        record.sticky_key = partition
        return record

    def _body(self, cells: Cells) -> tuple[str, bytes | None]:
        """Return the kind of message, and the payload unless it is a text."""
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


def _json_body(text: str, cells: Cells) -> tuple[str, bytes | None]:
    """Return the kind of message and the payload of a JSON body."""
    body = read_json(text)
    kind = "map" if isinstance(body, dict) else "stream"
    if cells.text is not None:
        raise MessageFormatError("it has two bodies, text and body_json: one must be NULL")
    if cells.body_type not in (None, kind):
        raise MessageFormatError(
            f"its body_json is that of {with_article(kind)} message, but its body_type is {cells.body_type!r:.100}"
        )
    return kind, encode_body(kind, body, {})


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
