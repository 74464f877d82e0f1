"""Bar charts in panels, drawn to a file."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence

import attrs

#: Inches.
_WIDTH, _ROW_HEIGHT, _PANEL_HEIGHT = 9.0, 0.34, 0.9
_STRONG, _PALE = "#1f77b4", "#b0b0b0"


@attrs.frozen(kw_only=True)
class Bar:
    """One bar.

    Attributes:
        strong: use the strong colour; if False, the pale one.
    """

    label: str
    value: float
    strong: bool = True


@attrs.frozen
class Panel:
    """Bars with one scale."""

    title: str
    bars: Sequence[Bar]


def require_matplotlib(what: str) -> None:
    """Check that ``what``, a feature that draws, can be used, before its work takes minutes.

    Raises:
        ImportError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError(f"{what} needs matplotlib: pip install 'jmsaio[plot]'")


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
        colors = [_STRONG if bar.strong else _PALE for bar in panel.bars]
        values = [bar.value for bar in panel.bars]
        axis.barh(places, values, color=colors)
        axis.set_yticks(places, labels=[bar.label for bar in panel.bars], parse_math=False)
        axis.invert_yaxis()
        axis.set_title(panel.title, loc="left", fontsize=10)
        axis.tick_params(labelsize=8)
    figure.savefig(os.fspath(file))
