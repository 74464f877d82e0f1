"""The text table of a report."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from benchmarks.report import Ratio, Report, Row
from benchmarks.scenario import METRICS, SPARK_GROUPS, Block, Goal, Metric

if TYPE_CHECKING:
    from rich.table import Table

#: Footnote of every table.
FOOT = (
    "Median of all rounds; spread: smallest to largest. A ratio is taken inside each round and shown as median "
    "[smallest..largest]. CPU: all threads of the client's process. jmsaio rows carry the whole JMS layer: eight "
    "properties on the wire for three of the message, typed, with message ids. Rows of raw pulsar-client and "
    "pulsar.asyncio carry the same text and three string properties, as their documentation shows it; the Java peer "
    "(Starlight for JMS) carries its own JMS layer and its warm round counts. Receive rows run from the first message "
    "to the last of a full backlog, latency from the call of send to the text in the receiver's hands."
)
#: Footnote of a table with Spark rows.
SPARK_FOOT = (
    "Rows of Spark: one session for all; time of the query, from its planning to its last row. CPU: of the tasks' "
    "Python processes; of the whole process for loops and senders. Each message has five properties, 13 on the wire. "
    "A loop is one process with pulsar-client's Reader: bare, reading every part of a message (touch), or building by "
    "hand the columns that the source builds (columns). Ready batches are made before the query and need no broker."
)
#: Additional remarks on a row, by metric.
_NOTES = {
    "jvm_cpu_us": "{:.1f} us CPU of the JVM",
    "bytes_row": "{:.0f} bytes a row",
    "bytes_out": "{:,.0f} bytes received",
}


def render_table(report: Report, width: int | None = None, color: bool = False) -> str:
    """Render the report as a text table.

    Args:
        report: the report.
        width: columns; default 120, whatever the width of the terminal.
        color: use ANSI colours.
    """
    from rich.console import Console

    text = io.StringIO()
    console = Console(
        file=text, width=width or 120, force_terminal=color, no_color=not color, highlight=False, emoji=False
    )
    for group, rows in report.groups().items():
        console.print(_table(group, rows))
    for sample in report.failures():
        console.print(f"FAILED {sample.scenario}, round {sample.round}: {sample.failure}", style="red", markup=False)
    for line in _foot(report):
        console.print(line, markup=False)
    return text.getvalue()


def _table(group: Block, rows: list[Row]) -> Table:
    from rich import box
    from rich.table import Table

    metric = METRICS[group]
    table = Table(title=group.value, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("row")
    table.add_column(f"median {metric.unit}", justify="right")
    table.add_column("spread", justify="right")
    if group is Block.LATENCY:
        table.add_column("p99 ms", justify="right")
    table.add_column("CPU us", justify="right")
    table.add_column("paired ratios")
    for row in rows:
        median, low, high = (_number(one, metric) for one in (row.value.median, row.value.low, row.value.high))
        cells = [row.scenario.title, median, f"{low}..{high}"]
        if group is Block.LATENCY:
            cells.append(f"{row.details['p99_ms']:.2f}")
        cells.append("" if row.cpu_us is None else f"{row.cpu_us.median:.1f}")
        table.add_row(*cells, "\n".join(_remarks(row, metric)))
    return table


def _number(value: float, metric: Metric) -> str:
    return f"{value:,.{metric.digits}f}"


def _remarks(row: Row, metric: Metric) -> list[str]:
    remarks = [_ratio(ratio) for ratio in row.ratios]
    if row.goal is not None:
        remarks.append(_verdict(row.goal, row.value.median, _number(row.goal.bound, metric)))
    remarks += [form.format(row.details[name]) for name, form in _NOTES.items() if name in row.details]
    return remarks


def _ratio(ratio: Ratio) -> str:
    values = ratio.values
    peer = ratio.reference.partition(".")[2]
    text = f"{values.median:.2f} x {peer}"
    if ratio.metric is not None:
        text = f"{ratio.metric}: {text}"
    if values.count > 1:
        text += f" [{values.low:.2f}..{values.high:.2f}]"
    if ratio.goal is not None:
        text += " " + _verdict(ratio.goal, values.median, f"{ratio.goal.bound:g}")
    return text


def _verdict(goal: Goal, value: float, bound: str) -> str:
    sign = "<=" if goal.at_most else ">="
    return f"goal {sign} {bound}: {'met' if goal.is_met(value) else 'MISSED'}"


def _foot(report: Report) -> list[str]:
    work, load, pace = report.workload, report.load(), report.yardstick()
    groups = report.groups().keys()
    lines = []
    if groups - SPARK_GROUPS:
        lines += [FOOT, _workload(report)]
    if groups & SPARK_GROUPS:
        lines += [
            SPARK_FOOT,
            f"Workload: {work.spark_messages:,} messages, text of {work.spark_characters} characters, micro-batches of "
            f"{work.spark_batch:,} rows.",
        ]
    lines.append("Environment: " + ", ".join(f"{name} {value}" for name, value in report.environment.items()) + ".")
    if load is not None and pace is not None:
        warning = " Load above 1: the figures are those of a busy machine." if load.median > 1 else ""
        lines.append(
            f"Load before a measurement: {load.median:.2f} ({load.low:.2f}..{load.high:.2f}); a fixed piece of work "
            f"took {pace.median:.0f} ms ({pace.low:.0f}..{pace.high:.0f}).{warning}"
        )
    return lines


def _workload(report: Report) -> str:
    work = report.workload
    return (
        f"Workload: {work.messages:,} messages, text of {work.characters} characters, 3 typed properties, window and "
        f"prefetch {work.window:,}, batch {work.batch_messages:,} / {work.batch_delay * 1e3:g} ms, "
        f"{work.workers:,} workers; latency {work.rate:,} messages a second for {work.seconds:g} s; "
        f"loop {report.loop}."
    )
