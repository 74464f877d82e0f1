"""The tables of the guide on Spark are those of the code."""

from __future__ import annotations

from pathlib import Path

import pyarrow  # noqa: F401 - columns that are written are declared with its types, so this file needs it
import pytest

from jmsaio.spark.arrow.records import WRITE_COLUMNS
from jmsaio.spark.model.schema import COLUMNS
from jmsaio.spark.options.table import OPTIONS
from jmsaio.spark.options.values import Use
from tests.support.scripts import load

tables = load(".mkdocs/spark_tables.py")

REMEDY = "run python .mkdocs/spark_tables.py"


@pytest.mark.parametrize("name", tables.TABLES)
def test_a_guide_has_the_tables_of_the_code(name: str) -> None:
    guide = (tables.GUIDES / name).read_text(encoding="utf-8")
    assert tables.with_tables(name, guide) == guide, REMEDY


def test_every_column_and_option_has_a_row() -> None:
    assert all(f"| `{each.name}` | " in tables.columns_read() for each in COLUMNS)
    assert all(f"| `{each.name}` | " in tables.columns_written() for each in WRITE_COLUMNS)
    assert all(f"| `{each.name}`" in tables.options() for each in OPTIONS)


def lines() -> dict[str, list[str]]:
    """The cells of each line of the guide's table, by the first."""
    rows = [line.strip("| ").split(" | ") for line in tables.options().splitlines()[2:]]
    return {row[0]: row for row in rows}


def test_every_option_has_its_line_in_the_guide() -> None:
    found = lines()
    for row in OPTIONS:
        name, use, default, doc = found[f"`{row.name}`"]
        assert name
        assert use == ("all" if len(row.uses) == len(Use) else ", ".join(each.value for each in row.uses))
        assert default.replace("`", "") == row.default.replace("`", "")
        assert doc == row.doc
    assert len(found) == len(OPTIONS) + 2


def test_no_line_breaks_the_table_of_options() -> None:
    assert {line.count(" | ") for line in tables.options().splitlines()[2:]} == {3}


@pytest.mark.parametrize(
    "line",
    [
        "| `position` | `STRUCT<ledger: BIGINT, entry: BIGINT, batch: INT>` | stored position of the message; sorts "
        "in partition order |",
        "| `payload` | `BINARY` | body of any message, encoded; only with `body=raw` or `body=both` |",
        "| `body_json` | `STRING` | body of a map or stream message as typed JSON; only if `columns` names it |",
        "| `text` | `STRING` | body of a text message |",
    ],
)
def test_a_column_says_what_it_takes_to_get_it(line: str) -> None:
    assert line in tables.columns_read().splitlines()


def test_writing_changes_nothing_but_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for guide, made in tables.TABLES.items():
        parts = [f"before {name}\n{tables.begin(name)}\nold\n{tables.end(name)}\nafter\n" for name in made]
        (tmp_path / guide).write_text("".join(parts), encoding="utf-8")
    monkeypatch.setattr(tables, "GUIDES", tmp_path)
    tables.write()
    for guide, made in tables.TABLES.items():
        assert (tmp_path / guide).read_text(encoding="utf-8") == "".join(
            f"before {name}\n{tables.begin(name)}\n\n{make()}\n\n{tables.end(name)}\nafter\n"
            for name, make in made.items()
        )


def test_a_guide_without_the_lines_around_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match=r"spark\.md lacks the lines around the table 'columns that are read'"):
        tables.with_tables("spark.md", "# Spark\n")
