"""Ordinary code type-checks as written; typos and wrong arguments are found at their lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

from tests.support.documents import ROOT

pytestmark = [pytest.mark.xdist_group("documentation types"), pytest.mark.timeout(300)]

CASES = sorted((Path(__file__).parent / "cases").glob("*.py"))
_MARK = re.compile(r"# error: \[([a-z-]+)\]$")
_ERROR = re.compile(r"^[^:]+:(\d+): error: .*\[([a-z-]+)\]$")


def expected(case: Path) -> set[tuple[int, str]]:
    """The line and kind of each error that a case marks."""
    lines = enumerate(case.read_text(encoding="utf-8").splitlines(), start=1)
    return {(number, found[1]) for number, line in lines if (found := _MARK.search(line)) is not None}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_mypy_finds_the_marked_errors_and_no_others(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    report, complaint, _ = api.run(["--strict", "--no-error-summary", "--no-pretty", str(case)])
    assert complaint == ""
    found = {(int(error[1]), error[2]) for line in report.splitlines() if (error := _ERROR.match(line)) is not None}
    assert found == expected(case), report
