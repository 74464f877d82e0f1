"""The plot of a report: one panel for each group, bars with the spread of the rounds."""

from __future__ import annotations

import os

from jmsaio.bench.drawing import Bar, Panel, draw
from jmsaio.bench.report import Report, Row
from jmsaio.bench.scenario import METRICS


def write_plot(report: Report, file: str | os.PathLike[str]) -> None:
    """Draw ``report`` to ``file``; its suffix chooses the format (png, svg, pdf).

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: there is nothing to draw, or the format is unknown.
        OSError: the file can't be written.
    """
    groups = report.groups()
    if not groups:
        raise ValueError("the report has no measurement to draw")
    draw(
        [
            Panel(f"{group.value} ({METRICS[group].unit})", [_bar(row) for row in rows])
            for group, rows in groups.items()
        ],
        file,
    )


def _bar(row: Row) -> Bar:
    value = row.value
    return Bar(label=row.scenario.title, value=value.median, low=value.low, high=value.high, strong=is_ours(row))


def is_ours(row: Row) -> bool:
    """Return True if a row measures jmsaio itself, not a peer or a bare loop."""
    return row.scenario.target.startswith("jmsaio.") and not row.scenario.name.endswith(".bare")
