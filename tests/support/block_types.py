"""Type-checks the Python blocks of the README and the guides: each is a module, and mypy sees all of them at once."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support.documents import ROOT, Block

#: Seconds for mypy, which reads the whole package when it has no cache yet.
TIME_LIMIT = 270
_HEAD = "from __future__ import annotations\n\n\nasync def main() -> None:\n"
_SHIFT = _HEAD.count("\n")
_ERROR = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: (?P<what>.*)$")


def awaits_at_the_top(source: str) -> bool:
    """Whether the block is pasted into a coroutine rather than run as it stands."""
    try:
        compile(source, "block", "exec", dont_inherit=True)
    except SyntaxError:
        return True
    return False


def module(source: str) -> tuple[str, int]:
    """The block as a module, and by how many lines that moves it down."""
    if not awaits_at_the_top(source):
        return source, 0
    compile(source, "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return _HEAD + textwrap.indent(source, "    "), _SHIFT


def type_errors(blocks: Iterable[Block], folder: Path) -> Mapping[Block, list[str]]:
    """What mypy --strict says about each block.

    Args:
        blocks: Python blocks.
        folder: an empty folder for the modules.

    Raises:
        RuntimeError: mypy itself failed, or complains about something else than the blocks.
    """
    blocks = list(blocks)
    shifts = []
    for number, block in enumerate(blocks):
        text, shift = module(block.text)
        shifts.append(shift)
        (folder / f"block_{number}.py").write_text(text, encoding="utf-8")
    files = [f"block_{number}.py" for number in range(len(blocks))]
    answer = _mypy(folder, files)
    errors: dict[Block, list[str]] = {block: [] for block in blocks}
    strangers = []
    for line in answer.stdout.splitlines():
        found = _ERROR.match(line)
        if found is None:
            continue
        if found["file"] not in files:
            strangers.append(line)
            continue
        number = files.index(found["file"])
        errors[blocks[number]].append(f"line {int(found['line']) - shifts[number]} of the block: {found['what']}")
    if strangers or answer.returncode not in (0, 1):
        raise RuntimeError("\n".join(["mypy failed", *strangers, answer.stdout[-2000:], answer.stderr[-2000:]]))
    return errors


def _mypy(folder: Path, files: list[str]) -> subprocess.CompletedProcess[str]:
    """Run mypy in ``folder`` with the project's settings and cache, on the package beside the tests."""
    settings = ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *settings, "--no-error-summary", "--no-pretty", *files],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
