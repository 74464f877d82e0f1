"""The cells of a table that is written."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from jmsaio.spark.arrow.cells import Cells, find_cells, rows_of
from jmsaio.spark.arrow.columns import TEXTS
from jmsaio.spark.arrow.write_columns import WRITE_COLUMNS


def test_a_row_has_a_field_for_each_column() -> None:
    renamed = {
        "bytes": "data", "JMSCorrelationID": "correlation_id", "JMSType": "type", "JMSReplyTo": "reply_to",
        "JMSPriority": "priority", "JMSDeliveryMode": "delivery_mode",
    }  # fmt: skip
    assert Cells._fields == tuple(renamed.get(column.name, column.name) for column in WRITE_COLUMNS)


def test_columns_that_say_nothing_are_left_out() -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([None, "a"]), pa.array([None, None], pa.string()), pa.nulls(2)], names=["text", "key", "JMSType"]
    )
    indexes = {"text": 0, "key": 1, "JMSType": 2}
    assert set(find_cells(batch, indexes)) == {"text"}
    assert not find_cells(batch.slice(0, 1), indexes)
    assert not find_cells(batch.slice(0, 0), indexes)


def test_cells_are_read_as_python_has_them() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)
    columns = {
        "deliver_at": pa.array([moment, None], pa.timestamp("us", tz="UTC")),
        "properties": pa.array([[("a", "b")], None], TEXTS),
        "data": pa.array([b"x", None]),
        "props": pa.array([{"n": 5}, None], pa.struct([("n", pa.int32())])),
    }
    first, second = rows_of(columns, 2)
    assert first == Cells(*[None] * len(Cells._fields))._replace(
        deliver_at=int(moment.timestamp() * 1000), properties={"a": "b"}, data=b"x", props={"n": ("5", "int")}
    )
    assert second == Cells(*[None] * len(Cells._fields))._replace(props={})
