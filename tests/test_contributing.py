"""What contributors and their tools read is valid and names what exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
HOSTING = ROOT / ".github"


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("vendor.github-workflows", "workflows/ci.yml"),
        ("vendor.github-issue-forms", "ISSUE_TEMPLATE/bug.yml"),
        ("vendor.github-issue-forms", "ISSUE_TEMPLATE/feature.yml"),
        ("vendor.github-issue-config", "ISSUE_TEMPLATE/config.yml"),
    ],
)
def test_hosting_files_keep_their_schema(schema: str, path: str) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(HOSTING / path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_hosting_form_is_checked() -> None:
    forms = {path.name for path in (HOSTING / "ISSUE_TEMPLATE").iterdir()}
    assert forms == {"bug.yml", "feature.yml", "config.yml"}
    assert [path.name for path in (HOSTING / "workflows").iterdir()] == ["ci.yml"]


def test_the_workflow_runs_what_everybody_can_run() -> None:
    workflow = yaml.safe_load((HOSTING / "workflows" / "ci.yml").read_text())
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert commands == [".ci/run"]


def test_commit_hooks_use_the_tools_of_the_environment() -> None:
    configuration = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repository in configuration["repos"] for hook in repository["hooks"]]
    assert {hook["language"] for hook in hooks} == {"system"}
    assert [hook["entry"].split()[0] for hook in hooks] == ["ruff", "ruff", "mypy", "pytest"]
    tests = [word for hook in hooks for word in hook["entry"].split() if word.startswith("tests/")]
    assert tests
    assert [test for test in tests if not (ROOT / test).is_file()] == []


def test_paths_in_the_contributors_guide_exist() -> None:
    named = re.findall(r"`((?:jmsaio|tests|\.ci)/[\w./-]+)`", (HOSTING / "CONTRIBUTING.md").read_text())
    assert len(named) > 1
    assert [path for path in named if not (ROOT / path).exists()] == []
