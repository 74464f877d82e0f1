"""The picture of a report: one panel for each group, bars with the spread of the rounds."""

from __future__ import annotations

import importlib.util
import os

from jmsaio.bench.report import Report, Row
from jmsaio.bench.scenario import METRICS, Group

#: Inches.
_WIDTH, _ROW_HEIGHT, _PANEL_HEIGHT = 9.0, 0.34, 0.9
_OURS, _THEIRS = "#1f77b4", "#b0b0b0"


def require_plot() -> None:
    """Make sure that a picture can be drawn, before minutes are spent on what it shows.

    Raises:
        ImportError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("the plot needs matplotlib: pip install 'jmsaio[bench]'")


def write_plot(report: Report, file: str | os.PathLike[str]) -> None:
    """Draw ``report`` to ``file``; its suffix chooses the format (png, svg, pdf).

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: there is nothing to draw, or the format is unknown.
        OSError: the file can't be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = panels_of(report)
    if not panels:
        raise ValueError("the report has no measurement to draw")
    heights = [_PANEL_HEIGHT + _ROW_HEIGHT * len(rows) for _, rows in panels]
    figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    # A canvas of its own and no pyplot: nothing global, no window system.
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for (group, rows), axis in zip(panels, axes[:, 0], strict=True):
        medians = [row.value.median for row in rows]
        whiskers = [
            [row.value.median - row.value.low for row in rows],
            [row.value.high - row.value.median for row in rows],
        ]
        colors = [_OURS if is_ours(row) else _THEIRS for row in rows]
        axis.barh([row.scenario.title for row in rows], medians, xerr=whiskers, color=colors, capsize=3)
        axis.invert_yaxis()
        axis.set_title(f"{group.value} ({METRICS[group].unit})", loc="left", fontsize=10)
        axis.tick_params(labelsize=8)
    figure.savefig(os.fspath(file))


def panels_of(report: Report) -> list[tuple[Group, list[Row]]]:
    """The groups that have rows, with their rows, in table order."""
    rows = report.rows()
    panels = [(group, [row for row in rows if row.scenario.group is group]) for group in Group]
    return [(group, found) for group, found in panels if found]


def is_ours(row: Row) -> bool:
    """Whether a row measures jmsaio itself, not a peer or a bare loop."""
    return row.scenario.target.startswith("jmsaio.") and not row.scenario.name.endswith(".bare")
