"""Rows that are made together: the same as those that are made one by one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsaio.errors import JMSError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.spark.arrow.alike import read_alike
from jmsaio.spark.arrow.cells import Cells, Columns, find_cells
from jmsaio.spark.arrow.records import RecordMaker
from jmsaio.spark.model.outgoing import OutgoingRow
from tests.spark.arrow.test_records import CONNECTION, NOW, TYPES

#: Of each cell what is usual first, then what is not, and what is refused.
CELLS: dict[str, list[Any]] = {
    "destination": ["queue://a", "topic://b", None, ""],
    "text": ["a", None, "é"],
    "bytes": [None, b"b", b""],
    "body_type": [None, "text", "bytes", "avro", "header"],
    "object_format": [None, "json"],
    "key": [None, "k", ""],
    "properties": [{"n": "5", "JMSXGroupID": "g"}, None, {}, {"n": "6", "s": None}, {"JMSType": "x"}],
    "property_types": [{"n": "int"}, None, {"lost": "int"}],
    "JMSCorrelationID": [None, "c"],
    "JMSType": [None, "t", "u"],
    "JMSReplyTo": [None, "r"],
    "reply_to_kind": ["queue", "topic", None],
    "JMSPriority": [None, 4, 9, 10],
    "JMSDeliveryMode": [None, "NON_PERSISTENT", "odd"],
    "time_to_live": [None, 0, 60_000, -1],
    "deliver_at": [None, datetime.fromtimestamp(NOW / 1000 + 5, UTC)],
    "partition": [None, 1, -1],
    "dedup_producer": ["p", "o", None],
    "dedup_sequence": [7, 8, -1, None],
}


@st.composite
def tables(draw: st.DrawFn, needed: set[str]) -> pa.RecordBatch:
    """Tables of which most rows are alike."""
    optional = sorted(name for name in CELLS if name != "destination" and not name.startswith("dedup_"))
    names = needed | draw(st.sets(st.sampled_from(optional), max_size=5))
    if {"text", "bytes"} <= names:
        names.add("body_type")
    kinds = [
        {name: draw(st.sampled_from(CELLS[name][: draw(st.sampled_from([2, 3, 9]))])) for name in sorted(names)}
        for _ in range(draw(st.integers(1, 3)))
    ]
    rows = kinds * draw(st.integers(1, 6))
    arrays = [
        pa.array([list(cell.items()) if isinstance(cell := row[name], dict) else cell for row in rows], TYPES[name])
        for name in sorted(names)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=sorted(names))


Outcome = tuple[list[tuple[OutgoingRow, list[tuple[str, str]]]], str]


def outcome(maker: RecordMaker, batch: pa.RecordBatch, together: bool) -> Outcome:
    """The rows before the first that is refused, with their properties in the order of the wire, and its error."""
    columns = find_cells(batch, maker._columns)
    rows = maker.records(batch, NOW) if together else maker._one_by_one(columns, [None] * batch.num_rows, NOW)
    found: list[tuple[OutgoingRow, list[tuple[str, str]]]] = []
    try:
        found.extend((row, list(row.record.properties.items())) for row in rows)
    except JMSError as error:
        return found, repr(error)
    return found, ""


@given(st.data(), st.booleans(), st.booleans())
def test_rows_together_are_what_each_is_alone_up_to_the_one_that_is_refused(
    data: st.DataObject, named: bool, dedup: bool
) -> None:
    needed = {"dedup_producer", "dedup_sequence"} if dedup else {"text"}
    batch = data.draw(tables(needed | {"destination"} if named else needed))

    def maker() -> RecordMaker:
        return RecordMaker(
            batch.schema, connection_id=CONNECTION, destination=None if named else "queue://q", dedup=dedup
        )

    assert outcome(maker(), batch, together=True) == outcome(maker(), batch, together=False)


def columns(**cells: list[Any]) -> Columns:
    """Columns by the names of ``Cells``."""
    return {name: pa.array(values) for name, values in cells.items()}


def never(cells: Cells) -> OutgoingRecord:
    """Makes no record."""
    raise AssertionError(cells)


def head(cells: Cells) -> OutgoingRecord:
    """A record that only says of what cells it was made."""
    named = {name: repr(cell) for name, cell in zip(Cells._fields, cells, strict=True) if cell is not None}
    return OutgoingRecord(None, named)


def test_a_head_is_made_once_for_all_rows_that_share_it() -> None:
    made: list[Cells] = []

    def make(cells: Cells) -> OutgoingRecord:
        made.append(cells)
        return head(cells)

    found = read_alike(columns(text=["a", "b"] * 8, type=["t", "u"] * 8), 16, "q", False, make)
    assert found is not None and len(made) == 2
    assert [each.properties for each in found.heads] == [{"text": "''", "type": f"'{each}'"} for each in "tu" * 8]
    assert list(found.payloads) == [b"a", b"b"] * 8
    assert list(found.destinations) == ["q"] * 16


def test_bodies_of_several_columns_are_those_that_are_not_null() -> None:
    found = read_alike(columns(text=["a", None, None] * 8, data=[None, b"b", None] * 8), 24, "q", False, head)
    assert found is not None
    assert list(found.payloads) == [b"a", b"b", None] * 8


@pytest.mark.parametrize(
    "cells",
    [
        {"correlation_id": ["c"]},
        {"deliver_at": [datetime.now(UTC)]},
        {"object_format": ["json"]},
        {"body_json": ["[]"]},
        {"partition": [-1]},
        {"dedup_producer": [""], "dedup_sequence": [1]},
        {"dedup_producer": ["p"], "dedup_sequence": [-1]},
    ],
)
def test_rows_that_may_differ_or_be_refused_are_made_one_by_one(cells: dict[str, list[Any]]) -> None:
    assert read_alike(columns(**cells), 1, "q", True, never) is None


def test_rows_with_hardly_a_head_in_common_are_made_one_by_one() -> None:
    assert read_alike(columns(type=list("abcdefgh")), 8, "q", False, never) is None
