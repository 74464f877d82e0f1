"""``jmsaio guide``: the guides that come with the package, rendered on a terminal and raw when piped."""

from __future__ import annotations

import sys
from importlib import resources
from importlib.resources.abc import Traversable

import click
from rich.console import Console
from rich.markdown import Markdown

from jmsaio.cli.common.exits import OK
from jmsaio.cli.common.output import make_output
from jmsaio.config.options import nearest


def guides() -> dict[str, Traversable]:
    """The guides by name, in order."""
    folder = resources.files("jmsaio").joinpath("guide")
    files = (file for file in folder.iterdir() if file.name.endswith(".md"))
    return {file.name.removesuffix(".md"): file for file in sorted(files, key=lambda file: file.name)}


def title(text: str) -> str:
    """The first heading of a guide."""
    return next((line.lstrip("# ").strip() for line in text.splitlines() if line.startswith("# ")), "")


@click.command()
@click.argument("name", required=False)
@click.option("--raw/--rendered", default=None, help="Plain Markdown, or rendered; default: rendered on a terminal.")
def guide(name: str | None, raw: bool | None) -> int:
    """Show a guide, or list them all."""
    known = guides()
    if name is None:
        output = make_output(None)
        for key, file in known.items():
            heading = title(file.read_text(encoding="utf-8"))
            if output.as_json:
                output.record({"name": key, "title": heading})
            else:
                output.line(f"  {key:16} {heading}")
        output.remark("read one with: jmsaio guide NAME")
        return OK
    file_named = known.get(name.removesuffix(".md"))
    if file_named is None:
        hint = nearest(name, known) or f"; there are {', '.join(known)}"
        raise click.UsageError(f"unknown guide {name!r}{hint}")
    text = file_named.read_text(encoding="utf-8")
    if raw if raw is not None else not sys.stdout.isatty():
        click.echo(text, nl=False)
        return OK
    console = Console(width=min(Console().width, 110))
    console.print(Markdown(text))
    return OK
