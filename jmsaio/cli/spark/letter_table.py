"""The report on dead letters for people: as a table, in Markdown, and the bars of a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jmsaio.cli.common.output import printable, shown_age

if TYPE_CHECKING:
    from rich.table import Table

    from jmsaio.bench.drawing import Panel

Summary = Mapping[str, Any]
#: Groups in a picture at most.
_BARS = 20
#: Characters of a bar's label at most.
_LABEL = 60
_HOUR = 3600
_DEFAULT = "persistent://public/default/"
_NUMBERS = ("letters", "redriven", "bytes")


def lines_of(summary: Summary) -> list[list[str]]:
    """The names of the columns, then one line for each group."""
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
    """One line for each sample: which group, its id, its place, and its body where that was asked for."""
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


def table_of(summary: Summary) -> Table:
    """The groups as a table for a terminal."""
    from rich.markup import escape
    from rich.table import Table

    head, *lines = lines_of(summary)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in head:
        table.add_column(escape(name), justify="right" if name in _NUMBERS else "left", overflow="fold")
    for line in lines:
        table.add_row(*map(escape, line))
    return table


def markdown_of(summary: Summary) -> str:
    """The groups as a table in Markdown, and the samples as a list."""
    head, *lines = lines_of(summary)
    rows = [head, ["---"] * len(head), *lines]
    text = "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in rows)
    samples = "".join(f"- {_cell(each)}\n" for each in samples_of(summary))
    return f"{text}\n\n{samples}" if samples else f"{text}\n"


def _cell(text: str) -> str:
    """Text that no Markdown or HTML is found in."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")


def panels_of(summary: Summary) -> Sequence[Panel]:
    """The largest groups as bars: how many dead letters, and how old the oldest is."""
    from jmsaio.bench.drawing import Bar, Panel

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
