"""``jmsaio spark archive`` and ``verify``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from jmsaio.cli.common.connecting import broker_options
from jmsaio.cli.common.exits import DATA_LOSS, OK, PARTLY
from jmsaio.cli.common.output import Output, make_output, printable
from jmsaio.cli.spark.options import (
    FOLDER,
    full_name,
    pairs,
    read_source,
    selector_option,
    session_options,
    topic_option,
)
from jmsaio.cli.spark.running import running, write_summary


@click.command()
@click.argument("destination")
@click.argument("folder", type=FOLDER)
@topic_option
@broker_options
@click.option("--range", "as_range", is_flag=True, help="Archive what is stored now, behind what is archived already.")
@click.option("--once", is_flag=True, help="The same in small runs, each kept when a later one fails.")
@click.option(
    "--entries",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    metavar="N",
    help="With --once: entries of a run at most.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be read: ranges, entries, bytes. Needs no Java.")
@selector_option
@click.option("--since", metavar="TIME", help="Only messages published at this time or later; ISO 8601, UTC.")
@click.option("--until", metavar="TIME", help="Only messages published before this time.")
@click.option(
    "--accept-loss", is_flag=True, help="Go on when messages behind the archive are gone; the exit code is 4."
)
@session_options
def archive(
    destination: str, folder: Path, topic: bool, url: str | None, settings: tuple[str, ...], as_range: bool,
    once: bool, entries: int, dry_run: bool, selector: str | None, since: str | None, until: str | None,
    accept_loss: bool, master: str, conf: tuple[str, ...], as_json: bool | None,
) -> int:  # fmt: skip
    """Archive the messages of DESTINATION in Parquet files in FOLDER; nothing is acknowledged.

    A run goes on where the last one ended, and a message is archived once. The same command goes on after a failure.
    FOLDER must be on a file system that the driver and all workers share.
    """
    from jmsaio.spark.jobs.archive import archive_range, describe_archive
    from jmsaio.spark.jobs.extent import ArchiveOrder

    if (as_range and once) or not (as_range or once or dry_run):
        raise click.UsageError("give --range or --once to archive what is stored now, or --dry-run to see what that is")
    order = ArchiveOrder(
        connection=read_source(url, settings), destination=full_name(destination, topic), folder=folder,
        selector=selector, since=since, until=until, fail_on_data_loss=not accept_loss,
    )  # fmt: skip
    output, chosen = make_output(as_json), pairs("--conf", conf)
    if dry_run:
        summary = describe_archive(order)
        text = f"{summary['entries']} entries, about {summary['bytes']} bytes to archive"
    else:
        with running(output, master, chosen) as session:
            if once:
                from jmsaio.spark.jobs.streaming import archive_once

                summary = archive_once(session, order, entries)
            else:
                summary = archive_range(session, order)
        text = f"{summary['rows']} messages archived in {summary['files']} files, {summary['archived']} in all"
    if not output.as_json:
        _write_partitions(output, summary)
    stopped = summary.get("stopped")
    write_summary(output, summary, f"{text}; stopped, the same command goes on: {stopped}" if stopped else text)
    return DATA_LOSS if summary["lost"] else PARTLY if stopped else OK


@click.command()
@click.argument("folder", type=FOLDER)
@session_options
def verify(folder: Path, master: str, conf: tuple[str, ...], as_json: bool | None) -> int:
    """Count the messages in the archive in FOLDER, and compare them with its manifest."""
    from jmsaio.spark.jobs.verify import verify as verify_archive

    output = make_output(as_json)
    with running(output, master, pairs("--conf", conf)) as session:
        summary = verify_archive(session, folder)
    if not output.as_json:
        for sentence in summary["problems"]:
            output.line(printable(sentence))
    verdict = f"{len(summary['problems'])} problems" if summary["problems"] else "all there"
    write_summary(output, summary, f"{summary['rows']} messages, {verdict}")
    return DATA_LOSS if summary["problems"] else OK


def _write_partitions(output: Output, summary: Mapping[str, Any]) -> None:
    for each in summary["partitions"]:
        amount = f"{each['entries']} entries" if summary.get("dry_run") else f"{each['rows']} messages"
        output.line(printable(f"{each['topic']}: {each['start']} to {each['end']}, {amount}"))
    for sentence in summary["lost"]:
        output.line(printable(f"lost: {sentence}"))
