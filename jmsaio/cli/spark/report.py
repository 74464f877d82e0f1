"""``jmsaio spark report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from jmsaio.cli.common.output import DATA_LOSS, OK
from jmsaio.cli.spark.options import FOLDER, needs_extra
from jmsaio.cli.spark.report_pages import WRITERS
from jmsaio.model.arguments import shown

if TYPE_CHECKING:
    from jmsaio.spark.model.folder import AnyPath

_ENDINGS: Final = ", ".join(f".{ending}" for ending in WRITERS)


@click.command()
@click.argument("folder", type=FOLDER)
@click.option(
    "--output", "file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help=f"Write the report to this file; its ending is the format: {_ENDINGS}.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice([*WRITERS]), help="Format, whatever FILE's ending; default without FILE: md."
)  # fmt: skip
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@needs_extra
def report(folder: AnyPath, file: Path | None, form: str | None) -> int:
    """Report on the archive in FOLDER, in Markdown, HTML or JSON or as a picture (SVG). Needs no Java.

    The report has messages and bytes per day and by type, sizes, the largest messages, gaps, and dead letters by the
    topic where they failed. Gaps are the differences that 'jmsaio spark verify' finds, with which the exit code is 4,
    and the losses recorded by the archive.
    """
    from jmsaio.spark.jobs.report import report_archive

    form = form or ("md" if file is None else file.suffix.removeprefix("."))
    if form not in WRITERS:
        raise click.UsageError(
            f"--output needs a name that ends with one of {_ENDINGS}, or --format, not {shown(str(file))}"
        )
    summary = report_archive(folder)
    text = WRITERS[form](summary)
    if file is None:
        click.echo(text, nl=False)
    else:
        file.write_text(text, encoding="utf-8")
    return DATA_LOSS if summary["problems"] else OK
