"""``jmsaio spark``: check, archive, verify and replay, through PySpark."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import click
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from jmsaio.cli.connecting import broker_options, read_connection
from jmsaio.cli.exits import DATA_LOSS, ERROR, OK, PARTLY
from jmsaio.cli.output import Output, json_option, make_output, printable, show_help_alone
from jmsaio.errors import JMSError
from jmsaio.spark.jobs.failures import reason_of
from jmsaio.spark.model.destination_text import with_kind

P = ParamSpec("P")
T = TypeVar("T")

#: What the extra installs.
_EXTRA: Final = ("pyspark", "pyarrow")
_FOLDER: Final = click.Path(file_okay=False, path_type=Path)


@click.group(invoke_without_command=True)
@click.pass_context
def spark(context: click.Context) -> None:
    """Archive destinations in Parquet files and send them again, through Apache Spark.

    Needs Java and pip install 'jmsaio[spark]'; 'jmsaio spark check' says what is missing. Runs on this machine by
    default, on a cluster under spark-submit or with --master.

    The exit code is 4 when messages are lost, and 5 when something was left out.
    """
    show_help_alone(context)


def session_options(command: Callable[P, T]) -> Callable[P, T]:
    """Add the options of a session, and refuse the command where Spark is not installed."""

    @functools.wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> T:
        if any(importlib.util.find_spec(name) is None for name in _EXTRA):
            raise JMSError("Spark is not installed: pip install 'jmsaio[spark]'")
        return command(*arguments, **options)

    options = [
        click.option("--master", default="local[2]", show_default=True, metavar="URL", help="Where Spark runs tasks."),
        click.option("--conf", "conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark. Repeatable."),
        json_option,
    ]
    return functools.reduce(lambda done, option: option(done), reversed(options), run)


_topic_option = click.option("-t", "--topic", is_flag=True, help="The destination is a topic; default: a queue.")
_selector_option = click.option("-s", "--selector", metavar="SELECTOR", help="Only messages that it selects.")


@spark.command()
@broker_options
@session_options
def check(
    url: str | None, settings: tuple[str, ...], master: str, conf: tuple[str, ...], as_json: bool | None
) -> int:  # fmt: skip
    """Look at Java, the packages here and on a worker, and the way from a worker to the broker.

    The exit code is 1 when something has to be done.
    """
    from jmsaio.spark.jobs.check import Finding, check_driver, check_session
    from jmsaio.spark.session import open_session

    source, chosen = read_source(url, settings), _pairs("--conf", conf)
    output = make_output(as_json)
    findings = check_driver()
    if not any(each.advice for each in findings):
        connection = {"brokerServiceUrl" if name == "url" else name: text for name, text in source.items()}
        try:
            with open_session(master, chosen) as session:
                findings += check_session(session, connection)
        except Exception as error:  # whatever keeps Spark from starting
            advice = f"Spark did not start at {master}: {reason_of(error)}; see the lines above, and --master"
            findings.append(Finding("session", "none", advice))
    wrong = [each for each in findings if each.advice]
    if not output.as_json:
        for each in findings:
            output.line(printable(f"{'FAIL' if each.advice else 'ok':4}  {each.what}: {each.advice or each.found}"))
    _end(output, {
        "job": "check",
        "ok": not wrong,
        "findings": [{"what": each.what, "found": each.found, "advice": each.advice} for each in findings],
    }, f"{len(wrong)} of {len(findings)} need something" if wrong else "all is there")  # fmt: skip
    return ERROR if wrong else OK


@spark.command()
@click.argument("destination")
@click.argument("folder", type=_FOLDER)
@_topic_option
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
@_selector_option
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
        connection=read_source(url, settings), destination=_full(destination, topic), folder=folder, selector=selector,
        since=since, until=until, fail_on_data_loss=not accept_loss,
    )  # fmt: skip
    output, chosen = make_output(as_json), _pairs("--conf", conf)
    if dry_run:
        summary = describe_archive(order)
        text = f"{summary['entries']} entries, about {summary['bytes']} bytes to archive"
    else:
        with _session(output, master, chosen) as session:
            if once:
                from jmsaio.spark.jobs.streaming import archive_once

                summary = archive_once(session, order, entries)
            else:
                summary = archive_range(session, order)
        text = f"{summary['rows']} messages archived in {summary['files']} files, {summary['archived']} in all"
    if not output.as_json:
        _write_partitions(output, summary)
    stopped = summary.get("stopped")
    _end(output, summary, f"{text}; stopped, the same command goes on: {stopped}" if stopped else text)
    return DATA_LOSS if summary["lost"] else PARTLY if stopped else OK


@spark.command()
@click.argument("folder", type=_FOLDER)
@session_options
def verify(folder: Path, master: str, conf: tuple[str, ...], as_json: bool | None) -> int:
    """Count the messages in the archive in FOLDER, and compare them with its manifest."""
    from jmsaio.spark.jobs.verify import verify as verify_archive

    output = make_output(as_json)
    with _session(output, master, _pairs("--conf", conf)) as session:
        summary = verify_archive(session, folder)
    if not output.as_json:
        for sentence in summary["problems"]:
            output.line(printable(sentence))
    verdict = f"{len(summary['problems'])} problems" if summary["problems"] else "all there"
    _end(output, summary, f"{summary['rows']} messages, {verdict}")
    return DATA_LOSS if summary["problems"] else OK


@spark.command()
@click.argument("folder", type=_FOLDER)
@broker_options
@click.option("--as-new", is_flag=True, help="Send as new messages, with the old id as a property: the default.")
@_selector_option
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Messages a second at most.")
@click.option("--map-destination", "moves", multiple=True, metavar="A=B", help="Send messages of A to B. Repeatable.")
@click.option("--allow-same", is_flag=True, help="Send messages to where they were archived from.")
@click.option("--dry-run", is_flag=True, help="Only say what would be sent.")
@session_options
def replay(
    folder: Path, url: str | None, settings: tuple[str, ...], as_new: bool, selector: str | None, rate: float | None,
    moves: tuple[str, ...], allow_same: bool, dry_run: bool, master: str, conf: tuple[str, ...], as_json: bool | None,
) -> int:  # fmt: skip
    """Send the messages of the archive in FOLDER, in the order of each partition that they come from.

    A run that fails may have sent some, and sends them again when it is repeated.
    """
    from jmsaio.spark.jobs.replay import ReplayOrder
    from jmsaio.spark.jobs.replay import replay as replay_archive

    order = ReplayOrder(
        connection=read_source(url, settings), folder=folder, mapping=_pairs("--map-destination", moves),
        selector=selector, rate=rate, allow_same=allow_same,
    )  # fmt: skip
    output = make_output(as_json)
    with _session(output, master, _pairs("--conf", conf)) as session:
        summary = replay_archive(session, order, dry_run=dry_run)
    if not output.as_json:
        for each in summary["destinations"]:
            output.line(printable(f"{each['source']} to {each['target']}: {each['rows']}"))
    text = f"{summary['rows']} messages {'to send' if dry_run else 'sent'}"
    left = f", {summary['undecodable']} left out that can't be read in whole" if summary["undecodable"] else ""
    _end(output, summary, text + left)
    return PARTLY if summary["undecodable"] else OK


def read_source(url: str | None, settings: tuple[str, ...]) -> dict[str, str]:
    """The options of the data source that name the broker.

    Args:
        url: what ``--url`` says.
        settings: what ``--option`` says.

    Raises:
        click.UsageError, ConfigurationError: as ``read_connection``.
    """
    flat = dict(_flat(read_connection(url, settings)))
    broker = flat.pop("brokerServiceUrl", None) or flat.pop("service_url")
    return {"url": broker, **flat}


def _flat(settings: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Maps of a file as options with dots, and values as texts."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value).lower() if isinstance(value, bool) else str(value)


def _full(name: str, topic: bool) -> str:
    return with_kind(name, "topic" if topic else "queue")


def _pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise click.UsageError(f"{option} needs A=B, not {text!r}")
        pairs[name] = value
    return pairs


@contextmanager
def _session(output: Output, master: str, settings: Mapping[str, str]) -> Iterator[Any]:
    """A session with a line of progress; what Spark raises becomes one sentence."""
    from jmsaio.spark.session import open_session, tasks_done

    try:
        with _progress(output) as progress:
            task = progress.add_task("starting Spark", total=None)
            with open_session(master, settings) as session:
                progress.columns = (*progress.columns, _Tasks(functools.partial(tasks_done, session)))
                progress.update(task, description="working")
                yield session
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise JMSError(f"Spark failed: {reason_of(error)}; 'jmsaio spark check' says what is missing") from error


def _progress(output: Output) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(),
        console=output.remarks, transient=True, disable=output.as_json or not output.remarks.is_terminal,
    )  # fmt: skip


class _Tasks(ProgressColumn):
    """How many of Spark's tasks are done, asked for by the line itself."""

    max_refresh = 0.5

    def __init__(self, count: Callable[[], tuple[int, int]]) -> None:
        super().__init__()
        self._count = count

    def render(self, task: Any) -> Text:
        """The count; nothing when Spark does not say."""
        try:
            done, total = self._count()
        except Exception:  # a session that stops; a line of progress is no reason to fail
            return Text("")
        return Text(f"{done} of {total} tasks" if total else "")


def _write_partitions(output: Output, summary: Mapping[str, Any]) -> None:
    for each in summary["partitions"]:
        amount = f"{each['entries']} entries" if summary.get("dry_run") else f"{each['rows']} messages"
        output.line(printable(f"{each['topic']}: {each['start']} to {each['end']}, {amount}"))
    for sentence in summary["lost"]:
        output.line(printable(f"lost: {sentence}"))


def _end(output: Output, summary: Mapping[str, object], text: str) -> None:
    """The summary, as the last line."""
    if output.as_json:
        output.record(summary)
    else:
        output.line(printable(text))
