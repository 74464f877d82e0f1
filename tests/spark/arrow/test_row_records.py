"""The record of one row."""

from __future__ import annotations

from typing import Any

import pytest

from jmsaio.errors import MessageFormatError
from jmsaio.model.wire import TYPE_SUFFIX, OutgoingRecord
from jmsaio.spark.arrow.cells import Cells
from jmsaio.spark.arrow.row_records import RowRecords

NOW = 1_700_000_000_000
NOTHING = Cells(*[None] * len(Cells._fields))


def record(columns: set[str], written: dict[str, str] | None = None, **cells: Any) -> OutgoingRecord:
    """What cells become in a table with these columns."""
    return RowRecords(columns, "connection", "t/n").make(NOTHING._replace(**cells), 7, NOW, written)


def test_a_row_has_the_number_and_the_partition_that_it_is_given() -> None:
    found = record({"key"}, key="k", partition=3)
    assert found.properties["JMSMessageId"] == "ID:connection:1:1:7"
    assert (found.key, found.sticky_key, found.event_time, found.sequence_id) == ("k", 3, NOW, None)


def test_properties_that_are_written_stand_for_those_of_the_cells() -> None:
    texts, words = {"n": "5", "JMSXGroupID": "g"}, {"n": "int"}
    of_cells = record({"text"}, text="a", object_format="json", properties=dict(texts), property_types=dict(words))
    written = {"n": "5", "n" + TYPE_SUFFIX: "int", "JMSXGroupID": "g"}
    found = record({"text"}, written, text="a", object_format="json", properties={"other": "x"})
    assert found == of_cells and list(found.properties) == list(of_cells.properties)
    assert found.key == "g"


@pytest.mark.parametrize(
    ("columns", "kind"),
    [({"text"}, "text"), ({"bytes", "key"}, "bytes"), ({"text", "bytes"}, "header"), (set(), "header")],
)
def test_a_row_without_a_body_is_of_the_kind_that_its_table_has(columns: set[str], kind: str) -> None:
    assert record(columns).properties["JMSPulsarMessageType"] == kind


def test_a_row_that_names_a_partition_below_0_is_refused() -> None:
    with pytest.raises(MessageFormatError, match="partition must be 0 or more, not -1"):
        record({"text"}, partition=-1)
