"""Bar charts in panels, drawn to a file: any panels, and the plot of a report."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence

import attrs

from jmsaio.bench.report import Report, Row
from jmsaio.bench.scenario import METRICS

#: Inches.
_WIDTH, _ROW_HEIGHT, _PANEL_HEIGHT = 9.0, 0.34, 0.9
_STRONG, _PALE = "#1f77b4", "#b0b0b0"


@attrs.frozen(kw_only=True)
class Bar:
    """One bar.

    Attributes:
        low: smallest value of the spread; None: no spread is drawn.
        high: largest value of the spread.
        strong: use the strong colour; if False, the pale one.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    strong: bool = True


@attrs.frozen
class Panel:
    """Bars with one scale."""

    title: str
    bars: Sequence[Bar]


def require_matplotlib(what: str) -> None:
    """Check that a plot can be drawn, before its measurements take minutes.

    Args:
        what: feature that needs matplotlib, for the error.

    Raises:
        ImportError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError(f"{what} needs matplotlib: pip install 'jmsaio[bench]'")


def draw(panels: Sequence[Panel], file: str | os.PathLike[str]) -> None:
    """Draw panels with at least one bar to ``file``; its suffix chooses the format (png, svg, pdf).

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: there is nothing to draw, or the format is unknown.
        OSError: the file can't be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not panels:
        raise ValueError("there is nothing to draw")
    heights = [_PANEL_HEIGHT + _ROW_HEIGHT * len(panel.bars) for panel in panels]
    figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    # A canvas of its own instead of pyplot: no global state, no window system.
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for panel, axis in zip(panels, axes[:, 0], strict=True):
        places = range(len(panel.bars))
        whiskers = [
            [bar.value - (bar.value if bar.low is None else bar.low) for bar in panel.bars],
            [(bar.value if bar.high is None else bar.high) - bar.value for bar in panel.bars],
        ]
        has_spread = any(map(any, whiskers))
        colors = [_STRONG if bar.strong else _PALE for bar in panel.bars]
        values = [bar.value for bar in panel.bars]
        axis.barh(places, values, xerr=whiskers if has_spread else None, color=colors, capsize=3)
        axis.set_yticks(places, labels=[bar.label for bar in panel.bars], parse_math=False)
        axis.invert_yaxis()
        axis.set_title(panel.title, loc="left", fontsize=10)
        axis.tick_params(labelsize=8)
    figure.savefig(os.fspath(file))


def write_plot(report: Report, file: str | os.PathLike[str]) -> None:
    """Draw ``report`` to ``file``: one panel for each group, bars with the spread of the rounds. Raises as ``draw``."""
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
