"""A report is drawn into a file."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from benchmarks.plot import is_ours, write_plot
from benchmarks.report import Report


def test_our_rows_are_told_from_the_peers(report: Report) -> None:
    assert [is_ours(row) for row in report.rows()] == [False, True, False, True]


def test_a_picture_is_written(report: Report, tmp_path: Path) -> None:
    write_plot(report, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_to_draw_is_refused(report: Report, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no measurement"):
        write_plot(attrs.evolve(report, samples=()), tmp_path / "plot.png")
