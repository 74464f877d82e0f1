"""One mutant after the other in a temporary copy of the tree, and the tests around it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path

import attrs

#: Seconds for the tests of one mutant on top of three times what they take without it.
GRACE = 30
#: How many tests may fail without a mutant: a crowded machine may fail one that has no fault.
FAILING = 5
#: Seconds after which a single test is stuck.
STUCK = 60
_IGNORED = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "build", "dist")


class TrialError(Exception):
    """The tests can't judge mutants: they fail without one, or can't run at all."""


class Needs(Enum):
    """What tests need to run: the value chooses them by their marks."""

    PYTHON = "not broker and not java"
    BROKER = "broker and not java and not own_broker"


class Verdict(Enum):
    """What the tests said."""

    PASSED = "passed"
    FAILED = "failed"
    STUCK = "stuck"


@attrs.define
class Copy:
    """A copy of the tree that may be changed.

    Attributes:
        root: its folder.
        broker: environment variables that name the broker for tests that need one.
        seconds: how long the tests of each file take, by what they need and its path; filled by `measure`.
        left_out: tests that judge nothing, and why: they failed without a mutant, or take too long.
    """

    root: Path
    broker: Mapping[str, str] = attrs.field(factory=dict)
    seconds: dict[tuple[Needs, Path], float] = attrs.field(factory=dict)
    left_out: dict[str, str] = attrs.field(factory=dict)
    _changes: int = 0

    @classmethod
    def of(cls, tree: Path, folder: Path, broker: Mapping[str, str] | None = None) -> Copy:
        """Copy what the tests need.

        Args:
            tree: the folder with ``jmsaio`` and ``tests``.
            folder: the copy, which must not exist yet.
            broker: environment variables that name the broker for tests that need one; default: there is none.
        """
        shutil.copytree(tree, folder, ignore=_IGNORED, symlinks=True)
        for name in (".github", ".ci", ".pre-commit-config.yaml", ".mkdocs"):  # tests read them
            if (tree / name).is_dir():
                shutil.copytree(tree / name, folder / name)
            elif (tree / name).exists():
                shutil.copy2(tree / name, folder / name)
        copy = cls(folder, {} if broker is None else broker)
        copy.check_imports()
        return copy

    def twin(self) -> Copy:
        """Copy the copy, with what was measured in it: another mutant may be tried there at the same time."""
        folder = tempfile.mkdtemp(prefix=f"{self.root.name}-", dir=self.root.parent)
        shutil.copytree(self.root, folder, symlinks=True, dirs_exist_ok=True)
        twin = attrs.evolve(self, root=Path(folder))
        twin.check_imports()
        return twin

    def check_imports(self) -> None:
        """The tests must see this copy, not the installed package."""
        command = [sys.executable, "-c", "import jmsaio; print(jmsaio.__file__)"]
        found = subprocess.run(
            command, cwd=self.root, env=self._environment(), capture_output=True, text=True, timeout=STUCK, check=False
        )
        if not found.stdout.startswith(str(self.root)):
            raise TrialError(f"tests in {self.root} would import {found.stdout or found.stderr}")

    def write(self, path: Path, text: str) -> None:
        """Change a file so that no compiled form of an earlier text is taken for it."""
        self._changes += 1
        target = self.root / path
        target.write_text(text, encoding="utf-8")
        changed = target.stat().st_mtime + 10 * self._changes  # compiled files compare whole seconds and sizes
        os.utime(target, (changed, changed))

    def measure(self, tests: Sequence[Path], needs: Needs, slow: float, processes: int = 1) -> None:
        """Run tests without a mutant: note how long they take, and which ones can't judge a mutant.

        Args:
            tests: files of tests.
            needs: which of their tests.
            slow: seconds after which a test is left out.
            processes: how many run them at once: as many as mutants are tried at once.

        Raises:
            TrialError: more than a few fail, so there is nothing to learn from the rest.
        """
        report = self.root / "report.xml"
        parallel = f"-n{processes}" if processes > 1 else "-n0"
        status, output = self._pytest([*map(str, tests), f"--junit-xml={report}", parallel], needs, 3600)
        if status not in (0, 1, 5):
            raise TrialError(f"the tests can't run without a mutant:\n{output}")
        self.seconds.update({(needs, path): 0.0 for path in tests})
        failures = 0
        by_name = {".".join(path.with_suffix("").parts): path for path in tests}
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            path = by_name.get(case.get("classname", ""))
            if path is None:
                continue  # in a class
            seconds, failed = float(case.get("time", 0)), any(each.tag in ("failure", "error") for each in case)
            failures += failed
            if failed or seconds > slow:
                self.left_out[f"{path}::{case.get('name')}"] = (
                    "failed without a mutant" if failed else f"{seconds:.0f} s"
                )
            else:
                self.seconds[needs, path] += seconds
        if failures > FAILING:
            raise TrialError(f"too many tests fail without a mutant:\n{output}")

    def run(self, tests: Sequence[Path], needs: Needs) -> Verdict:
        """Run tests until one fails."""
        bound = GRACE + 3 * sum(self.seconds.get((needs, path), 0.0) for path in tests)
        known = [f"--deselect={name}" for name in self.left_out]
        status, output = self._pytest([*map(str, tests), "-n0", "-x", *known], needs, bound)
        if status is None:
            return Verdict.STUCK
        if status in (0, 5):  # 5: none of them is chosen
            return Verdict.PASSED
        if status in (1, 2):  # 2: the module can't even be imported
            return Verdict.FAILED
        raise TrialError(f"pytest ended with status {status}:\n{output}")

    def _pytest(self, arguments: Sequence[str], needs: Needs, bound: float) -> tuple[int | None, str]:
        """The exit status, None when time was up, and the end of what pytest printed."""
        options = ["-q", "-m", needs.value, "--tb=short", "--no-header", f"--timeout={STUCK}"]
        log = self.root / "pytest.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *options, *arguments],
                cwd=self.root, env=self._environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
            try:
                status: int | None = process.wait(bound)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)  # its children, too
                    process.wait()
        return status, log.read_text(encoding="utf-8", errors="replace")[-4000:]

    def _environment(self) -> dict[str, str]:
        """Without what is meant for the processes of this run, such as to measure their coverage."""
        known = ("JMSAIO_", "COVERAGE_", "CI")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(known)}
        return {**kept, **self.broker, "PYTHONPATH": str(self.root)}
