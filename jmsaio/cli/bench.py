"""``jmsaio bench``: the benchmarks that need no checkout, on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jmsaio.cli.common.exits import ERROR, OK
from jmsaio.cli.common.output import Output, json_option, make_output

if TYPE_CHECKING:
    from jmsaio.bench import Progress as Step
    from jmsaio.bench import Report


@click.command()
@click.argument("url", required=False)
@click.option("-r", "--rounds", type=click.IntRange(min=1), help="Measurements per row; default 5.")
@click.option("--smoke", is_flag=True, help="Use tiny amounts, only to check that every row runs.")
@click.option("--only", metavar="REGEX", help="Measure only the rows whose name matches.")
@click.option("--loop", type=click.Choice(["asyncio", "uvloop"]), default="asyncio", show_default=True)
@click.option("--json-file", type=click.Path(dir_okay=False), help="Write the full report to this file.")
@click.option(
    "--plot", "plot_file", type=click.Path(dir_okay=False), help="Write a plot to this file (needs matplotlib)."
)
@json_option
def bench(
    url: str | None, rounds: int | None, smoke: bool, only: str | None, loop: str, json_file: str | None,
    plot_file: str | None, as_json: bool | None,
) -> int:  # fmt: skip
    """Measure throughput, latency and memory on the embedded broker and, when given, on the broker at URL.

    'jmsaio guide benchmark' explains the rows. The exit code is 1 if a measurement failed.
    """
    from jmsaio import bench as benchmark

    output = make_output(as_json)
    if url is not None:
        from jmsaio.config import load

        load(url)  # report a mistake in it before anything runs
    try:
        benchmark.require_loop(loop)
        if plot_file is not None:
            benchmark.require_matplotlib("the plot")
    except ImportError as error:
        raise click.UsageError(str(error)) from None
    with _bar(output) as bar:
        report = benchmark.run(
            url, rounds=rounds, smoke=smoke, only=only, loop=loop, json_file=json_file, plot_file=plot_file,
            progress=_listener(bar),
        )  # fmt: skip
    _write(output, report)
    return ERROR if report.failures() else OK


def _listener(bar: Progress) -> Callable[[Step], None]:
    task = bar.add_task("measuring", total=None)

    def advance(step: Step) -> None:
        name = step.scenario.title if step.scenario is not None else "done"
        bar.update(task, description=name, completed=step.done, total=step.total)

    return advance


def _bar(output: Output) -> Progress:
    return Progress(
        BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False),
        console=output.remarks, transient=True, disable=output.as_json or not output.remarks.is_terminal,
    )  # fmt: skip


def _write(output: Output, report: Report) -> None:
    from jmsaio.bench import render_table

    if not output.as_json:
        click.echo(render_table(report, width=output.console.width, color=output.console.is_terminal), nl=False)
        return
    for row in report.rows():
        data: dict[str, object] = {"row": row.scenario.name, "title": row.scenario.title, "details": row.details}
        data["value"] = attrs.asdict(row.value)
        data["ratios"] = {ratio.reference: attrs.asdict(ratio.values) for ratio in row.ratios}
        output.record(data)
    for sample in report.failures():
        output.record({"row": sample.scenario, "round": sample.round, "failure": sample.failure})
