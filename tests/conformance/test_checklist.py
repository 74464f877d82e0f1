"""Tests and exclusions together are the checklist: each line once."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conformance.exclusions import EXCLUDED, Reason
from tests.conformance.kit import checklist

FOLDER = Path(__file__).parent


def keys_of(marks: Any) -> Iterator[str]:
    """The lines named by marks, and by those of the rows of a table."""
    for given in list(marks) if isinstance(marks, list | tuple) else [marks]:
        mark: Any = getattr(given, "mark", given)
        if mark.name == "tck":
            yield from mark.args
        if mark.name == "parametrize":
            for values in mark.args[1]:
                yield from keys_of(getattr(values, "marks", ()))


def lines_kept(module: ModuleType, only: str = "") -> Iterator[str]:
    """The lines that the tests of a module name, also in the rows of their tables; those with the mark ``only``."""
    for name, test in vars(module).items():
        marks = getattr(test, "pytestmark", [])
        if name.startswith("test_") and (not only or only in [mark.name for mark in marks]):
            yield from keys_of(marks)


def all_kept(only: str = "") -> Counter[str]:
    names = [path.stem for path in sorted(FOLDER.glob("test_*.py")) if path.stem != "test_checklist"]
    modules = [importlib.import_module(f"tests.conformance.{name}") for name in names]
    return Counter(key for module in modules for key in lines_kept(module, only))


def test_the_list_is_whole() -> None:
    keys = [line.key for line in checklist()]
    assert len(keys) == len(set(keys)) == 903
    assert len({line.group for line in checklist()}) == 17


def test_each_line_once() -> None:
    count = all_kept() + Counter(list(EXCLUDED))
    keys = {line.key for line in checklist()}
    assert sorted(key for key in count if key not in keys) == []
    assert sorted(key for key, times in count.items() if times > 1) == []
    assert sorted(keys - set(count)) == []


def test_each_exclusion_says_why() -> None:
    kept = all_kept()
    for key, (reason, what) in EXCLUDED.items():
        assert what or reason in (Reason.JAVA_SERIALISATION, Reason.JAVA_CLASS_LOADING), key
        if reason is Reason.RUNTIME_TWIN:
            assert kept[what] == 1, (key, what)


@pytest.mark.parametrize("line", ["core/none/NoneIT.nothing"])
def test_marks_of_rows_are_seen(line: str) -> None:
    row = pytest.param(1, marks=pytest.mark.tck(line))
    assert list(keys_of([pytest.mark.parametrize("n", [row])])) == [line]


def test_the_guide_tells_the_score() -> None:
    guide = (FOLDER.parents[1] / "jmsaio" / "guide" / "compatibility.md").read_text()
    apply, native = 903 - len(EXCLUDED), len(all_kept("not_emulated"))
    assert f"{apply} apply; {len(EXCLUDED)} are about" in guide
    assert f"keep all {apply}; {native} of them take back" in guide
