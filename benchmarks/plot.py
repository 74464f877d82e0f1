"""The plot of a report: one panel for each group, bars with the spread of the rounds."""

from __future__ import annotations

import importlib.util
import os

from benchmarks.report import Report, Row
from benchmarks.scenario import METRICS

#: Inches.
_WIDTH, _ROW_HEIGHT, _PANEL_HEIGHT = 9.0, 0.34, 0.9
_OURS, _PEERS = "#1f77b4", "#b0b0b0"


def require_matplotlib() -> None:
    """Check that a plot can be drawn, before its measurements take minutes. Raises ImportError."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("--plot needs matplotlib: pip install 'jmsaio[plot]'")


def write_plot(report: Report, file: str | os.PathLike[str]) -> None:
    """Draw ``report`` to ``file``; its suffix chooses the format (png, svg, pdf).

    Raises:
        ValueError: there is no measurement to draw, or the format is unknown.
        OSError: the file can't be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    groups = report.groups()
    if not groups:
        raise ValueError("the report has no measurement to draw")
    heights = [_PANEL_HEIGHT + _ROW_HEIGHT * len(rows) for rows in groups.values()]
    figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    # A canvas of its own instead of pyplot: no global state, no window system.
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(groups), 1, squeeze=False, height_ratios=heights)
    for (group, rows), axis in zip(groups.items(), axes[:, 0], strict=True):
        values = [row.value for row in rows]
        whiskers = [[each.median - each.low for each in values], [each.high - each.median for each in values]]
        colors = [_OURS if is_ours(row) else _PEERS for row in rows]
        axis.barh(range(len(rows)), [each.median for each in values], xerr=whiskers, color=colors, capsize=3)
        axis.set_yticks(range(len(rows)), labels=[row.scenario.title for row in rows], parse_math=False)
        axis.invert_yaxis()
        axis.set_title(f"{group.value} ({METRICS[group].unit})", loc="left", fontsize=10)
        axis.tick_params(labelsize=8)
    figure.savefig(os.fspath(file))


def is_ours(row: Row) -> bool:
    """Return True if a row measures jmsaio itself, not a peer or a bare loop."""
    return row.scenario.target.startswith("benchmarks.scenarios:") and not row.scenario.name.endswith(".bare")
