"""Code, tests and documents refer only to what their reader can open."""

from __future__ import annotations

import re
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
    | \b(?:house|style|peers|transports|mutants|starlight|tck-checklist)\.md\b
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
#: Phrases of the package and its guides that plain English has other words for: fragments, odd word order, objects
#: that act like people.
AWKWARD = re.compile(
    r"""
      \bbut\ for\b | \banew\b | \bin\ vain\b
    | \b(?:goes|go|going)\ on\b | \bcomes?\ again\b
    | \b(?:on|in)\ (?:its|their)\ way\b | \bthe\ long\ way\b
    | \bknows?\ nothing\b | \bhears\ (?:of|from|that)\b
    | "{3}(?:The\ same|One\ of\ them|Those)\b
    | \b(?:of|at)\ a\ time\ at\ most\b | \b(?:bytes|records|messages|entries|seconds|characters)\ at\ most\b
    | \bmay\b                                     # can, might, must not, or is allowed to
    | \b(?:is|was|are|were)\ (?:told|away)\b | \bnothing\ says\b
    | \b(?:gets?|got)\ nothing\b | \b(?:comes?|came)\ back\b | \b(?:answer|message)\ came\b
    | \b(?:lies?|ends?|stored|is)\ behind\b | \bexists?\ any\ more\b
    | \btakes?\ no\ (?:more\ )?(?:messages|tokens)\b
    """,
    re.VERBOSE,
)
#: Files that are read: everything but pictures, licences and recorded data.
READ = {".py", ".md", ".toml", ".yml", ".yaml", ".java", ".txt", ".cfg", ".ini", ".sh", ".pyi", ""}
#: The folders whose files belong to the project.
FOLDERS = (".ci", ".github", ".mkdocs", "benchmarks", "compose", "jmsaio", "tests")
#: This file, where the words must stand.
HERE = "tests/test_prose.py"


def files() -> list[str]:
    """Every file of the project's folders, and those at its top that tools did not leave there."""
    top = [path for path in ROOT.iterdir() if path.suffix]
    below = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    paths = [path for path in top + below if path.is_file() and path.suffix in READ]
    return sorted(name for path in paths if (name := path.relative_to(ROOT).as_posix()) != HERE)


def awkward(name: str) -> Iterator[str]:
    """Phrases to replace in the lines of a file."""
    for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
        for found in AWKWARD.finditer(line):
            yield f"{name}:{number} {found.group()!r}"


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


def test_the_package_and_its_guides_are_plain_english() -> None:
    documents = ["README.md", "CHANGELOG.md", ".github/CONTRIBUTING.md"]
    names = [name for name in files() if name.startswith("jmsaio/") and name.endswith((".py", ".md", ".lark"))]
    assert [each for name in names + documents for each in awkward(name)] == []


@pytest.mark.parametrize(
    "text",
    [
        "all but for one",
        "reading goes on",
        "made anew",
        "it comes again",
        "32 bytes at most",
        '"""The same, packed.',
        "it may be stored",
        "the caller is told",
        "a consumer gets nothing",
        "before the answer came",
        "it lies behind",
    ],
)
def test_each_awkward_phrase_is_found(text: str) -> None:
    assert AWKWARD.search(text) is not None


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
