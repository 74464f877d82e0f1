"""An environment with the packages of some extras, made of links to those that are installed, lacks all others."""

from __future__ import annotations

import subprocess
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.support.scripts import load

subset = load(".ci/subset.py")


def test_an_extra_brings_what_it_and_its_own_extras_require_and_nothing_else() -> None:
    found = set(subset.required(["jmsaio[fast]"]))
    assert {"jmsaio", "httpx", "httpcore", "pytest", "pytest-xdist", "execnet"} <= found
    assert found < set(subset.required(["jmsaio[test]"]))
    assert {"mypy", "pyspark", "pyarrow"}.isdisjoint(found)


def test_requirements_of_other_platforms_and_extras_are_left_out() -> None:
    asked = {"jmsaio", *subset.required(["jmsaio"])}
    assert "colorama" not in asked
    assert "pytest" not in asked


def test_the_environment_imports_what_it_links_and_misses_the_rest(tmp_path: Path) -> None:
    subset.main([str(tmp_path / "made"), "fast"])
    names = ("pytest", "attr", "mypy", "pyspark")
    code = f"import importlib.util as u; print([n for n in {names} if u.find_spec(n) is None])"
    made = tmp_path / "made" / "bin" / "python"
    done = subprocess.run([made, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)
    assert done.stdout == "['mypy', 'pyspark']\n"


@pytest.mark.parametrize(("name", "there"), [("mypy", "mypyc"), ("attrs", "attr"), ("pytest", "_pytest")])
def test_every_folder_of_a_distribution_counts(name: str, there: str) -> None:
    paths = subset.top_level(distribution(name))
    assert there in {path.name for path in paths}
    assert all(path.exists() for path in paths)
