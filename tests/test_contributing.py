"""What contributors and their tools read is valid and names what exists."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
HOSTING = ROOT / ".github"
RELEASING = ROOT / "jmsaio" / "guide" / "releasing.md"
#: Pythons without pulsar-client: the package is tried on them, and not declared for them.
UNDECLARED = ["3.15"]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("vendor.github-workflows", "workflows/ci.yml"),
        ("vendor.github-workflows", "workflows/mutants.yml"),
        ("vendor.github-workflows", "workflows/release.yml"),
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
    assert {path.name for path in (HOSTING / "workflows").iterdir()} == {"ci.yml", "mutants.yml", "release.yml"}


def test_the_workflow_runs_each_step_that_everybody_can_run() -> None:
    workflow = yaml.safe_load((HOSTING / "workflows" / "ci.yml").read_text())
    [job] = workflow["jobs"].values()
    run, *others = [step for step in job["steps"] if "run" in step]
    assert run["run"] == ".ci/run ${{ matrix.step }}"
    assert [(step["if"], step["run"].split(" && ")[1]) for step in others] == [
        ("matrix.step == 'docs'", "python .ci/screenshots.py build/site build/screenshots")  # it needs a browser
    ]
    steps = {step.split()[0] for step in job["strategy"]["matrix"]["step"]}
    assert steps == {path.name for path in (ROOT / ".ci" / "steps").iterdir()}
    whole = re.findall(r"^  step [0-9]+ ([a-z-]+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert set(whole) == steps


def test_the_scheduled_workflow_hunts_a_sample_of_mutants() -> None:
    """It runs the command that the contributors' guide names; YAML reads the key ``on`` as true."""
    workflow = yaml.safe_load((HOSTING / "workflows" / "mutants.yml").read_text())
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert "schedule" in workflow[True]
    assert commands[-1] == "python -m tests.mutants --sample 100 --broker"
    assert "python -m tests.mutants" in (HOSTING / "CONTRIBUTING.md").read_text()


def test_a_tag_is_released_after_a_check_on_each_python() -> None:
    workflow = yaml.safe_load((HOSTING / "workflows" / "release.yml").read_text())
    jobs = workflow["jobs"]
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"])) + UNDECLARED
    assert jobs["check"]["strategy"]["matrix"] == {"python": pythons, "file": ["whl", "tar.gz"]}
    fast, packages = ((ROOT / ".ci" / "steps" / name).read_text() for name in ("fast", "packages"))
    assert 'jmsaio" demo' in packages and all(f"find-python {version})" in packages for version in UNDECLARED)
    assert 'jmsaio" demo' in fast, "it runs on each of the others"
    assert [step["run"] for step in jobs["check"]["steps"] if "run" in step] == [
        "pip install dist/*.${{ matrix.file }}",
        "jmsaio demo",
    ]
    assert jobs["check"]["needs"] == "build"
    assert jobs["attach"]["needs"] == jobs["publish"]["needs"] == "check"


def test_commit_hooks_use_the_tools_of_the_environment() -> None:
    configuration = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repository in configuration["repos"] for hook in repository["hooks"]]
    assert {hook["language"] for hook in hooks} == {"system"}
    assert [hook["entry"].split()[0] for hook in hooks] == ["ruff", "ruff", "mypy", "pytest"]
    tests = [word for hook in hooks for word in hook["entry"].split() if word.startswith("tests/")]
    assert tests
    assert [test for test in tests if not (ROOT / test).is_file()] == []


@pytest.mark.parametrize("guide", [HOSTING / "CONTRIBUTING.md", RELEASING], ids=lambda path: path.name)
def test_paths_in_the_guides_for_contributors_exist(guide: Path) -> None:
    named = re.findall(r"`((?:(?:jmsaio|tests|\.ci)/[\w./-]+)|[\w-]+\.(?:md|toml))`", guide.read_text())
    assert len(named) > 1
    assert [path for path in named if not (ROOT / path).exists()] == []


def scripts() -> dict[str, list[list[str]]]:
    """The words of each command of each hatch script, by its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    written = project["tool"]["hatch"]["envs"]["default"]["scripts"]
    lines = {name: [lines] if isinstance(lines, str) else lines for name, lines in written.items()}
    return {name: [shlex.split(line.replace("{args}", "")) for line in of] for name, of in lines.items()}


def tool(command: list[str]) -> str:
    """The program that a command starts, behind ``env NAME=VALUE``."""
    return next(word for word in command if word != "env" and "=" not in word)


def test_the_contributors_guide_names_every_script() -> None:
    text = (HOSTING / "CONTRIBUTING.md").read_text()
    assert set(re.findall(r"hatch run (\w+)", text)) == set(scripts()) == {"fast", "check", "full", "docs"}


def test_scripts_start_what_the_project_brings() -> None:
    """Each program is a file of the project or comes with the extras that hatch installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    optional = project["project"]["optional-dependencies"]
    extras = [*project["tool"]["hatch"]["envs"]["default"]["features"]]
    extras += [name for of in extras for line in optional[of] for name in re.findall(r"jmsaio\[(.+)\]", line)]
    required = {re.split(r"[\[<>=~ ]", line)[0] for of in extras for line in optional[of]}
    started = {tool(command) for commands in scripts().values() for command in commands}
    assert {name for name in started - required if not (ROOT / name).is_file()} == set()


def required(extras: list[str]) -> set[str]:
    """The distributions that the project and its extras name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    names = {re.split(r"[\[<>=~ ]", line)[0].lower() for line in lines}
    nested = [extra for line in lines for each in re.findall(r"jmsaio\[(.+)\]", line) for extra in each.split(",")]
    return names | (required(nested) if nested else set())


@cache  # parsing every file takes seconds
def imported() -> frozenset[str]:
    """The top-level names that the package and its tests import, but their own and the standard library's."""
    names: set[str] = set()
    for path in (*ROOT.glob("jmsaio/**/*.py"), *ROOT.glob("tests/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition(".")[0])
    return frozenset(names - sys.stdlib_module_names - {"jmsaio", "tests", "benchmarks", "_typeshed"})


@pytest.mark.slow
def test_what_contributors_install_has_all_that_mypy_and_the_tests_import() -> None:
    """The install lines of the guide and of hatch; mypy reports each import that it can't find."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    [written] = re.findall(r"pip install -e '\.\[(.+)\]'", (HOSTING / "CONTRIBUTING.md").read_text())
    owners = importlib.metadata.packages_distributions()
    ignored = {each.partition(".")[0] for each in project["tool"]["mypy"]["overrides"][0]["module"]}
    for extras in (written.split(","), project["tool"]["hatch"]["envs"]["default"]["features"]):
        names = required(extras) | {"certifi"}  # comes with httpx
        of = {name: {each.lower() for each in owners.get(name, [name])} for name in imported() - ignored}
        missing = {name for name, distributions in of.items() if not names & distributions}
        assert missing == set(), f"pip install '.[{','.join(extras)}]' does not bring them"


def test_paths_in_scripts_exist() -> None:
    words = [word for commands in scripts().values() for command in commands for word in command]
    paths = [word for word in words if "/" in word]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_continuous_integration_runs_what_the_scripts_run() -> None:
    steps = "\n".join(path.read_text() for path in (ROOT / ".ci" / "steps").iterdir())
    written = [shlex.join(command).removeprefix("env ") for name in ("check", "docs") for command in scripts()[name]]
    assert [command for command in written if f"\n{command}\n" not in steps] == []


def test_classifiers_name_the_pythons_that_continuous_integration_runs_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert project["requires-python"] == f">={classified[0]}"
    workflow = yaml.safe_load((HOSTING / "workflows" / "ci.yml").read_text())
    [job] = workflow["jobs"].values()
    assert [step for step in job["strategy"]["matrix"]["step"] if step.startswith("fast")] == [
        f"fast {version}" for version in classified
    ]
    [provided] = [step["with"]["python-version"].split() for step in job["steps"] if "python" in step.get("uses", "")]
    assert sorted(provided) == classified + UNDECLARED


def test_the_release_guide_explains_each_step_of_continuous_integration() -> None:
    steps = {path.name for path in (ROOT / ".ci" / "steps").iterdir()}
    rows = re.findall(r"^\| ([^|]+) \|", RELEASING.read_text().partition("| step |")[2], re.MULTILINE)
    assert len(steps) > 5
    assert sorted(rows) == sorted(steps)


def test_the_version_is_where_the_release_guide_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert f"`{project['tool']['hatch']['version']['path']}` holds the version" in RELEASING.read_text()


def test_changelog_headings_have_the_form_that_the_release_guide_gives() -> None:
    unreleased, *released = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert unreleased == "[Unreleased]"
    assert [heading for heading in released if not re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading)] == []
