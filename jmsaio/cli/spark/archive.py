"""``jmsaio spark archive``."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import click

from jmsaio.cli.common.connecting import Number, Source, broker_options, full_name, selector_option, topic_option
from jmsaio.cli.common.output import DATA_LOSS, OK, PARTLY, Output, printable
from jmsaio.cli.spark.running import FOLDER, read_source, running, session_options

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_by_signal() -> Iterator[tuple[Callable[[], bool], Callable[[], None]]]:
    """Yield a function that returns whether a signal came, and one that installs the handlers again.

    A second signal raises KeyboardInterrupt. Call it in the main thread. Spark installs its own handler for Ctrl-C,
    which cancels its jobs: install these again once the session has started.
    """
    is_requested = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal is_requested
        if is_requested:
            raise KeyboardInterrupt
        is_requested = True

    def install() -> None:
        for number in _SIGNALS:
            signal.signal(number, handle)

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    install()
    try:
        yield (lambda: is_requested), install
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@click.command()
@click.argument("destination")
@click.argument("folder", type=FOLDER)
@topic_option
@broker_options()
@click.option(
    "--once",
    is_flag=True,
    help="Archive what is stored now, and exit. Finished runs survive a later failure.",
)
@click.option(
    "--entries",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    metavar="N",
    help="Maximum entries per run, which is archived completely or not at all. A batch counts as one entry.",
)
@click.option(
    "--interval",
    type=Number(min=1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Maximum time between runs of a continuous archive; a run starts earlier once --entries are waiting.",
)
@click.option("--dry-run", is_flag=True, help="Only report what would be read: ranges, entries, bytes. Needs no Java.")
@selector_option
@click.option("--since", metavar="TIME", help="Only messages published at or after this time; ISO 8601, UTC.")
@click.option("--until", metavar="TIME", help="Only messages published before this time.")
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Continue if the broker has deleted unarchived messages; the exit code is then 4.",
)
@click.option(
    "--consume",
    is_flag=False,
    flag_value="",
    metavar="[NAME]",
    help="Acknowledge archived messages on subscription NAME, such as jms-queue; default: the archive's own.",
)
@session_options
def archive(
    source: Source, destination: str, folder: str, topic: bool, once: bool, entries: int, interval: float,
    dry_run: bool, selector: str | None, since: str | None, until: str | None, accept_loss: bool, consume: str | None,
    master: str, conf: dict[str, str], output: Output,
) -> int:  # fmt: skip
    """Archive the messages of DESTINATION in Parquet files in FOLDER. Nothing is acknowledged without --consume.

    Runs until interrupted; with --once, archives what is stored now and exits. Each run, a micro-batch of Spark,
    resumes where the previous one ended; every message is archived exactly once. After a failure, repeat the command to
    resume. Ctrl-C or SIGTERM finishes the current run; a second signal aborts it. Driver and workers must share FOLDER,
    or reach its URL, such as s3a://bucket/folder.
    """
    from jmsaio.spark.jobs.archive import (
        ArchiveOrder,
        Pace,
        archive as archive_messages,
        describe_archive,
        subscription_of,
    )

    if until is not None and not (once or dry_run):
        raise click.UsageError("--until needs --once: without it the archive runs until interrupted")
    order = ArchiveOrder(
        connection=read_source(source), destination=full_name(destination, topic), folder=folder,
        selector=selector, since=since, until=until, fail_on_data_loss=not accept_loss,
        consume=subscription_of(folder) if consume == "" else consume,
    )  # fmt: skip
    if dry_run:
        summary = describe_archive(order)
        if not output.as_json:
            for each in summary["partitions"]:
                line = f"{each['topic']}: {each['start']} to {each['end']}, {each['entries']} entries"
                output.line(printable(line))
        output.result(summary, f"{summary['entries']} entries, about {summary['bytes']} bytes to archive")
        return OK
    pace = Pace(entries=entries, interval=None if once else interval)
    with stop_by_signal() as (stop, install), running(output, master, conf) as (session, show):
        install()  # again: Spark has installed its own handler
        report = _reporter(output, show, once)
        summary = archive_messages(session, order, pace, stop=stop, report=report)
    return _write_archive(output, summary)


def _reporter(output: Output, show: Callable[[str], None], once: bool) -> Callable[[Mapping[str, Any]], None]:
    """Return a function that shows the total in the progress line, and without ``once`` writes a JSON record."""
    from jmsaio.spark.jobs.archive import pace_text

    def report(record: Mapping[str, Any]) -> None:
        if output.as_json and not once:
            output.record(record)
        show(printable(pace_text(record)))

    if not once:
        output.remark("press Ctrl-C to stop")
    return report


def _write_archive(output: Output, summary: Mapping[str, Any]) -> int:
    if not output.as_json:
        for each in summary["partitions"]:
            output.line(printable(f"{each['topic']}: archived up to {each['place']}"))
        for sentence in summary["lost"]:
            output.line(printable(f"lost: {sentence}"))
    stopped, unmoved = summary.get("stopped"), summary.get("unmoved")
    text = f"{summary['rows']} messages archived"
    if stopped:
        text += f"; stopped, repeat the command to resume: {stopped}"
    if unmoved:
        text += f"; {summary['subscription']} was not moved, repeat the command to move it"
    output.result(summary, text)
    return DATA_LOSS if summary["lost"] else PARTLY if stopped or unmoved else OK
