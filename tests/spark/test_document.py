"""The tables of the guide on Spark are those of the code."""

from __future__ import annotations

from pathlib import Path

import pyarrow  # noqa: F401 - columns that are written are declared with its types, so this file needs it
import pytest

from jmsaio.spark import document
from jmsaio.spark.arrow.write_columns import WRITE_COLUMNS
from jmsaio.spark.model.schema import COLUMNS
from jmsaio.spark.options.table import OPTIONS

REMEDY = "run python -m jmsaio.spark.document"


def test_the_guide_has_the_tables_of_the_code() -> None:
    guide = document.GUIDE.read_text(encoding="utf-8")
    assert document.with_tables(guide) == guide, REMEDY


def test_every_column_and_option_has_a_row() -> None:
    assert all(f"| `{each.name}` | " in document.columns_read() for each in COLUMNS)
    assert all(f"| `{each.name}` | " in document.columns_written() for each in WRITE_COLUMNS)
    text = document.TABLES["options"]()
    assert all(f"| `{each.name}`" in text for each in OPTIONS)


@pytest.mark.parametrize(
    "line",
    [
        "| `position` | `STRUCT<ledger: BIGINT, entry: BIGINT, batch: INT>` | stored position of the message; sorts "
        "in partition order |",
        "| `payload` | `BINARY` | body of any message, encoded; only with `body=raw` or `body=both` |",
        "| `body_json` | `STRING` | body of a map or stream message as typed JSON; only if `columns` names it |",
        "| `text` | `STRING` | body of a text message |",
        "| `props` | `STRUCT` of the declared types | properties declared by the option `propertySchema` |",
    ],
)
def test_a_column_says_what_it_takes_to_get_it(line: str) -> None:
    assert line in document.columns_read().splitlines()


def test_writing_changes_nothing_but_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = tmp_path / "spark.md"
    parts = [f"before {name}\n{document.begin(name)}\nold\n{document.end(name)}\nafter\n" for name in document.TABLES]
    guide.write_text("".join(parts), encoding="utf-8")
    monkeypatch.setattr(document, "GUIDE", guide)
    document.write()
    assert guide.read_text(encoding="utf-8") == "".join(
        f"before {name}\n{document.begin(name)}\n\n{make()}\n\n{document.end(name)}\nafter\n"
        for name, make in document.TABLES.items()
    )


def test_a_guide_without_the_lines_around_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks the lines around the table 'columns that are read'"):
        document.with_tables("# Spark\n")
