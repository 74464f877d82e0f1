"""``jmsaio spark cleanup``."""

from __future__ import annotations

from functools import partial

import click

from jmsaio.cli.common.connecting import broker_options, full_name, of_option, topic_option
from jmsaio.cli.common.output import NOTHING, OK, PARTLY, json_option, make_output, printable
from jmsaio.cli.spark.running import needs_extra, read_source, write_summary
from jmsaio.model.destinations import parse_destination_text


@click.command()
@click.argument("destination")
@topic_option
@of_option
@broker_options
@click.option("--subscription", metavar="NAME", help="Delete this subscription.")
@click.option(
    "--all", "every", is_flag=True,
    help="Delete all subscriptions named jmsaio-spark-*, except jmsaio-spark-redrive.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only list the subscriptions.")
@json_option
@needs_extra
def cleanup(
    destination: str, topic: bool, of: str | None, url: str | None, settings: tuple[str, ...],
    subscription: str | None, every: bool, dry_run: bool, as_json: bool | None,
) -> int:  # fmt: skip
    """Delete subscriptions that jobs created on DESTINATION and that retain messages. Needs no Java.

    Stop archives and streams first: they connect no consumer, so their use of a subscription can't be detected. An
    archive with --consume needs its subscription to resume. A subscription with consumers is kept, and the exit code
    is 5; it is 3 if there is no subscription. After jmsaio-spark-redrive is deleted, the next redrive sends stored dead
    letters again. Subscriptions with other names are never touched.
    """
    from jmsaio.maintenance.job_cursors import clean_up
    from jmsaio.spark.options.parse import Use, parse_options
    from jmsaio.spark.worker import call_broker

    if (subscription is not None and every) or not (subscription is not None or every or dry_run):
        raise click.UsageError("give --subscription NAME or --all to delete, or --dry-run to see what there is")
    named = parse_destination_text(full_name(destination, topic))
    output = make_output(as_json)
    summary = call_broker(
        parse_options(read_source(url, settings), Use.WRITE),
        partial(clean_up, destination=named, of=of, subscription=subscription, dry_run=dry_run),
    )
    if not output.as_json:
        for each in summary["cursors"]:
            why = f": {each['reason']}" if each["reason"] else f", {each['backlog']} entries behind"
            output.line(printable(f"{each['state']} {each['subscription']} of {each['topic']}{why}"))
    count = len(summary["cursors"])
    text = f"{count} found" if dry_run else f"{summary['deleted']} of {count} deleted"
    write_summary(output, summary, text)
    return PARTLY if summary["kept"] else OK if count else NOTHING
