"""The maps of the design guide and CONTRIBUTING.md are true: their rings are those checked, their paths exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.layers import RINGS

ROOT = Path(__file__).parents[1]
CONTRIBUTING = ROOT / ".github" / "CONTRIBUTING.md"
GUIDE = ROOT / "jmsaio" / "guide" / "design.md"
_SUBGRAPH = re.compile(r'^  subgraph ring(\d)\["ring (\d): [^"]+"\]$')
_NODE = re.compile(r'^    \w+\["(\w+)/?"\]$')
_STEP = re.compile(r'\["([\w/]+\.py): ')
_DECISION = re.compile(r"\| (\d{4}-\d\d-\d\d) \| ")
_PATH = re.compile(r"`([\w./-]+(?:\.py|\.md|/))`")
PACKAGE_ROW = re.compile(r"^\| ((?:`[\w./]+`(?:, )?)+) \| ([\d,]+) \| (.+) \|$")
_RING_LINE = re.compile(r"^ring (\d)  ((?:\w+ )*\w+)(?:  |$)", re.MULTILINE)


def diagram(text: str) -> dict[str, int]:
    """The packages of the Mermaid diagram and the ring that each stands in."""
    block = text.split("```mermaid\n")[1].split("```")[0]
    rings: dict[str, int] = {}
    ring = -1
    for line in block.splitlines():
        if (start := _SUBGRAPH.match(line)) is not None:
            assert start[1] == start[2], line
            ring = int(start[1])
        elif (node := _NODE.match(line)) is not None:
            rings[node[1]] = ring
    return rings


def package_lines(text: str) -> dict[str, int]:
    """The lines of each row of the table of packages; a file belongs to the row that names the nearest folder."""
    owners = {path: row[1] for line in text.splitlines() if (row := PACKAGE_ROW.match(line)) for path in paths(row[1])}
    lines = dict.fromkeys(owners.values(), 0)
    for file in (ROOT / "jmsaio").rglob("*.py"):
        name = file.relative_to(ROOT / "jmsaio").as_posix()
        owner = max((path for path in owners if name == path or name.startswith(path)), key=len, default=None)
        if owner is not None:
            lines[owners[owner]] += len(file.read_text(encoding="utf-8").splitlines())
    return lines


def paths(text: str) -> set[str]:
    """The files and folders that a document names in backquotes."""
    return set(_PATH.findall(text))


def test_the_diagram_has_the_rings_that_are_checked() -> None:
    assert diagram(GUIDE.read_text(encoding="utf-8")) == RINGS


def test_contributing_has_the_rings_that_are_checked() -> None:
    rings = {
        name: int(ring)
        for ring, names in _RING_LINE.findall(CONTRIBUTING.read_text(encoding="utf-8"))
        for name in names.split()
    }
    assert rings == RINGS


@pytest.mark.parametrize("document", [GUIDE, CONTRIBUTING], ids=lambda path: path.name)
def test_every_path_that_is_named_exists(document: Path) -> None:
    named = paths(document.read_text(encoding="utf-8"))
    assert len(named) > 3
    assert {path for path in named if not (ROOT / "jmsaio" / path).exists() and not (ROOT / path).exists()} == set()


@pytest.mark.parametrize("route", ["outgoing", "incoming"])
def test_every_step_of_a_drawn_route_is_a_module(route: str) -> None:
    section = GUIDE.read_text(encoding="utf-8").split(f"## The path of an {route} message\n")[1].split("\n## ")[0]
    steps = _STEP.findall(section.split("```mermaid\n")[1].split("```")[0])
    assert len(steps) > 8
    assert [step for step in steps if not (ROOT / "jmsaio" / step).is_file()] == []


def test_the_lines_of_each_package_are_told() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    told = {row[1]: int(row[2].replace(",", "")) for line in text.splitlines() if (row := PACKAGE_ROW.match(line))}
    lines = package_lines(text)
    wrong = {name: lines[name] for name in lines if abs(told[name] - lines[name]) > max(100, lines[name] // 10)}
    assert len(lines) > 15
    assert wrong == {}


def test_every_decision_has_a_date() -> None:
    section = GUIDE.read_text(encoding="utf-8").split("## Decisions\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    assert [row for row in rows if _DECISION.match(row) is None] == []


def test_every_package_of_the_rings_is_there() -> None:
    missing = [name for name in RINGS if not any((ROOT / "jmsaio" / each).exists() for each in (f"{name}.py", name))]
    assert missing == []


def test_contributing_counts_the_modules_of_a_header() -> None:
    row = next(line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| a header |"))
    assert len(paths(row.split("If the provider")[0])) == 5
    assert "| a header | its row in `model/headers.py`; four more modules" in CONTRIBUTING.read_text(encoding="utf-8")


def test_a_wrong_ring_and_a_wrong_path_are_found() -> None:
    text = (
        '```mermaid\n  subgraph ring0["ring 0: values"]\n    model["model/"]\n  end\n```\nsee `rules/gone.py`, `a.b`\n'
    )
    assert diagram(text) == {"model": 0}
    assert paths(text) == {"rules/gone.py"}
