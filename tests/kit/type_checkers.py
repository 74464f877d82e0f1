"""What mypy and pyright say about Python as users write it: each checker runs once in a process, over all sources.

A test module declares its sources when it is imported; the first question has them all checked.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).parents[2]
#: Seconds for a checker, which reads the whole package when it has no cache yet.
TIME_LIMIT = 270
#: Marks of tests that ask: all on one process of the run, with time for both checkers.
MARKS = [pytest.mark.slow, pytest.mark.xdist_group("type checkers"), pytest.mark.timeout(2 * TIME_LIMIT + 30)]
_HEAD = "from __future__ import annotations\n\n\nasync def main() -> None:\n"

Errors = Mapping[int, list[str]]
_declared: dict[str, None] = {}
_answers: dict[str, dict[str, Errors]] = {}


@attrs.frozen
class _Complaint:
    """An error that a checker reports.

    Attributes:
        file: the name of the file, without its folder if it is a source's.
        line: the line, from 1.
        text: the message, and the checker's name of the rule in brackets.
    """

    file: str
    line: int
    text: str


def declare(*sources: str) -> None:
    """Have the checkers see these sources when they run."""
    _declared.update(dict.fromkeys(sources))


def type_errors(checker: str, source: str) -> Errors:
    """What a checker says about a source: its errors by line, none if all is well.

    Args:
        checker: one of `CHECKERS`.
        source: a module, or lines with ``await`` as they stand in a coroutine.

    Raises:
        RuntimeError: the checker itself failed, or complains about something else than the sources.
    """
    declare(source)
    answers = _answers.setdefault(checker, {})
    if source not in answers:
        answers.update(_check(CHECKERS[checker], [each for each in _declared if each not in answers]))
    return answers[source]


def module(source: str) -> tuple[str, int]:
    """A source as a module, and by how many lines that moves it down."""
    if not _awaits_at_the_top(source):
        return source, 0
    compile(source, "source", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return _HEAD + textwrap.indent(source, "    "), _HEAD.count("\n")


def _awaits_at_the_top(source: str) -> bool:
    """Whether the source stands in a coroutine rather than in a module."""
    try:
        compile(source, "source", "exec", dont_inherit=True)
    except SyntaxError:
        return True
    return False


def _check(run: Callable[[Path], Iterable[_Complaint]], sources: list[str]) -> dict[str, Errors]:
    """Have a checker read these sources, each as a module of its own."""
    errors: dict[str, dict[int, list[str]]] = {source: {} for source in sources}
    modules = {f"source_{number}.py": (source, *module(source)) for number, source in enumerate(sources)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, (_, text, _) in modules.items():
            (folder / file).write_text(text, encoding="utf-8")
        complaints = list(run(folder))
    strangers = [complaint for complaint in complaints if complaint.file not in modules]
    if strangers:
        raise RuntimeError(f"errors outside of the sources: {strangers}")
    for complaint in complaints:
        source, _, shift = modules[complaint.file]
        errors[source].setdefault(complaint.line - shift, []).append(complaint.text)
    return dict(errors)


def _mypy(folder: Path) -> Iterable[_Complaint]:
    """Run ``mypy --strict`` with the project's settings and cache."""
    settings = ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    output = _run(folder, "mypy", *settings, "--output", "json", *(path.name for path in folder.iterdir()))
    for line in filter(None, output.splitlines()):  # mypy leaves a line empty where pyspark is imported
        found = json.loads(line)
        if found["severity"] == "error":
            yield _Complaint(found["file"], found["line"], f"{found['message']} [{found['code']}]")


def _pyright(folder: Path) -> Iterable[_Complaint]:
    """Run pyright as it is without settings, except for the Python version and where the package lies."""
    settings = {"include": ["."], "extraPaths": [str(ROOT)], "pythonVersion": "3.11", "typeCheckingMode": "standard"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    report = json.loads(_run(folder, "basedpyright", "--outputjson", "--pythonpath", sys.executable))
    for found in report["generalDiagnostics"]:
        if found["severity"] == "error":
            yield _complaint_of_pyright(folder, found)


def _complaint_of_pyright(folder: Path, found: Mapping[str, Any]) -> _Complaint:
    path = Path(found["file"])
    name = path.name if path.parent == folder.resolve() else str(path)
    return _Complaint(name, found["range"]["start"]["line"] + 1, f"{found['message']} [{found.get('rule', 'syntax')}]")


def _run(folder: Path, *command: str) -> str:
    """The output of a checker that came to its end, with or without errors in what it read."""
    answer = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    if answer.returncode not in (0, 1):
        raise RuntimeError("\n".join([f"{command[0]} failed", answer.stdout[-2000:], answer.stderr[-2000:]]))
    return answer.stdout


#: Each checker by its name.
CHECKERS: Mapping[str, Callable[[Path], Iterable[_Complaint]]] = {"mypy": _mypy, "pyright": _pyright}
