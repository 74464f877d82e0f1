"""``jmsaio spark status``."""

from __future__ import annotations

import click

from jmsaio.cli.common.connecting import broker_options
from jmsaio.cli.common.output import DATA_LOSS, OK, json_option, make_output, printable
from jmsaio.cli.spark.running import FOLDER, needs_extra, read_source, write_summary


@click.command()
@click.argument("folder", type=FOLDER)
@broker_options
@click.option("--losses", type=FOLDER, help="The dataLossFolder of a stream: also list the losses noted there.")
@json_option
@needs_extra
def status(
    folder: str, url: str | None, settings: tuple[str, ...], losses: str | None, as_json: bool | None
) -> int:  # fmt: skip
    """Report the unread messages of a stream or an archive. FOLDER is a checkpoint, or an archive. Needs no Java.

    The backlog is counted in entries; a batch of messages is one. The exit code is 4 if messages that are to be read
    next no longer exist.
    """
    from jmsaio.spark.jobs.status import status as find_status

    output = make_output(as_json)
    summary = find_status(read_source(url, settings), folder, losses)
    if not output.as_json:
        for each in summary["partitions"]:
            where = "not read yet" if each["place"] is None else f"at {each['place']}"
            output.line(printable(f"{each['topic']}: {where}, {_behind(each)}"))
        for name in ("lost", "missing"):
            for sentence in summary[name]:
                output.line(printable(f"{name}: {sentence}"))
    last = ", ".join(f"{name} {value}" for name, value in summary["last"].items())
    write_summary(output, summary, f"{_behind(summary)}; {last}")
    return DATA_LOSS if summary["missing"] else OK


def _behind(each: dict[str, object]) -> str:
    since = f", oldest published {each['oldest']}" if each["oldest"] else ""
    return f"{each['entries']} entries, about {each['bytes']} bytes behind{since}"
