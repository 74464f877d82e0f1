"""``jmsaio spark dlq``: reports dead letters as a table and as a chart."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jmsaio.cli.common.connecting import (
    Source,
    broker_options,
    full_name,
    of_option,
    selector_option,
    topic_option,
)
from jmsaio.cli.common.output import (
    OK,
    Output,
    printable,
    show_help_alone,
    shown_age,
    table_text,
    width_of,
)
from jmsaio.cli.spark.running import read_source, running, session_options
from jmsaio.model.arguments import shown

if TYPE_CHECKING:
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


def draw(summary: Summary, file: Path) -> None:
    """Draw the largest groups to ``file``: number of dead letters, and age of the oldest.

    There must be a group. The suffix of the file chooses the format (png, svg, pdf).
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


@click.group(invoke_without_command=True)
@click.pass_context
def dlq(context: click.Context) -> None:
    """Report dead letters; 'jmsaio dlq redrive' sends them back to the destinations they failed on."""
    show_help_alone(context)


@dlq.command()
@click.argument("destination")
@topic_option
@of_option
@broker_options()
@selector_option
@click.option(
    "-p", "--property", "names", multiple=True, metavar="NAME", help="Also group by this property. Repeatable."
)
@click.option(
    "--pending", is_flag=True,
    help="Leave out letters acknowledged on the queue's subscription, or on jmsaio-spark-redrive if a redrive has "
    "created it.",
)  # fmt: skip
@click.option("--bodies", is_flag=True, help="Show the first 200 characters of text bodies in samples.")
@click.option(
    "--groups", type=click.IntRange(1, 10_000), default=100, show_default=True, metavar="N",
    help="Maximum number of groups.",
)  # fmt: skip
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the report to this .svg, .png or .pdf file; needs pip install 'jmsaio[plot]'.",
)
@session_options
def report(
    source: Source, destination: str, topic: bool, of: str | None, selector: str | None, names: tuple[str, ...],
    pending: bool, bodies: bool, groups: int, picture: Path | None, master: str, conf: dict[str, str], output: Output,
) -> int:  # fmt: skip
    """Count the dead letters in DESTINATION by origin, subscription, JMSType and properties; nothing is acknowledged.

    The samples are the oldest letters. Bodies are shown only with --bodies.
    """
    from jmsaio.spark.jobs.dead_letters import ReportOrder, report_dead_letters

    if picture is not None:
        _require_picture(picture)
    order = ReportOrder(
        connection=read_source(source), destination=full_name(destination, topic), of=of, properties=names,
        selector=selector, pending=pending, bodies=bodies, groups=groups,
    )  # fmt: skip
    with running(output, master, conf) as (session, _):
        summary = report_dead_letters(session, order)
    if picture is not None and summary["groups"]:
        draw(summary, picture)
    _write_report(output, summary)
    return OK


def _require_picture(file: Path) -> None:
    """Refuse a picture that can't be drawn, before the report takes minutes."""
    if file.suffix not in (".svg", ".png", ".pdf"):
        raise click.UsageError(f"--picture needs a name that ends with .svg, .png or .pdf, not {shown(file.name)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise click.UsageError("--picture needs matplotlib: pip install 'jmsaio[plot]'")


def _write_report(output: Output, summary: dict[str, Any]) -> None:
    if not output.as_json and summary["groups"]:
        output.console.print(table_of(summary, width_of(output.console)))
        for text in samples_of(summary):
            output.line(text)
    rest = summary["letters_of_other_groups"]
    more = f", {rest} of them in groups that are not shown (--groups)" if rest else ""
    again = f", {summary['redriven']} of them redriven before" if summary["redriven"] else ""
    output.result(summary, f"{summary['letters']} dead letters, {summary['bytes']} bytes{again}{more}")
