"""The marks that tie a test to lines of the checklist, and the checklist itself."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

CHECKLIST = Path(__file__).with_name("checklist.txt")


@attrs.frozen
class Line:
    """One line of the checklist: ``group`` is its heading, ``key`` is ``folder/Class.method``."""

    group: str
    key: str


def checklist() -> list[Line]:
    """All lines, in their order."""
    lines: list[Line] = []
    group = ""
    for text in CHECKLIST.read_text().splitlines():
        if text.startswith("#"):
            group = text.lstrip("# ")
        elif text:
            lines.append(Line(group, text))
    return lines


def tck(*keys: str) -> pytest.MarkDecorator:
    """Says which lines of the checklist a test, or one row of its table, keeps: on every broker it runs on."""
    return pytest.mark.tck(*keys)


def row(*values: object, key: str) -> object:
    """A row of a parametrised table that keeps one line of the checklist."""
    return pytest.param(*values, marks=tck(key), id=key.rpartition("/")[2])


#: The test needs transactions of the broker: an emulated one sends at once, and a rollback does not take that back.
not_emulated = pytest.mark.not_emulated
