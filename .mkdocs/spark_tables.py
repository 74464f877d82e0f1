"""Generates the tables of the Spark guides: the columns of rows, the columns of a write, the options.

``python .mkdocs/spark_tables.py`` writes them; a test compares the guides with the code. Needs pyarrow.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Final

from jmsaio.spark.arrow.records import WRITE_COLUMNS, names_of
from jmsaio.spark.model.schema import COLUMNS, Body, Column
from jmsaio.spark.options.table import OPTIONS
from jmsaio.spark.options.values import Use

GUIDES = pathlib.Path(__file__).parents[1] / "jmsaio" / "guide"
#: Descriptions of the options of ``jmsaio.connect``, for the guide.
_CONNECTION: Final = (
    (
        "authPlugin`, `authParams",
        "credentials as for `jmsaio.connect`, except that `authParams` refers to the secret: see "
        "[secrets](spark-operation.md#secrets)",
    ),
    (
        "webServiceUrl`, `jms.*`, `producerConfig.*`, `consumerConfig.*`, `tls...",
        "other options of `jmsaio.connect`: see [configuration](configuration.md)",
    ),
)


def columns_read() -> str:
    """Return the columns of a read row as a Markdown table."""
    lines = [f"| `{each.name}` | {_type(each)} | {_cell(each.doc + _only_with(each))} |" for each in COLUMNS]
    return "\n".join(["| column | type | what it holds |", "|---|---|---|", *lines])


def columns_written() -> str:
    """Return the columns that a written table can have as a Markdown table."""
    lines = [f"| `{each.name}` | {_written_type(each)} | {_cell(each.written)} |" for each in WRITE_COLUMNS]
    return "\n".join(["| column | type | what becomes of it |", "|---|---|---|", *lines])


def options() -> str:
    """Return the options as a Markdown table."""
    lines = ["| option | use | default | what it does |", "|---|---|---|---|"]
    lines += [_line(each.name, each.uses, _default(each.default), each.doc) for each in OPTIONS]
    lines += [_line(name, tuple(Use), "", doc) for name, doc in _CONNECTION]
    return "\n".join(lines)


#: Tables by their names in the guides' comments, by guide.
TABLES: Final[Mapping[str, Mapping[str, Callable[[], str]]]] = {
    "spark.md": {
        "columns that are read": columns_read,
        "columns that are written": columns_written,
        "options": options,
    },
}


def begin(name: str) -> str:
    """Return the line before a table."""
    return f"<!-- {name}: written by python .mkdocs/spark_tables.py -->"


def end(name: str) -> str:
    """Return the line after a table."""
    return f"<!-- end of {name} -->"


def with_tables(name: str, guide: str) -> str:
    """Return the text of the guide ``name`` with its tables regenerated from the code.

    Raises:
        ValueError: the lines around a table are missing.
    """
    for table, make in TABLES[name].items():
        before, begun, rest = guide.partition(begin(table))
        _, ended, after = rest.partition(end(table))
        if not begun or not ended:
            raise ValueError(f"{name} lacks the lines around the table {table!r}: {begin(table)} and {end(table)}")
        guide = f"{before}{begun}\n\n{make()}\n\n{ended}{after}"
    return guide


def write() -> None:
    """Write the tables into the guides."""
    for name in TABLES:
        path = GUIDES / name
        path.write_text(with_tables(name, path.read_text(encoding="utf-8")), encoding="utf-8")


def _type(column: Column) -> str:
    return f"`{column.type.value}`"


def _written_type(column: Column) -> str:
    return re.sub(r"[A-Z]{3,}(?:<.*?>)?", r"`\g<0>`", names_of(column.type))


def _only_with(column: Column) -> str:
    """Return the option that a column requires if it is not always present."""
    if column.on_request:
        return "; only if `columns` names it"
    words = [f"`body={each.value}`" for each in Body if each is not column.left_out]
    return f"; only with {' or '.join(words)}" if column.left_out is Body.TYPED else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _line(name: str, uses: tuple[Use, ...], default: str, doc: str) -> str:
    used = "all" if uses == tuple(Use) else ", ".join(each.value for each in uses)
    return f"| `{name}` | {used} | {default} | {_cell(doc)} |"


def _default(text: str) -> str:
    return text if not text or " " in text or text == "required" else f"`{text}`"


if __name__ == "__main__":
    write()
