"""The report on dead letters as a table, as Markdown, and as a bar chart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jmsaio.cli.common.output import printable, shown_age, table_text

if TYPE_CHECKING:
    from pathlib import Path

    from rich.text import Text

Summary = Mapping[str, Any]
#: Maximum number of groups in a chart.
_BARS = 20
#: Maximum length of a bar's label.
_LABEL = 60
#: Inches.
_WIDTH, _ROW_HEIGHT, _PANEL_HEIGHT = 9.0, 0.34, 0.9
_STRONG, _PALE = "#1f77b4", "#b0b0b0"
_HOUR = 3600
_DEFAULT = "persistent://public/default/"
_NUMBERS = ("letters", "redriven", "bytes")


def lines_of(summary: Summary) -> list[list[str]]:
    """Return the column names, followed by one line per group."""
    names = list(summary["groups"][0]["properties"]) if summary["groups"] else []
    head = ["origin", "subscription", "JMSType", *names, *_NUMBERS, "oldest", "newest"]
    return [[printable(text) for text in line] for line in (head, *map(_line, summary["groups"]))]


def _line(group: Summary) -> list[str]:
    return [
        _short(group["origin"]),
        group["subscription"] or "",
        group["type"] or "",
        *(text or "" for text in group["properties"].values()),
        *(str(group[name]) for name in _NUMBERS),
        *("" if group[name] is None else shown_age(group[name]) for name in ("oldest_age", "newest_age")),
    ]


def _short(origin: str | None) -> str:
    return (origin or "unknown").removeprefix(_DEFAULT).removeprefix("persistent://")


def samples_of(summary: Summary) -> list[str]:
    """Format one line per sample: its group, id, position and, if requested, body."""
    return [
        printable(f"{_label(group)}: {_sample(each)}") for group in summary["groups"] for each in group["samples"]
    ]  # fmt: skip


def _sample(sample: Summary) -> str:
    body = sample.get("body")
    place = f"{sample['id']} at {sample['position']} of {_short(sample['topic'])}"
    return place if body is None else f"{place}: {' '.join(body.split())}"


def _label(group: Summary) -> str:
    words = [group["subscription"], group["type"], *group["properties"].values()]
    return " ".join([_short(group["origin"]), *filter(None, words)])


def table_of(summary: Summary, width: int | None) -> Text:
    """Build a table of the groups for a terminal of that width; None: without limit."""
    lines = lines_of(summary)
    origin, subscription, kind, *chosen, letters, redriven, size, oldest, newest = range(len(lines[0]))
    order = [origin, letters, *chosen, subscription, kind, oldest, newest, redriven, size]
    return table_text(lines, order, {letters, redriven, size}, width)


def markdown_of(summary: Summary) -> str:
    """Write the groups as a Markdown table, and the samples as a list."""
    head, *rest = lines_of(summary)
    rows = [head, ["---"] * len(head), *rest]
    table = "".join(f"| {' | '.join(map(_escape_markdown, row))} |\n" for row in rows)
    samples = "".join(f"- {_escape_markdown(each)}\n" for each in samples_of(summary))
    return f"{table}\n{samples}" if samples else table


def _escape_markdown(text: str) -> str:
    """Escape Markdown and HTML."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")


def draw(summary: Summary, file: Path) -> None:
    """Draw the largest groups to ``file``: number of dead letters, and age of the oldest.

    There must be a group. The suffix of the file chooses the format (png, svg, pdf).

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the file can't be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    groups = summary["groups"][:_BARS]
    labels = [printable(_label(group))[:_LABEL] for group in groups]
    panels = (
        ("dead letters", _STRONG, [group["letters"] for group in groups]),
        ("age of the oldest (hours)", _PALE, [(group["oldest_age"] or 0) / _HOUR for group in groups]),
    )
    height = len(panels) * (_PANEL_HEIGHT + _ROW_HEIGHT * len(groups))
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    # A canvas of its own instead of pyplot: no global state, no window system.
    FigureCanvasAgg(figure)
    for axis, (title, color, values) in zip(figure.subplots(len(panels), 1), panels, strict=True):
        places = range(len(groups))  # not the labels, which can be equal
        axis.barh(places, values, color=color)
        axis.set_yticks(places, labels=labels, parse_math=False)
        axis.invert_yaxis()
        axis.set_title(title, loc="left", fontsize=10)
        axis.tick_params(labelsize=8)
    figure.savefig(file)
