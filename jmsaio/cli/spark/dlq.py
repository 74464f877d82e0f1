"""``jmsaio spark dlq``: reports dead letters, and sends them again."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from jmsaio.cli.common.connecting import (
    broker_options,
    full_name,
    of_option,
    selector_option,
    target_options,
    topic_option,
)
from jmsaio.cli.common.output import OK, Output, make_output, show_help_alone, width_of, write_outcome
from jmsaio.cli.spark.letter_report import draw, markdown_of, samples_of, table_of
from jmsaio.cli.spark.running import pairs, read_source, running, session_options, write_summary
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import parse_destination_text

P = ParamSpec("P")
T = TypeVar("T")


@click.group(invoke_without_command=True)
@click.pass_context
def dlq(context: click.Context) -> None:
    """Report dead letters, and send them back to the destinations they failed on."""
    show_help_alone(context)


def _letter_options(command: Callable[P, T]) -> Callable[P, T]:
    return click.argument("destination")(topic_option(of_option(broker_options(selector_option(command)))))


@dlq.command()
@_letter_options
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
@click.option("--markdown", is_flag=True, help="Write the report in Markdown.")
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the report to this .svg, .png or .pdf file; needs pip install 'jmsaio[plot]'.",
)
@session_options
def report(
    destination: str, topic: bool, of: str | None, url: str | None, settings: tuple[str, ...], selector: str | None,
    names: tuple[str, ...], pending: bool, bodies: bool, groups: int, markdown: bool, picture: Path | None,
    master: str, conf: tuple[str, ...], as_json: bool | None,
) -> int:  # fmt: skip
    """Count the dead letters in DESTINATION by origin, subscription, JMSType and properties; nothing is acknowledged.

    The samples are the oldest letters. Bodies are shown only with --bodies.
    """
    from jmsaio.spark.jobs.dead_letters import ReportOrder, report_dead_letters

    if markdown and as_json:
        raise click.UsageError("give --markdown or --json, not both")
    if picture is not None:
        _require_picture(picture)
    order = ReportOrder(
        connection=read_source(url, settings), destination=full_name(destination, topic), of=of, properties=names,
        selector=selector, pending=pending, bodies=bodies, groups=groups,
    )  # fmt: skip
    output = make_output(False if markdown else as_json)
    with running(output, master, pairs("--conf", conf)) as (start, _):
        summary = report_dead_letters(start(), order)
    if picture is not None and summary["groups"]:
        draw(summary, picture)
    if markdown:
        click.echo(markdown_of(summary), nl=False)
    else:
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
    write_summary(output, summary, f"{summary['letters']} dead letters, {summary['bytes']} bytes{again}{more}")


@dlq.command()
@_letter_options
@target_options
@click.option("--dry-run", is_flag=True, help="Only report what would be sent. Needs no Java.")
@session_options
def redrive(
    destination: str, topic: bool, of: str | None, url: str | None, settings: tuple[str, ...], selector: str | None,
    to: str | None, max_redrives: int, dry_run: bool, master: str, conf: tuple[str, ...], as_json: bool | None,
) -> int:  # fmt: skip
    """Send the dead letters in DESTINATION back to the destinations they failed on, acknowledging each one sent.

    A message can be sent twice if the command is stopped or loses the broker. Each has the properties
    jmsaio_redrive_count and jmsaio_origin_message_id, which identifies copies of the same message. The exit code is 5
    if something was left.
    """
    from jmsaio.maintenance.transfer import TransferRequest
    from jmsaio.spark.jobs.dead_letters import redrive_letters

    connection = read_source(url, settings)
    request = TransferRequest(
        destination=parse_destination_text(full_name(destination, topic)), of=of, selector=selector,
        to=None if to is None else parse_destination_text(full_name(to, topic=False)), max_redrives=max_redrives,
    )  # fmt: skip
    output, chosen = make_output(as_json), pairs("--conf", conf)
    if dry_run:
        summary = redrive_letters(None, connection, request)
    else:
        with running(output, master, chosen) as (start, _):
            summary = redrive_letters(start(), connection, request)
    return write_outcome(output, summary)
