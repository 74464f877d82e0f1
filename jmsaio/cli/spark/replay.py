"""``jmsaio spark replay``."""

from __future__ import annotations

import click

from jmsaio.cli.common.connecting import Number, broker_options, selector_option
from jmsaio.cli.common.output import OK, PARTLY, make_output, printable
from jmsaio.cli.spark.running import FOLDER, pairs, read_source, running, session_options, write_summary


@click.command()
@click.argument("folder", type=FOLDER)
@broker_options
@click.option("--as-new", is_flag=True, help="Send new messages with the archived id as a property (the default).")
@click.option(
    "--dedup",
    is_flag=True,
    help="Send each message only once even if the replay is repeated; the target must have deduplication.",
)
@selector_option
@click.option("--rate", type=Number(min=0, min_open=True), metavar="N", help="Maximum messages per second.")
@click.option("--map-destination", "moves", multiple=True, metavar="A=B", help="Send messages of A to B. Repeatable.")
@click.option(
    "--allow-same", is_flag=True, help="Allow sending messages to the destination that they were archived from."
)
@click.option("--dry-run", is_flag=True, help="Only report what would be sent.")
@session_options
def replay(
    folder: str, url: str | None, settings: tuple[str, ...], as_new: bool, dedup: bool, selector: str | None,
    rate: float | None, moves: tuple[str, ...], allow_same: bool, dry_run: bool, master: str, conf: tuple[str, ...],
    as_json: bool | None,
) -> int:  # fmt: skip
    """Send the messages of the archive in FOLDER, in order within each source partition.

    Repeating a failed run sends the messages again that it had already sent, unless --dedup lets the broker drop them.
    """
    from jmsaio.spark.jobs.replay import ReplayOrder, replay as replay_archive

    if as_new and dedup:
        raise click.UsageError("--as-new and --dedup exclude each other")
    order = ReplayOrder(
        connection=read_source(url, settings), folder=folder, mapping=pairs("--map-destination", moves),
        selector=selector, rate=rate, allow_same=allow_same, dedup=dedup,
    )  # fmt: skip
    output = make_output(as_json)
    with running(output, master, pairs("--conf", conf)) as (start, _):
        summary = replay_archive(start(), order, dry_run=dry_run)
    if not output.as_json:
        for each in summary["destinations"]:
            output.line(printable(f"{each['source']} to {each['target']}: {each['rows']}"))
    text = f"{summary['rows']} messages {_done(dry_run, dedup)}"
    left = (
        f", {summary['undecodable']} left out because they can't be read completely" if summary["undecodable"] else ""
    )
    write_summary(output, summary, text + left)
    return PARTLY if summary["undecodable"] else OK


def _done(dry_run: bool, dedup: bool) -> str:
    """Describe what was done with the messages."""
    if dry_run:
        return "to send"
    return "offered; the broker drops those that it already has" if dedup else "sent"
