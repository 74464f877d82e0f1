"""The report on dead letters as a table, as Markdown, and as a bar chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jmsaio.cli.common.output import printable, shown_age, table_text

if TYPE_CHECKING:
    from rich.text import Text

    from jmsaio.cli.spark.drawing import Panel

Summary = Mapping[str, Any]
#: Maximum number of groups in a chart.
_BARS = 20
#: Maximum length of a bar's label.
_LABEL = 60
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
    text = markdown_table(lines_of(summary))
    samples = "".join(f"- {escape_markdown(each)}\n" for each in samples_of(summary))
    return f"{text}\n\n{samples}" if samples else f"{text}\n"


def markdown_table(lines: Sequence[Sequence[str]]) -> str:
    """Write lines of cells as a Markdown table. The first line is its head."""
    head, *rest = lines
    rows = [head, ["---"] * len(head), *rest]
    return "\n".join("| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows)


def escape_markdown(text: str) -> str:
    """Escape Markdown and HTML."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")


def panels_of(summary: Summary) -> Sequence[Panel]:
    """Build bar charts of the largest groups: number of dead letters, and age of the oldest."""
    from jmsaio.cli.spark.drawing import Bar, Panel

    groups = summary["groups"][:_BARS]
    if not groups:
        return []
    labels = [printable(_label(group))[:_LABEL] for group in groups]
    counts = [Bar(label=label, value=group["letters"]) for label, group in zip(labels, groups, strict=True)]
    ages = [
        Bar(label=label, value=(group["oldest_age"] or 0) / _HOUR, strong=False)
        for label, group in zip(labels, groups, strict=True)
    ]
    return [Panel("dead letters", counts), Panel("age of the oldest (hours)", ages)]
