"""Each module has tests at the same place: ``jmsaio/a/b.py`` in ``tests/a/test_b.py``; each test has a telling name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: One word or two name a subject and promise nothing of it, and a code such as ``t15`` says nothing.
EMPTY = re.compile(r"test_?(?:[a-z0-9]+(?:_[a-z0-9]+)?)?|test_[a-z]{1,2}\d+_\w*")


def mirror(path: Path) -> Path:
    """Where the tests of a module lie; a leading underscore is left out."""
    return Path("tests", *path.parts[1:-1], f"test_{path.stem.lstrip('_')}.py")


def test_each_module_has_its_tests() -> None:
    """Packages' ``__init__`` and ``__main__`` are tested through what they offer."""
    modules = [path.relative_to(ROOT) for path in sorted((ROOT / "jmsaio").rglob("*.py"))]
    wanted = {str(path): str(mirror(path)) for path in modules if not path.stem.startswith("__")}
    assert {path: test for path, test in wanted.items() if not (ROOT / test).exists()} == {}


def test_a_module_is_mirrored_without_its_underscore() -> None:
    assert mirror(Path("jmsaio/a/_b.py")) == Path("tests/a/test_b.py")
    assert mirror(Path("jmsaio/errors.py")) == Path("tests/test_errors.py")


def names_of(path: Path) -> Iterator[str]:
    """The names of the tests of a file, those in classes, too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield node.name


def test_each_name_promises_something() -> None:
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    assert len(paths) > 100
    found = [f"{path.relative_to(ROOT)}: {name}" for path in paths for name in names_of(path) if EMPTY.fullmatch(name)]
    assert found == []


@pytest.mark.parametrize("words", ["", "_after", "_an_outage", "_t15", "_t15_a_drop", "_r4_flush"])
def test_an_empty_name_is_found(words: str) -> None:
    assert EMPTY.fullmatch(f"test{words}") is not None


@pytest.mark.parametrize("name", ["test_a_drop_is_reported", "test_size_counts_utf8", "test_utf8_is_kept"])
def test_a_promise_is_free(name: str) -> None:
    assert EMPTY.fullmatch(name) is None
