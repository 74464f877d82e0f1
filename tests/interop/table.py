"""The matrix as a table of the interop guide, and where a run disagrees with it or with the compatibility guide."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from jmsaio import launcher
from tests.interop.matrix import COLUMNS, Results, Row

GUIDES = Path(__file__).parents[2] / "jmsaio" / "guide"
#: What surrounds the generated part of the guide.
_BEGIN, _END = "<!-- begin: python -m tests.interop --write -->\n", "<!-- end -->\n"


def render(rows: Iterable[Row], results: Results) -> str:
    """The tables, one for each group, as Markdown."""
    heads = [f"{sender.capitalize()} to {receiver.capitalize()}" for sender, receiver in COLUMNS]
    java = launcher.JAVA_CLIENT[0].rpartition(":")[2]
    lines = [f"Filled by a run with Starlight for JMS {java} and Pulsar {launcher.BROKER_VERSION}.", ""]
    for group, members in groupby(rows, key=lambda row: row.group):
        lines += [f"## {group}", "", f"| | {' | '.join(heads)} | difference |", f"|---|{'---|' * 5}"]
        for row in members:
            cells = ["yes" if results[row.group, row.name, column] is None else "**no**" for column in COLUMNS]
            lines.append(f"| {row.name} | {' | '.join(cells)} | {row.line} |")
        lines.append("")
    return "\n".join(lines)


def generated(guide: str) -> str:
    """The generated part of the guide."""
    return guide.partition(_BEGIN)[2].partition(_END)[0]


def write(text: str) -> None:
    """Put the tables into the guide."""
    path = GUIDES / "interop.md"
    guide = path.read_text(encoding="utf-8")
    path.write_text(guide.replace(_BEGIN + generated(guide), _BEGIN + text), encoding="utf-8")


def faults(rows: Iterable[Row], results: Results) -> list[str]:
    """Cells that fail although nothing says so, or that don't although something does, and lines that are missing."""
    compatibility = (GUIDES / "compatibility.md").read_text(encoding="utf-8")
    found = []
    for row in rows:
        name = f"{row.group}, {row.name}"
        if row.differs and f"| {row.line} " not in compatibility:
            found.append(f"{name}: the compatibility guide has no line that begins with '| {row.line} '")
        for column in (one for one in COLUMNS if (row.group, row.name, one) in results):
            outcome, where = results[row.group, row.name, column], f"{name}, {' to '.join(column)}"
            if outcome is not None and column not in row.differs:
                found.append(f"{where}: {outcome}")
            elif outcome is not None and row.differs[column] not in outcome:
                found.append(f"{where}: {outcome}, where the row expects {row.differs[column]!r}")
            elif outcome is None and column in row.differs:
                found.append(f"{where}: works, although the row names a difference")
    return found
