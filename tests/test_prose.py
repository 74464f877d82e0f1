"""Code, tests and documents refer only to what their reader can open."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: What only the authors could look up. Say what Jakarta Messaging says, by its section's number and title; name
#: Starlight's setting; or give the reason.
PRIVATE = re.compile(
    r"""
      \b[Ss]eeds?\ 0\d\d\b                         # numbered requirements
    | \bjms-spec\b
    | \b(?:house|style|peers|transports|mutants|spark|starlight|tck-checklist)\.md\b
    | \b[Hh]ouse\ (?:rule|decision)s?\b
    | \b[Ss]tarlight,?\ (?:section\ |point\ )?\d+(?:\.\d+)?(?!\.?\d)  # sections of notes; 7.0.15 is a version
    | \bthe\ mission\b | \bmission's\b
    | \bissues?\ of\ names\b
    | (?<![/#\w])\b[Ii]ssue\ \d+\b                 # of which tracker? apache/pulsar#17759 says it
    | (?<![\w."-])[TRHW]\d{1,2}(?![\w.])           # numbers of faults, hazards, wishes
    | \btest_[trhw]\d+(?:_|\b)
    """,
    re.VERBOSE,
)
#: Files that are read: everything in the repository but pictures, licences and recorded data.
READ = {".py", ".md", ".toml", ".yml", ".yaml", ".java", ".txt", ".cfg", ".ini", ".sh", ".pyi", ""}
#: This file, where the words must stand.
HERE = "tests/test_prose.py"


def files() -> list[str]:
    """Every file that is committed or about to be, below the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = listed.stdout.splitlines()
    return [name for name in names if Path(name).suffix in READ and name != HERE and (ROOT / name).is_file()]


def references(name: str) -> Iterator[str]:
    """Private references in the path and in the lines of a file."""
    for found in PRIVATE.finditer(name):
        yield f"{name}: the path has {found.group()!r}"
    for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
        for found in PRIVATE.finditer(line):
            yield f"{name}:{number} {found.group()!r}"


def test_no_reference_to_what_a_reader_cannot_open() -> None:
    names = files()
    assert len(names) > 300
    found = [each for name in names for each in references(name)]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "seed 004", "seeds 001 and 003", "(jms-spec 8.3)", "Starlight 4.2", "house rule 5", "see house.md",
        "the mission's documents", "issue of names", "the names T8 ... T26", "R4: flush", "issue 9",
        "def test_t15_a_drop() -> None:",
    ],
)  # fmt: skip
def test_each_kind_is_found(text: str) -> None:
    assert PRIVATE.search(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Jakarta Messaging 3.1, 6.1.2 Client identifier", "apache/pulsar#17759", "Starlight's jms.clientId",
        "Starlight 7.0.15", "warehouse", "test_the_inbox", "def test_read_bytes() -> None:", "seed=7", "TypeVar('T')",
    ],
)  # fmt: skip
def test_public_references_are_free(text: str) -> None:
    assert PRIVATE.search(text) is None
