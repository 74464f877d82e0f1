"""The table in the guide, and which cells are faults."""

from __future__ import annotations

import re

import attrs
import pytest

from tests.interop.matrix import COLUMNS, Cell, Results, Row
from tests.interop.rows import rows
from tests.interop.table import GUIDES, faults, generated, render

ALL = dict.fromkeys(COLUMNS, "differs")


async def nothing(cell: Cell) -> None:
    """Runs nothing."""


ROW = Row(group="Messages", name="TextMessage", run=nothing)


def results(row: Row, *failed: tuple[str, str]) -> Results:
    return {(row.group, row.name, column): "it differs" if column in failed else None for column in COLUMNS}


def test_the_table_shows_each_cell() -> None:
    table = render([ROW], results(ROW, ("java", "python")))
    assert "## Messages\n\n| | Java to Java | Java to Python | Python to Java | Python to Python |" in table
    assert "| TextMessage | yes | **no** | yes | yes |" in table


def test_a_cell_that_fails_needs_a_row_that_says_so() -> None:
    assert faults([ROW], results(ROW)) == []
    assert faults([ROW], results(ROW, ("java", "python"))) == ["Messages, TextMessage, java to python: it differs"]


def test_a_difference_needs_its_line_in_the_compatibility_guide() -> None:
    known = attrs.evolve(ROW, differs=ALL, line="emulated transactions")
    assert faults([known], results(known, *ALL)) == []
    unknown = attrs.evolve(ROW, differs=ALL, line="no such line")
    [fault] = faults([unknown], results(unknown, *ALL))
    assert "has no line that begins with '| no such line '" in fault


def test_a_difference_that_is_gone_is_a_fault() -> None:
    known = attrs.evolve(ROW, differs={("java", "java"): "differs"}, line="emulated transactions")
    [fault] = faults([known], results(known))
    assert fault == "Messages, TextMessage, java to java: works, although the row names a difference"


def test_the_guide_has_every_row() -> None:
    """What stands in their cells takes a run."""
    shown = re.findall(r"^\| (.+?) \| (?:yes|\*\*no)", generated((GUIDES / "interop.md").read_text("utf-8")), re.M)
    assert shown == [row.name for row in rows()]


def test_a_known_difference_excuses_no_other_failure() -> None:
    known = attrs.evolve(ROW, differs={("java", "java"): "what arrives"}, line="emulated transactions")
    [fault] = faults([known], results(known, ("java", "java")))
    assert fault == "Messages, TextMessage, java to java: it differs, where the row expects 'what arrives'"


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row.name))
def test_each_row_has_a_place_of_its_own(row: Row) -> None:
    assert sum((other.group, other.name) == (row.group, row.name) for other in rows()) == 1
    assert bool(row.differs) == bool(row.line) and all(row.differs.values())
