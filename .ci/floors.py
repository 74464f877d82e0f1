"""Compares the coverage of each package with its floor, the table ``[tool.jmsaio.coverage]`` of pyproject.toml.

    python .ci/floors.py coverage.json [pyproject.toml]

A file counts for the longest path of the table that it lies under. The exit status is 1 if a package is below its
floor, or if the table names a path that has no measured file.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def package_of(path: str, packages: Mapping[str, float]) -> str | None:
    """Return the longest of the packages that a file lies under; None if there is none."""
    return max((package for package in packages if path.startswith(f"{package}/")), key=len, default=None)


def percentages(report: Mapping[str, object], packages: Mapping[str, float]) -> dict[str, float]:
    """Return the covered statements of each package, in percent; packages without a statement are left out.

    Args:
        report: what ``coverage json`` writes.
        packages: the paths of the packages below the project, with a slash between their parts.

    Raises:
        ValueError: a file lies under none of the packages.
    """
    files = report["files"]
    assert isinstance(files, dict)
    counts = {package: [0, 0] for package in packages}
    for path, measured in files.items():
        package = package_of(path, packages)
        if package is None:
            raise ValueError(f"{path} lies under no path of [tool.jmsaio.coverage]")
        counts[package][0] += measured["summary"]["covered_lines"]
        counts[package][1] += measured["summary"]["num_statements"]
    return {package: 100 * covered / total for package, (covered, total) in counts.items() if total}


def complaints(measured: Mapping[str, float], floors: Mapping[str, float]) -> list[str]:
    """One line for each package that is below its floor, or that was not measured."""
    lines = []
    for package, floor in floors.items():
        if package not in measured:
            lines.append(f"{package}: no file was measured; correct its path in [tool.jmsaio.coverage]")
        elif measured[package] < floor:
            missing = floor - measured[package]
            lines.append(f"{package}: {measured[package]:.1f} %, {missing:.1f} below its floor of {floor} %")
    return lines


def main(arguments: list[str]) -> int:
    """Print the table and what is below its floor; the exit status."""
    report = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    project = tomllib.loads(Path(arguments[1] if len(arguments) > 1 else PROJECT).read_text(encoding="utf-8"))
    floors = project["tool"]["jmsaio"]["coverage"]
    measured = percentages(report, floors)
    for package, percent in sorted(measured.items()):
        print(f"{package:26} {percent:5.1f} %  floor {floors[package]} %")
    found = complaints(measured, floors)
    print("\n".join(f"TOO LOW  {line}" for line in found) or "every package is above its floor")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
