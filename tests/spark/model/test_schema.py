"""The table of columns, which is frozen."""

from __future__ import annotations

from pathlib import Path

from jmsaio.spark.model.schema import COLUMNS, Body, columns_of, find_column

FROZEN = Path(__file__).with_name("schema-1.txt")


def test_the_table_of_columns_is_that_of_archives() -> None:
    assert [f"{column.name} {column.type.value}" for column in COLUMNS] == FROZEN.read_text().splitlines()


def test_a_reader_that_names_no_column_gets_those_of_its_body() -> None:
    typed, raw, both = ({column.name for column in columns_of(body)} for body in (Body.TYPED, Body.RAW, Body.BOTH))
    assert typed - raw == {"text", "bytes"}
    assert raw - typed == {"payload"}
    assert both == typed | raw
    assert {column.name for column in COLUMNS} - both == {"body_json"}


def test_a_column_is_found_in_any_case() -> None:
    for column in COLUMNS:
        assert find_column(column.name.upper()) is column
    assert find_column("jms") is None
