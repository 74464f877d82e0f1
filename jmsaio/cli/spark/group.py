"""The command group ``jmsaio spark``, and its short commands: ``check`` and ``replay``."""

from __future__ import annotations

import click

from jmsaio.cli.common.connecting import Source, broker_options, pairs, selector_option
from jmsaio.cli.common.output import ERROR, OK, PARTLY, Output, printable, show_help_alone
from jmsaio.cli.spark.archive import archive
from jmsaio.cli.spark.dlq import dlq
from jmsaio.cli.spark.running import FOLDER, read_source, running, session_options
from jmsaio.spark.jobs.failures import reason_of


@click.group(invoke_without_command=True)
@click.pass_context
def spark(context: click.Context) -> None:
    """Archive messages in Parquet files, replay archives, and report dead letters, with Apache Spark.

    Needs Java and pip install 'jmsaio[spark]'; 'jmsaio spark check' reports what is missing. Runs on this machine by
    default, or on a cluster under spark-submit or with --master.

    The exit code is 4 if messages were lost, and 5 if something was left out.
    """
    show_help_alone(context)


spark.add_command(archive)
spark.add_command(dlq)


@spark.command()
@broker_options()
@session_options
def check(source: Source, master: str, conf: dict[str, str], output: Output) -> int:
    """Check Java, the packages here and on a worker, and the connection from a worker to the broker.

    The exit code is 1 if something needs fixing.
    """
    from jmsaio.spark.jobs.check import Finding, check_driver, check_session
    from jmsaio.spark.options.parse import Use, parse_options
    from jmsaio.spark.session import open_session

    options = read_source(source)
    parse_options(options, Use.WRITE)  # raises for invalid options, and for secrets in their texts
    findings = check_driver()
    if not any(each.advice for each in findings):
        try:
            with open_session(master, conf) as session:
                findings += check_session(session, options)
        except Exception as error:  # anything that prevents Spark from starting
            advice = f"Spark did not start at {master}: {reason_of(error)}; see the lines above, and --master"
            findings.append(Finding("session", "none", advice))
    wrong = [each for each in findings if each.advice]
    if not output.as_json:
        for each in findings:
            output.line(printable(f"{'FAIL' if each.advice else 'ok':4}  {each.what}: {each.advice or each.found}"))
    output.result({
        "job": "check",
        "ok": not wrong,
        "findings": [{"what": each.what, "found": each.found, "advice": each.advice} for each in findings],
    }, f"{len(wrong)} of {len(findings)} need something" if wrong else "all is there")  # fmt: skip
    return ERROR if wrong else OK


@spark.command()
@click.argument("folder", type=FOLDER)
@broker_options()
@click.option("--as-new", is_flag=True, help="Send new messages with the archived id as a property (the default).")
@click.option(
    "--dedup",
    is_flag=True,
    help="Send each message only once even if the replay is repeated; the target must have deduplication.",
)
@selector_option
@click.option(
    "--map-destination",
    "moves",
    multiple=True,
    metavar="A=B",
    callback=pairs,
    help="Send messages of A to B. Repeatable.",
)
@click.option(
    "--allow-same", is_flag=True, help="Allow sending messages to the destination that they were archived from."
)
@click.option("--dry-run", is_flag=True, help="Only report what would be sent.")
@session_options
def replay(
    source: Source, folder: str, as_new: bool, dedup: bool, selector: str | None, moves: dict[str, str],
    allow_same: bool, dry_run: bool, master: str, conf: dict[str, str], output: Output,
) -> int:  # fmt: skip
    """Send the messages of the archive in FOLDER, in order within each source partition.

    Repeating a failed run sends the messages again that it had already sent, unless --dedup lets the broker drop them.
    """
    from jmsaio.spark.jobs.replay import ReplayOrder, replay as replay_archive

    if as_new and dedup:
        raise click.UsageError("--as-new and --dedup exclude each other")
    if not all(moves.values()):
        raise click.UsageError("--map-destination needs A=B, and B is missing")
    order = ReplayOrder(
        connection=read_source(source), folder=folder, mapping=moves,
        selector=selector, allow_same=allow_same, dedup=dedup,
    )  # fmt: skip
    with running(output, master, conf) as (session, _):
        summary = replay_archive(session, order, dry_run=dry_run)
    if not output.as_json:
        for each in summary["destinations"]:
            output.line(printable(f"{each['source']} to {each['target']}: {each['rows']}"))
    done = "offered; the broker drops those that it already has" if dedup else "sent"
    text = f"{summary['rows']} messages {'to send' if dry_run else done}"
    left = (
        f", {summary['undecodable']} left out because they can't be read completely" if summary["undecodable"] else ""
    )
    output.result(summary, text + left)
    return PARTLY if summary["undecodable"] else OK
