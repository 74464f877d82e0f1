"""Each package has a floor for its coverage; the check names what is below it, and by how much."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.support.documents import ROOT
from tests.support.scripts import load

floors = load(".ci/floors.py")


def report(**covered: tuple[int, int]) -> dict[str, object]:
    """What coverage writes: covered lines and statements of each file, here with ``__`` for a slash."""
    return {
        "files": {
            f"{name.replace('__', '/')}.py": {"summary": {"covered_lines": lines, "num_statements": statements}}
            for name, (lines, statements) in covered.items()
        }
    }


def test_a_file_counts_for_its_innermost_package() -> None:
    measured = report(jmsaio__errors=(5, 10), jmsaio__codec__a=(9, 10), jmsaio__codec__deep__b=(10, 30))
    packages = {"jmsaio": 0, "jmsaio/codec": 0}
    assert floors.percentages(measured, packages) == {"jmsaio": 50.0, "jmsaio/codec": 47.5}


def test_a_package_whose_name_begins_alike_is_another_one() -> None:
    measured = report(jmsaio__code__a=(1, 1), jmsaio__codec__a=(0, 1))
    assert floors.percentages(measured, {"jmsaio/code": 0, "jmsaio/codec": 0}) == {
        "jmsaio/code": 100.0,
        "jmsaio/codec": 0.0,
    }


def test_a_file_outside_every_package_is_refused() -> None:
    with pytest.raises(ValueError, match=r"other/a\.py lies under no path"):
        floors.percentages(report(other__a=(1, 1)), {"jmsaio": 0})


def test_the_complaint_names_package_and_missing_percent() -> None:
    assert floors.complaints(
        {"jmsaio/codec": 90.0, "jmsaio/model": 95.0}, {"jmsaio/codec": 97, "jmsaio/model": 95}
    ) == ["jmsaio/codec: 90.0 %, 7.0 below its floor of 97 %"]


def test_a_path_without_measured_files_is_a_complaint() -> None:
    assert floors.complaints({}, {"jmsaio/gone": 90}) == [
        "jmsaio/gone: no file was measured; correct its path in [tool.jmsaio.coverage]"
    ]


@pytest.mark.parametrize(("lines", "status"), [(9, 0), (7, 1)])
def test_the_exit_status_tells_the_outcome(
    lines: int, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "coverage.json").write_text(json.dumps(report(jmsaio__a=(lines, 10))))
    (tmp_path / "pyproject.toml").write_text("[tool.jmsaio.coverage]\njmsaio = 80\n")
    assert floors.main([str(tmp_path / "coverage.json"), str(tmp_path / "pyproject.toml")]) == status
    assert ("TOO LOW  jmsaio: 70.0 %, 10.0 below" in capsys.readouterr().out) == bool(status)


def test_each_package_has_a_floor() -> None:
    """Packages directly below jmsaio, and the transports, which have little in common."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["jmsaio"]["coverage"]
    folders = [*(ROOT / "jmsaio").iterdir(), *(ROOT / "jmsaio" / "transport").iterdir()]
    packages = {"jmsaio", *(str(folder.relative_to(ROOT)) for folder in folders if (folder / "__init__.py").is_file())}
    assert set(table) == packages
