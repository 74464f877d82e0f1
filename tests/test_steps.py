"""The steps of continuous integration: which failed tests are repeated, and which commits are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STEPS = Path(__file__).parents[1] / ".ci" / "steps"
#: Tests that fail in their first run only.
FLAKY = """
import pathlib, pytest

def once(name):
    if not (seen := pathlib.Path(name)).exists():
        seen.touch()
        raise AssertionError("the first run")

@pytest.mark.real_time
def test_timing():
    once("timing")

@pytest.mark.broker
def test_answer():
    once("answer")

def test_other():
    {other}
"""


def run(step: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a step in a folder, with this interpreter's tools first on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COVERAGE", "GIT_"))}
    environment = kept | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        [STEPS / step, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize(("other", "status"), [("pass", 0), ("once('other')", 1)])
def test_failed_tests_are_repeated_only_if_all_of_them_depend_on_real_time(
    tmp_path: Path, other: str, status: int
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_flaky.py").write_text(FLAKY.format(other=other))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = real_time\n    broker\naddopts = -ra\n")
    done = run("tests", tmp_path, "tests")
    assert done.returncode == status, done.stdout + done.stderr
    summary = done.stdout.splitlines()[-1]
    if status == 0:
        assert summary.startswith("1 passed in ")
        assert "; passed when repeated: " in summary
        assert all(f"tests/test_flaky.py::{name}" in summary for name in ("test_timing", "test_answer"))
    else:
        assert "3 failed" in summary and "passed when repeated" not in done.stdout


def commit(folder: Path, subject: str, date: str) -> None:
    """Make an empty commit of that date, in a repository that is made for the first one."""
    dated = os.environ | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    name = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org"]
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True, timeout=20)
    made = ["git", *name, "commit", "-q", "--allow-empty", "-m", subject]
    subprocess.run(made, cwd=folder, env=dated, check=True, timeout=20)


def test_a_subject_of_more_than_72_characters_is_refused_unless_it_is_old(tmp_path: Path) -> None:
    commit(tmp_path, "x" * 100, "2026-11-20T12:00:00Z")
    commit(tmp_path, "y" * 72, "2026-11-25T12:00:00Z")
    assert run("commits", tmp_path).returncode == 0
    commit(tmp_path, "z" * 73, "2026-11-26T12:00:00Z")
    refused = run("commits", tmp_path)
    assert refused.returncode == 1
    assert "z" * 73 in refused.stdout and "yy" not in refused.stdout


def test_a_copy_without_history_is_no_failure(tmp_path: Path) -> None:
    assert run("commits", tmp_path).returncode == 0
